# SPDX-License-Identifier: Apache-2.0
"""How a communicator was created, from MPI_COMM_WORLD on, as one text: equal in all runs of one executable."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

from commlens.symbols.paths import distinct_labels

MOST_TEXT = 500
MOST_SITES = 2000  # call sites that get a label
ARROW = " > "


def root_of(comm: Mapping[str, Any]) -> str:
    """Return the name of a communicator that was not created from another one.

    >>> root_of({"kind": "intra", "name": "W0.0", "creator": None}), root_of({"kind": "set", "name": "{}", "creator": None})
    ('MPI_COMM_WORLD', 'set')
    """
    if comm["kind"] in ("set", "none"):
        return str(comm["kind"])
    if comm["creator"]:
        return ""
    first = comm["name"][:1]
    return {"W": "MPI_COMM_WORLD"}.get(first, f"predefined {first}")


def shortened(text: str) -> str:
    """Return a text of bounded length: a longer one begins with a hash of what it lacks.

    >>> shortened("a > b"), len(shortened("x" * 9999))
    ('a > b', 500)
    """
    if len(text) <= MOST_TEXT:
        return text
    digest = blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()
    return f"…{digest} {text[-(MOST_TEXT - len(digest) - 2) :]}"


def lineages(
    connection: sqlite3.Connection, comms: Mapping[int, Mapping[str, Any]], wanted: Iterable[int]
) -> dict[int, str]:
    """Return the lineage of some communicators.

    Parameters
    ----------
    comms : dict
        id -> name, kind, parent, creator, callsite.
    """
    found: dict[int, str] = {}
    pending: dict[int, None] = {}
    for comm in wanted:
        at: int | None = comm
        while at is not None and at in comms and at not in pending:
            pending[at] = None
            at = comms[at]["parent"]
    sites = [comms[comm]["callsite"] for comm in pending if comms[comm]["callsite"]]
    labels = distinct_labels(connection, set(sites[:MOST_SITES])) if sites else {}
    # A parent was created before its children, and its number is smaller, but for damaged profiles.
    for comm in sorted(pending):
        one = comms[comm]
        site = labels.get(one["callsite"])
        step = root_of(one) or f"{one['creator']}{f' at {site}' if site else ''}"
        parent = found.get(one["parent"], "")
        found[comm] = shortened(f"{parent}{ARROW}{step}" if parent else step)
    return found
