# SPDX-License-Identifier: Apache-2.0
"""Names that fit into a chart."""

from __future__ import annotations

from rich.cells import cell_len, chop_cells


def shortened(name: str, width: int) -> str:
    """Return a name of at most `width` columns, with its begin and its end.

    >>> shortened("MPI_COMM_WORLD", 9), shortened("W0.0", 9)
    ('MPI_…ORLD', 'W0.0')
    """
    if cell_len(name) <= width:
        return name
    last = ""
    for character in reversed(name):
        if cell_len(character + last) > (width - 1) // 2:
            break
        last = character + last
    return f"{chop_cells(name, width - 1 - (width - 1) // 2)[0]}…{last}"
