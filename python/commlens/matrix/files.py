# SPDX-License-Identifier: Apache-2.0
"""Writes a matrix as a file that other programs read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from commlens.base.errors import CommlensError
from commlens.base.escape import Target, escape
from commlens.base.outputs import new
from commlens.matrix import image
from commlens.matrix.facts import Facts
from commlens.matrix.query import TITLES
from commlens.render import table
from commlens.render.table import csv_text

COLUMNS = ("source", "destination", "messages", "bytes")


def csv_rows(facts: Facts) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return the heading and a row for each pair; traffic without known pair is a last row without ranks."""
    pairs, labels = facts.pairs, facts.axis.labels
    columns = (pairs.source, pairs.destination, pairs.messages, pairs.bytes)
    rows: list[tuple[Any, ...]] = [
        (labels[source], labels[destination], *values)
        for source, destination, *values in zip(*(column.tolist() for column in columns))
    ]
    if facts.matrix.messages:
        rows.append((None, None, facts.matrix.messages, facts.matrix.bytes))
    if facts.matrix.is_modelled:
        return (*COLUMNS, "origin"), [(*row, facts.matrix.kind) for row in rows]
    return COLUMNS, rows


def write_csv(facts: Facts, path: Path) -> None:
    """Write a line for each pair."""
    path.write_bytes(csv_text(*csv_rows(facts)).encode())


def write_json(facts: Facts, path: Path) -> None:
    """Write the document that --format json prints."""
    table.write_json(path, facts.as_dict())


def write_npz(facts: Facts, path: Path) -> None:
    """Write named arrays for numpy.load; scipy.sparse.load_npz reads the selected values as a matrix."""
    pairs, size = facts.pairs, len(facts.axis.labels)
    with path.open("wb") as file:
        np.savez_compressed(
            file,
            # SciPy reads these five arrays, and requires this type of the indices.
            format=np.array(b"coo"),
            shape=np.array([size, size], dtype=np.int64),
            row=pairs.source.astype(np.int32),
            col=pairs.destination.astype(np.int32),
            data=pairs.values(facts.what),
            messages=pairs.messages,
            bytes=pairs.bytes,
            labels=np.array(facts.axis.labels),
            kind=np.array(facts.matrix.kind),
        )


def write_mtx(facts: Facts, path: Path) -> None:
    """Write the Matrix Market format; its rows and columns begin with 1."""
    pairs, size = facts.pairs, len(facts.axis.labels)
    values = (pairs.source + 1, pairs.destination + 1, pairs.values(facts.what))
    with path.open("w", encoding="ascii", errors="replace") as file:
        file.write("%%MatrixMarket matrix coordinate integer general\n")
        if facts.matrix.is_modelled:
            file.write(f"% {TITLES[facts.matrix.kind]}\n")
        file.write(f"% {facts.what} from row to column, by {facts.axis.noun}\n")
        if facts.axis.labels != [str(i) for i in range(size)]:
            file.writelines(
                f"% {i} {escape(label, Target.LINE)}\n" for i, label in enumerate(facts.axis.labels, 1)
            )
        file.write(f"{size} {size} {len(pairs)}\n")
        file.writelines(
            f"{row} {column} {value}\n" for row, column, value in zip(*(v.tolist() for v in values))
        )


def write_graphml(facts: Facts, path: Path) -> None:
    """Write a directed graph with messages and bytes on its edges."""
    pairs, matrix = facts.pairs, facts.matrix
    keys = (
        ("label", "node", "string"),
        ("node", "node", "string"),
        ("messages", "edge", "long"),
        ("bytes", "edge", "long"),
        ("kind", "graph", "string"),
    )
    with path.open("w", encoding="utf-8") as file:
        file.write(
            '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
        )
        for name, of, kind in keys:
            file.write(f'<key id="{of}_{name}" for="{of}" attr.name="{name}" attr.type="{kind}"/>\n')
        file.write('<graph edgedefault="directed">\n')
        file.write(f'<data key="graph_kind">{matrix.kind}</data>\n')
        names = [escape(label, Target.HTML) for label in facts.axis.labels]
        for label, name in zip(facts.axis.labels, names):
            host = (
                matrix.nodes.get(int(label), "")
                if facts.axis.noun == "rank"
                else label.partition(" socket ")[0]
            )
            file.write(
                f'<node id="{name}"><data key="node_label">{name}</data>'
                f'<data key="node_node">{escape(host, Target.HTML)}</data></node>\n'
            )
        columns = (pairs.source, pairs.destination, pairs.messages, pairs.bytes)
        for source, destination, messages, bytes in zip(*(column.tolist() for column in columns)):
            file.write(
                f'<edge source="{names[source]}" target="{names[destination]}"><data key="edge_messages">{messages}</data>'
                f'<data key="edge_bytes">{bytes}</data></edge>\n'
            )
        file.write("</graph>\n</graphml>\n")


FORMATS: dict[str, Callable[[Facts, Path], None]] = {
    ".csv": write_csv,
    ".json": write_json,
    ".npz": write_npz,
    ".mtx": write_mtx,
    ".graphml": write_graphml,
}
PICTURES = {".png": image.write_png, ".svg": image.write_svg}
ENDINGS = (*PICTURES, *FORMATS)


def check_ending(output: Path, style: str) -> None:
    """Refuse a file whose name does not imply a format, or another one than that of --format."""
    if output.suffix.lower() not in ENDINGS:
        raise CommlensError(f"{output}: its name must end with one of {', '.join(ENDINGS)}")
    if style != "table" and output.suffix.lower() != f".{style}":
        raise CommlensError(
            f"{output}: the name of a file implies its format: without --format, or FILE.{style} for {style}"
        )


def write(facts: Facts, output: Path, heading: str) -> None:
    """Write a matrix in the format that the file name implies; never over an existing file.

    Raises
    ------
    CommlensError
        `output` exists or cannot be written.
    pre: check_ending()
    """
    ending = output.suffix.lower()
    with new(output) as temporary:
        if ending in PICTURES:
            PICTURES[ending](image.drawing(facts, heading), temporary)
        else:
            FORMATS[ending](facts, temporary)
