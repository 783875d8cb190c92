# SPDX-License-Identifier: Apache-2.0
"""The rules that read regions, slices of time and matrices: on a program with the fault, beside it, and without it."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest
from build_profile import OP_ID, ProfileBuilder
from test_findings import SECOND, program, rules_of, texts_of, waiting

from commlens.findings.find import read_findings
from commlens.profile import open_profile

SLICES = 120
"""Slices of time of a run of 10 s."""


def regions(*seconds: Mapping[str, float], waits: float = 4) -> ProfileBuilder:
    """Return a program of 10 s whose ranks wait equally long, and spend so long outside MPI in each region."""
    build = waiting(*[waits] * len(seconds))
    ids = {name: build.region(name) for name in seconds[0]}
    for rank, row in enumerate(seconds):
        for name, time in row.items():
            if time:
                build.spend(ids[name], rank, 100, round(time * SECOND))
    return build


def test_late_ranks_name_the_region_in_which_they_are_late(tmp_path: Path) -> None:
    build = waiting(4, 4, 0, 4)
    step = build.region("step")
    forces = build.region("forces", step)
    for rank, outside in enumerate((6, 6, 10, 6)):
        nested = (outside - 2) * SECOND
        build.spend(step, rank, 100, 9 * SECOND, nested, (10 - outside) * SECOND)
        build.spend(forces, rank, 100, nested)
    (text,) = texts_of(build, tmp_path)
    assert text.endswith(
        "the others wait for rank 2 in MPI_Allreduce at solver+0x1234; the difference arises in region step/forces"
    )


@pytest.mark.parametrize(("more", "named"), [(1.9, False), (2.1, True)])
def test_a_region_is_named_if_it_explains_half_of_the_difference(
    more: float, named: bool, tmp_path: Path
) -> None:
    build = waiting(4, 4, 0, 4)  # rank 2 is 4 s late
    region = build.region("forces")
    for rank in range(4):
        build.spend(region, rank, 1, round((1 + more * (rank == 2)) * SECOND))
    (text,) = texts_of(build, tmp_path)
    assert ("region forces" in text) == named


def test_ranks_that_are_late_in_different_regions_are_found(tmp_path: Path) -> None:
    usual = {"A": 2, "B": 4}
    assert texts_of(regions(usual, {"A": 4.5, "B": 1.5}, usual, usual), tmp_path) == [
        "in region A rank 1 spends 4.50 s outside MPI, the others 2.00 s"
    ]


def test_a_rank_that_never_enters_a_region_counts_as_one_of_the_others(tmp_path: Path) -> None:
    rows = [{"A": 0, "B": 6}] * 6 + [{"A": 4, "B": 2}] * 2
    assert texts_of(regions(*rows), tmp_path) == [
        "in region A 2 ranks, such as rank 6, spend 4.00 s outside MPI, the others 0 ns"
    ]


@pytest.mark.parametrize(("more", "found"), [(1.3, []), (1.4, ["uneven_region"])])
def test_a_region_is_uneven_from_a_tenth_of_the_run_on(more: float, found: list[str], tmp_path: Path) -> None:
    usual = {"A": 2, "B": 4}
    build = regions(
        usual, usual, usual, {"A": 2 + more, "B": 4 - more}
    )  # three quarters of it above the average
    assert rules_of(build, tmp_path) == found


def test_nobody_waits_for_a_rank_that_is_late_in_a_region_if_there_is_little_mpi(tmp_path: Path) -> None:
    rows = [{"A": 2, "B": 6}] * 3 + [{"A": 6, "B": 2}]
    assert rules_of(regions(*rows, waits=1.2), tmp_path) == []


def test_more_than_half_of_the_ranks_are_not_late(tmp_path: Path) -> None:
    few, many = {"A": 2.0, "B": 2.0, "C": 2.0}, {"A": 5.0, "B": 0.5, "C": 0.5}
    assert rules_of(regions(few, few, many, many, many), tmp_path) == []


def found_over_time(shares: list[float], path: Path) -> list[str]:
    """Return the sentences about a program of 10 s on two ranks with these shares of MPI in slices of equal length."""
    build = program(2)
    slice_ns = build.app_ns // len(shares)
    build.meta["slice_ns"] = str(slice_ns)
    spent = [round(share * slice_ns) for share in shares]
    for rank in range(2):
        build.count(1, "MPI_Bcast", rank, len(shares), sum(spent), size=5000)
    written = build.write(path / f"{random.getrandbits(64)}.db")
    with closing(sqlite3.connect(written)) as connection, connection:
        connection.executemany(
            "INSERT INTO slice VALUES (1, ?, ?, ?, 1, ?, 0, 0)",
            [(OP_ID["MPI_Bcast"], rank, slot, ns) for rank in range(2) for slot, ns in enumerate(spent)],
        )
    with open_profile(str(written)) as connection:
        return [finding.text for finding in read_findings(connection)]


def ramp(first: float, last: float, slices: int = SLICES) -> list[float]:
    """Return shares that grow by the same amount from slice to slice."""
    return [first + (last - first) * i / (slices - 1) for i in range(slices)]


def test_a_share_of_mpi_that_grows_is_found(tmp_path: Path) -> None:
    # The quarters begin and end with the run: their averages are an eighth of the way in.
    assert found_over_time(ramp(0.1, 0.5), tmp_path) == [
        "MPI takes 14.9 % of the first quarter of the run and 45.1 % of the last, and grows steadily"
    ]


def test_noise_from_slice_to_slice_does_not_hide_that_it_grows(tmp_path: Path) -> None:
    chance = random.Random(7)
    shares = [share + chance.uniform(-0.1, 0.1) for share in ramp(0.1, 0.5)]
    assert len(found_over_time(shares, tmp_path)) == 1


@pytest.mark.parametrize(
    "shares",
    [
        ramp(0.5, 0.1),  # it falls
        ramp(0.3, 0.55),  # 19 % of the time more
        [0.3] * SLICES,
        [0.0] * 40 + [0.5] * 80,  # reads its input first
        [0.1] * 60 + [0.5] * 60,  # two phases
        [0.1] * 110 + [0.9] * 10,  # writes at the end
        [0.1, 0.7] * 60,  # steps
        ramp(0.1, 0.5, 20),  # too few slices
    ],
)
def test_a_share_of_mpi_that_does_not_grow_steadily_is_no_finding(
    shares: list[float], tmp_path: Path
) -> None:
    assert found_over_time(shares, tmp_path) == []


def test_slices_that_do_not_divide_by_twelve_leave_out_the_first_ones(tmp_path: Path) -> None:
    # 11 slices of start-up, then 24 which grow
    assert found_over_time([0.9] * 11 + ramp(0.1, 0.9, 24), tmp_path) == [
        "MPI takes 18.7 % of the first quarter of the run and 81.3 % of the last, and grows steadily"
    ]


def serves(ranks: int, others_s: float, hub_s: float, among_others: int = 0, hub: int = 3) -> ProfileBuilder:
    """Return a program of 10 s in which each rank exchanges 1,000 messages with `hub`.

    others_s, hub_s : time in MPI_Recv of the others and of the hub
    among_others : messages that each of the others sends to the next one
    """
    build = program(ranks)
    for rank in range(ranks):
        spent = round((hub_s if rank == hub else others_s) * SECOND)
        build.count(1, "MPI_Recv", rank, 1000, spent, size=8, callsite=1)
        build.count(1, "MPI_Bcast", rank, 1, 4 * SECOND - spent, size=5000)  # all ranks work equally long
        if rank != hub:
            build.send(rank, hub, 500, 8)
            build.send(hub, rank, 500, 8)
            if among_others:
                build.send(rank, (rank + 1) % ranks, among_others, 8)
    return build


def test_a_rank_that_serves_all_others_is_named(tmp_path: Path) -> None:
    assert texts_of(serves(8, 3, 1), tmp_path) == [
        "100.0 % of all messages go to or from rank 3, which is busy: the other ranks spend 3.00 s on average in MPI_Recv "
        "at solver+0x1234, rank 3 1.00 s"
    ]


@pytest.mark.parametrize(
    ("build", "found"),
    [
        (serves(8, 3, 1.5), ["one_rank_serves"]),
        (serves(8, 3, 1.6), []),  # it waits itself
        (serves(7, 3, 1), []),
        (serves(8, 3, 1, among_others=120), ["one_rank_serves"]),
        (serves(8, 3, 1, among_others=150), []),  # those between the others are 900 of 7,900
        (serves(8, 1.15, 0.1), ["one_rank_serves"]),
        (serves(8, 1.13, 0.1), []),  # 7 of 8 ranks: less than a tenth of the run
        (serves(300, 3, 1), ["one_rank_serves"]),
    ],
)
def test_a_serving_rank_needs_most_messages_and_must_be_busy(
    build: ProfileBuilder, found: list[str], tmp_path: Path
) -> None:
    assert rules_of(build, tmp_path) == found


@pytest.mark.parametrize("ranks", [8, 64])
def test_an_exchange_of_all_with_all_and_a_ring_have_no_serving_rank(ranks: int, tmp_path: Path) -> None:
    for partners in (1, ranks - 1):
        build = program(ranks)
        for rank in range(ranks):
            build.count(1, "MPI_Recv", rank, 1000, (0 if rank == 3 else 3) * SECOND, size=8)
            build.count(1, "MPI_Bcast", rank, 1, (4 if rank == 3 else 1) * SECOND, size=5000)
            for i in range(partners):
                build.send(rank, (rank + 1 + i) % ranks, 10, 8)
        assert rules_of(build, tmp_path) == []
