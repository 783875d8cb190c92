# SPDX-License-Identifier: Apache-2.0
"""Collectives by their shape, and what each has for each peer: as written out here, and as Open MPI's monitoring says.

The program makes each collective once, on a ring in which the process of rank r in WORLD is the one of rank n - 1 - r.
"""

from __future__ import annotations

import pytest
from harness import Mpi

RANKS = 4
ROOT = 1
INT = 4
# Open MPI's component for monitoring takes part only where more than one point-to-point layer may be chosen.
MONITORING = {"OMPI_MCA_pml_monitoring_enable": "2", "OMPI_MCA_pml": "^cm"}

ALL = {"COMMLENS_MATRIX": "all"}  # with what v and w forms have for each

# It counts the root's own block of a scatter by lists, and collectives that another one is made of.
OWN_WAYS = {("scatterv", ROOT), *(("allgatherv", rank) for rank in range(RANKS))}


def row(kind: str, blocks: dict[int, int], extra: int = 0) -> tuple[list[int], list[int], list[int]]:
    """Return the shapes, and per rank in WORLD messages and bytes, of one that has `blocks` bytes for its peers."""
    shapes = dict.fromkeys(("o2a", "a2o", "a2a"), (0, 0))
    if kind:
        shapes[kind] = (1, sum(blocks.values()) + extra)
    messages, size = [0] * RANKS, [0] * RANKS
    for peer, block in blocks.items():
        messages[RANKS - 1 - peer] += 1
        size[RANKS - 1 - peer] += block
    return [n for pair in shapes.values() for n in pair], messages, size


def expected(what: str, rank: int) -> tuple[list[int], list[int], list[int]]:
    """Return what one collective adds on `rank` of the ring."""
    others = [i for i in range(RANKS) if i != rank]
    own_size = {i: INT * (i + 1) for i in others}  # block i has i + 1 integers
    is_root = rank == ROOT

    def same(integers: int) -> dict[int, int]:
        return dict.fromkeys(others, INT * integers)

    name = what.removeprefix("i").removesuffix("_init")
    if name.startswith("neighbor_"):
        messages = dict.fromkeys([(rank - 1) % RANKS, (rank + 1) % RANKS], 2 * INT)
        return row("a2a", messages)
    if name in ("scan", "exscan"):
        later = {i: 5 * INT for i in others if i > rank}
        return row("a2a", later, extra=5 * INT)
    rooted = {
        "bcast": ("o2a", same(3)),
        "scatter": ("o2a", same(2)),
        "scatterv": ("o2a", own_size),
        "gather": ("a2o", same(2)),
        "gatherv": ("a2o", own_size),
        "reduce": ("a2o", same(5)),
    }
    if name in rooted:
        return row(*rooted[name]) if is_root else row("", {})
    return row(
        "a2a",
        {
            "barrier": same(0),
            "allgather": same(2),
            "allgatherv": same(rank + 1),
            "alltoall": same(2),
            "alltoallv": own_size,
            "alltoallw": own_size,
            "allreduce": same(5),
            "reduce_scatter": own_size,
            "reduce_scatter_block": same(2),
        }[name],
    )


def printed(lines: list[str]) -> dict[tuple[str, int], tuple[list[int], ...]]:
    found = {}
    for line in lines:
        what, _, rest = line.partition(" ")
        rank, _, numbers = rest.partition(":")
        found[what, int(rank)] = tuple([int(n) for n in part.split()] for part in numbers.split("|"))
    return found


def test_each_collective_is_counted_by_its_shape_and_for_each_peer(mpi: Mpi) -> None:
    done = mpi.run(RANKS, [mpi.compile("shapes.c")], ALL)
    assert done.rc == 0, done
    found = printed(done.lines)
    assert len({what for what, _ in found}) == (28 if "MPI_Bcast_init" in mpi.procedures else 26)
    assert found == {(what, rank): expected(what, rank) for what, rank in found}


def test_open_mpis_own_monitoring_says_the_same(mpi: Mpi) -> None:
    """On the same run: its variables keep their names, ours have a prefix."""
    if mpi.family != "openmpi":
        pytest.skip("only Open MPI has one")
    program = mpi.compile("shapes.c")
    theirs = mpi.run(RANKS, [program], MONITORING, mode="off")
    mpi.skip_if_broken(theirs)
    assert theirs.rc == 0, theirs
    ours = mpi.run(RANKS, [program, "commlens_"], {**MONITORING, **ALL})
    assert ours.rc == 0, ours
    found, monitored = printed(ours.lines), printed(theirs.lines)
    assert found.keys() == monitored.keys()
    # Of persistent ones it knows nothing.
    found = {at: of for at, of in found.items() if not at[0].endswith("_init")}
    monitored = {at: of for at, of in monitored.items() if at in found}
    different = {at for at in found if found[at] != monitored[at]}
    assert different <= OWN_WAYS
    assert ("scatterv", ROOT) in different, "the list is out of date"
