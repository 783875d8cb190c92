# SPDX-License-Identifier: Apache-2.0
"""Limits a comparison to the communicators that --comm selects, which may be a part of a family."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from commlens.base.errors import CommlensError
from commlens.compare.match import Forest
from commlens.compare.read import RunData, RunHead, read_rows
from commlens.profile import open_profile
from commlens.reports.query import Selection
from commlens.selection.conditions import comm_conditions
from commlens.selection.names import check_communicators

# All communicators in the order of their family: by leader, then in the order in which the leader obtained them.
ORDER_SQL = """\
SELECT family, id, name, communicators, {selected} AS is_selected FROM comm ORDER BY family, leader, created_ns, id"""


class Part(NamedTuple):
    """The selected communicators of one family.

    Attributes
    ----------
    places : tuple of int
        Their places in the family, 0 for the first.
    names : tuple of str
        Their names.
    of : int
        Number of communicators in the family.
    """

    places: tuple[int, ...]
    names: tuple[str, ...]
    of: int

    @property
    def is_whole(self) -> bool:
        """Whether all communicators of the family are selected."""
        return len(self.places) == self.of


def selected_parts(connection: sqlite3.Connection, comms: Sequence[str]) -> dict[int, Part]:
    """Return the parts of families that the user selects, by the number of the family.

    Raises
    ------
    CommlensError
        A name or size selects no communicator.
    """
    check_communicators(connection, comms)
    selected = " AND ".join(f"COALESCE({condition}, 0)" for condition in comm_conditions(comms))
    families: dict[int, list[sqlite3.Row]] = {}
    for row in connection.execute(ORDER_SQL.format(selected=selected)):
        families.setdefault(row["family"], []).append(row)
    parts = {}
    for family, rows in families.items():
        places = [place for place, row in enumerate(rows) if row["is_selected"]]
        if places:
            names = tuple(rows[place]["name"] for place in places)
            parts[family] = Part(tuple(places), names, len(rows))
    return parts


def limit_to_parts(runs: Sequence[RunData], parts: dict[int, Part], selection: Selection) -> None:
    """Limit the rows of the families of `parts` to the selected communicators, in all runs.

    Names are those of the first run. Another run has its communicators at the same places of the matching family: names
    and numbers are never compared.

    Parameters
    ----------
    selection : Selection
        The operations, as names or globs, the classes and the sizes of the comparison.

    Raises
    ------
    CommlensError
        A matching family has another number of communicators, so that places do not correspond.
    """
    cut = {family: part for family, part in parts.items() if not part.is_whole}
    if not cut:
        return
    forest = Forest()
    nodes = [forest.add(i, run) for i, run in enumerate(runs)]
    wanted = {nodes[0][family]: part for family, part in cut.items()}
    for run, places in zip(runs, nodes):
        mine = {family: wanted[node] for family, node in places.items() if node in wanted}
        if mine:
            limit_run(run, runs[0].path, mine, selection)
            name_parts(run, mine)


def limit_run(run: RunData, first: str, parts: dict[int, Part], selection: Selection) -> None:
    """Limit the rows of one run; `parts` has its own numbers of families, `first` is the path of the first run."""
    with open_profile(run.path) as connection:
        chosen = tuple(map(str, ids_of_parts(connection, run, first, parts)))
        rows = read_rows(connection, replace(selection, comms=chosen))
    run.rows = {**{key: counts for key, counts in run.rows.items() if key.family not in parts}, **rows}
    run.splits = {place: split for place, split in run.splits.items() if place[0] not in parts}


def ids_of_parts(
    connection: sqlite3.Connection, run: RunHead, first: str, parts: dict[int, Part]
) -> list[int]:
    """Return the communicators of a run at the places of `parts`, which has the numbers of families in this run.

    Raises
    ------
    CommlensError
        A family has another number of communicators than that of the first run, whose path is `first`.
    """
    ids: dict[int, list[int]] = {family: [] for family in parts}
    counts = dict.fromkeys(parts, 0)
    for row in connection.execute(ORDER_SQL.format(selected="1")):
        if row["family"] in ids:
            ids[row["family"]].append(row["id"])
            counts[row["family"]] += row["communicators"]
    for family, part in parts.items():
        if len(ids[family]) != part.of:
            name, names = run.families[family].name, ", ".join(part.names)
            # In summary detail one row stands for several communicators.
            has = "does not keep its members apart" if counts[family] == part.of else f"has {counts[family]}"
            raise CommlensError(
                f"--comm: {names} is a part of a family of {part.of} communicators in {first}, but {name} in "
                f"{run.path} {has}; select the whole family"
            )
    return [ids[family][place] for family, part in parts.items() for place in part.places]


def name_parts(run: RunHead, parts: dict[int, Part]) -> None:
    """Give families of a run the labels of their selected parts, which are names of the first run."""
    for family, part in parts.items():
        one = run.families[family]
        if not part.is_whole:
            one.label = part.names[0] if len(part.names) == 1 else f"{one.name} x{len(part.names)}"
