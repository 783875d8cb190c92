# SPDX-License-Identifier: Apache-2.0
"""Selections of communicators, procedures, ranks and message sizes in a profile."""
