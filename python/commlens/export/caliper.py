# SPDX-License-Identifier: Apache-2.0
"""Caliper's JSON in layout json-split, for the Caliper readers of Hatchet, Thicket and CallFlow.

The format is a table: a column has values, or refers to nodes, which are listed once with their parents.
"""

from __future__ import annotations

import json
from itertools import islice
from typing import IO, Any

from commlens.base.progress import tracked
from commlens.export.calltree import CallTree, Node, Values
from commlens.export.graphframe import metadata

# Name of the column -> whether it has values.  The readers take the order of the nodes from the first column and then drop
# it.  They would list it among the metrics if it had values.
COLUMNS = {
    "Node order": False,
    "path": False,
    "mpi.rank": True,
    "sum#time.duration": True,
    "inclusive#sum#time.duration": True,
    "mpi time (inc)": True,
    "calls": True,
    "bytes sent": True,
    "bytes received": True,
}


def record(node: Node, row: Values) -> list[Any]:
    """Return one row in the order of the columns."""
    times = (ns / 1e9 for ns in (row.exclusive_ns, row.inclusive_ns, row.mpi_ns))
    return [
        node.number, node.number, row.rank, *times, row.calls, row.bytes_sent, row.bytes_received, *row.metric_values
    ]  # fmt: skip


def write_caliper(tree: CallTree, file: IO[str], source: str) -> None:
    """Write a file for hatchet.GraphFrame.from_caliper().

    The reader takes the order of node n from the first column of row n, whatever the node of that row.  So the rows of the
    first rank come first, one for each node.
    """
    file.write('{"data": [')
    between = "\n"
    columns = {**COLUMNS, **dict.fromkeys(tree.metric_names(), True)}
    for part, begin in (*((tree.narrowed(rank), 0) for rank in tree.ranks[:1]), (tree, 1)):
        for node in tracked(tree.nodes, source):
            for row in islice(part.values(node), begin, None):
                file.write(between + json.dumps(record(node, row)))
                between = ",\n"
    file.write(f'],\n"columns": {json.dumps(list(columns))},\n')
    file.write(
        f'"column_metadata": {json.dumps([{"is_value": is_value} for is_value in columns.values()])},\n'
    )
    nodes = [
        {"label": node.name, "column": "path", **({} if node.parent is None else {"parent": node.parent})}
        for node in tree.nodes
    ]
    file.write(f'"nodes": {json.dumps(nodes)}')
    file.write(
        "".join(
            f",\n{json.dumps(key)}: {json.dumps(value)}" for key, value in metadata(tree.connection).items()
        )
    )
    file.write("}\n")
