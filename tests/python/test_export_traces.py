# SPDX-License-Identifier: Apache-2.0
"""Time lines are valid by what their formats demand, and as long as the slices of the profile say."""

from __future__ import annotations

import json
import math
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from build_profile import OP_ID, ProfileBuilder, RegionSlice
from conftest import MS, Run, marked_builder

SLICE = 100 * MS

# comm, operation, rank, slot, calls, time, bytes sent and received
MPI_SLICES = [
    (1, "MPI_Bcast", 0, 0, 2, 4 * MS, 8192, 0),
    (1, "MPI_Allreduce", 0, 0, 3, 30 * MS, 24, 24),
    (2, "MPI_Isend", 0, 0, 3, 3 * MS, 6144, 0),
    (1, "MPI_Allreduce", 0, 1, 3, 30 * MS + 1, 24, 24),
    (3, "MPI_Isend", 2, 1, 3, 3 * MS, 6144, 0),
    (3, "MPI_Waitall", 2, 1, 3, 7 * MS + 333, 0, 6144),
]

METADATA = {
    "process_name": ("name", str),
    "process_labels": ("labels", str),
    "process_sort_index": ("sort_index", int),
    "thread_name": ("name", str),
    "thread_sort_index": ("sort_index", int),
}


def check_trace_events(trace: Any) -> None:
    """Refuse what is no trace by the Trace Event Format, as far as complete and metadata events go.

    Source: Trace Event Format, https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
    """
    assert isinstance(trace, dict)
    assert trace["displayTimeUnit"] in ("ms", "ns")
    assert isinstance(trace["traceEvents"], list)
    said: Counter[tuple[str, int, int]] = Counter()
    lines: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for event in trace["traceEvents"]:
        assert isinstance(event["name"], str)
        assert event["name"]
        for member in ("pid", "tid"):
            assert type(event[member]) is int
        assert isinstance(event["args"], dict)
        if event["ph"] == "M":
            assert set(event) == {"name", "ph", "pid", "tid", "args"}
            member, kind = METADATA[event["name"]]
            assert list(event["args"]) == [member]
            assert type(event["args"][member]) is kind
            said[event["name"], event["pid"], event["tid"]] += 1
        else:
            assert event["ph"] == "X"
            assert set(event) == {"name", "cat", "ph", "pid", "tid", "ts", "dur", "args"}
            assert isinstance(event["cat"], str)
            for member in ("ts", "dur"):
                assert type(event[member]) in (int, float)
                assert math.isfinite(event[member])
                assert event[member] >= 0
            lines.setdefault((event["pid"], event["tid"]), []).append(
                (event["ts"], event["ts"] + event["dur"])
            )
    assert set(said.values()) <= {1}
    for pid, tid in lines:
        assert said["process_name", pid, 0] == 1
        assert said["thread_name", pid, tid] == 1
    for events in lines.values():
        check_nesting([(round(begin * 1000), round(end * 1000)) for begin, end in events])


def check_nesting(events: list[tuple[int, int]]) -> None:
    """Refuse events of a thread that overlap without one being within the other."""
    inside: list[int] = []
    for begin, end in sorted(events, key=lambda event: (event[0], -event[1])):
        while inside and inside[-1] <= begin:
            inside.pop()
        assert not inside or end <= inside[-1], (begin, end, inside)
        inside.append(end)


def check_speedscope(file: Any) -> None:
    """Refuse what is no file of speedscope with evented profiles.

    Source: https://github.com/jlfwong/speedscope/blob/main/src/lib/file-format-spec.ts
    """
    assert file["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert set(file) == {"$schema", "exporter", "name", "activeProfileIndex", "shared", "profiles"}
    frames = file["shared"]["frames"]
    assert all(set(frame) == {"name"} and isinstance(frame["name"], str) for frame in frames)
    assert 0 <= file["activeProfileIndex"] < len(file["profiles"])
    for profile in file["profiles"]:
        assert set(profile) == {"type", "name", "unit", "startValue", "endValue", "events"}
        assert (profile["type"], profile["unit"]) == ("evented", "nanoseconds")
        assert isinstance(profile["name"], str)
        at, inside = profile["startValue"], []
        for event in profile["events"]:
            assert set(event) == {"type", "frame", "at"}
            assert at <= event["at"] <= profile["endValue"]
            at = event["at"]
            assert 0 <= event["frame"] < len(frames)
            if event["type"] == "O":
                inside.append(event["frame"])
            else:
                assert event["type"] == "C"
                assert inside.pop() == event["frame"]
        assert inside == []


def sliced(build: ProfileBuilder, path: Path, slices: list[tuple[Any, ...]]) -> Path:
    """Write a profile with slices of MPI calls, too."""
    build.write(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany(
            "INSERT INTO slice VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [(comm, OP_ID[op], *rest) for comm, op, *rest in slices],
        )
    return path


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sliced(marked_builder(), tmp_path_factory.mktemp("sliced") / "sliced.db", MPI_SLICES)


def exported(run: Run, profile: Path, to: str, folder: Path, *options: str) -> Any:
    output = folder / f"{to}.json"
    done = run("export", profile, "--to", to, "-o", output, *options)
    assert (done.exit_code, done.stdout, done.stderr) == (0, f"{output}\n", "")
    found = json.loads(output.read_text(encoding="utf-8"))
    (check_trace_events if to == "chrome" else check_speedscope)(found)
    return found


def self_times(events: list[tuple[str, int, int]]) -> Counter[str]:
    """Return the time of every name without what is within it."""
    times: Counter[str] = Counter()
    inside: list[tuple[str, int]] = []
    for name, begin, end in events:
        while inside and inside[-1][1] <= begin:
            inside.pop()
        times[name] += end - begin
        if inside:
            times[inside[-1][0]] -= end - begin
        inside.append((name, end))
    return +times


def chrome_line(trace: Any, pid: int, tid: int) -> list[tuple[str, int, int]]:
    """Return name, begin and end of the events of a line, in nanoseconds and in their order."""
    return [
        (event["name"], round(event["ts"] * 1000), round((event["ts"] + event["dur"]) * 1000))
        for event in trace["traceEvents"]
        if event["ph"] == "X" and (event["pid"], event["tid"]) == (pid, tid)
    ]


def speedscope_line(file: Any, name: str) -> list[tuple[str, int, int]]:
    """Return the same of a line of speedscope's."""
    frames = [frame["name"] for frame in file["shared"]["frames"]]
    (profile,) = [profile for profile in file["profiles"] if profile["name"] == name]
    events: list[list[Any]] = []
    inside = []
    for event in profile["events"]:
        if event["type"] == "O":
            inside.append(len(events))
            events.append([frames[event["frame"]], event["at"], None])
        else:
            events[inside.pop()][2] = event["at"]
    return [(name, begin, end) for name, begin, end in events]


def wanted_regions(rank: int) -> Counter[str]:
    build, times = marked_builder(), Counter[str]()
    for row in build.region_slices:
        if row.rank == rank:
            times[build.regions[row.region].name] += row.exclusive_ns
    return times


def wanted_mpi(rank: int) -> Counter[str]:
    times = Counter[str]()
    for _, op, of_rank, _, _, ns, _, _ in MPI_SLICES:
        if of_rank == rank:
            times[op] += ns
    return times


@pytest.mark.parametrize("rank", range(4))
def test_lines_of_trace_events_have_the_times_of_the_profile(
    run: Run, profile: Path, tmp_path: Path, rank: int
) -> None:
    trace = exported(run, profile, "chrome", tmp_path)
    assert self_times(chrome_line(trace, rank, 0)) == wanted_regions(rank)
    assert self_times(chrome_line(trace, rank, 1)) == wanted_mpi(rank)


@pytest.mark.parametrize("rank", range(4))
def test_lines_of_speedscope_have_the_times_of_the_profile(
    run: Run, profile: Path, tmp_path: Path, rank: int
) -> None:
    file = exported(run, profile, "speedscope", tmp_path)
    assert self_times(speedscope_line(file, f"rank {rank} regions")) == wanted_regions(rank)
    if wanted_mpi(rank):
        assert self_times(speedscope_line(file, f"rank {rank} MPI")) == wanted_mpi(rank)


def test_both_formats_draw_the_same(run: Run, profile: Path, tmp_path: Path) -> None:
    trace, file = (exported(run, profile, to, tmp_path) for to in ("chrome", "speedscope"))
    for tid, line in ((0, "regions"), (1, "MPI")):
        assert chrome_line(trace, 0, tid) == speedscope_line(file, f"rank 0 {line}")


def test_a_line_is_where_its_slice_is(run: Run, profile: Path, tmp_path: Path) -> None:
    trace = exported(run, profile, "chrome", tmp_path)
    assert chrome_line(trace, 0, 0) == [
        ("set-up", 0, 40 * MS),
        ("solve", 40 * MS, 58 * MS),
        ("time steps", 40 * MS, 58 * MS),
        ("exchange", 40 * MS, 58 * MS),
        ("solve", SLICE, SLICE + 18 * MS),
        ("time steps", SLICE, SLICE + 18 * MS),
        ("exchange", SLICE, SLICE + 18 * MS),
    ]
    assert chrome_line(trace, 2, 1) == [
        ("s*.1", SLICE, SLICE + 10 * MS + 333),
        ("MPI_Isend", SLICE, SLICE + 3 * MS),
        ("MPI_Waitall", SLICE + 3 * MS, SLICE + 10 * MS + 333),
    ]


def test_calls_and_bytes_are_arguments_of_events(run: Run, profile: Path, tmp_path: Path) -> None:
    found: Counter[str] = Counter()
    for event in exported(run, profile, "chrome", tmp_path)["traceEvents"]:
        if event["ph"] == "X" and event["cat"] == "operation":
            found.update(event["args"])
    assert found == {
        "calls": sum(row[4] for row in MPI_SLICES),
        "time_ns": sum(row[5] for row in MPI_SLICES),
        "bytes_sent": sum(row[6] for row in MPI_SLICES),
        "bytes_received": sum(row[7] for row in MPI_SLICES),
    }


def test_processes_have_the_names_of_ranks_and_nodes(run: Run, profile: Path, tmp_path: Path) -> None:
    trace = exported(run, profile, "chrome", tmp_path)
    names = {e["pid"]: e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "process_name"}
    assert names == {rank: f"rank {rank} on node0" for rank in range(4)}
    assert trace["otherData"]["command_line"] == "./stencil 256 256"


def test_communicators_can_be_unfolded(run: Run, profile: Path, tmp_path: Path) -> None:
    trace = exported(run, profile, "chrome", tmp_path, "--unfold")
    assert [name for name, *_ in chrome_line(trace, 2, 1)] == ["s2.1", "MPI_Isend", "MPI_Waitall"]


def test_single_ranks_and_only_regions_can_be_chosen(run: Run, profile: Path, tmp_path: Path) -> None:
    file = exported(run, profile, "speedscope", tmp_path, "--rank", "2-3")
    assert [p["name"] for p in file["profiles"]] == ["rank 2 regions", "rank 2 MPI", "rank 3 regions"]
    (tmp_path / "speedscope.json").unlink()
    file = exported(run, profile, "speedscope", tmp_path, "--no-mpi")
    assert [p["name"] for p in file["profiles"]] == [f"rank {rank} regions" for rank in range(4)]


def test_time_outside_regions_is_that_of_the_program(run: Run, tmp_path: Path) -> None:
    build = marked_builder()
    build.region_slices.append(RegionSlice(0, 0, 0, 0, 5 * MS))
    trace = exported(run, build.write(tmp_path / "outside.db"), "chrome", tmp_path)
    assert self_times(chrome_line(trace, 0, 0)) == wanted_regions(0) + Counter(stencil=5 * MS)


def test_more_time_than_the_slice_is_long_stays_within_it(run: Run, tmp_path: Path) -> None:
    """Two threads, each the whole slice in its region: both are drawn half as long, and the arguments have all of it."""
    build = ProfileBuilder(ranks=1, meta={"program": "threads", "slice_ns": "1000"}, app_ns=2000)
    for name in ("left", "right"):
        build.region_slices.append(RegionSlice(build.region(name), 0, 1, 1, 1000))
    trace = exported(run, build.write(tmp_path / "threads.db"), "chrome", tmp_path)
    assert chrome_line(trace, 0, 0) == [("left", 1000, 1500), ("right", 1500, 2000)]
    counted = [event["args"] for event in trace["traceEvents"] if event["ph"] == "X"]
    assert counted == [{"calls": 1, "exclusive_ns": 1000}] * 2


@pytest.mark.parametrize("to", ["chrome", "speedscope"])
def test_a_profile_without_slices_is_a_line_without_events(
    run: Run, small: Path, tmp_path: Path, to: str
) -> None:
    file = exported(run, small, to, tmp_path)
    if to == "speedscope":
        assert [(p["name"], p["events"]) for p in file["profiles"]] == [
            (f"rank {r} regions", []) for r in range(4)
        ]
    else:
        assert {event["ph"] for event in file["traceEvents"]} == {"M"}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda events: events[-1].update(dur=-1.0),
        lambda events: events[-1].update(ts=math.nan),
        lambda events: events[-1].update(pid="0"),
        lambda events: events[-1].pop("name"),
        lambda events: events[-1].update(ph="B"),
        lambda events: events[-1].update(ts=events[-1]["ts"] + 1),
        lambda events: events.append(events[0]),
        lambda events: events.remove(events[0]),
    ],
)
def test_the_checker_of_trace_events_sees_what_is_wrong(
    run: Run, profile: Path, tmp_path: Path, spoil: Any
) -> None:
    trace = exported(run, profile, "chrome", tmp_path)
    spoil(trace["traceEvents"])
    with pytest.raises((AssertionError, KeyError)):
        check_trace_events(trace)
