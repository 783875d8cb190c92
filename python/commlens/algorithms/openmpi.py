# SPDX-License-Identifier: Apache-2.0
"""Models which algorithm Open MPI's coll_tuned runs for a requested algorithm: sometimes another one.

The rules come from measurements with 4.1.4 and 5.0.11 (bench/algorithms.py).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from commlens.algorithms.registry import Algorithm, algorithm, algorithms, composed
from commlens.algorithms.schedule import Call, power_of_two

# The two collectives of a composed algorithm, in order.
PARTS: dict[tuple[str, int], tuple[str, str]] = {
    ("allreduce", 2): ("reduce", "bcast"),
    ("allgather", 1): ("gather", "bcast"),
    ("allgatherv", 1): ("gatherv", "bcast"),
    ("reduce_scatter", 1): ("reduce", "scatterv"),
    ("reduce_scatter_block", 1): ("reduce", "scatter"),
}

# Algorithms with the same number in releases after 4, which send no empty messages.
_SINCE_5 = {("alltoallv", "linear"): "scattered", ("alltoallv", "pairwise"): "pairwise_with_self"}


def named(collective: str, number: int) -> Algorithm | None:
    """Return the algorithm with this number in coll_tuned; None for compositions of two algorithms."""
    return next((one for one in algorithms(collective) if one.openmpi == number), None)


def runs(
    collective: str, number: int, call: Call, numbers: Mapping[str, int] | None = None, major: int = 4
) -> Algorithm | None:
    """Return the algorithm that runs; None if there is no data and therefore no message.

    Parameters
    ----------
    number : of coll_tuned_COLLECTIVE_algorithm; 0 for collectives without such a variable, which have one algorithm
    numbers : the numbers of other collectives, for algorithms that are made of them
    major : release of Open MPI

    Raises
    ------
    ValueError
        coll_tuned has no such number, or the parts of a composed algorithm are missing.
    """
    sends_empty = collective == "barrier" or (collective == "alltoallv" and major < 5)
    if not sends_empty and not np.any(call.block):
        return None
    if (collective, number) in PARTS:
        return composed(collective, *(_part(it, numbers or {}) for it in PARTS[collective, number]))
    if number == 0:
        return algorithms(collective)[0]
    found = named(collective, number)
    if found is None:
        raise ValueError(f"coll_tuned has no {collective} algorithm {number}")
    instead = _instead(found, call)
    if major >= 5:
        instead = _SINCE_5.get((collective, found.name), instead)
    if instead is not None:
        found = algorithm(collective, instead)
    return found


def _part(collective: str, numbers: Mapping[str, int]) -> str:
    found = named(collective, numbers[collective]) if collective in numbers else None
    if found is not None:
        return found.name
    plain = algorithms(collective)[0]
    if any(one.openmpi for one in algorithms(collective)):
        raise ValueError(f"the {collective} algorithm that it uses is missing")
    return plain.name


def _instead(found: Algorithm, call: Call) -> str | None:
    """Return the algorithm that replaces one that is not defined for a call."""
    key = (found.collective, found.name)
    if key == ("bcast", "split_binary"):
        half = call.count // 2 * call.element
        return "pipeline" if half == 0 or call.segment > half else None
    if key in (("bcast", "scatter_allgather"), ("bcast", "scatter_ring")):
        return "linear" if call.count < call.size else None
    if key == ("allgather", "recursive_doubling"):
        return "bruck" if call.size != power_of_two(call.size) else None
    if key == ("reduce_scatter_block", "butterfly"):
        return "mirrored_halving" if call.size == power_of_two(call.size) else None
    if key == ("allreduce", "segmented_ring") and call.count < call.size:
        return "recursive_doubling"
    if found.needs(call):
        return None
    return {
        ("reduce", "rabenseifner"): "linear",
        ("allreduce", "ring"): "recursive_doubling",
        ("allreduce", "segmented_ring"): "ring",
        ("allreduce", "rabenseifner"): "linear",
        ("allgather", "neighbour_exchange"): "ring",
        ("allgatherv", "neighbour_exchange"): "ring",
    }.get(key)
