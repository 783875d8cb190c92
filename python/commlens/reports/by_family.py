# SPDX-License-Identifier: Apache-2.0
"""A table of rows below the families of communicators that they belong to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from commlens.render.table import Column, Table
from commlens.reports.report import Row, line_size


class _HasRow(Protocol):
    @property
    def row(self) -> Row: ...


Item = TypeVar("Item", bound=_HasRow)


def draw_by_family(
    columns: Sequence[Column],
    items: Sequence[Item],
    name: Callable[[Row], str],
    cells: Callable[[Item], list[str]],
) -> Table:
    """Return a table with a line for each family, name and size of its communicators, and its items below.

    Families and items stay in the order in which they first occur.

    Parameters
    ----------
    name : returns the name of the family of a row
    cells : returns the cells of an item
    """
    table = Table(columns)
    families: dict[int, list[Item]] = {}
    for item in items:
        families.setdefault(item.row["family"], []).append(item)
    for members in families.values():
        row = members[0].row
        table.add([name(row), line_size(row), *[""] * (len(columns) - 2)], "bold")
        for item in members:
            table.add(cells(item))
    return table
