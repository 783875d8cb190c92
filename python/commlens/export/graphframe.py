# SPDX-License-Identifier: Apache-2.0
"""Objects of Hatchet and Thicket, and their JSON formats."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from typing import IO, Any

from commlens.base.packages import load
from commlens.base.progress import tracked
from commlens.export.calltree import CallTree, Values
from commlens.export.ranges import Ranges
from commlens.export.waiting import NAME as WAITING
from commlens.profile import open_profile
from commlens.profile.meta import is_summary, no_single_ranks
from commlens.selection.names import check_ranks

INCLUSIVE = ["time (inc)", "mpi time (inc)"]
EXCLUSIVE = ["time", "calls", "bytes sent", "bytes received"]

PROFILE = "profile"
"""Thicket's name of the index that identifies its profiles."""


def exclusive(tree: CallTree) -> list[str]:
    """Return the names of the metrics that can be summed over the nodes."""
    return [
        *EXCLUSIVE,
        *(name for name in tree.metric_names() if name == WAITING or name.endswith((" count", " sum"))),
    ]


def metrics(row: Values, metric_names: list[str]) -> dict[str, float | None]:
    """Return the values of one node on one rank by their names in Hatchet, in seconds and bytes."""
    return {
        "time": row.exclusive_ns / 1e9,
        "time (inc)": row.inclusive_ns / 1e9,
        "mpi time (inc)": row.mpi_ns / 1e9,
        "calls": row.calls,
        "bytes sent": row.bytes_sent,
        "bytes received": row.bytes_received,
        **dict(zip(metric_names, row.metric_values)),
    }


def metadata(connection: sqlite3.Connection) -> dict[str, str]:
    """Return the facts about the run; `nodes` has Adiak's name, because it has another meaning in Hatchet."""
    return {
        "numhosts" if key == "nodes" else key: value
        for key, value in connection.execute("SELECT key, value FROM meta ORDER BY key")
    }


def profile_number(connection: sqlite3.Connection) -> int:
    """Return the number by which Thicket identifies this profile: it depends on the run, not on the path."""
    run = connection.execute(
        "SELECT (SELECT world FROM rank ORDER BY rank LIMIT 1), (SELECT value FROM meta WHERE key = 'start_time')"
    ).fetchone()
    return int(hashlib.sha256(repr(tuple(run)).encode()).hexdigest()[:11], 16)


def hatchet(
    profile: str | os.PathLike[str],
    *,
    unfold: bool = False,
    mpi: bool = True,
    ranks: Ranges = (),
    callsites: bool = False,
) -> Any:
    """Return a profile as a hatchet.GraphFrame, indexed by node and rank.

    Parameters
    ----------
    profile : path
        A profile: a file, or a directory with several.
    unfold : bool
        Each communicator instead of families.
    mpi : bool
        With MPI calls below the regions they are in.
    ranks : sequence of (first, last)
        Only these world ranks; empty means all.
    callsites : bool
        The functions of call paths, from the outside in, instead of communicators.

    Returns
    -------
    hatchet.GraphFrame
        Times are in seconds. `time` is exclusive, and adds up over all nodes.

    Raises
    ------
    CommlensError
        The profile cannot be read, or has no rows of single ranks or none of those asked for, or the package llnl-hatchet
        is missing.
    """
    graph, graphframe = load("hatchet.graph", "llnl-hatchet"), load("hatchet.graphframe", "llnl-hatchet")
    pandas = load("pandas")
    with open_profile(os.fspath(profile)) as connection:
        if is_summary(connection):
            raise no_single_ranks("a GraphFrame")
        check_ranks(connection, ranks)
        tree = CallTree(connection, unfold, mpi, ranks, callsites=callsites)
        metric_names = tree.metric_names()
        made, columns = _made(tree, os.fspath(profile))
        whole = graph.Graph([one for one in made if not one.parents])
        whole.enumerate_depth()
        numbers = pandas.DataFrame(columns).astype(
            {name: float for name in metric_names if not name.endswith(" count")}
        )
        return graphframe.GraphFrame(
            whole,
            numbers.set_index(["node", "rank"]),
            exclusive(tree),
            list(INCLUSIVE),
            metadata=metadata(connection),
        )


def _made(tree: CallTree, source: str) -> tuple[list[Any], dict[str, list[Any]]]:
    """Return a hatchet.node.Node for each node, and the columns with their values."""
    frame, node = (load(f"hatchet.{part}", "llnl-hatchet") for part in ("frame", "node"))
    metric_names = tree.metric_names()
    made: list[Any] = []
    columns: dict[str, list[Any]] = {
        name: [] for name in ("node", "rank", "name", "type", *metrics(Values(0), []), *metric_names)
    }
    for part in tracked(tree.nodes, source):
        parent = None if part.parent is None else made[part.parent]
        made.append(node.Node(frame.Frame(name=part.name, type=part.kind), parent, hnid=part.number))
        if parent is not None:
            parent.add_child(made[-1])
        for row in tree.values(part):
            cells = {"node": made[-1], "rank": row.rank, "name": part.name, "type": part.kind}
            for name, value in (*cells.items(), *metrics(row, metric_names).items()):
                columns[name].append(value)
    return made, columns


def thicket(
    profile: str | os.PathLike[str],
    *more: str | os.PathLike[str],
    unfold: bool = False,
    mpi: bool = True,
    ranks: Ranges = (),
    callsites: bool = False,
) -> Any:
    """Return one or several profiles as a thicket.Thicket, indexed by node, profile and rank.

    Parameters are those of `hatchet`. Equal regions, communicators and operations of several profiles are one node; values
    that a profile lacks are NaN.

    Returns
    -------
    thicket.Thicket
        `profile_mapping` maps numbers to files; `metadata` has the facts of table meta.

    Raises
    ------
    CommlensError
        As in `hatchet`; or the package llnl-thicket is missing.
    """
    kind = load("thicket", "llnl-thicket").Thicket
    single = [
        kind.thicketize_graphframe(
            hatchet(one, unfold=unfold, mpi=mpi, ranks=ranks, callsites=callsites), os.fspath(one)
        )
        for one in (profile, *more)
    ]
    return single[0] if len(single) == 1 else kind.concat_thickets(single, disable_tqdm=True)


def write_hatchet(tree: CallTree, file: IO[str], source: str) -> None:
    """Write JSON for hatchet.GraphFrame.from_json(), with the facts about the run, which Hatchet ignores."""
    _write_tree(tree, file, source, {}, {"metadata": metadata(tree.connection)})


def write_thicket(tree: CallTree, file: IO[str], source: str) -> None:
    """Write JSON for thicket.Thicket.from_json()."""
    number = profile_number(tree.connection)
    facts = {
        "profile_idx_name": PROFILE,
        PROFILE: [number],
        "profile_mapping": {str(number): source},
        "metadata": [{PROFILE: number, **metadata(tree.connection)}],
    }
    _write_tree(tree, file, source, {PROFILE: number}, facts)


def _write_tree(
    tree: CallTree, file: IO[str], source: str, index: dict[str, int], facts: dict[str, Any]
) -> None:
    """Write nodes and rows, one at a time.

    Parameters
    ----------
    index : dict
        Index values that are equal in all rows and identify the profile.
    facts : dict
        Further members of the object.
    """
    head = {
        **facts,
        "inclusive_metrics": INCLUSIVE,
        "exclusive_metrics": exclusive(tree),
        "dataframe_indices": ["node", *index, "rank"],
    }
    metric_names = tree.metric_names()
    nodes = {
        node.number: {"data": {"name": node.name, "type": node.kind}, "children": node.children}
        for node in tree.nodes
    }
    file.write("{" + "".join(f"{json.dumps(key)}: {json.dumps(value)},\n" for key, value in head.items()))
    file.write(f'"graph": [{json.dumps(nodes)}],\n"dataframe": [')
    between = "\n"
    for node in tracked(tree.nodes, source):
        same = {"node": node.number, **index, "name": node.name, "type": node.kind}
        for row in tree.values(node):
            file.write(between + json.dumps({**same, "rank": row.rank, **metrics(row, metric_names)}))
            between = ",\n"
    file.write("]}\n")
