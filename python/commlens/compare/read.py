# SPDX-License-Identifier: Apache-2.0
"""Reads one profile for a comparison: facts, families with their lineage, and one row per operation."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import NamedTuple

from commlens.compare.load import NodeLoad, read_loads
from commlens.profile import meta, open_profile
from commlens.profile.shape import has_rows, has_table
from commlens.render.tree import rooted
from commlens.reports.query import Queries, Selection, Shape
from commlens.reports.settings import Setting, read_settings
from commlens.selection.conditions import PREDEFINED
from commlens.selection.names import matching_operations
from commlens.selection.sizes import NULL_BIN
from commlens.symbols.paths import has_paths, labelled_frames, path_of, read_callers

FAMILY_SQL = """\
SELECT family.*, module, build_id, callsite.offset
  FROM family LEFT JOIN callsite ON callsite.id = family.callsite AND callsite.id <> 0
 ORDER BY family"""
MEMBER_SQL = """\
SELECT DISTINCT owner.family AS owner, member.family AS member
  FROM comm_set JOIN comm AS owner ON owner.id = comm_set.comm JOIN comm AS member ON member.id = comm_set.member"""
RANKS_SQL = """\
SELECT node, MAX(mpi_ns) AS most, SUM(state <> 'finalized') AS unfinished FROM rank GROUP BY node ORDER BY node"""
UNFINISHED = "ranks without MPI_Finalize"
"""Name of the fact: the number of such ranks in a recovered profile; 0 in others, and in summary detail."""


Algorithms = dict[tuple[int, str, int], frozenset[str]]
"""Family, procedure and size bin -> the algorithms that ran, for runs that measured the messages inside collectives."""


class Split(NamedTuple):
    """Time of an operation, sum over all ranks and regions, estimated: waiting for other ranks, and the rest."""

    waiting_ns: float
    operation_ns: float


Splits = dict[tuple[int, str, int], Split]
"""Family, procedure and size bin -> its time, for runs that sampled the calls."""

SPLIT_SQL = """\
SELECT split.family, op.name AS operation, split.bin, waiting_ns, operation_ns
  FROM split JOIN op ON op.id = split.op"""

MOST_NAMES = 3
"""Algorithms that send the same messages and are named; more are only ambiguous."""


class Site(NamedTuple):
    """A call site: file name of the module, its build id, offset, and the function if it is known.

    callers : the functions around it, from the outside in, as module and offset; empty if the run recorded none
    """

    module: str
    build_id: str
    offset: int
    function: str
    callers: tuple[tuple[str, int], ...] = ()


@dataclass
class Family:
    """A family of communicators of one profile.

    Attributes
    ----------
    parent : int or None
        Number of the parent's family.
    predefined : str
        Letter of a communicator without creator and parent: W for MPI_COMM_WORLD; else empty.
    members : frozenset of int
        Families of the communicators of a set; else empty.
    name : str
        Name in this profile.
    label : str
        Name and number of communicators, as in a report; of a selected part of the family, that of the part.
    origin : str
        Creator, and call site.
    user_name : str
        Name that the application or MPI gave to all its communicators; else empty.
    """

    number: int
    kind: str
    creator: str
    parent: int | None
    predefined: str
    size: tuple[int, int]
    topology: str
    site: Site | None
    members: frozenset[int]
    name: str
    label: str
    origin: str
    user_name: str = ""


class Counts(NamedTuple):
    """Sums over all ranks of a row; slowest_ns is the time of the rank with the most, None if unknown."""

    calls: int
    bytes: int
    messages: int
    time_ns: int
    slowest_ns: int | None


class RowKey(NamedTuple):
    """A row of a profile: family, path of the code region, operation, size bin."""

    family: int
    region: str
    operation: str
    bin: int


@dataclass
class RunHead:
    """One profile without its counters.

    Attributes
    ----------
    settings : dict of str to str
        Labels and settings by name (table setting); values that differ between ranks are joined by " | ".
    """

    path: str
    facts: dict[str, str]
    settings: dict[str, str]
    elapsed_ns: int
    families: dict[int, Family]


@dataclass
class RunData(RunHead):
    """One profile, reduced to the compared data."""

    rows: dict[RowKey, Counts]
    whole: Counts
    algorithms: Algorithms = field(default_factory=dict)
    splits: Splits = field(default_factory=dict)
    loads: tuple[NodeLoad, ...] = ()


def sends_messages(operation: str, group: str) -> bool:
    """Return whether each call of a procedure sends one point-to-point message.

    >>> [sends_messages(name, "p2p") for name in ("MPI_Isend", "MPI_Sendrecv", "MPI_Recv", "MPI_Send_init")]
    [True, True, False, False]
    """
    return group == "p2p" and "send" in operation.lower() and not operation.endswith("_init")


def read_families(connection: sqlite3.Connection) -> dict[int, Family]:
    """Return the families of a profile by number."""
    rows = [dict(row) for row in connection.execute(FAMILY_SQL)]
    parents = rooted({row["family"]: row["parent"] for row in rows})
    sites = {row["callsite"] for row in rows if row["callsite"]}
    labelled = labelled_frames(connection, sites)
    callers = read_paths(connection, sites)
    members: dict[int, set[int]] = {}
    for owner, member in connection.execute(MEMBER_SQL):
        members.setdefault(owner, set()).add(member)
    found = {}
    for row in rows:
        site = None
        label, frame = labelled.get(row["callsite"] or 0, ("", None))
        if row["offset"] is not None:
            module = PurePosixPath(row["module"] or "").name
            function = frame.function if frame else ""
            site = Site(
                module, row["build_id"] or "", row["offset"], function, callers.get(row["callsite"], ())
            )
        is_predefined = row["kind"] == "intra" and not row["creator"] and row["parent"] is None
        count = f" x{row['communicators']}" if row["communicators"] > 1 else ""
        found[row["family"]] = Family(
            number=row["family"],
            kind=row["kind"],
            creator=row["creator"] or "",
            parent=parents[row["family"]],
            predefined=row["name"][:1] if is_predefined else "",
            size=(row["size_min"] or 0, row["size_max"] or 0),
            topology=(row["topology"] or "").partition(" ")[0],
            site=site,
            members=frozenset(members.get(row["family"], ())),
            name=row["name"],
            label=row["name"] + count,
            origin=" at ".join(part for part in (row["creator"], label) if part),
            user_name=row["user_name"] or PREDEFINED.get(row["name"][:1] if is_predefined else "", ""),
        )
    return found


def read_paths(connection: sqlite3.Connection, sites: set[int]) -> dict[int, tuple[tuple[str, int], ...]]:
    """Return the callers of call sites as module and offset, from the outside in; empty if the run recorded none."""
    if not has_paths(connection):
        return {}
    places = {
        id: (PurePosixPath(module or "").name, offset or 0)
        for id, module, offset in connection.execute('SELECT id, module, "offset" FROM callsite')
    }
    callers = read_callers(connection)
    return {
        site: tuple(places[caller] for caller in path_of(callers, site)[:-1])
        for site in sites
        if site in callers
    }


def read_rows(connection: sqlite3.Connection, selection: Selection) -> dict[RowKey, Counts]:
    """Return the selected rows of a profile; the operations of `selection` are names or globs.

    Raises
    ------
    CommlensError
        The profile has none of the operations.
    """
    operations = matching_operations(connection, selection.operations)
    selection = replace(selection, operations=operations)
    queries = Queries(selection, Shape(by="region"), is_summary=meta.is_summary(connection))
    rows: dict[RowKey, Counts] = {}
    for row in connection.execute(queries.operations(None)):
        key = RowKey(row["family"], row["path"] or "", row["operation"], row["bucket"])
        counts = Counts(
            row["calls"],
            row["bytes_sent"] + row["bytes_received"],
            row["calls"]
            if row["bucket"] != NULL_BIN and sends_messages(row["operation"], row["class"])
            else 0,
            row["time_ns"],
            row["rank_max_ns"],
        )
        # A region and a loop may have the same path.
        rows[key] = whole_of([rows[key], counts], None) if key in rows else counts
    return rows


def read_head(connection: sqlite3.Connection, path: str) -> RunHead:
    """Read the facts, the settings and the families of a profile."""
    facts = meta.facts(connection)
    nodes = connection.execute(RANKS_SQL).fetchall()
    facts["node names"] = ", ".join(row["node"] for row in nodes)
    slowest = max(nodes, key=lambda row: row["most"])["node"] if nodes else ""
    facts["node of the slowest rank in MPI"] = slowest
    facts[UNFINISHED] = str(sum(row["unfinished"] or 0 for row in nodes))
    cpus = connection.execute("SELECT DISTINCT cpus FROM rank ORDER BY cpus LIMIT 64").fetchall()
    facts["CPUs"] = " / ".join(row["cpus"] for row in cpus)
    settings = joined_settings(read_settings(connection))
    facts = {**settings, **facts}
    return RunHead(path, facts, settings, meta.number(facts, "elapsed_ns"), read_families(connection))


def read_run(path: str, selection: Selection) -> RunData:
    """Read one profile.

    Raises
    ------
    CommlensError
        The file is not a profile, is damaged, or has none of the operations.
    """
    with open_profile(path) as connection:
        rows = read_rows(connection, selection)
        is_all = not (selection.operations or selection.classes or selection.size)
        most = connection.execute("SELECT MAX(mpi_ns) FROM rank").fetchone()[0] if is_all else None
        head = read_head(connection, path)
        algorithms, splits = read_algorithms(connection), read_splits(connection)
        loads = read_loads(connection)
    whole = whole_of(rows.values(), most)
    return RunData(**vars(head), rows=rows, whole=whole, algorithms=algorithms, splits=splits, loads=loads)


def read_splits(connection: sqlite3.Connection) -> Splits:
    """Return the time of messages and collectives in two parts; empty if the run has no samples."""
    if not (has_table(connection, "sampled") and has_rows(connection, "sampled")):
        return {}
    return {
        (row["family"], row["operation"], row["bin"]): Split(row["waiting_ns"], row["operation_ns"])
        for row in connection.execute(SPLIT_SQL)
    }


def read_algorithms(connection: sqlite3.Connection) -> Algorithms:
    """Return the algorithms that `commlens algorithms` names in a profile; empty if it cannot name any."""
    is_measured = connection.execute(
        "SELECT 1 FROM meta WHERE key = 'inside' AND value = 'measured'"
    ).fetchone()
    if not is_measured or not has_table(connection, "peer") or meta.is_summary(connection):
        return {}
    from commlens.algorithms.recognise import SENDS_NOTHING, recognise

    found: dict[tuple[int, str, int], set[str]] = {}
    for line in recognise(connection).lines:
        if line.verdict != SENDS_NOTHING:
            for bin in line.bins:
                names = found.setdefault((line.where[0].family, line.procedure, bin), set())
                names.add(line.verdict if line.verdict.count(" or ") < MOST_NAMES else "ambiguous")
    return {place: frozenset(names) for place, names in found.items()}


def joined_settings(rows: Sequence[Setting]) -> dict[str, str]:
    """Return the values of settings by name."""
    found: dict[str, list[str]] = {}
    for row in rows:
        found.setdefault(row.name, []).append(row.value)
    return {name: " | ".join(values) for name, values in found.items()}


def whole_of(rows: Collection[Counts], most: int | None) -> Counts:
    """Return the sums of some rows; `most` is the time of the slowest rank in all of them."""
    return Counts(
        sum(row.calls for row in rows),
        sum(row.bytes for row in rows),
        sum(row.messages for row in rows),
        sum(row.time_ns for row in rows),
        most,
    )
