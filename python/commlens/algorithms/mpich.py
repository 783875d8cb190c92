# SPDX-License-Identifier: Apache-2.0
"""Selects the algorithm that MPICH and its derivatives use, from their control variables.

The meaning of a variable is that in the library's own descriptions (`mpivars`).  Inside a node, the library may send its
messages in other ways than these algorithms, so the results are a model.
"""

from __future__ import annotations

from collections.abc import Mapping

from commlens.algorithms._offered import LIBRARIES
from commlens.algorithms.registry import BUFFER, algorithms
from commlens.algorithms.schedule import Call, is_power_of_two, power_of_two

_PREFIX = "MPIR_CVAR_"

WORDS: dict[str, tuple[str, ...]] = {
    collective: ("auto", *names) for collective, names in LIBRARIES["mpich"].since[4, 0].items()
}
"""Values of MPIR_CVAR_COLLECTIVE_INTRA_ALGORITHM, in the order of their numbers in MPICH 4.0."""

_LIMITS = {
    "BCAST_MIN_PROCS": 8,
    "BCAST_SHORT_MSG_SIZE": 12288,
    "BCAST_LONG_MSG_SIZE": 524288,
    "ALLGATHER_SHORT_MSG_SIZE": 81920,
    "ALLGATHER_LONG_MSG_SIZE": 524288,
    "ALLTOALL_SHORT_MSG_SIZE": 256,
    "ALLTOALL_MEDIUM_MSG_SIZE": 32768,
    "REDUCE_SHORT_MSG_SIZE": 2048,
    "ALLREDUCE_SHORT_MSG_SIZE": 2048,
    "REDUCE_SCATTER_COMMUTATIVE_LONG_MSG_SIZE": 524288,
}
"""Default thresholds, in bytes or ranks, at which MPICH changes the algorithm."""
# Names in MPICH of algorithms with the same messages as another one.
_SAME = {("alltoall", "pairwise_sendrecv_replace"): "pairwise"}


def chosen(collective: str, call: Call, variables: Mapping[str, str | int]) -> str | None:
    """Return the name of the algorithm that MPICH would use for a call; None if this package lacks the algorithm.

    Parameters
    ----------
    variables : control variables by their full names; a choice may be a word or its number
    """
    value = variables.get(f"{_PREFIX}{collective.upper()}_INTRA_ALGORITHM", "auto")
    words = WORDS[collective]
    if isinstance(value, int) or value.isdigit():
        number = int(value)
        if number >= len(words):
            return None
        word = words[number]
    else:
        word = value
    if word == "auto":
        word = _automatic(collective, call, variables)
    word = _SAME.get((collective, word), word)
    found = next((one for one in algorithms(collective) if one.mpich == word), None)
    if found is None or not found.needs(call):
        return None
    return found.name


def _limit(name: str, variables: Mapping[str, str | int]) -> int:
    return int(variables.get(_PREFIX + name, _LIMITS[name]))


def _automatic(collective: str, call: Call, variables: Mapping[str, str | int]) -> str:
    """Return MPICH's name of the algorithm that it selects automatically, by the descriptions of its thresholds."""

    def below(name: str, number: int) -> bool:
        return number < _limit(name, variables)

    size = call.size
    total = call.bytes if collective in BUFFER else int(call.parts.sum())
    if collective == "bcast":
        if below("BCAST_SHORT_MSG_SIZE", total) or below("BCAST_MIN_PROCS", size):
            return "binomial"
        if below("BCAST_LONG_MSG_SIZE", total) and is_power_of_two(size):
            return "scatter_recursive_doubling_allgather"
        return "scatter_ring_allgather"
    if collective in ("allgather", "allgatherv"):
        if below("ALLGATHER_LONG_MSG_SIZE", total) and is_power_of_two(size):
            return "recursive_doubling"
        return "brucks" if below("ALLGATHER_SHORT_MSG_SIZE", total) else "ring"
    if collective == "alltoall":
        if call.bytes <= _limit("ALLTOALL_SHORT_MSG_SIZE", variables) and size >= 8:
            return "brucks"
        return "scattered" if call.bytes <= _limit("ALLTOALL_MEDIUM_MSG_SIZE", variables) else "pairwise"
    if collective in ("reduce", "allreduce"):
        short = total <= _limit(f"{collective.upper()}_SHORT_MSG_SIZE", variables)
        if short or call.count < power_of_two(size):
            return "binomial" if collective == "reduce" else "recursive_doubling"
        return "reduce_scatter_gather" if collective == "reduce" else "reduce_scatter_allgather"
    if collective in ("reduce_scatter", "reduce_scatter_block"):
        if not call.commutative:
            return "noncommutative" if is_power_of_two(size) else "recursive_doubling"
        short = below("REDUCE_SCATTER_COMMUTATIVE_LONG_MSG_SIZE", total)
        return "recursive_halving" if short else "pairwise"
    return {
        "barrier": "dissemination",
        "gatherv": "linear",
        "scatterv": "linear",
        "alltoallv": "scattered",
        "alltoallw": "scattered",
        "scan": "recursive_doubling",
        "exscan": "recursive_doubling",
    }.get(collective, "binomial")
