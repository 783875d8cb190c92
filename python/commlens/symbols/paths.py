# SPDX-License-Identifier: Apache-2.0
"""Call paths: the functions around a call site, as far as the run recorded them.

A call site names the call site of its caller. So the call sites of a profile are a forest. Functions of wrapper libraries,
which call MPI for the application, are not the place that a reader looks for: its label is the first frame outside them.
The same holds for extensions of Python, such as mpi4py, if the path goes on in Python.
"""

from __future__ import annotations

import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from typing import NamedTuple

from commlens.symbols.callsites import IN_PYTHON, Frame, callsite_frames

ARROW = " > "
MOST_LEVELS = 128
"""Depth of the tree; the calls of deeper functions are added to the last one."""
MOST_TOLD = 64
"""The most frames that a label has, to differ from that of another path."""

START_UP = {
    "_start", "__libc_start_main", "__libc_start_main_impl", "__libc_start_call_main", "start_thread", "clone", "__clone",
    "clone3", "__clone3", "__start_context",
}  # fmt: skip
"""Functions of the C library that call the first function of a program, thread or coroutine."""

BEGINS = {*START_UP, "main", "MAIN__", "MAIN_", "<module>"}
"""Functions that have no caller of interest."""

EXTENSION = re.compile(r"\.(cpython-3|abi3)[^/]*\.so$")
"""Ends the file name of an extension of Python."""

PLACES_SQL = f"""\
WITH RECURSIVE up(site, at) AS (
  SELECT id, caller FROM callsite WHERE module LIKE '%.cpython-3%.so' OR module LIKE '%.abi3%.so'
  UNION SELECT site, caller FROM up JOIN callsite ON id = at WHERE build_id NOT LIKE '{IN_PYTHON}%')
SELECT own.id, MIN(own.id) OVER (
         PARTITION BY COALESCE(line.module, own.module), COALESCE(line.build_id, own.build_id),
                      COALESCE(line."offset", own."offset"), own.id = 0)
  FROM callsite AS own LEFT JOIN up ON up.site = own.id
   AND EXISTS (SELECT 1 FROM callsite WHERE id = up.at AND build_id LIKE '{IN_PYTHON}%')
  LEFT JOIN callsite AS line ON line.id = up.at"""
"""Each call site, and the first one of the same place: a place has one for every path to it.

The place of a call in an extension of Python is the line of Python that calls it.
"""

Callers = Mapping[int, "int | None"]


def has_paths(connection: sqlite3.Connection) -> bool:
    """Return whether a profile has callers of call sites."""
    sql = "SELECT EXISTS (SELECT 1 FROM callsite WHERE caller IS NOT NULL)"
    return bool(connection.execute(sql).fetchone()[0])


def read_callers(connection: sqlite3.Connection) -> dict[int, int | None]:
    """Return the caller of every call site."""
    return dict(map(tuple, connection.execute("SELECT id, caller FROM callsite")))


def path_of(callers: Callers, site: int) -> list[int]:
    """Return the call sites of a path, the outermost first.

    A caller that is missing ends the path, and so does one that is on it already.

    >>> path_of({1: None, 2: 1, 3: 2}, 3), path_of({1: 2, 2: 1}, 1), path_of({1: 9}, 1)
    ([1, 2, 3], [2, 1], [1])
    """
    path = {site: None}
    caller = callers.get(site)
    while caller and caller in callers and caller not in path:
        path[caller] = None
        caller = callers[caller]
    return list(path)[::-1]


class Step(NamedTuple):
    """A frame of a path: its call site, and which of the functions that are inlined there, 0 being the innermost."""

    site: int
    inlined: int


class Node(NamedTuple):
    """A node of the tree of paths.

    Attributes
    ----------
    name : str
        The function; of a leaf also its file and line, and the wrappers that it calls.
    parent : int or None
        Number of the node around it.
    level : int
        Number of the nodes around it.
    """

    name: str
    parent: int | None
    level: int


class PathTree:
    """The paths of some call sites by function names, as a tree from the outside in.

    Parameters
    ----------
    wrappers : sequence of str
        Patterns of functions that are skipped for the label of a call site.
    depth : int
        Number of levels; calls of deeper functions belong to the last one.

    Attributes
    ----------
    nodes : list of Node
        Each after its parent.
    leaf : dict of int to int
        Call site -> node.
    shown : dict of int to Step
        Call site -> the first frame outside wrappers.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        sites: Iterable[int],
        wrappers: Sequence[str] = (),
        depth: int = MOST_LEVELS,
    ):
        self.nodes: list[Node] = []
        self._wrappers = wrappers
        self._depth = min(depth, MOST_LEVELS)
        self._numbers: dict[tuple[int | None, str, bool], int] = {}
        self._around: dict[int, int | None] = {}  # call site -> the node of the function that makes this call
        self._callers = read_callers(connection)
        wanted = [site for site in sites if site in self._callers]
        self._frames = callsite_frames(connection, on_paths(self._callers, wanted))
        self.stored = {
            site: (module or "", build_id or "", offset or 0)
            for site, module, build_id, offset in connection.execute(
                "SELECT id, module, build_id, offset FROM callsite"
            )
            if site in self._frames
        }
        self._begins: set[int] = set()
        for site, caller in self._callers.items():
            if caller in self._frames and self._is_start_up(site, caller):
                self._callers[site] = None
                self._begins.add(caller)
        self._name_modules()
        self._bindings: dict[int, bool] = {}
        self.shown = {site: self._outside(site) for site in wanted}
        self.leaf = {site: self._leaf(site) for site in wanted}

    def _is_start_up(self, site: int, caller: int) -> bool:
        """Return whether the C library's code before the program makes the call at `caller`.

        Its function has no name where the C library has been stripped of its local symbols.
        """
        function = self._frames[caller][-1].function
        if function not in ("", "??"):
            return function in START_UP
        module = self.stored[caller][0].rpartition("/")[2]
        return (
            module.startswith("libc.so.")
            and site in self._frames
            and self._frames[site][-1].function == "main"
        )

    def steps(self, site: int) -> Iterator[Step]:
        """Yield the frames of a path, the innermost first."""
        seen: set[int] = set()
        caller: int | None = site
        while caller in self._frames and caller not in seen:
            seen.add(caller)
            yield from (Step(caller, i) for i in range(len(self._frames[caller])))
            caller = self._callers[caller] or None

    def frame(self, step: Step) -> Frame:
        """Return the function and the place of a frame."""
        return self._frames[step.site][step.inlined]

    def is_begin(self, site: int) -> bool:
        """Return whether a call site is in the function with which a program or a thread begins, or before it."""
        return site in self._begins or (site in self._frames and self._frames[site][-1].function in BEGINS)

    def is_binding(self, site: int) -> bool:
        """Return whether a call site lies in an extension that Python code calls."""
        if site not in self._bindings:
            is_extension = EXTENSION.search(self.stored[site][0]) is not None
            self._bindings[site] = is_extension and any(
                self.stored[step.site][1].startswith(IN_PYTHON) for step in self.steps(site)
            )
        return self._bindings[site]

    def told(self, site: int) -> Iterator[Frame]:
        """Yield the frames of a path, the innermost first, without those of bindings."""
        yield from (self.frame(step) for step in self.steps(site) if not self.is_binding(step.site))

    def label(self, site: int) -> str:
        """Return the first frame outside wrappers."""
        return self.frame(self.shown[site]).label

    def place(self, site: int) -> tuple[object, ...]:
        """Return what identifies the place of the first frame outside wrappers, on whatever path."""
        step = self.shown[site]
        return (*self.stored[step.site], step.inlined) if step.site else ()

    def alike(self, sites: Iterable[int]) -> dict[str, list[int]]:
        """Return the call sites by their label."""
        found = defaultdict(list)
        for site in sites:
            found[self.label(site)].append(site)
        return found

    def text(self, node: int) -> str:
        """Return the path of a node in one line, such as `main > solve > exchange halo.c:41 > [hypre_MPI_Isend]`."""
        names: list[str] = []
        number: int | None = node
        while number is not None:
            names.append(self.nodes[number].name)
            number = self.nodes[number].parent
        return ARROW.join(reversed(names))

    def path_text(self, site: int) -> str:
        """Return the path of a call site in one line."""
        return self.text(self.leaf[site])

    def tail(self, site: int, count: int, *, with_lines: bool) -> str:
        """Return the last frames of a path up to the first one outside wrappers."""
        inside = len(self._skipped(site))
        outer = [self.frame(step) for step in islice(self.steps(site), inside + 1, inside + count)]
        names = [frame.label if with_lines else frame.name for frame in reversed(outer)]
        return ARROW.join([*names, self.label(site)])

    def _name_modules(self) -> None:
        """Tell apart modules with the same file name in the frames without a function."""
        modules: dict[str, set[tuple[str, str]]] = defaultdict(set)
        for site, (module, build_id, _) in self.stored.items():
            if not self._frames[site][0].function:
                modules[module.rpartition("/")[2]].add((module, build_id))
        for site, (module, build_id, offset) in self.stored.items():
            if site and not self._frames[site][0].function and len(modules[module.rpartition("/")[2]]) > 1:
                build = f" of build {build_id}" if build_id else ""
                self._frames[site] = [Frame("", f"{module}+0x{offset:x}{build}")]

    def _skipped(self, site: int) -> list[Step]:
        """Return the frames of wrappers and bindings, the innermost first; none if all frames are, or very many."""
        skipped: list[Step] = []
        for step in islice(self.steps(site), MOST_TOLD):
            function = self.frame(step).function
            is_wrapper = any(fnmatchcase(function, pattern) for pattern in self._wrappers)
            if not is_wrapper and not self.is_binding(step.site):
                return skipped
            skipped.append(step)
        return []

    def _outside(self, site: int) -> Step:
        """Return the first frame outside wrappers."""
        return next(islice(self.steps(site), len(self._skipped(site)), None))

    def _leaf(self, site: int) -> int:
        """Return the node of a call site."""
        step = self.shown[site]
        around = self._outer(step.site, step.inlined + 1)
        inner = [step for step in self._skipped(site) if not self.is_binding(step.site)]
        wrappers = [f"[{self.frame(step).name}]" for step in reversed(inner)]
        return self._node(around, ARROW.join([self.label(site), *wrappers]), is_leaf=True)

    def _outer(self, site: int, begin: int) -> int | None:
        """Return the node of the functions around a frame: those inlined there from `begin`, and the callers."""
        pending: dict[int, None] = {}
        caller = self._callers[site] or None
        while (
            caller in self._frames and caller not in self._around and caller not in pending and caller != site
        ):
            pending[caller] = None
            caller = self._callers[caller] or None
        number = self._around.get(caller) if caller is not None else None
        for each in reversed(pending):
            number = self._around[each] = self._functions(number, self._frames[each])
        return self._functions(number, self._frames[site][begin:])

    def _functions(self, number: int | None, frames: Sequence[Frame]) -> int | None:
        for frame in reversed(frames):
            number = self._node(number, frame.name, is_leaf=False)
        return number

    def _node(self, parent: int | None, name: str, *, is_leaf: bool) -> int:
        """Return the number of a node, which may be new."""
        level = 0 if parent is None else self.nodes[parent].level + 1
        if parent is not None and level >= self._depth:
            return parent
        number = self._numbers.setdefault((parent, name, is_leaf), len(self.nodes))
        if number == len(self.nodes):
            self.nodes.append(Node(name, parent, level))
        return number


def on_paths(callers: Callers, sites: Iterable[int]) -> set[int]:
    """Return the call sites on the paths of some."""
    found: set[int] = set()
    for site in sites:
        caller: int | None = site
        while caller and caller in callers and caller not in found:
            found.add(caller)
            caller = callers[caller]
        found.add(site)
    return found


def distinct_labels(connection: sqlite3.Connection, ids: Iterable[int]) -> dict[int, str]:
    """Return a label for each of the call sites; where two read alike, both also have callers, or else their numbers."""
    return {site: label for site, (label, _) in labelled_frames(connection, ids).items()}


def labelled_frames(connection: sqlite3.Connection, ids: Iterable[int]) -> dict[int, tuple[str, Frame]]:
    """Return the label of distinct_labels() and the innermost frame of each of the call sites."""
    if not has_paths(connection):
        return {
            site: (frames[0].label, frames[0]) for site, frames in callsite_frames(connection, ids).items()
        }
    return labels_in(PathTree(connection, set(ids)))


def labels_in(tree: PathTree) -> dict[int, tuple[str, Frame]]:
    """Return the label of distinct_labels() and the innermost frame of each call site of a tree."""
    labels: dict[int, str] = {}
    for label, sites in tree.alike(tree.leaf).items():
        labels.update(told_apart(tree, sites) if len(sites) > 1 else {sites[0]: label})
    return {site: (label, tree.frame(tree.shown[site])) for site, label in labels.items()}


def told_apart(tree: PathTree, sites: Sequence[int]) -> dict[int, str]:
    """Return different labels for call sites that read alike: with as few callers as needed, or the place in the file."""
    tails = {}
    for with_lines in (False, True):
        count = 2
        while count <= MOST_TOLD:
            tails = {site: tree.tail(site, count, with_lines=with_lines) for site in sites}
            if len(set(tails.values())) == len(sites):
                return tails
            count *= 2
    if len({(tails[site], tree.frame(Step(site, 0)).label) for site in sites}) == len(sites):
        # One line of Python may call MPI from several places of an extension.
        return {site: f"{tails[site]}{ARROW}[{tree.frame(Step(site, 0)).label}]" for site in sites}
    return {site: f"{tails[site]} (call site {site})" for site in sites}
