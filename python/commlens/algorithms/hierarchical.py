# SPDX-License-Identifier: Apache-2.0
"""Node-leader forms: one rank of each node communicates with the other nodes.

The leader is the root on the root's node, and the lowest rank elsewhere.  On a node binomial trees are used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from commlens.algorithms import exchanges, reductions, rooted
from commlens.algorithms.schedule import Call, Integers, Step, Steps, after, renamed

Algorithm = Callable[[Call], Steps]

_bcast = rooted.tree_bcast(rooted.TREES["binomial"])
_reduce = rooted.tree_reduce(rooted.TREES["in_order_binomial"])


def has_nodes(call: Call) -> bool:
    """Whether the call contains the nodes of its ranks."""
    return call.nodes is not None


def _nodes(call: Call) -> list[tuple[Integers, int]]:
    """Return for each node its ranks and the place of its leader among them, in the order of the lowest ranks.

    Raises
    ------
    ValueError
        The call lacks the nodes of some or all ranks.
    """
    if call.nodes is None or len(call.nodes) != call.size:
        raise ValueError("hierarchical algorithms need to know the node of each rank")
    where = np.asarray(call.nodes)
    _, first = np.unique(where, return_index=True)
    found = []
    for node in where[np.sort(first)]:
        ranks = np.flatnonzero(where == node)
        here = np.flatnonzero(ranks == call.root)
        found.append((ranks, int(here[0]) if len(here) else 0))
    return found


def _on_nodes(call: Call, algorithm: Algorithm, same_data: bool = True) -> Iterator[Step]:
    """Run an algorithm on every node at once, to or from its leader."""
    for ranks, leader in _nodes(call):
        part = call.block if same_data else call.parts[ranks]
        inner = call.but(size=len(ranks), root=leader, block=part, nodes=None)
        yield from renamed(algorithm(inner), ranks, same_data)


def _among_leaders(call: Call, algorithm: Algorithm, same_data: bool = True) -> Iterator[Step]:
    """Run an algorithm among the leaders, each with the parts of its node."""
    nodes = _nodes(call)
    leaders = np.array([ranks[leader] for ranks, leader in nodes])
    parts = call.block if same_data else np.array([call.parts[ranks].sum() for ranks, _ in nodes])
    root = int(np.flatnonzero(leaders == call.root)[0])
    yield from renamed(
        algorithm(call.but(size=len(nodes), root=root, block=parts, nodes=None)), leaders, same_data
    )


def barrier(call: Call) -> Steps:
    """Signal the leader; the leaders signal each other by dissemination, then the ranks of their nodes."""
    empty = call.but(block=0, root=0)
    yield from after(
        _on_nodes(empty, _bcast),
        after(_among_leaders(empty, exchanges.dissemination_barrier), _on_nodes(empty, _reduce)),
    )


def bcast(call: Call) -> Steps:
    """Broadcast among the leaders, then on the nodes."""
    yield from after(_on_nodes(call, _bcast), _among_leaders(call, _bcast))


def reduce(call: Call) -> Steps:
    """Reduce on the nodes, then among the leaders."""
    yield from after(_among_leaders(call, _reduce), _on_nodes(call, _reduce))


def allreduce(call: Call) -> Steps:
    """Reduce on the nodes, allreduce among the leaders by recursive doubling, broadcast on the nodes."""
    call = call.but(root=0)
    middle = after(_among_leaders(call, reductions.recursive_doubling_allreduce), _on_nodes(call, _reduce))
    yield from after(_on_nodes(call, _bcast), middle)


def gather(call: Call) -> Steps:
    """Gather on the nodes, then among the leaders."""
    yield from after(
        _among_leaders(call, rooted.binomial_gather, same_data=False),
        _on_nodes(call, rooted.binomial_gather, same_data=False),
    )


def scatter(call: Call) -> Steps:
    """Scatter among the leaders, then on the nodes."""
    yield from after(
        _on_nodes(call, rooted.binomial_scatter, same_data=False),
        _among_leaders(call, rooted.binomial_scatter, same_data=False),
    )


def allgather(call: Call) -> Steps:
    """Gather on the nodes, all-gather among the leaders round a ring, broadcast all of it on the nodes."""
    call = call.but(root=0)
    middle = after(
        _among_leaders(call, exchanges.ring_allgather, same_data=False),
        _on_nodes(call, rooted.binomial_gather, same_data=False),
    )
    yield from after(_on_nodes(call.but(block=int(call.parts.sum()), segment=0), _bcast), middle)
