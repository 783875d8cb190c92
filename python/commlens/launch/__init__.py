# SPDX-License-Identifier: Apache-2.0
"""Finds commlens-run, and reads the settings of a run."""
