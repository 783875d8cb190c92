# SPDX-License-Identifier: Apache-2.0
"""Packs columns of integers and facts into one compressed block that the script of the page unpacks.

The block, before compression: the length of the head in bytes (4 bytes, little endian), the head in JSON, and the
planes of all columns.  A column of w bytes a value has w planes: the lowest bytes of all values, then the next ones.
Neighbouring values resemble each other most in their high bytes, so that planes compress better than values.
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


@dataclass(frozen=True)
class Packed:
    """Columns as planes, with what the head says about each: bytes a value, and what to add to a value."""

    rows: int
    columns: list[dict[str, Any]]
    planes: bytes

    def compressed_size(self) -> int:
        """Return the size of the planes in the page, in bytes."""
        return encoded_size(len(gzip.compress(self.planes, LEVEL, mtime=0)))


def encoded_size(size: int) -> int:
    """Return the length of a block in base64.

    >>> encoded_size(4), len(base64.b64encode(b"four"))
    (8, 8)
    """
    return 4 * -(-size // 3)


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
    return Packed(rows, heads, b"".join(planes))


def block(facts: Mapping[str, Any], tables: Mapping[str, Packed]) -> str:
    """Return facts and tables as one block in base64."""
    head = {
        **facts,
        "tables": {name: {"rows": table.rows, "columns": table.columns} for name, table in tables.items()},
    }
    text = json.dumps(head, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    encoded = text.encode("utf-8", "replace")
    body = len(encoded).to_bytes(4, "little") + encoded + b"".join(table.planes for table in tables.values())
    return base64.b64encode(gzip.compress(body, LEVEL, mtime=0)).decode("ascii")
