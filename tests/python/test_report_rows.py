# SPDX-License-Identifier: Apache-2.0
"""The rows of a report: what --top leaves out, their order, and the names that they can be selected by."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from build_profile import Cell, ProfileBuilder
from conftest import MS, Run

import commlens.matrix
from commlens.selection.conditions import parse_comm_size


def rows(run: Run, *arguments: object) -> list[list[str]]:
    """Return the words of each line below the head of a report."""
    output = run("report", *arguments).stdout.split("\n\n", 1)[1]
    return [line.split() for line in output.splitlines()]


def operations(run: Run, *arguments: object) -> list[dict[str, str]]:
    """Return the operations of a report."""
    return list(csv.DictReader(io.StringIO(run("report", *arguments, "--format", "csv").stdout)))


@pytest.fixture
def hundred(tmp_path: Path) -> Path:
    """Return a profile of 100 ms in MPI: 60 and 10 ms on one communicator, 20, 8 and 2 ms on another."""
    build = ProfileBuilder(ranks=2)
    half = build.comm("s0.1", [0], parent=1, creator="MPI_Comm_split")
    for comm, op, time in (
        (1, "MPI_Allreduce", 60),
        (1, "MPI_Bcast", 10),
        (half, "MPI_Allreduce", 20),
        (half, "MPI_Bcast", 8),
        (half, "MPI_Barrier", 2),
    ):
        build.count(comm, op, 0, 4, time * MS)
    return build.write(tmp_path / "hundred.db")


@pytest.mark.parametrize("callsite", [0, 1])
def test_a_call_that_did_not_return_is_not_the_shortest(tmp_path: Path, run: Run, callsite: int) -> None:
    """As commlens recover writes it: no call, but a time; of the same key as the others, or of one of its own."""
    build = ProfileBuilder(ranks=2)
    build.sites[1] = ("/opt/app/x", "", 0x100)
    build.count(1, "MPI_Barrier", 0, 100, 100 * 10_000)
    build.cells.append(Cell(1, "MPI_Barrier", 0, callsite, 1, 0, 10**9, 0, 10**9, 0, 0, 0, 0))
    path = build.write(tmp_path / "hangs.db")
    (row,) = csv.DictReader(io.StringIO(run("report", path, "--format", "csv").stdout))
    assert (row["calls"], row["call_min_ns"], row["call_max_ns"]) == ("100", "5000", str(10**9))
    for view in ("comm_operation", "family_operation", "region_operation"):
        (row,) = csv.DictReader(
            io.StringIO(run("sql", path, f"SELECT * FROM {view}", "--format", "csv").stdout)
        )
        assert (row["calls"], row["call_min_ns"], row["call_max_ns"]) == ("100", "5000", str(10**9)), view


def test_the_share_of_rows_left_out_has_the_base_of_the_shares_above(hundred: Path, run: Run) -> None:
    output = run("report", hundred, "--top", 1).stdout
    assert "  and 1 more row with 10.0 % of the MPI time\n" in output
    assert output.endswith("\nand 1 more family with 30.0 % of the MPI time\n")
    second = run("report", hundred, "--top", 1, "--comm", "s0.1").stdout
    assert second.endswith("  and 2 more rows with 10.0 % of the MPI time\n")


def test_rows_without_time_that_are_left_out_have_none(tmp_path: Path, run: Run) -> None:
    build = ProfileBuilder(ranks=1)
    build.count(1, "MPI_Bcast", 0, 3, 3 * MS)
    build.count(1, "MPI_Comm_rank", 0, 3, 0)
    path = build.write(tmp_path / "x.db")
    assert run("report", path, "--top", 1).stdout.endswith("  and 1 more row with 0 % of the MPI time\n")


def test_reverse_shows_the_smallest_first(hundred: Path, run: Run) -> None:
    found = [(row["communicator"], row["time_ns"]) for row in operations(run, hundred, "--reverse")]
    assert found == [(name, str(ms * MS)) for name, ms in (("s0.1", 2), ("s0.1", 8), ("s0.1", 20), ("W0.0", 10), ("W0.0", 60))]  # fmt: skip
    named = [row["operation"] for row in operations(run, hundred, "--comm", 2, "--sort", "name", "--reverse")]
    assert named == ["MPI_Bcast", "MPI_Barrier", "MPI_Allreduce"]
    cut = rows(run, hundred, "--reverse", "--top", 1, "--comm", "s0.1")
    assert [line[0] for line in cut] == ["communicator", "s0.1", "MPI_Comm_split", "MPI_Barrier", "and"]
    assert " ".join(cut[-1]) == "and 2 more rows with 28.0 % of the MPI time"


def test_the_ranks_with_the_most_and_the_least_time_are_always_shown(tmp_path: Path, run: Run) -> None:
    build = ProfileBuilder(ranks=8)
    for rank in range(8):
        build.count(1, "MPI_Bcast", rank, 2, (10 + (rank * 3) % 8) * MS)
    path = build.write(tmp_path / "x.db")
    shown = [line[:2] for line in rows(run, path, "--all-ranks", "--top", 2)[3:]]
    assert shown == [["rank", "5"], ["rank", "2"], ["and", "5"], ["rank", "0"]]
    shown = [line[:2] for line in rows(run, path, "--all-ranks", "--top", 7, "--reverse")[3:]]
    assert shown == [["rank", str(rank)] for rank in (0, 3, 6, 1, 4, 7, 2, 5)]
    shown = [line[:2] for line in rows(run, path, "--all-ranks", "--top", 1, "--rank", "2,5")[3:]]
    assert shown == [["rank", "5"], ["rank", "2"]]


def test_averages_per_call_calls_per_rank_and_collectives(hundred: Path, run: Run) -> None:
    first = operations(run, hundred)[0]
    assert (first["calls"], first["calls_per_rank"], first["call_avg_ns"]) == ("4", "2.0", str(15 * MS))
    line = next(line for line in run("report", hundred).stdout.splitlines() if "MPI_Allreduce" in line)
    assert line.split()[1:13] == ["0", "B", "4", "2", "2", "60.0", "ms", "30.0", "ms", "15.0", "ms", "30.0"]


BY_SIZE = [
    "size 2 x3 2 ranks 406 101.5 202.5 100 ms 86.1 ms 849 µs 2.67 ms 77.5 % 440 KiB 440 KiB 0.5 %",
    "s0.1: ranks 0, 1",
    "s2.1: ranks 2, 3",
    "and 1 more communicator",
    "MPI_Allreduce 1-2 KiB 400 100 200 100 ms 85.0 ms 850 µs 2.67 ms 76.5 % 400 KiB 400 KiB",
    "MPI_Neighbor_alltoall 4-8 KiB 5 1.2 2.5 4.00 ms 1.00 ms 800 µs 1.60 ms 0.9 % 40.0 KiB 40.0 KiB 40.0 %",
    "and 1 more row with 0.1 % of the MPI time",
]
BY_OP = [
    "MPI_Allreduce 4 ranks 520 130 230 113 ms 96.5 ms 742 µs 2.67 ms 86.8 % 401 KiB 401 KiB",
    "s*.1 x2 2 ranks 400 100 200 100 ms 85.0 ms 850 µs 2.67 ms 76.5 % 400 KiB 400 KiB",
    "MPI_Comm_split of W0.0 at listing1+0x1234",
    "1-2 KiB 400 100 200 100 ms 85.0 ms 850 µs 2.67 ms 76.5 % 400 KiB 400 KiB",
    "and 1 more family with 10.3 % of the MPI time",
    "",
    "and 8 more operations with 13.2 % of the MPI time",
    "",
    "MPI_Init 4 ranks 4 1 5.00 ms 5.00 ms 5.00 ms 5.00 ms",
    "before the time from MPI_Init to MPI_Finalize, and in no sum or share",
]


def test_a_report_by_size_or_by_procedure(small: Path, run: Run) -> None:
    by_size = [" ".join(line) for line in rows(run, small, "--by", "comm-size", "--members", "--top", 2)]
    assert by_size[1:8] == BY_SIZE
    assert by_size[-1] == "and 1 more size with 9.0 % of the MPI time"
    assert [" ".join(line) for line in rows(run, small, "--by", "op", "--top", 1)][1:] == BY_OP
    both = run("report", small, "--by", "comm-size", "--unfold")
    assert both.exit_code == 2
    assert "--unfold shows each communicator, --by comm-size only their sizes: use one of them" in both.stderr


def test_the_members_of_communicators(small: Path, run: Run) -> None:
    found = json.loads(run("report", small, "--comm", "s*.1", "--members", "--format", "json").stdout)
    assert [(row["communicator"], row["members"]) for row in found["members"]] == [
        ("s0.1", "0, 1"),
        ("s2.1", "2, 3"),
    ]
    lines = [" ".join(line) for line in rows(run, small, "--comm", "s0.1", "--members", "--unfold")]
    assert lines[3] == "ranks 0, 1"
    refused = run("report", small, "--members", "--format", "csv")
    assert (refused.exit_code, refused.stdout) == (2, "")
    message = "--members adds lines to a table, and rows to json: csv has one kind of rows only"
    assert message in " ".join(refused.stderr.split())


def families() -> ProfileBuilder:
    """Return three families of duplicates of one communicator on one rank, whose names and numbers interleave."""
    build = ProfileBuilder(ranks=2)
    build.sites[1], build.sites[2] = ("/bin/app", "", 0x10), ("/bin/app", "", 0x20)
    for number, family in ((1, 7), (2, 7), (3, 9), (4, 9), (5, 11), (6, 7)):
        id = build.comm(f"d0.{number}", [0, 1], parent=1, creator="MPI_Comm_dup", family=family)
        build.count(id, "MPI_Bcast", 0, number, number * MS, size=8)
    build.comm("S*.1", [0], family=20)
    build.comm("S*.1", [1], family=20)
    build.count(9, "MPI_Bcast", 0, 1, MS)
    build.count(1, "MPI_Bcast", 0, 1, MS)
    return build


def test_no_two_families_have_the_same_name_and_a_name_selects_its_family(tmp_path: Path, run: Run) -> None:
    path = families().write(tmp_path / "x.db")
    lines = json.loads(run("report", path, "--format", "json").stdout)["communicators"]
    names = {row["communicator"]: row["family"] for row in lines}
    assert names == {"d0.*#7": 7, "d0.*#9": 9, "d0.5": 11, "S*.1": 20, "W0.0": 1}
    for name, family in names.items():
        selected = json.loads(run("report", path, "--comm", name, "--format", "json").stdout)["communicators"]
        assert [(row["communicator"], row["family"]) for row in selected] == [(name, family)]
    assert "d0.*#7 x3 " in run("report", path).stdout
    assert "d0.*#9 x2 " in run("comms", path).stdout
    everything = json.loads(run("report", path, "--comm", "d0.*", "--format", "json").stdout)
    assert {row["communicator"] for row in everything["communicators"]} == {"d0.*#7", "d0.*#9", "d0.5"}


def test_a_name_without_another_family_has_no_number(tmp_path: Path, run: Run) -> None:
    build = ProfileBuilder(ranks=2)
    for number in (1, 2):
        id = build.comm(f"d0.{number}", [0, 1], parent=1, creator="MPI_Comm_dup", family=7)
        build.count(id, "MPI_Bcast", 0, 1, MS)
    build.count(build.comm("d1.1", [1], family=9), "MPI_Bcast", 1, 1, MS)
    found = operations(run, build.write(tmp_path / "x.db"))
    assert [row["communicator"] for row in found] == ["d0.*", "d1.1"]


def test_a_part_of_a_family_keeps_its_name(tmp_path: Path, run: Run) -> None:
    path = families().write(tmp_path / "x.db")
    two = operations(run, path, "--comm", "d0.1", "--comm", "d0.2")
    assert [(row["communicator"], row["communicators"]) for row in two] == [("d0.*#7", "2")]
    one = operations(run, path, "--comm", "d0.6")
    assert [(row["communicator"], row["communicators"]) for row in one] == [("d0.6", "1")]


@pytest.mark.parametrize(("pattern", "name"), [("MPI_COMM_WORLD", "W0.0"), ("MPI_COMM_SELF", "S*.1")])
def test_predefined_communicators_are_selected_by_their_name_in_mpi(
    tmp_path: Path, run: Run, pattern: str, name: str
) -> None:
    path = families().write(tmp_path / "x.db")
    assert [row["communicator"] for row in operations(run, path, "--comm", pattern)] == [name]
    report = run("report", path, "--comm", pattern).stdout
    assert f"\n{name}{' x2' if name != 'W0.0' else ''} {pattern}  " in report
    assert run("matrix", path, "--comm", pattern).exit_code == 0
    assert run("algorithms", path, "--comm", pattern).exit_code == 0
    talk = commlens.matrix.read(path, comms=[pattern])
    assert len(talk.source) == 0


def test_the_matrix_names_predefined_communicators(tmp_path: Path, run: Run) -> None:
    build = ProfileBuilder(ranks=2)
    build.comm("d0.1", [0, 1], parent=1, creator="MPI_Comm_dup")
    build.send(0, 1, 3, 8)
    build.send(1, 0, 1, 8, comm=2)
    lines = run("matrix", build.write(tmp_path / "x.db")).stdout.splitlines()
    at = lines.index("communicator         ranks  messages  bytes   share  pattern")
    assert [line.split()[:3] for line in lines[at + 1 : at + 3]] == [
        ["W0.0", "MPI_COMM_WORLD", "2"],
        ["d0.1", "2", "1"],
    ]


def test_predefined_communicators_in_python_and_the_suggestion_for_a_wrong_name(
    tmp_path: Path, run: Run
) -> None:
    build = ProfileBuilder(ranks=2)
    build.comm("d0.1", [0, 1], parent=1, creator="MPI_Comm_dup")
    build.send(0, 1, 3, 8)
    build.send(1, 0, 5, 8, comm=2)
    path = build.write(tmp_path / "x.db")
    talk = commlens.matrix.read(path, comms=["MPI_COMM_WORLD"])
    assert list(zip(talk.source.tolist(), talk.destination.tolist(), talk.messages.tolist())) == [(0, 1, 3)]
    result = run("report", path, "--comm", "MPI_COMM_WORL")
    assert "no communicator 'MPI_COMM_WORL' in this profile; did you mean MPI_COMM_WORLD?\n" in result.stderr


@pytest.mark.parametrize(
    ("size", "names"),
    [
        ("4", {"W0.0"}),
        ("1:3", {"s0.1", "I0.2", "d0.4"}),
        ("3:", {"W0.0", "I0.2"}),
        (":1", {"d0.4"}),
    ],
)
def test_communicators_are_selected_by_their_number_of_ranks(
    tmp_path: Path, run: Run, size: str, names: set[str]
) -> None:
    build = ProfileBuilder(ranks=4)
    for comm in (
        build.comm("s0.1", [0, 1], parent=1, creator="MPI_Comm_split"),
        build.comm("I0.2", [0, 1, 2], kind="inter", remote_size=1, members="0-1 | 2"),
        build.comm("d0.4", [0], parent=1, creator="MPI_Comm_dup"),
        0,
        1,
    ):
        build.count(comm, "MPI_Bcast", 0, 1, MS)
    path = build.write(tmp_path / "x.db")
    found = operations(run, path, "--comm-size", size)
    assert {row["communicator"] for row in found} == names
    both = operations(run, path, "--comm-size", size, "--comm", "*0.*")
    assert {row["communicator"] for row in both} == names
    talk = commlens.matrix.read(path, comms=[parse_comm_size(size)])
    assert len(talk.source) == 0
    for command in ("matrix", "algorithms"):
        assert "Traceback" not in run(command, path, "--comm-size", size).stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--comm-size", "9"],
            "commlens: no communicators of 9 ranks in this profile; 'commlens comms' shows the sizes\n",
        ),
        (
            ["--comm-size", "4", "--comm", "s0.1"],
            "commlens: no communicator in this profile has one of these names and one of these sizes\n",
        ),
        (["--comm-size", "9:2"], "Error: Invalid value for '--comm-size': '9:2' is an empty range\n"),
    ],
)
def test_sizes_that_select_nothing_are_refused(
    small: Path, run: Run, options: list[str], message: str
) -> None:
    result = run("report", small, *options)
    assert result.exit_code == 2
    assert result.stderr.endswith(message)


def test_a_short_run_has_its_cost_as_a_time(tmp_path: Path, run: Run) -> None:
    build = ProfileBuilder(ranks=2, meta={"commlens_version": "0.1.0"}, app_ns=17 * MS)
    build.count(1, "MPI_Bcast", 0, 1, MS)
    path = build.write(tmp_path / "x.db")
    assert (
        "commlens      0.1.0 cost 3.00 ms per rank in a run of 17.0 ms: 1.00 ms in MPI_Init, 2.00 ms in MPI_Finalize, "
        "15 ns per call; only the cost of calls grows with the run\n"
    ) in run("report", path).stdout


def test_ranks_that_are_equally_busy_have_no_busiest(tmp_path: Path, run: Run) -> None:
    path = ProfileBuilder(ranks=2).write(tmp_path / "x.db")
    assert "load balance  100.0 %: average / maximum time outside MPI\n" in run("report", path).stdout
