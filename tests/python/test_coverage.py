# SPDX-License-Identifier: Apache-2.0
"""`commlens coverage`, and what the report says about calls that are not in it."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from build_profile import ProfileBuilder
from conftest import Run, small_builder

from commlens.reports._bindings import CXX

CLOCK = "a clock"
EXTENSION = "an extension of this MPI library"


def profile(path: Path, *imports: tuple[str, str, str, str, str | None], calls: bool = True) -> Path:
    build = small_builder() if calls else ProfileBuilder(ranks=2)
    build.imports += imports
    return build.write(path / "some.db")


def measured(name: str, symbol: str | None = None, object: str = "app") -> tuple[str, str, str, str, None]:
    return (symbol or name, object, name, "measured", None)


def test_a_profile_that_is_whole_says_nothing(run: Run, tmp_path: Path) -> None:
    path = profile(tmp_path, measured("MPI_Allreduce"), ("MPI_Wtime", "app", "MPI_Wtime", "skipped", CLOCK))
    assert "warning" not in run("report", path).stdout


def test_without_calls_the_report_says_what_could_have_been_called(run: Run, tmp_path: Path) -> None:
    path = profile(tmp_path, measured("MPI_Bcast"), measured("MPI_Allreduce"), calls=False)
    assert (
        "warning       commlens saw no MPI call between MPI_Init and MPI_Finalize: the application can call MPI_Allreduce and 1 other "
        "procedure, but did not\n" in run("report", path).stdout
    )


def test_a_call_that_had_not_returned_is_a_call(run: Run, tmp_path: Path) -> None:
    build = ProfileBuilder(ranks=2)
    build.imports.append(measured("MPI_Recv"))
    build.stands(1, "MPI_Recv", 1, 0)
    out = run("report", build.write(tmp_path / "some.db")).stdout
    assert "1 MPI call had not returned" in out
    assert "saw no MPI call" not in out


@pytest.mark.parametrize("value", ["1.429s-3.268s", "2.261s"])
def test_an_interval_is_from_snapshot_to_snapshot(run: Run, tmp_path: Path, value: str) -> None:
    """The label is that of docs/guide/history.md."""
    build = ProfileBuilder(ranks=2, settings=[("label", "snapshot", value, 2)])
    build.imports.append(measured("MPI_Recv"))
    out = run("report", build.write(tmp_path / "some.db")).stdout
    is_interval = "-" in value
    assert ("1.00 s from snapshot to snapshot\n" in out) == is_interval
    assert ("warning       no MPI call returned between the two snapshots\n" in out) == is_interval
    assert ("between MPI_Init and MPI_Finalize" in out) != is_interval


def test_without_calls_and_imports_the_report_says_so(run: Run, tmp_path: Path) -> None:
    path = profile(tmp_path, ("MPI_Init", "app", "MPI_Init", "measured", "apart"), calls=False)
    assert (
        "warning       commlens saw no MPI call between MPI_Init and MPI_Finalize: no loaded object imports an MPI "
        "procedure that commlens measures\n" in run("report", path).stdout
    )


def test_what_is_not_seen_is_said_with_its_reason(run: Run, tmp_path: Path) -> None:
    path = profile(tmp_path, measured("MPI_Bcast"), ("MPIX_A", "app", "MPIX_A", "unseen", EXTENSION))
    assert (
        f"warning       calls of MPIX_A are not in this profile: {EXTENSION}\n" in run("report", path).stdout
    )


def test_many_that_are_not_seen_are_counted(run: Run, tmp_path: Path) -> None:
    names = [f"MPIX_{letter}" for letter in "ABCDEF"]
    rows = [(name, "app", name, "unseen", f"{EXTENSION} {i % 2}") for i, name in enumerate(names)]
    out = run("report", profile(tmp_path, *rows)).stdout
    assert (
        "warning       calls of MPIX_A, MPIX_B, MPIX_C, MPIX_D and 2 more are not in this profile: 'commlens coverage' "
        "shows the reasons\n" in out
    )


def test_the_list_has_every_procedure_with_calls_importers_and_reason(run: Run, tmp_path: Path) -> None:
    path = profile(
        tmp_path,
        measured("MPI_Allreduce"),
        measured("MPI_Allreduce", "mpi_allreduce_", "libsolver.so"),
        measured("MPI_Put"),
        ("MPI_Wtime", "app", "MPI_Wtime", "skipped", CLOCK),
        ("MPIX_A", "libsolver.so", "MPIX_A", "unseen", EXTENSION),
        ("MPI_Send_c", "app", "MPI_Send", "absent", "not there"),
    )
    connection = sqlite3.connect(path)
    connection.execute(
        "DELETE FROM key WHERE op NOT IN (SELECT id FROM op WHERE name IN ('MPI_Allreduce', 'MPI_Isend'))"
    )
    connection.commit()
    connection.close()
    assert (
        run("coverage", path).stdout
        == """\
6 procedures: 1 unseen, 3 measured, 1 skipped, 1 absent

procedure      calls  class       imported by
unseen: an extension of this MPI library
MPIX_A                            libsolver.so

measured
MPI_Allreduce    520  collective  app, libsolver.so
MPI_Isend         10  p2p         looked up by name
MPI_Put            0  rma         app

skipped: a clock
MPI_Wtime                         app

absent: not there
MPI_Send                          app
"""
    )


def test_the_list_can_be_had_by_state_and_as_data(run: Run, tmp_path: Path) -> None:
    path = profile(tmp_path, measured("MPI_Put"), ("MPIX_A", "app", "MPIX_A", "unseen", EXTENSION))
    rows = json.loads(run("coverage", path, "--state", "unseen", "--format", "json").stdout)
    assert rows == [
        {
            "procedure": "MPIX_A",
            "class": None,
            "state": "unseen",
            "reason": EXTENSION,
            "calls": None,
            "objects": "app",
        }
    ]
    csv = run("coverage", path, "--format", "csv").stdout.splitlines()
    assert csv[0] == "procedure,class,state,reason,calls,objects"
    assert "MPI_Put,rma,measured,,0,app" in csv
    statement = run("coverage", path, "--sql").stdout
    connection = sqlite3.connect(path)
    assert len(connection.execute(statement).fetchall()) == len(csv) - 1
    connection.close()


def test_a_profile_from_before_the_table_is_read_all_the_same(run: Run, tmp_path: Path) -> None:
    path = profile(tmp_path)
    connection = sqlite3.connect(path)
    connection.executescript("DROP VIEW procedure; DROP TABLE coverage; PRAGMA user_version = 2")
    connection.close()
    assert run("report", path).exit_code == 0
    result = run("coverage", path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "an older commlens wrote it" in result.stderr


def cxx(*objects: str, less: int = 0) -> list[tuple[str, str, str, str, None]]:
    """Return the imports of objects that contain the C++ bindings of MPI."""
    return [measured(name, object=object) for object in objects for name in sorted(CXX)[less:]]


def test_the_imports_of_the_cxx_bindings_share_a_line(run: Run, tmp_path: Path) -> None:
    path = profile(tmp_path, *cxx("app", "libsolver.so"), measured("MPI_Ibcast", object="libsolver.so"))
    called = {
        "MPI_Allreduce",
        "MPI_Alltoallv",
        "MPI_Comm_free",
        "MPI_Comm_split",
        "MPI_Irecv",
        "MPI_Isend",
        "MPI_Put",
    }
    output = run("coverage", path).stdout
    lines = output.splitlines()
    listed = [line.split()[0] for line in lines[3:] if line.startswith("MPI_")]
    assert listed[:3] == ["MPI_Allreduce", "MPI_Irecv", "MPI_Isend"]
    assert listed[-1] == "MPI_Ibcast"  # the bindings have no such procedure
    folded = len(CXX - set(listed))
    assert called & set(listed) == called - {"MPI_Put"} and folded > 140
    assert lines[-1] == (
        f"and {folded} procedures without calls, which the C++ bindings in mpi.h import into app, libsolver.so; "
        "'commlens coverage --state measured' lists them"
    )
    everything = run("coverage", path, "--state", "measured").stdout.splitlines()
    assert sum(line.startswith("MPI_") for line in everything) == len(listed) + folded
    assert len(json.loads(run("coverage", path, "--format", "json").stdout)) == len(listed) + folded


def test_another_release_of_the_bindings_may_lack_a_few(run: Run, tmp_path: Path) -> None:
    (tmp_path / "few").mkdir()
    (tmp_path / "many").mkdir()
    few, many = (
        profile(tmp_path / "few", *cxx("app", less=10)),
        profile(tmp_path / "many", *cxx("app", less=40)),
    )
    assert "C++ bindings" in run("coverage", few).stdout
    assert "C++ bindings" not in run("coverage", many).stdout


def test_what_the_executable_imports_comes_before_what_libraries_import(run: Run, tmp_path: Path) -> None:
    build = small_builder()
    build.meta["program"] = "listing1"
    build.imports += [
        measured("MPI_Allreduce", object="libsolver.so"),
        measured("MPI_Bcast", object="libsolver.so"),
        measured("MPI_Comm_free", object="listing1"),
        measured("MPI_Put", object="listing1"),
        measured("MPI_Put", object="libsolver.so"),
        measured("MPI_Gather", object="listing"),  # not a part of the name
    ]
    rows = json.loads(run("coverage", build.write(tmp_path / "order.db"), "--format", "json").stdout)
    assert [(row["procedure"], row["calls"]) for row in rows if row["objects"]] == [
        ("MPI_Comm_free", 1), ("MPI_Allreduce", 520), ("MPI_Put", 0), ("MPI_Bcast", 0), ("MPI_Gather", 0),
    ]  # fmt: skip
