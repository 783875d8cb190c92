# SPDX-License-Identifier: Apache-2.0
"""The algorithms: their names in MPI libraries, requirements and references."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

from commlens.algorithms import exchanges, hierarchical, reductions, rooted
from commlens.algorithms.rooted import TREES, needs_power_of_two, rabenseifner_needs, tree_bcast, tree_reduce
from commlens.algorithms.schedule import Call, Schedule, Steps, after

COLLECTIVES = (
    "barrier",
    "bcast",
    "reduce",
    "allreduce",
    "gather",
    "gatherv",
    "scatter",
    "scatterv",
    "allgather",
    "allgatherv",
    "alltoall",
    "alltoallv",
    "alltoallw",
    "reduce_scatter",
    "reduce_scatter_block",
    "scan",
    "exscan",
)
ROOTED = frozenset(("bcast", "reduce", "gather", "gatherv", "scatter", "scatterv"))
"""Collectives that have a root."""
BUFFER = frozenset(("bcast", "reduce", "allreduce", "scan", "exscan"))
"""Collectives whose block is the whole buffer on all ranks."""
UNEVEN = frozenset(("gatherv", "scatterv", "allgatherv", "alltoallv", "alltoallw", "reduce_scatter"))
"""Collectives whose parts may differ."""

_SOURCES = {
    "plain": "needs none: what the collective means, done directly",
    "tuned": "Pješivac-Grbović, Angskun, Bosilca, Fagg, Gabriel, Dongarra: Performance analysis of MPI collective "
    "operations. Cluster Computing 10, 2007",
    "thakur": "Thakur, Rabenseifner, Gropp: Optimization of collective communication operations in MPICH. "
    "Int. J. High Performance Computing Applications 19, 2005",
    "bruck": "Bruck, Ho, Kipnis, Upfal, Weathersby: Efficient algorithms for all-to-all communications in multiport "
    "message-passing systems. IEEE Trans. Parallel and Distributed Systems 8, 1997",
    "chen": "Chen, Zhang, Zhang, Yuan: Performance evaluation of allgather algorithms on terascale Linux cluster "
    "with fast Ethernet. HPC Asia 2005",
    "dissemination": "Hensgen, Finkel, Manber: Two algorithms for barrier synchronization. "
    "Int. J. Parallel Programming 17, 1988",
    "ring": "Patarasuk, Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations. "
    "J. Parallel and Distributed Computing 69, 2009",
    "traff": "Träff: An improved algorithm for (non-commutative) reduce-scatter with an application. EuroPVM/MPI 2005",
    "sparbit": "Loch, Koslovski: Sparbit: a new logarithmic-cost and data locality-aware MPI Allgather algorithm. "
    "SBAC-PAD 2021",
    "swing": "De Sensi, Bonato, Saam, Hoefler: Swing: short-cutting rings for higher bandwidth allreduce. NSDI 2024",
    "scan": "Hillis, Steele: Data parallel algorithms. Communications of the ACM 29, 1986",
    "nodes": "Karonis, de Supinski, Foster, Gropp, Lusk, Bresnahan: Exploiting hierarchy in parallel computer networks "
    "to optimize collective operation performance. IPDPS 2000",
}


def _always(_call: Call) -> bool:
    return True


@dataclass(frozen=True)
class Algorithm:
    """One algorithm of a collective.

    Attributes
    ----------
    collective, name : together identify the algorithm
    steps : yields the messages of a call
    uses : the parameters of a Call it depends on: "segment", "fanout", "radix", "nodes"
    needs : whether it is defined for a call; it does not model what MPI libraries do instead
    tree : the parent of every rank, if the algorithm is one tree
    openmpi : the number of Open MPI's coll_tuned_COLLECTIVE_algorithm, if it has one
    mpich : the word of MPICH's MPIR_CVAR_COLLECTIVE_INTRA_ALGORITHM, if it has one
    source : publication or source file that describes it
    posted : how Open MPI 4.1 and 5.0 post its messages, if this tells it from another algorithm that sends the same: isend,
        send or start, as in table peer; else empty
    same_as : an algorithm that sends the same messages if no part is empty, or empty
    """

    collective: str
    name: str
    steps: Callable[[Call], Steps] = field(repr=False)
    source: str = field(repr=False)
    uses: tuple[str, ...] = ()
    openmpi: int | None = None
    mpich: str | None = None
    posted: str = ""
    same_as: str = ""
    needs: Callable[[Call], bool] = field(default=_always, repr=False)
    tree: rooted.Tree | None = field(default=None, repr=False)

    def schedule(self, call: Call) -> Schedule:
        """Return the messages of a call.

        Raises
        ------
        ValueError
            The algorithm is not defined for it.
        """
        if not self.needs(call):
            raise ValueError(f"{self.collective} by {self.name} is not defined for this call: {call}")
        return Schedule.of(call.size, self.steps(call))


def _bcasts() -> list[Algorithm]:
    def tree(
        name: str, source: str, *uses: str, openmpi: int | None = None, mpich: str | None = None
    ) -> Algorithm:
        make = TREES[name]
        return Algorithm(
            "bcast", name, tree_bcast(make), _SOURCES[source], uses, openmpi=openmpi, mpich=mpich, tree=make
        )

    def other(name: str, steps: Callable[[Call], Steps], source: str, *uses: str, openmpi: int, mpich: str | None = None) -> Algorithm:  # fmt: skip
        return Algorithm("bcast", name, steps, _SOURCES[source], uses, openmpi=openmpi, mpich=mpich)

    return [
        tree("linear", "plain", "segment", openmpi=1),
        tree("chain", "tuned", "segment", "fanout", openmpi=2),
        tree("pipeline", "tuned", "segment", openmpi=3),
        other("split_binary", rooted.split_binary_bcast, "tuned", "segment", openmpi=4),
        tree("binary", "tuned", "segment", openmpi=5),
        tree("binomial", "tuned", "segment", openmpi=6),
        tree("knomial", "tuned", "segment", "radix", openmpi=7),
        other(
            "scatter_allgather",
            rooted.scatter_allgather_bcast,
            "thakur",
            openmpi=8,
            mpich="scatter_recursive_doubling_allgather",
        ),
        other("scatter_ring", rooted.scatter_ring_bcast, "thakur", openmpi=9, mpich="scatter_ring_allgather"),
        tree("in_order_binomial", "thakur", mpich="binomial"),
    ]


def _reduces() -> list[Algorithm]:
    def tree(
        name: str, source: str, *uses: str, openmpi: int | None = None, mpich: str | None = None
    ) -> Algorithm:
        make = TREES[name]
        return Algorithm(
            "reduce",
            name,
            tree_reduce(make),
            _SOURCES[source],
            uses,
            openmpi=openmpi,
            mpich=mpich,
            tree=make,
        )

    return [
        tree("linear", "plain", "segment", openmpi=1),
        tree("chain", "tuned", "segment", "fanout", openmpi=2),
        tree("pipeline", "tuned", "segment", openmpi=3),
        tree("binary", "tuned", "segment", openmpi=4),
        tree("in_order_binomial", "tuned", "segment", openmpi=5, mpich="binomial"),
        tree("in_order_binary", "tuned", "segment", openmpi=6),
        Algorithm(
            "reduce",
            "rabenseifner",
            rooted.rabenseifner_reduce,
            _SOURCES["thakur"],
            openmpi=7,
            needs=rabenseifner_needs,
        ),
        tree("knomial", "tuned", "radix"),
        tree("binomial", "tuned"),
        Algorithm(
            "reduce",
            "reduce_scatter_gather",
            rooted.reduce_scatter_gather,
            _SOURCES["thakur"],
            mpich="reduce_scatter_gather",
            needs=rabenseifner_needs,
        ),
    ]


def _two_ranks(call: Call) -> bool:
    return call.size == 2


def _even(call: Call) -> bool:
    return call.size % 2 == 0


def _a_piece_each(call: Call) -> bool:
    return call.count >= call.size


def _a_segment_each(call: Call) -> bool:
    return reductions.ring_phases(call) > 0


def _uniform(call: Call) -> bool:
    return not hasattr(call.block, "__len__")


def _mirrored_needs(call: Call) -> bool:
    return needs_power_of_two(call) and _uniform(call)


def _barriers_and_trees() -> list[Algorithm]:
    src = _SOURCES
    linear_reduce, linear_bcast = tree_reduce(TREES["linear"]), tree_bcast(TREES["linear"])
    return [
        Algorithm("barrier", "linear", exchanges.linear_barrier, src["plain"], openmpi=1),
        Algorithm("barrier", "double_ring", exchanges.double_ring_barrier, src["tuned"], openmpi=2),
        Algorithm("barrier", "recursive_doubling", exchanges.recursive_doubling_barrier, src["tuned"], openmpi=3),
        Algorithm("barrier", "dissemination", exchanges.dissemination_barrier, src["dissemination"], openmpi=4, mpich="dissemination"),
        Algorithm("barrier", "two_ranks", exchanges.two_ranks_barrier, src["plain"], openmpi=5, needs=_two_ranks),
        Algorithm("barrier", "tree", exchanges.tree_barrier, src["tuned"], openmpi=6),
        Algorithm("barrier", "hierarchical", hierarchical.barrier, src["nodes"], ("nodes",), mpich="smp", needs=hierarchical.has_nodes),
        *_bcasts(),
        Algorithm("bcast", "hierarchical", hierarchical.bcast, src["nodes"], ("nodes", "segment"), mpich="smp", needs=hierarchical.has_nodes),
        *_reduces(),
        Algorithm("reduce", "hierarchical", hierarchical.reduce, src["nodes"], ("nodes", "segment"), mpich="smp", needs=hierarchical.has_nodes),
        Algorithm("allreduce", "linear", reductions.one_after_another(linear_reduce, linear_bcast), src["plain"], openmpi=1),
        Algorithm("allreduce", "recursive_doubling", reductions.recursive_doubling_allreduce, src["thakur"], openmpi=3, mpich="recursive_doubling"),
        Algorithm("allreduce", "ring", reductions.ring_allreduce, src["ring"], openmpi=4, needs=_a_piece_each),
        Algorithm("allreduce", "segmented_ring", reductions.segmented_ring_allreduce, src["tuned"], ("segment",), openmpi=5, needs=_a_segment_each),
        Algorithm("allreduce", "rabenseifner", reductions.rabenseifner_allreduce, src["thakur"], openmpi=6, needs=rabenseifner_needs),
        Algorithm("allreduce", "reduce_scatter_allgather", reductions.reduce_scatter_allgather, src["thakur"], mpich="reduce_scatter_allgather", needs=rabenseifner_needs),
        Algorithm("allreduce", "swing", reductions.swing_allreduce, src["swing"], needs=needs_power_of_two),
        Algorithm("allreduce", "swing_latency", reductions.swing_latency_allreduce, src["swing"], needs=needs_power_of_two),
        Algorithm("allreduce", "hierarchical", hierarchical.allreduce, src["nodes"], ("nodes", "segment"), mpich="smp", needs=hierarchical.has_nodes),
    ]  # fmt: skip


def _gathers_and_scatters() -> list[Algorithm]:
    src = _SOURCES
    return [
        Algorithm("gather", "linear", rooted.linear_gather, src["plain"], openmpi=1),
        Algorithm("gather", "binomial", rooted.binomial_gather, src["tuned"], openmpi=2, mpich="binomial"),
        Algorithm("gather", "linear_sync", rooted.synchronised_gather, src["tuned"], ("segment",), openmpi=3),
        Algorithm("gather", "hierarchical", hierarchical.gather, src["nodes"], ("nodes",), needs=hierarchical.has_nodes),
        Algorithm("gatherv", "linear", rooted.linear_gatherv, src["plain"], mpich="linear"),
        Algorithm("gatherv", "hierarchical", hierarchical.gather, src["nodes"], ("nodes",), needs=hierarchical.has_nodes),
        Algorithm("scatter", "linear", rooted.linear_scatter, src["plain"], openmpi=1, posted="send"),
        Algorithm("scatter", "binomial", rooted.binomial_scatter, src["tuned"], openmpi=2, mpich="binomial", posted="send"),
        Algorithm("scatter", "linear_nonblocking", rooted.linear_scatter, src["plain"], openmpi=3, posted="isend"),
        Algorithm("scatter", "hierarchical", hierarchical.scatter, src["nodes"], ("nodes",), needs=hierarchical.has_nodes),
        Algorithm("scatterv", "linear", rooted.linear_scatterv, src["plain"], mpich="linear"),
        Algorithm("scatterv", "hierarchical", hierarchical.scatter, src["nodes"], ("nodes",), needs=hierarchical.has_nodes),
    ]  # fmt: skip


def _allgathers() -> list[Algorithm]:
    src = _SOURCES
    rows: list[Algorithm] = []
    for collective in ("allgather", "allgatherv"):
        one_more = int(collective == "allgather")  # Open MPI has recursive doubling only for equal parts
        rows += [
            Algorithm(collective, "bruck", exchanges.bruck_allgather, src["bruck"], ("radix",), openmpi=2, mpich="brucks"),
            Algorithm(collective, "recursive_doubling", exchanges.recursive_doubling_allgather, src["thakur"], openmpi=3 if one_more else None, mpich="recursive_doubling"),
            Algorithm(collective, "ring", exchanges.ring_allgather, src["thakur"], openmpi=3 + one_more, mpich="ring"),
            Algorithm(collective, "neighbour_exchange", exchanges.neighbour_exchange_allgather, src["chen"], openmpi=4 + one_more, needs=_even),
            Algorithm(collective, "two_ranks", exchanges.spread_allgather, src["plain"], openmpi=5 + one_more, needs=_two_ranks),
            Algorithm(collective, "sparbit", exchanges.sparbit_allgather, src["sparbit"], openmpi=6 + one_more),
            Algorithm(collective, "spread", exchanges.spread_allgather, src["plain"]),
            Algorithm(collective, "hierarchical", hierarchical.allgather, src["nodes"], ("nodes",), needs=hierarchical.has_nodes),
        ]  # fmt: skip
    return rows


def _alltoalls() -> list[Algorithm]:
    src = _SOURCES
    return [
        Algorithm("alltoall", "linear", exchanges.spread_alltoall, src["plain"], openmpi=1, mpich="scattered", posted="start"),
        Algorithm("alltoall", "pairwise", exchanges.pairwise_alltoall, src["thakur"], openmpi=2, mpich="pairwise", posted="send"),
        Algorithm("alltoall", "bruck", exchanges.bruck_alltoall, src["bruck"], ("radix",), openmpi=3, mpich="brucks", posted="send", needs=_uniform),
        Algorithm("alltoall", "linear_sync", exchanges.spread_alltoall, src["tuned"], openmpi=4, posted="isend"),
        Algorithm("alltoall", "two_ranks", exchanges.spread_alltoall, src["plain"], openmpi=5, posted="send", needs=_two_ranks),
        Algorithm("alltoallv", "linear", exchanges.spread_alltoall, src["plain"], openmpi=1, posted="start"),
        Algorithm("alltoallv", "pairwise", exchanges.pairwise_alltoall, src["thakur"], openmpi=2, mpich="pairwise_sendrecv_replace", posted="send"),
        Algorithm("alltoallv", "scattered", exchanges.spread_alltoall_of_some, src["plain"], mpich="scattered", posted="start", same_as="linear"),
        Algorithm("alltoallv", "pairwise_with_self", exchanges.pairwise_alltoall_with_self, src["thakur"], posted="send"),
        Algorithm("alltoallw", "linear", exchanges.spread_alltoall_of_some, src["plain"], mpich="scattered", posted="start"),
        Algorithm("alltoallw", "pairwise", exchanges.pairwise_alltoall, src["thakur"], mpich="pairwise_sendrecv_replace"),
    ]  # fmt: skip


def _partial_reductions() -> list[Algorithm]:
    src = _SOURCES
    return [
        Algorithm("reduce_scatter", "recursive_halving", reductions.recursive_halving, src["thakur"], openmpi=2, mpich="recursive_halving"),
        Algorithm("reduce_scatter", "ring", reductions.ring_reduce_scatter, src["tuned"], openmpi=3),
        Algorithm("reduce_scatter", "butterfly", reductions.butterfly, src["traff"], openmpi=4),
        Algorithm("reduce_scatter", "recursive_doubling", reductions.doubling_reduce_scatter, src["thakur"], mpich="recursive_doubling"),
        Algorithm("reduce_scatter", "pairwise", reductions.pairwise_reduce_scatter, src["thakur"], mpich="pairwise"),
        Algorithm("reduce_scatter", "mirrored_halving", reductions.mirrored_halving, src["traff"], mpich="noncommutative", needs=_mirrored_needs),
        Algorithm("reduce_scatter_block", "recursive_doubling", reductions.doubling_reduce_scatter, src["thakur"], openmpi=2, mpich="recursive_doubling"),
        Algorithm("reduce_scatter_block", "recursive_halving", reductions.recursive_halving, src["thakur"], openmpi=3, mpich="recursive_halving"),
        Algorithm("reduce_scatter_block", "butterfly", reductions.butterfly, src["traff"], openmpi=4),
        Algorithm("reduce_scatter_block", "mirrored_halving", reductions.mirrored_halving, src["traff"], mpich="noncommutative", needs=_mirrored_needs),
        Algorithm("reduce_scatter_block", "pairwise", reductions.pairwise_reduce_scatter, src["thakur"], mpich="pairwise"),
        Algorithm("scan", "linear", reductions.linear_scan, src["plain"], openmpi=1),
        Algorithm("scan", "recursive_doubling", reductions.recursive_doubling_scan, src["scan"], openmpi=2, mpich="recursive_doubling"),
        Algorithm("exscan", "linear", reductions.linear_scan, src["plain"], openmpi=1),
        Algorithm("exscan", "recursive_doubling", reductions.recursive_doubling_scan, src["scan"], openmpi=2, mpich="recursive_doubling"),
    ]  # fmt: skip


ALGORITHMS: tuple[Algorithm, ...] = (
    *_barriers_and_trees(),
    *_gathers_and_scatters(),
    *_allgathers(),
    *_alltoalls(),
    *_partial_reductions(),
)

# Composed algorithms: the first and the second collective, and Open MPI's number for the composition.
_MADE_OF = {
    "allreduce": ("reduce", "bcast", 2),
    "allgather": ("gather", "bcast", 1),
    "allgatherv": ("gatherv", "bcast", 1),
    "reduce_scatter": ("reduce", "scatterv", 1),
    "reduce_scatter_block": ("reduce", "scatter", 1),
}


def algorithms(collective: str) -> list[Algorithm]:
    """Return the named algorithms of a collective.

    Raises
    ------
    ValueError
        There is no such collective.
    """
    if collective not in COLLECTIVES:
        raise ValueError(f"no collective {collective}; there are {', '.join(COLLECTIVES)}")
    return [one for one in ALGORITHMS if one.collective == collective]


def composed(collective: str, first: str, second: str) -> Algorithm:
    """Return the algorithm "FIRST+SECOND" that composes a collective of two: to rank 0, and from it."""
    one, other, number = _MADE_OF[collective]
    before, behind = algorithm(one, first), algorithm(other, second)

    def calls(call: Call) -> tuple[Call, Call]:
        parts = call.but(root=0)
        whole = parts if collective in BUFFER else parts.but(block=int(call.parts.sum()))
        return (whole if one in BUFFER else parts), (whole if other in BUFFER else parts)

    def steps(call: Call) -> Steps:
        sooner, later = calls(call)
        yield from after(behind.steps(later), before.steps(sooner))

    def needs(call: Call) -> bool:
        sooner, later = calls(call)
        return before.needs(sooner) and behind.needs(later)

    return Algorithm(
        collective,
        f"{first}+{second}",
        steps,
        f"{before.source}; {behind.source}" if before.source != behind.source else before.source,
        tuple(dict.fromkeys(before.uses + behind.uses)),
        openmpi=number,
        needs=needs,
    )


def compositions(collective: str) -> list[Algorithm]:
    """Return all algorithms that compose a collective of two others."""
    if collective not in _MADE_OF:
        return []
    one, other, _ = _MADE_OF[collective]
    pairs = itertools.product(algorithms(one), algorithms(other))
    return [
        composed(collective, first.name, second.name)
        for first, second in pairs
        if not {"hierarchical", "knomial"}
        & {first.name, second.name}  # the binomial ones are those of radix 2
        and (collective, first.name, second.name) != ("allreduce", "linear", "linear")  # it has its own name
    ]


def algorithm(collective: str, name: str) -> Algorithm:
    """Return an algorithm by its name.

    Raises
    ------
    ValueError
        There is no such algorithm; the message lists the existing ones.
    """
    if "+" in name and collective in _MADE_OF:
        return composed(collective, *name.split("+", 1))
    for one in algorithms(collective):
        if one.name == name:
            return one
    known = ", ".join(one.name for one in algorithms(collective))
    raise ValueError(f"{collective} has no algorithm {name}; there are {known}")
