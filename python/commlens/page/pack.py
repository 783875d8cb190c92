# SPDX-License-Identifier: Apache-2.0
"""Packs columns of integers and facts into compressed blocks that the script of the page unpacks.

A block of columns, before compression, is the planes of all columns.  A column of w bytes a value has w planes: the
lowest bytes of all values, then the next ones.  Neighbouring values resemble each other most in their high bytes, so
that planes compress better than values.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from commlens.base.arrays import Ints

LEVEL = 6  # of gzip: higher ones take twice as long for 2 % less


def compressed(data: bytes) -> str:
    """Return data compressed, in base64."""
    return base64.b64encode(gzip.compress(data, LEVEL, mtime=0)).decode("ascii")


@dataclass(frozen=True)
class Packed:
    """Columns as a block, and what the head says about them: bytes a value, and what to add to a value."""

    rows: int
    columns: list[dict[str, Any]]
    block: str


def pack(columns: Mapping[str, Ints]) -> Packed:
    """Pack columns of the same length.

    >>> pack({"rank": np.array([3, 4, 300])}).columns
    [{'name': 'rank', 'bytes': 2, 'least': 3}]
    """
    heads, planes = [], []
    rows = 0
    for name, values in columns.items():
        rows = len(values)
        least = int(values.min()) if rows else 0
        shifted = (values - least).astype("<u8")
        width = max(1, -(-int(shifted.max()).bit_length() // 8)) if rows else 1
        bytes_of = shifted.view(np.uint8).reshape(rows, 8)
        planes += [bytes_of[:, k].tobytes() for k in range(width)]
        heads.append({"name": name, "bytes": width, "least": least})
    return Packed(rows, heads, compressed(b"".join(planes)))


def head(facts: Mapping[str, Any], tables: Mapping[str, Packed]) -> str:
    """Return the facts, and what the blocks of the tables contain, as a block."""
    described = {name: {"rows": table.rows, "columns": table.columns} for name, table in tables.items()}
    text = json.dumps(
        {**facts, "tables": described}, ensure_ascii=False, separators=(",", ":"), allow_nan=False
    )
    return compressed(text.encode("utf-8", "replace"))
