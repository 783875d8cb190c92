# SPDX-License-Identifier: Apache-2.0
"""MPICH's selection tables: found in the library, and changed for communicators of one size and messages of some sizes.

A table is a tree of JSON objects. Each key is a condition, tried in order; the value is the tree below it, and a leaf
names an algorithm or a composition. The library contains its own tables as text. A file replaces a table as a whole, so a
rule is a changed copy of the table of exactly this library (docs/decisions/0034-mpich-rules.md).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commlens.algorithms._offered import LIBRARIES

Tree = dict[str, Any]
"""Conditions and the trees below them."""

TABLES = LIBRARIES["mpich"].tables
PAGE = 4096  # MPICH takes a mapped file for a text that ends with a zero: one of whole pages would have none
LONGEST = 1 << 20  # bytes of a table
LARGEST = (1 << 31) - 1  # bytes in a condition
START = re.compile(rb'\{"collective=\w+":')


@dataclass(frozen=True)
class Library:
    """The tables of one installed library.

    Attributes
    ----------
    algorithms : Tree
        Names the algorithm for a communicator.
    compositions : Tree or None
        Says before whether the algorithm runs on the communicator itself, or on its parts on each node; None if the
        library has no such table.
    keys : frozenset of str
        All algorithms and compositions that a table of this library may name.
    """

    algorithms: Tree
    compositions: Tree | None
    keys: frozenset[str]


@dataclass(frozen=True)
class Rule:
    """An algorithm for messages of some sizes.

    Attributes
    ----------
    name : str
        As in spec/algorithms.toml.
    low, high : int
        Smallest and largest value of the size that the table compares; both 0 if it compares none.
    """

    name: str
    low: int
    high: int


def read_library(path: Path) -> Library | None:
    """Return the tables in the file of an MPI library; None if it has none, or cannot be read."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    tables = [table for start in START.finditer(content) if (table := _table(content, start.start()))]
    algorithms = [table for table in tables if _has_leaf(table, "algorithm=MPIR_Allreduce_intra_")]
    compositions = [table for table in tables if _has_leaf(table, "composition=")]
    if len(algorithms) != 1 or len(compositions) > 1:
        return None
    keys = re.findall(rb"(?:algorithm|composition)=\w+", content)
    return Library(
        algorithms[0], compositions[0] if compositions else None, frozenset(key.decode() for key in keys)
    )


def _table(content: bytes, start: int) -> Tree | None:
    """Return the table that begins there; None if it is damaged."""
    end = content.find(b"\0", start, start + LONGEST)
    try:
        table = json.loads(content[start:end].decode("ascii"), object_pairs_hook=_pairs)
    except (ValueError, RecursionError):
        return None
    return table if isinstance(table, dict) else None


def _pairs(pairs: list[tuple[str, Any]]) -> Tree:
    """Return an object; refuse one with a key twice, because a copy would lose it."""
    if len(dict(pairs)) != len(pairs) or not all(isinstance(value, dict) for _, value in pairs):
        raise ValueError
    return dict(pairs)


def _has_leaf(tree: Tree, start: str) -> bool:
    return any(key.startswith(start) or _has_leaf(below, start) for key, below in tree.items())


def algorithm_key(collective: str, name: str) -> str:
    """Return how a table names an algorithm.

    >>> algorithm_key("bcast", "nb"), algorithm_key("gatherv", "linear"), algorithm_key("reduce", "binomial")
    ('algorithm=MPIR_Bcast_allcomm_nb', 'algorithm=MPIR_Gatherv_allcomm_linear', 'algorithm=MPIR_Reduce_intra_binomial')
    """
    where = "allcomm" if name in ("nb", "linear") else "intra"
    return f"algorithm=MPIR_{collective.capitalize()}_{where}_{name}"


def composition_key(collective: str) -> str | None:
    """Return how a table names the composition that runs the algorithm on the communicator itself; None if all do."""
    letter = TABLES[collective].composition
    return f"composition=MPIDI_{collective.capitalize()}_intra_composition_{letter}" if letter else None


def missing(library: Library, collective: str, size: int, name: str) -> str:
    """Return why no table of this library can name an algorithm for a communicator of this size; empty if one can."""
    needs = TABLES[collective].needs.get(name, ())
    if "comm_size=pow2" in needs and size & (size - 1):
        return "the algorithm needs a power of two of processes, and MPICH takes another one"
    if "is_sendbuf_inplace=yes" in needs:
        return "the algorithm is for MPI_IN_PLACE only"
    if algorithm_key(collective, name) not in library.keys:
        return "this MPICH does not have the algorithm"
    tables = [library.algorithms]
    if library.compositions is not None and (composition := composition_key(collective)) is not None:
        tables.append(library.compositions)
        if composition not in library.keys:
            return "this MPICH has other compositions"
    if any(_intra(table, collective) is None for table in tables):
        return "this MPICH's table has another form"
    return ""


def _intra(table: Tree, collective: str) -> Tree | None:
    """Return the part of a table for a collective on intracommunicators; None if it has none of the known form."""
    of: Tree | None = table.get(f"collective={collective}")
    if of is None:
        return None
    kinds = [key for key in of if key.startswith("comm_type=")]
    if kinds and (len(kinds) != len(of) or kinds[0] != "comm_type=intra"):
        return None
    return of["comm_type=intra"] if kinds else of


def changed(
    table: Tree, collective: str, sizes: Mapping[int, Sequence[Rule]], *, of_compositions: bool
) -> Tree:
    """Return a copy of a table with rules for a collective on communicators of some sizes.

    Around each size come conditions with the library's own choice, so that a rule counts for its size only.
    """
    own = _intra(table, collective)
    assert own is not None
    by_size: Tree = {}
    for size, rules in sorted(sizes.items()):
        if f"comm_size<={size - 1}" not in by_size:
            by_size[f"comm_size<={size - 1}"] = own
        by_size[f"comm_size<={size}"] = _for_size(collective, size, rules, own, of_compositions)
    by_size["comm_size=any"] = own
    of = table[f"collective={collective}"]
    # Without the type of the communicator, the rule would count for intercommunicators, too.
    kinds = of if "comm_type=intra" in of else {"comm_type=inter": own}
    return {**table, f"collective={collective}": {**kinds, "comm_type=intra": by_size}}


def _for_size(collective: str, size: int, rules: Sequence[Rule], own: Tree, of_compositions: bool) -> Tree:
    """Return the part of a table for communicators of one size."""
    facts = TABLES[collective]
    own = of_size(own, size)
    if facts.bytes == "none":
        return _guarded(collective, rules[0].name, own, of_compositions)
    found: Tree = {}
    next_byte = 0
    for rule in sorted(rules, key=lambda rule: rule.low):
        if rule.low > next_byte:
            found[f"{facts.bytes}<={rule.low - 1}"] = own
        found[f"{facts.bytes}<={rule.high}"] = _guarded(collective, rule.name, own, of_compositions)
        next_byte = rule.high + 1
    found[f"{facts.bytes}=any"] = own
    return _if(facts.bytes_need, found, own) if facts.bytes_need else found


def _guarded(collective: str, name: str, own: Tree, of_compositions: bool) -> Tree:
    """Return a tree that names an algorithm for the calls that it can do, and leaves the others as they are."""
    facts = TABLES[collective]
    key = composition_key(collective) if of_compositions else None
    tree: Tree = {key: {}} if key else {}
    if not key:
        tree = {algorithm_key(collective, name): {one: {} for one in facts.parameters.get(name, ())}}
    for need in reversed(facts.needs.get(name, ())):
        if need != "comm_size=pow2":  # the size is known
            tree = _if(need, tree, own)
    return tree


def _if(need: str, tree: Tree, own: Tree) -> Tree:
    """Return a tree that counts for calls with a property, and the library's own choice for the others."""
    if need == "count>=pow2":
        return {"count<pow2": own, "count=any": tree}
    if need == "comm_hierarchy=parent":
        return {need: tree, "comm_hierarchy=any": own}
    property, _, value = need.partition("=")
    return {need: tree, f"{property}={'no' if value == 'yes' else 'yes'}": own}


def of_size(tree: Tree, size: int) -> Tree:
    """Return the part of a tree that counts for communicators of one size.

    MPICH decides these conditions once for each communicator, as long as no condition on the call comes before. Below a
    condition on the call it takes `comm_size<8` for `comm_size<=8`. So what it decides first must be decided here.
    """
    found: Tree = {}
    for key, below in tree.items():
        is_true = size_decides(key, size)
        if is_true:
            last = of_size(below, size)
            return {**found, **{key: below for key, below in last.items() if key not in found}}
        if is_true is None:
            found[key] = of_size(below, size) if _is_of_communicator(key) else below
    return found


def size_decides(key: str, size: int) -> bool | None:
    """Return whether a condition holds for communicators of a size; None if the size does not decide it.

    >>> [size_decides(key, 8) for key in ("comm_size<8", "comm_size<=8", "comm_size=pow2", "comm_size=any", "count=any")]
    [False, True, True, True, None]
    """
    match = re.fullmatch(r"comm_size(<=?)(\d{1,9})", key, re.ASCII)
    if match:
        return size <= int(match[2]) - (match[1] == "<")
    return {"comm_size=pow2": size & (size - 1) == 0, "comm_size=any": True}.get(key)


def _is_of_communicator(key: str) -> bool:
    """Return whether MPICH decides a condition once for each communicator."""
    return key.startswith(("comm_", "is_node_consecutive="))


def text_of(table: Tree) -> str:
    """Return a table as the text of a file."""
    text = json.dumps(table, indent=1) + "\n"
    return text if len(text) % PAGE else text + "\n"
