# SPDX-License-Identifier: Apache-2.0
"""Compares profiles of runs: matches communicators by lineage, counts exactly, times by statistics."""
