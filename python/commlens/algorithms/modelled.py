# SPDX-License-Identifier: Apache-2.0
"""Models the messages inside collectives that cannot be measured, and marks them as modelled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from commlens.algorithms.pattern import Pairs
from commlens.algorithms.registry import algorithm
from commlens.algorithms.schedule import Call, Integers
from commlens.base.errors import CommlensError


@dataclass(frozen=True)
class Modelled:
    """Messages and bytes that an algorithm would send between pairs of ranks.

    Attributes
    ----------
    origin : "modelled", so that callers cannot present the messages as measured
    algorithm : name of the algorithm
    """

    pairs: Pairs
    algorithm: str
    origin: str = "modelled"


def modelled(
    collective: str,
    name: str,
    size: int,
    block: int | Sequence[int] | Integers,
    root: int = 0,
    calls: int = 1,
    **parameters: Any,
) -> Modelled:
    """Return the messages that calls of a collective would send.

    Parameters
    ----------
    name : of the algorithm, as in commlens.algorithms.registry
    size : ranks in the communicator
    block : bytes, as commlens.algorithms.schedule.Call counts them for this collective
    parameters : more of a Call: segment, fanout, radix, nodes, element

    Raises
    ------
    ValueError
        There is no such algorithm, or it is not defined for such a call.
    """
    one = algorithm(collective, name)
    call = Call(size, block=block, root=root, **parameters)
    if not one.needs(call):
        raise ValueError(f"{collective} by {name} is not defined for this call: {call}")
    return Modelled(Pairs.of_steps(size, one.steps(call)).times(calls), name)


def choices(words: Sequence[str]) -> dict[str, str]:
    """Return the algorithm of each collective from texts COLLECTIVE=NAME.

    Raises
    ------
    CommlensError
        There is no such collective or algorithm.
    """
    found = {}
    for word in words:
        collective, equals, name = word.lower().removeprefix("mpi_").partition("=")
        if not equals:
            raise CommlensError(f"--algorithm {word}: not COLLECTIVE=NAME, as in bcast=binomial")
        try:
            found[collective] = algorithm(collective, name).name
        except ValueError as error:
            raise CommlensError(f"--algorithm {word}: {error}") from None
    return found
