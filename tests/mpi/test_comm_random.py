# SPDX-License-Identifier: Apache-2.0
"""Random sequences of communicators, against a model that replays them without MPI.

The model knows what every rank calls and what the standard says comes out: members in order, parents, names,
calls and bytes.  It shares nothing with the library but the rule for names.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pytest
from harness import Mpi

MOST_ALIVE = 12


@dataclass
class Node:
    """A communicator of the model."""

    name: str
    members: tuple[int, ...]
    parent: str | None
    remote: tuple[int, ...] = ()  # of an intercommunicator
    calls: Counter[tuple[str, int]] = field(default_factory=Counter)  # (op, rank) -> calls
    sent: Counter[tuple[str, int]] = field(default_factory=Counter)


class Model:
    """Replays programs/comms_random.c."""

    def __init__(self, seed: int, steps: int, n_ranks: int) -> None:
        self._state = seed
        self._got = Counter[int]()
        world = Node("W0.0", tuple(range(n_ranks)), None)
        self.all = [world]
        self._alive = [world]
        for _ in range(steps):
            self._step()
        for node in self._alive[1:]:
            self._count(node, "MPI_Comm_free")

    def _draw(self, below: int) -> int:
        self._state = (self._state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self._state >> 33) % below

    def _count(self, node: Node, op: str, callers: tuple[int, ...] | None = None, sent: int = 0) -> None:
        for rank in node.members if callers is None else callers:
            node.calls[op, rank] += 1
            node.sent[op, rank] += sent

    def _add(self, letter: str, parent: Node, members: tuple[int, ...]) -> Node:
        for rank in members:
            self._got[rank] += 1
        node = Node(f"{letter}{members[0]}.{self._got[members[0]]}", members, parent.name)
        self.all.append(node)
        self._alive.append(node)
        return node

    def _step(self) -> None:
        node = self._alive[self._draw(len(self._alive))]
        what = self._draw(16)
        if what >= 6 and len(self._alive) >= MOST_ALIVE:
            what = 4
        if what < 2:
            self._count(node, "MPI_Allreduce", sent=4 * self._draw(100))
        elif what < 4:
            self._count(node, "MPI_Sendrecv", sent=self._draw(1000))
            self._draw(len(node.members))
        elif what < 6:
            if node is not self._alive[0]:
                self._alive.remove(node)
                self._count(node, "MPI_Comm_free")
        elif what < 8:
            self._split(node)
        elif what < 12:
            self._create(node, with_group=what >= 10)
        elif what >= 14:
            self._bridge(node)
        else:
            how = self._draw(3)
            if how == 2:
                self._draw(2)
            self._count(node, ("MPI_Comm_dup", "MPI_Comm_idup", "MPI_Cart_create")[how])
            if how == 1:
                self._count(node, "MPI_Wait")
            self._add("dia"[how], node, node.members)

    def _split(self, node: Node) -> None:
        drawn = [(self._draw(4), self._draw(5), position) for position in range(len(node.members))]
        self._count(node, "MPI_Comm_split")
        for wanted in range(3):
            members = tuple(
                node.members[i] for color, _, i in sorted(drawn, key=lambda d: d[1]) if color == wanted
            )
            if members:
                self._add("s", node, members)

    def _create(self, node: Node, with_group: bool) -> None:
        positions = list(range(len(node.members)))
        for i in range(len(positions) - 1, 0, -1):
            k = self._draw(i + 1)
            positions[i], positions[k] = positions[k], positions[i]
        least = int(with_group)
        n = least + self._draw(len(positions) + 1 - least)
        members = tuple(node.members[i] for i in positions[:n])
        if with_group:
            self._draw(3)
            self._count(node, "MPI_Comm_create_group", members)
        else:
            self._count(node, "MPI_Comm_create")
        if members:
            self._add("g" if with_group else "c", node, members)

    def _bridge(self, node: Node) -> None:
        n = len(node.members)
        if n < 2:
            return
        cut = 1 + self._draw(n - 1)
        self._draw(cut)
        self._draw(n - cut)
        first_is_high = self._draw(2)
        self._count(node, "MPI_Comm_split")
        first, second = node.members[:cut], node.members[cut:]
        # the side whose rank 0 has the lower world rank stands first and names the intercommunicator
        halves = sorted(
            (self._add("s", node, first), self._add("s", node, second)), key=lambda h: h.members[0]
        )
        for half in halves:
            self._count(half, "MPI_Intercomm_create")
        between = self._add("I", halves[0], halves[0].members)
        self._alive.remove(between)
        between.remote = halves[1].members
        for rank in between.remote:
            self._got[rank] += 1
        for op in ("MPI_Barrier", "MPI_Intercomm_merge", "MPI_Comm_free"):
            self._count(between, op, node.members)
        self._add("m", between, second + first if first_is_high else first + second)


@pytest.mark.parametrize(("seed", "n_ranks"), [(1, 4), (2, 4), (3, 5), (2026, 3)])
def test_random_communicators(mpi: Mpi, seed: int, n_ranks: int) -> None:
    steps = 300
    result = mpi.run(n_ranks, [mpi.compile("comms_random.c"), str(seed), str(steps)], timeout=120)
    assert (result.rc, result.stdout) == (0, "done\n"), result
    profile = result.open()
    profile.check()
    model = Model(seed, steps, n_ranks)
    assert len(model.all) > 30

    found = profile.comms()
    assert {name: (row["groups"], row["parent_name"]) for name, row in found.items()} == {
        node.name: ([list(group) for group in (node.members, node.remote) if group], node.parent)
        for node in model.all
    }
    assert all(row["freed_ns"] is not None for name, row in found.items() if name != "W0.0")

    ops = {op for node in model.all for op, _ in node.calls}
    calls: Counter[tuple[str, str, int]] = Counter()
    sent: Counter[tuple[str, str, int]] = Counter()
    for count in profile.counts():
        if count.op in ops:
            calls[count.comm, count.op, count.rank] += count.calls
            sent[count.comm, count.op, count.rank] += count.sent
    assert calls == {(node.name, *key): n for node in model.all for key, n in node.calls.items()}
    assert +sent == +Counter({(node.name, *key): n for node in model.all for key, n in node.sent.items()})
