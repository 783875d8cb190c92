# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of a tool for an application, by the net / hook / wrap method.

`legs` builds the command lines, `measure` runs them in rounds, `estimate` computes the statistics of the times; `text`
and `charts` show it.
"""

MOST_ROUNDS = 1000
"""Their statistics take 30 s and 350 MB for each difference, and both grow with the square."""
