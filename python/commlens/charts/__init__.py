# SPDX-License-Identifier: Apache-2.0
"""Charts: `bars`, `spread` and `points` compute the numbers, `terminal` and `figures` draw them, `page` writes HTML."""
