# SPDX-License-Identifier: Apache-2.0
"""A model of how MPICH reads a selection table, written from its behaviour; it knows nothing of the writer.

It asks two tables, the library's own and a changed one, for all kinds of calls, and compares the answers.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from commlens.base.errors import CommlensError

Tree = Mapping[str, Any]
FACTS = (
    "parent",
    "one_node",
    "consecutive",
    "threaded",
    "commutative",
    "built_in",
    "inplace",
    "regular",
    "few",
)
"""What a call or its communicator may be, besides their sizes."""
YES_NO = {
    "is_multi_threaded": "threaded",
    "is_commutative": "commutative",
    "is_op_built_in": "built_in",
    "is_sendbuf_inplace": "inplace",
    "is_block_regular": "regular",
    "is_node_consecutive": "consecutive",
}
ONCE = ("comm_type", "comm_size", "comm_hierarchy", "is_node_consecutive", "comm_avg_ppn")
"""Conditions that are decided when a communicator is made, as long as no other one comes before."""


@dataclass(frozen=True)
class Call:
    """A call as the library sees it.

    Attributes
    ----------
    size : int
        Number of processes.
    block : int
        Bytes of the message.
    is_inter : bool
        Whether the communicator is an intercommunicator.
    facts : frozenset of str
        Those of FACTS that hold.
    """

    size: int
    block: int
    is_inter: bool
    facts: frozenset[str]


def ask(table: Tree, collective: str, call: Call) -> tuple[str, tuple[str, ...]] | None:
    """Return the leaf and its parameters for a call; None if the table has none.

    Raises
    ------
    CommlensError
        MPICH would not accept a condition.
    """
    tree = table.get(f"collective={collective}", {})
    is_once = True
    while tree:
        for key, below in tree.items():
            if key.startswith(("algorithm=", "composition=")):
                return key, tuple(below)
            if not key.startswith(ONCE) and not key.endswith("any"):
                is_once = False
            if holds(key, call, is_once):
                tree = below
                break
        else:
            return None
    return None


def holds(key: str, call: Call, is_once: bool) -> bool:
    """Return whether a condition holds for a call."""
    property, _, value = key.partition("=")
    if value == "any":
        return True
    if property in YES_NO and value in ("yes", "no"):
        return (YES_NO[property] in call.facts) == (value == "yes")
    single = {
        "comm_type=intra": not call.is_inter,
        "comm_type=inter": call.is_inter,
        "comm_size=pow2": call.size & (call.size - 1) == 0,
        "comm_size=node_comm_size": "one_node" in call.facts,
        "comm_hierarchy=parent": "parent" in call.facts,
        "comm_hierarchy=node": "parent" not in call.facts,
        "comm_hierarchy=node_roots": "parent" not in call.facts,
        "comm_hierarchy=flat": "parent" not in call.facts,
        "count<pow2": "few" in call.facts,
    }
    if key in single:
        return single[key]
    match = re.fullmatch(r"(comm_size|avg_msg_size|total_msg_size)(<=?)(\d{1,10})", key, re.ASCII)
    if match is None or int(match[3]) > 2**31 - 1:
        raise CommlensError(f"MPICH would not accept the condition {key}")
    values = {"comm_size": call.size, "avg_msg_size": call.block, "total_msg_size": call.block * call.size}
    # After a condition on the call, MPICH 4.0 to 5.0 take comm_size<N for comm_size<=N.
    is_below = match[2] == "<" and (match[1] != "comm_size" or is_once)
    return values[match[1]] < int(match[3]) if is_below else values[match[1]] <= int(match[3])


def calls(sizes: Sequence[int], blocks: Sequence[int], conditions: str) -> Iterator[Call]:
    """Yield calls of all kinds that the conditions, as a text, can tell apart."""
    named = {
        "parent": "comm_hierarchy=",
        "one_node": "node_comm_size",
        "few": "count<pow2",
        **{fact: f"{property}=" for property, fact in YES_NO.items()},
    }
    told = [fact for fact in FACTS if named[fact] in conditions]
    for number in range(len(told) + 1):
        for facts in itertools.combinations(told, number):
            for size, block in itertools.product(sizes, blocks):
                yield Call(size, block, False, frozenset(facts))
    yield Call(sizes[0], blocks[0], True, frozenset())
