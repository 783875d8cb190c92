# SPDX-License-Identifier: Apache-2.0
"""`commlens tune` against profiles whose waiting and operation times are known."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from build_profile import ProfileBuilder
from build_waits import Kind, RankWaits, add_samples
from conftest import Run

from commlens.algorithms._offered import LIBRARIES
from commlens.algorithms.calls import collective_of
from commlens.algorithms.registry import ALGORITHMS, COLLECTIVES
from commlens.tune.plan import BLOCKING

MS = 10**6
PROFILES = Path(__file__).resolve().parents[1] / "profiles"
OPEN_MPI = "Open MPI v4.1.4, package: Debian"


def program(library: str = OPEN_MPI, ranks: int = 4, **meta: str) -> ProfileBuilder:
    """Return a run of 1 s without any call."""
    facts = {"mpi_library": library, "elapsed_ns": str(1000 * MS), **meta}
    return ProfileBuilder(ranks=ranks, app_ns=1000 * MS, meta=facts)


def call(build: ProfileBuilder, comm: int, op: str, size: int | None, calls: int, each_ns: int) -> None:
    """Let every member of a communicator make calls that take `each_ns` on average."""
    for rank in build.comms[comm].ranks:
        build.count(comm, op, rank, calls, calls * each_ns, size)


def sample(
    build: ProfileBuilder, kind: Kind, each_ns: int, waiting: float, samples: int, calls: int | None = None,
    error_ns: int | None = 0,
) -> None:  # fmt: skip
    """Let samples say that each rank waits for this share of its time."""
    times = RankWaits(samples * each_ns, round(samples * each_ns * waiting))
    add_samples(build, kind, dict.fromkeys(build.comms[kind.comm].ranks, times), samples, calls, error_ns)


def planned(
    run: Run, build: ProfileBuilder, tmp_path: Path, *options: str
) -> tuple[dict[str, Any], list[str]]:
    """Return the plan as data and as lines."""
    path = build.write(tmp_path / "p.db")
    done = run("tune", path, "--format", "json", *options)
    assert done.exit_code == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found, run("tune", path, *options).stdout.splitlines()


def gains(found: dict[str, Any]) -> list[tuple[str, str, int, int]]:
    return [
        (p["communicator"], p["operation"], p["gain_max_ns"], p["is_worth_trying"]) for p in found["places"]
    ]


def mixed_builder() -> ProfileBuilder:
    """Return a run with a slow allreduce on all ranks, a slow broadcast on two halves, and a fast barrier.

    A receive of 64 to 127 bytes takes 2 µs at least, one of 1 to 2 KiB takes 5 µs.
    """
    build = program()
    low = build.comm("s0.1", [0, 1], parent=1, creator="MPI_Comm_split", family=2)
    high = build.comm("s2.1", [2, 3], parent=1, creator="MPI_Comm_split", family=2)
    call(build, 1, "MPI_Allreduce", 1000, 100, MS)
    sample(build, Kind(1, "MPI_Allreduce", 10), MS, 0.3, 100)
    for half in (low, high):
        call(build, half, "MPI_Bcast", 8, 50, 400_000)
    call(build, 1, "MPI_Barrier", 0, 10, 10_000)
    build.count(1, "MPI_Recv", 0, 10, 10 * 4_000, 100)
    build.count(1, "MPI_Recv", 0, 10, 10 * 10_000, 1500)
    return build


def test_the_largest_possible_gain_is_the_operation_without_what_remains(run: Run, tmp_path: Path) -> None:
    """The run time is 4 x 1 s.

    Allreduce: 400 calls of 1 ms, 70 % operation, of which 2 µs each remain. Broadcast: 200 calls of 0.4 ms, all of which
    may be operation. Barrier: 40 calls of 10 µs are 0.01 % of the run time.
    """
    found, lines = planned(run, mixed_builder(), tmp_path)
    assert found["run_ns"] == 4000 * MS
    assert gains(found) == [
        ("W0.0", "MPI_Allreduce", 400 * MS * 7 // 10 - 400 * 2_000, 1),
        ("s*.1", "MPI_Bcast", 80 * MS, 1),
        ("W0.0", "MPI_Barrier", 400_000, 0),
    ]
    allreduce, bcast, _ = found["places"]
    assert (allreduce["waiting_ns"], allreduce["operation_ns"]) == (120 * MS, 280 * MS)
    assert (allreduce["calls"], allreduce["calls_per_rank"], allreduce["least_ns"]) == (400, 100, 2_000)
    assert (bcast["waiting_ns"], bcast["operation_ns"], bcast["operation_max_ns"]) == (None, None, 80 * MS)
    assert (bcast["communicators"], bcast["size_max"], bcast["calls_per_rank"]) == (2, 2, 50)
    assert allreduce["gain_share"] == pytest.approx(279.2 / 4000)
    text = " ".join(" ".join(lines).split())
    assert text.startswith(
        "worth trying: another algorithm in 2 of 3 places; it saves at most 359 ms of 4.00 s run time (9.0 %), sums over "
        "the ranks"
    )
    assert "MPI_Allreduce 512-1023 B 100 400 ms 30.0 % exact 280 ms 279 ms 7.0 % chosen by Open MPI" in text
    assert "s*.1 x2 2 ranks MPI_Bcast 8-15 B 50 80.0 ms unknown ? <= 80.0 ms 80.0 ms 2.0 %" in text
    assert "coll_tuned_allreduce_algorithm chooses from 1 basic_linear, 2 nonoverlapping" in text
    assert "Where waiting is unknown, no call was sampled" in text
    assert "MPI_Barrier" not in text


def test_an_algorithm_that_is_always_slow_is_worth_trying(run: Run, tmp_path: Path) -> None:
    """All calls take the same time: the fastest one proves nothing about another algorithm."""
    build = program()
    call(build, 1, "MPI_Alltoall", 1000, 100, MS)
    for cell in build.cells:
        cell.min_ns = cell.max_ns = MS
    sample(build, Kind(1, "MPI_Alltoall", 10), MS, 0.0, 100)
    found, _ = planned(run, build, tmp_path)
    assert gains(found) == [("W0.0", "MPI_Alltoall", 400 * MS, 1)]
    assert found["places"][0]["fastest_ns"] == MS


def test_waiting_is_not_worth_another_algorithm(run: Run, tmp_path: Path) -> None:
    """98 % of 400 ms wait, so that 8 ms are operation: 0.2 % of the run time."""
    build = program()
    call(build, 1, "MPI_Allreduce", 8, 100, MS)
    sample(build, Kind(1, "MPI_Allreduce", 4), MS, 0.98, 100)
    found, lines = planned(run, build, tmp_path)
    assert gains(found) == [("W0.0", "MPI_Allreduce", 8 * MS, 0)]
    assert " ".join(lines) == (
        "nothing to try: 98.0 % of the time in collectives is waiting for late ranks; another algorithm does not shorten it "
        "(see commlens waits)"
    )


@pytest.mark.parametrize(
    ("each_ns", "is_worth"), [(99_000, False), (100_000, True)], ids=["just below", "just enough"]
)
def test_the_gain_must_reach_1_percent_of_the_run_time(
    run: Run, tmp_path: Path, each_ns: int, is_worth: bool
) -> None:
    """400 calls of 0.1 ms are 40 of 4,000 ms."""
    build = program()
    call(build, 1, "MPI_Allreduce", 8, 100, each_ns)
    found, lines = planned(run, build, tmp_path)
    assert found["places"][0]["is_worth_trying"] == is_worth
    if not is_worth:
        assert " ".join(lines) == "nothing to try: collectives take 1.0 % of the run time"


def test_several_small_places_are_not_worth_trying(run: Run, tmp_path: Path) -> None:
    build = program()
    for size in (8, 1000):
        call(build, 1, "MPI_Allreduce", size, 100, 90_000)
    found, lines = planned(run, build, tmp_path)
    assert [place["is_worth_trying"] for place in found["places"]] == [0, 0]
    assert " ".join(lines).startswith(
        "nothing to try: another algorithm saves at most 0.9 % of the run time in one place"
    )


def test_the_gain_uses_the_lower_end_of_the_interval(run: Run, tmp_path: Path) -> None:
    build = program()
    call(build, 1, "MPI_Allreduce", 8, 1000, MS // 10)
    sample(build, Kind(1, "MPI_Allreduce", 4), MS // 10, 0.5, 100, calls=1000, error_ns=20 * MS)
    found, _ = planned(run, build, tmp_path)
    place = found["places"][0]
    (wait,) = json.loads(run("waits", tmp_path / "p.db", "--format", "json").stdout)["waits"]
    assert 0 < wait["share_low"] < 0.5
    assert place["operation_ns"] == 200 * MS
    assert place["gain_max_ns"] == 400 * MS - int(wait["share_low"] * 400 * MS)


def test_too_few_samples_leave_all_of_the_time(run: Run, tmp_path: Path) -> None:
    build = program()
    call(build, 1, "MPI_Allreduce", 8, 100, MS)
    sample(build, Kind(1, "MPI_Allreduce", 4), MS, 0.9, 3, calls=100, error_ns=None)
    found, lines = planned(run, build, tmp_path)
    assert gains(found) == [("W0.0", "MPI_Allreduce", 400 * MS, 1)]
    assert found["places"][0]["operation_ns"] == 40 * MS
    assert "?" in " ".join(lines)


def test_the_gain_is_never_negative(run: Run, tmp_path: Path) -> None:
    """Receives that take longer than the calls of the allreduce."""
    build = program()
    call(build, 1, "MPI_Allreduce", 1000, 100, MS)
    build.count(1, "MPI_Recv", 0, 10, 10 * 40 * MS, 100)
    found, _ = planned(run, build, tmp_path)
    assert gains(found) == [("W0.0", "MPI_Allreduce", 0, 0)]


def test_a_collective_with_one_algorithm_is_left_alone(run: Run, tmp_path: Path) -> None:
    build = program()
    call(build, 1, "MPI_Gatherv", None, 100, MS)
    found, lines = planned(run, build, tmp_path)
    assert gains(found) == [("W0.0", "MPI_Gatherv", 400 * MS, 0)]
    assert " ".join(lines) == "nothing to try: Open MPI has one algorithm only for MPI_Gatherv"


@pytest.mark.parametrize(
    ("library", "names"),
    [
        ("Open MPI v5.0.11, package: Debian", "sparbit"),
        ("MPICH Version:\t4.0.2", "MPIR_CVAR_ALLGATHER_INTRA_ALGORITHM chooses from 1 brucks, 2 nb"),
        ("MPICH Version:\t4.1.3", "1 brucks, 2 k_brucks, 3 nb, 4 recursive_doubling, 5 ring"),
        ("MPICH Version:      4.2.1", "6 recexch_doubling, 7 recexch_halving"),
        ("MPICH Version:      5.0.2", "k_brucks"),
        (
            "Intel(R) MPI Library 2021.8 for Linux* OS",
            "I_MPI_ADJUST_ALLGATHER chooses from 1 Recursive doubling",
        ),
        ("MPI of tomorrow 1.0", "does not know which algorithms MPI of tomorrow 1.0 has for MPI_Allgather"),
        ("Open MPI v3.1.4", "does not know which algorithms Open MPI v3.1.4 has"),
        (f"Open MPI v{'9' * 5000}.1", "does not know which algorithms"),
        ("", "does not know which algorithms the MPI library has"),
    ],
    ids=[
        "openmpi5",
        "mpich4",
        "mpich4.1",
        "mpich4.2",
        "mpich5",
        "intel",
        "unknown",
        "old",
        "damaged",
        "none",
    ],
)
def test_the_algorithms_are_those_of_the_library(run: Run, tmp_path: Path, library: str, names: str) -> None:
    build = program(library)
    call(build, 1, "MPI_Allgather", 8, 100, MS)
    found, lines = planned(run, build, tmp_path)
    assert gains(found) == [("W0.0", "MPI_Allgather", 400 * MS, 1)]
    assert names in " ".join(" ".join(lines).split())


@pytest.mark.parametrize("ranks", [1, 4])
def test_without_a_choice_of_algorithms_it_says_so(run: Run, tmp_path: Path, ranks: int) -> None:
    """One rank has nobody to exchange with; non-blocking collectives, intercommunicators and messages do not count."""
    build = program(ranks=ranks)
    if ranks == 1:
        call(build, 1, "MPI_Allreduce", 8, 100, MS)
    else:
        inter = build.comm("i0.1", [0, 1, 2, 3], kind="inter", remote_size=2, members="0-1 | 2-3")
        call(build, inter, "MPI_Allreduce", 8, 100, MS)
        call(build, 1, "MPI_Ibcast", 8, 100, MS)
        call(build, 1, "MPI_Recv", 8, 100, MS)
    found, lines = planned(run, build, tmp_path)
    assert found["places"] == []
    assert " ".join(lines).startswith(
        "nothing to try: no blocking collective was called on a communicator of two"
    )
    assert run("tune", tmp_path / "p.db", "--format", "csv").stdout.strip() == ""


def test_without_a_run_time_every_gain_counts(run: Run, tmp_path: Path) -> None:
    build = program(elapsed_ns="")
    call(build, 1, "MPI_Allreduce", 8, 10, MS // 10)
    found, lines = planned(run, build, tmp_path)
    assert (found["run_ns"], found["places"][0]["gain_share"], found["places"][0]["is_worth_trying"]) == (
        0,
        None,
        1,
    )
    assert "it saves at most 4.00 ms, sums over the ranks" in " ".join(lines)


@pytest.mark.parametrize(
    ("calls", "each_ns", "says"),
    [
        (10, MS // 10, "worth trying"),
        (
            9,
            MS,
            "nothing to try: MPI_Allreduce has fewer than 10 calls per member of a communicator in a place",
        ),
        (
            10,
            99_000,
            "nothing to try: another algorithm saves at most 990 µs per rank in one place, MPI_Allreduce",
        ),
    ],
    ids=["just enough", "too few calls", "too little time"],
)
def test_a_short_run_is_not_worth_trying(
    run: Run, tmp_path: Path, calls: int, each_ns: int, says: str
) -> None:
    """The run takes 3 ms, of which 10 calls of 0.1 ms are a third."""
    build = program(elapsed_ns=str(3 * MS))
    call(build, 1, "MPI_Allreduce", 8, calls, each_ns)
    found, lines = planned(run, build, tmp_path)
    assert " ".join(lines).startswith(says)
    assert found["places"][0]["is_worth_trying"] == (says == "worth trying")


def test_two_procedures_have_too_few_calls(run: Run, tmp_path: Path) -> None:
    build = program(elapsed_ns=str(3 * MS))
    for op in ("MPI_Allreduce", "MPI_Bcast"):
        call(build, 1, op, 8, 9, MS)
    lines = planned(run, build, tmp_path)[1]
    assert " ".join(lines).startswith("nothing to try: MPI_Allreduce, MPI_Bcast have fewer than 10 calls")


def test_the_algorithm_that_ran_is_named(run: Run, tmp_path: Path) -> None:
    """A ring of four ranks: in an allgather, each sends three blocks to the next."""
    build = program(inside="measured")
    call(build, 1, "MPI_Allgather", 1000, 100, MS)
    for cell in build.cells:
        cell.sent, cell.received = 100 * 1000, 100 * 4000
    for rank in range(4):
        build.tell_peer("collective", rank, (rank + 1) % 4, 300, 1000, op="MPI_Allgather", call_bin=10)
    found, lines = planned(run, build, tmp_path)
    assert found["places"][0]["algorithm"] == "ring"
    assert any(line.endswith(" ring") for line in lines)


def test_rows_beyond_top_and_of_other_selections_are_left_out(run: Run, tmp_path: Path) -> None:
    found, lines = planned(run, mixed_builder(), tmp_path, "--top", "1")
    assert len(found["places"]) == 3
    assert "and 1 more row with at most 80.0 ms" in " ".join(lines)
    path = tmp_path / "p.db"
    for options, wanted in (
        (("--op", "bcast"), {"MPI_Bcast"}),
        (("--comm", "W0.0"), {"MPI_Allreduce", "MPI_Barrier"}),
    ):
        rows = list(csv.DictReader(io.StringIO(run("tune", path, "--format", "csv", *options).stdout)))
        assert {row["operation"] for row in rows} == wanted
    assert "nothing to try" in run("tune", path, "--op", "recv").stdout


def test_the_statements_return_the_rows(run: Run, tmp_path: Path) -> None:
    path = mixed_builder().write(tmp_path / "p.db")
    places = run("tune", path, "--sql").stdout.split(";\n")[0]
    with closing(sqlite3.connect(path)) as connection:
        assert len(connection.execute(places).fetchall()) == 3


def test_the_guide_shows_what_is_printed(run: Run, tmp_path: Path) -> None:
    printed = run("tune", mixed_builder().write(tmp_path / "p.db")).stdout
    guide = (PROFILES.parents[1] / "docs" / "guide" / "read.md").read_text(encoding="utf-8")
    assert "".join(f"    {line}\n" if line else "\n" for line in printed.splitlines()) in guide


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(PROFILES.glob("version*")) if path.name != "version1.db"],
    ids=lambda p: p.name,
)
def test_recorded_profiles_of_all_versions_have_the_time_of_their_collectives(run: Run, path: Path) -> None:
    done = run("tune", path, "--format", "json")
    assert done.exit_code == 0, done.stderr
    found = {
        (p["communicator"], p["operation"], p["bin"]): p["time_ns"] for p in json.loads(done.stdout)["places"]
    }
    report = json.loads(
        run(
            "sql", path, "SELECT family.name, op.name AS op, bin, time_ns, size_max FROM family_operation AS t JOIN family "
            "ON family.family = t.family JOIN op ON op.id = t.op WHERE family.kind = 'intra'", "--format", "json",
        ).stdout
    )  # fmt: skip
    wanted = {
        (row["name"], row["op"], row["bin"]): row["time_ns"]
        for row in report
        if row["op"] in BLOCKING and row["size_max"] > 1
    }
    assert found == wanted
    assert found


def test_the_table_has_the_numbers_of_the_registry() -> None:
    """An algorithm with a number in coll_tuned is in the list, and every collective is a procedure."""
    lists = {**LIBRARIES["openmpi"].since[4, 1], **LIBRARIES["openmpi"].since[5, 0]}
    for one in ALGORITHMS:
        assert one.openmpi is None or one.openmpi <= len(lists[one.collective]), one
    for library in LIBRARIES.values():
        assert {name for names in library.since.values() for name in names} <= set(COLLECTIVES)
    assert [collective_of(name) for name in BLOCKING] == list(COLLECTIVES)


def test_calls_that_had_not_returned_are_no_reason_for_another_algorithm(run: Run, tmp_path: Path) -> None:
    """All ranks hang in a barrier for 0.9 s of the run; the allreduce before is slow by itself."""
    build = program(open_calls="counted")
    call(build, 1, "MPI_Allreduce", 1000, 100, MS // 2)
    call(build, 1, "MPI_Barrier", 0, 20, 45 * MS)
    for rank in range(4):
        build.stands(rank, "MPI_Barrier", 1, 100 * MS)
    found, lines = planned(run, build, tmp_path)
    assert {p["operation"]: (p["is_worth_trying"], p["open_calls"]) for p in found["places"]} == {
        "MPI_Allreduce": (1, 0),
        "MPI_Barrier": (0, 4),
    }
    text = " ".join(lines)
    assert text.startswith(
        "Calls that had not returned: 4 of MPI_Barrier in W0.0. Another algorithm does not"
    )
    assert "another algorithm in 1 of 2 places" in text


@pytest.mark.parametrize(("inside", "counted"), [(False, "counted"), (True, "")])
def test_calls_whose_time_ended_count_as_usual(run: Run, tmp_path: Path, inside: bool, counted: str) -> None:
    build = program(open_calls=counted)
    call(build, 1, "MPI_Barrier", 0, 20, 45 * MS)
    for rank in range(4):
        build.stands(rank, "MPI_Barrier", 1, 100 * MS, inside=inside)
    found, lines = planned(run, build, tmp_path)
    assert [(p["is_worth_trying"], p["open_calls"]) for p in found["places"]] == [(1, 0)]
    assert lines[0].startswith("worth trying")


def test_a_plan_of_nothing_but_a_hang_has_no_replay(run: Run, tmp_path: Path) -> None:
    build = program(open_calls="counted")
    call(build, 1, "MPI_Barrier", 0, 20, 45 * MS)
    build.stands(0, "MPI_Barrier", 1, 100 * MS)
    path = build.write(tmp_path / "p.db")
    done = run("tune", path, "--to", tmp_path / "out", "--", "mpirun", "-n", "4", "./app")
    assert done.exit_code == 0, done.stderr
    assert "nothing to try: no other row remains" in " ".join(done.stdout.split())
    assert not (tmp_path / "out").exists()


def test_many_communicators_with_few_calls_each_are_counted_by_member(run: Run, tmp_path: Path) -> None:
    """Each rank makes 20 calls, but 5 in each of four communicators of a family."""
    build = program()
    for number in range(1, 5):
        half = build.comm(f"s0.{number}", [0, 1, 2, 3], parent=1, creator="MPI_Comm_split", family=2)
        call(build, half, "MPI_Allreduce", 8, 5, 4 * MS)
    found, lines = planned(run, build, tmp_path)
    assert [p["calls_per_rank"] for p in found["places"]] == [5]
    assert " ".join(lines) == (
        "nothing to try: MPI_Allreduce has fewer than 10 calls per member of a communicator in a place"
    )


def test_a_communicator_selects_its_family(run: Run, tmp_path: Path) -> None:
    found, _ = planned(run, mixed_builder(), tmp_path, "--comm", "s2.1")
    assert [(p["communicator"], p["communicators"]) for p in found["places"]] == [("s*.1", 2)]
    for command in ("tune", "waits"):
        assert "Only families with these communicators" in " ".join(run(command, "--help").stdout.split())
