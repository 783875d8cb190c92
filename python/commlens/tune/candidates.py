# SPDX-License-Identifier: Apache-2.0
"""Which algorithms to try in a case, and which variables choose them while a job runs."""

from __future__ import annotations

from commlens.algorithms._offered import LIBRARIES
from commlens.algorithms.offered import library_of, offered
from commlens.tune.model import DEFAULT, Candidate, Case

SEGMENTS = (8 << 10, 64 << 10)
"""Segment sizes to try, besides none: one that fits the first cache, and one that needs few messages."""


def candidates_of(library: str, case: Case) -> list[Candidate]:
    """Return the library's own choice and its algorithms, with segment sizes smaller than the message.

    >>> found = candidates_of("Open MPI v4.1.4", Case(1, "W0.0", "bcast", 4, 15, 20000))
    >>> len(found), found[0].name, [(one.name, one.segment_bytes) for one in found if one.number == 3]
    (16, 'default', [('pipeline', 0), ('pipeline', 8192)])
    """
    offer = offered(library, case.collective)
    found = [DEFAULT]
    for number, name in enumerate(offer.names if offer else (), 1):
        if name == "two_proc" and case.comm_size != 2:
            continue
        if name == "ccl" or not can_run(library, case, name):  # ccl needs a library for graphics processors
            continue
        found.append(Candidate(number, name))
        if name in segmented_of(library, case.collective):
            found += [Candidate(number, name, size) for size in SEGMENTS if size < case.message_bytes]
    return found


def can_run(library: str, case: Case, name: str) -> bool:
    """Return whether MPICH can do the replay's call with an algorithm: it aborts some jobs instead of taking another one.

    >>> case = Case(1, "W0.0", "reduce_scatter_block", 6, 7, 100)
    >>> can_run("MPICH Version: 5.0.2", case, "noncommutative"), can_run("MPICH Version: 5.0.2", case, "pairwise")
    (False, True)
    """
    known = library_of(library)
    table = LIBRARIES["mpich"].tables.get(case.collective)
    if known is None or known[0] is not LIBRARIES["mpich"] or table is None:
        return True
    needs = table.needs.get(name, ())
    if "comm_size=pow2" in needs and case.comm_size & (case.comm_size - 1):
        return False
    return "is_sendbuf_inplace=yes" not in needs and "is_block_regular=yes" not in needs


def segmented_of(library: str, collective: str) -> tuple[str, ...]:
    """Return the algorithms of a collective that cut messages into segments."""
    known = library_of(library)
    return known[0].segmented.get(collective, ()) if known else ()


def is_openmpi(library: str) -> bool:
    """Return whether the library is Open MPI."""
    known = library_of(library)
    return known is not None and known[0].title == "Open MPI"


def way_of(library: str) -> str | None:
    """Return when the variables count: when a communicator is made ("dup"), in each "call", or when a "job" starts; None: not known."""
    known = library_of(library)
    return {"Open MPI": "dup", "MPICH": "call", "Intel MPI": "job"}.get(known[0].title) if known else None


def settings_of(library: str, case: Case, candidate: Candidate) -> list[tuple[str, int]]:
    """Return the variables that choose a candidate while a job runs, and their values; one with a ? may be missing.

    MPICH does some collectives in two parts, inside machines and between them, and inside a machine without the algorithms,
    unless other variables keep it from that.

    >>> settings_of("MPICH Version: 5.0.2", Case(1, "W0.0", "bcast", 4, 7, 100), Candidate(2, "nb"))
    [('MPIR_CVAR_BCAST_INTRA_ALGORITHM', 2), ('?MPIR_CVAR_BCAST_POSIX_INTRA_ALGORITHM', 0), ('?MPIR_CVAR_BCAST_COMPOSITION', 3)]
    """
    offer = offered(library, case.collective)
    if candidate == DEFAULT or offer is None or way_of(library) == "job":
        return []
    if not is_openmpi(library):
        posix = offer.variable.replace("_INTRA_", "_POSIX_INTRA_")
        whole = [(f"?{name}", number) for name, number in composition_of(library, case.collective)]
        return [(offer.variable, candidate.number), (f"?{posix}", 0), *whole]
    segment = [(f"{offer.variable}_segmentsize", candidate.segment_bytes)]
    return [(offer.variable, candidate.number), *(segment if candidate.segment_bytes else [])]


def environment_of(library: str, collective: str, number: int) -> dict[str, str]:
    """Return the environment that makes a job choose an algorithm of Intel MPI; empty for the library's own choice.

    >>> environment_of("Intel(R) MPI Library 2021.18 for Linux* OS", "bcast", 2)
    {'I_MPI_ADJUST_BCAST': '2'}
    """
    offer = offered(library, collective)
    return {offer.variable: str(number)} if offer and number else {}


def composition_of(library: str, collective: str) -> list[tuple[str, int]]:
    """Return MPICH's variable that lets an algorithm run on the communicator as a whole, and its value.

    >>> composition_of("MPICH Version: 5.0.2", "allreduce"), composition_of("MPICH Version: 5.0.2", "gather")
    ([('MPIR_CVAR_ALLREDUCE_COMPOSITION', 2)], [])
    """
    known = library_of(library)
    table = LIBRARIES["mpich"].tables.get(collective)
    if known is None or known[0] is not LIBRARIES["mpich"] or table is None or not table.composition:
        return []
    number = {"alpha": 1, "beta": 2, "gamma": 3}[table.composition]
    return [(f"MPIR_CVAR_{collective.upper()}_COMPOSITION", number)]


def excluded(library: str) -> str:
    """Return the component of Open MPI that must not serve the candidates' communicators, "-": none.

    From 5.0 on, coll/han comes before coll/tuned on several machines, so that the choice would not count.

    >>> excluded("Open MPI v5.0.11"), excluded("Open MPI v4.1.4"), excluded("MPICH Version: 4.0.2")
    ('^han', '-', '-')
    """
    known = library_of(library)
    return "^han" if known and is_openmpi(library) and known[1] >= (5, 0) else "-"
