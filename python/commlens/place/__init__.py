# SPDX-License-Identifier: Apache-2.0
"""Placement: which rank should run on which core, so that ranks that exchange much are close to each other."""
