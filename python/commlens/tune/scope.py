# SPDX-License-Identifier: Apache-2.0
"""Which calls a rule counts for, and which places must be measured with one that is worth trying."""

from __future__ import annotations

from collections.abc import Hashable

from commlens.algorithms._offered import LIBRARIES
from commlens.algorithms.calls import collective_of
from commlens.algorithms.offered import library_of
from commlens.tune.plan import Place, Plan


def shared_by(library: str, collective: str, size: int, bin: int) -> Hashable:
    """Return what all calls have in common that a rule counts for; None if commlens need not ask, as with Open MPI.

    >>> shared_by("MPICH Version: 5.0.2", "allgather", 4, 7), shared_by("MPICH Version: 5.0.2", "gather", 4, 7)
    (('allgather', 4, 7), ('gather', 4))
    >>> shared_by("MPICH Version: 5.0.2", "scan", 4, 7), shared_by("Open MPI v5.0.11", "gather", 4, 7)
    (('scan',), None)
    >>> shared_by("Intel(R) MPI Library 2021.18", "gather", 4, 7)
    ('gather',)
    """
    known = library_of(library)
    if known is not None and known[0] is LIBRARIES["intel"]:
        return (collective,)
    if known is None or known[0] is not LIBRARIES["mpich"]:
        return None
    table = known[0].tables.get(collective)
    if table is None:
        return (collective,)
    return (collective, size) if table.bytes == "none" else (collective, size, bin)


def places_beside(plan: Plan) -> list[Place]:
    """Return the places that are not worth trying, but may share a rule with one that is."""
    worth = {_loosely(plan, place) for place in plan.worth} - {None}
    return [place for place in plan.places if not place.is_worth and _loosely(plan, place) in worth]


def _loosely(plan: Plan, place: Place) -> Hashable:
    """Return what calls with a rule have in common, without the size of the communicator."""
    return shared_by(plan.library, collective_of(place.row["operation"]) or "", 0, place.row["bin"])
