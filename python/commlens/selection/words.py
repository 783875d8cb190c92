# SPDX-License-Identifier: Apache-2.0
"""Selections in words, for headings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from commlens.selection.conditions import CommSize

MOST_NAMED = 3
"""Number of procedures that are named; a glob may match a hundred."""


def range_text(bounds: tuple[int, int]) -> str:
    """Return a range as the user types it.

    >>> range_text((1, 1)), range_text((1, 3))
    ('1', '1-3')
    """
    low, high = bounds
    return str(low) if low == high else f"{low}-{high}"


def ranges_text(numbers: Iterable[int], separator: str = ", ") -> str:
    """Return numbers as ranges.

    >>> ranges_text([5, 0, 1, 2, 7]), ranges_text([0, 1, 2, 8], ",")
    ('0-2, 5, 7', '0-2,8')
    """
    found: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return separator.join(map(range_text, found))


def comms_text(comms: Sequence[str]) -> list[str]:
    """Return the selected communicators: those of some names, and those of some sizes.

    >>> comms_text(["s0.1", "s2.1", CommSize(16, 16)])
    ['communicators s0.1, s2.1', 'communicators of 16 ranks']
    """
    names = [name for name in comms if not isinstance(name, CommSize)]
    sizes = [size for size in comms if isinstance(size, CommSize)]
    named = [f"communicator{'s' if len(names) > 1 else ''} {', '.join(names)}"] if names else []
    return [*named, *([" or ".join(sizes)] if sizes else [])]


def operations_text(operations: Sequence[str]) -> str:
    """Return the selected procedures.

    >>> operations_text(["MPI_Send", "MPI_Recv"]), operations_text(["MPI_Send"] * 4)
    ('MPI_Send, MPI_Recv', '4 procedures')
    """
    if len(operations) > MOST_NAMED:
        return f"{len(operations)} procedures"
    return ", ".join(operations)


def ranks_text(ranks: Sequence[tuple[int, int]]) -> str:
    """Return the selected ranks.

    >>> ranks_text([(0, 0)]), ranks_text([(0, 0), (12, 15)])
    ('rank 0', 'ranks 0, 12-15')
    """
    is_one = len(ranks) == 1 and ranks[0][0] == ranks[0][1]
    return f"rank{'' if is_one else 's'} {', '.join(map(range_text, ranks))}"
