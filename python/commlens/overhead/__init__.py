# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of a tool for an application, by the net / hook / wrap method.

`legs` says how the application is started with each tool, `measure` runs it in rounds, `estimate` says what can be said
of the times; `text` and `charts` show it.
"""

MOST_ROUNDS = 1000
"""Their statistics take 30 s and 350 MB for each difference, and both grow with the square."""
