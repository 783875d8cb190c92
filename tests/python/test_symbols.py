# SPDX-License-Identifier: Apache-2.0
"""`commlens symbols`: names in the profile, which readers use without the program and without addr2line."""

from __future__ import annotations

import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from build_paths import add_path, compiled, recorded
from build_profile import ProfileBuilder
from conftest import MS, Run
from test_paths import answer
from test_shards import split

from commlens.profile import _schema, open_profile
from commlens.profile.added import replace_table
from commlens.symbols.addr2line import LONGEST_NAME, shortened
from commlens.symbols.elf import build_id

RANKS = 4
OLD = Path(__file__).parents[1] / "profiles" / "version3.db"


@pytest.fixture(scope="module")
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("solver"))


@pytest.fixture
def solver(compiled_once: Path, tmp_path: Path) -> Path:
    """Return a program that the test may remove."""
    (tmp_path / "bin").mkdir()
    return Path(shutil.copy(compiled_once, tmp_path / "bin" / "solver"))


def written(solver: Path, path: Path) -> Path:
    """Write a profile of the program: each of its calls, on every rank."""
    build = ProfileBuilder(ranks=RANKS)
    for i, (_, offsets) in enumerate(recorded(solver)):
        site = add_path(build, solver, offsets)
        for rank in range(RANKS):
            build.count(1, "MPI_Isend", rank, i + 1, (i + 1) * MS, 8, callsite=site)
    return build.write(path)


def refused(run: Run, *arguments: object) -> str:
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    return done.stderr


def rows(path: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


REPORTS = [
    ("report", "--callsites", "--top", "0"),
    ("report", "--callsites", "--flat", "--format", "csv"),
    ("report", "--callsites", "--wrapper", "hypre_MPI_*"),
    ("comms", "--format", "json"),
]


def reports(run: Run, path: Path) -> list[str]:
    return [answer(run, command, path, *options) for command, *options in REPORTS]


def without_tools(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    (folder / "empty").mkdir(exist_ok=True)
    monkeypatch.setenv("PATH", str(folder / "empty"))


# Names.


def test_reports_need_neither_program_nor_addr2line_afterwards(
    run: Run, solver: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(solver, tmp_path / "x.db")
    before = reports(run, path)
    assert "inlined solver.c:25" in before[0]
    (count,) = rows(path, "SELECT COUNT(*) FROM callsite WHERE id <> 0")[0]
    said = f"{count} of {count} call sites have names, {count} of them new or better\n"
    assert answer(run, "symbols", path) == said
    solver.unlink()
    without_tools(monkeypatch, tmp_path)
    assert reports(run, path) == before


def test_an_inlined_function_is_a_frame_of_its_own_with_the_whole_file_name(
    run: Run, solver: Path, compiled_once: Path, tmp_path: Path
) -> None:
    path = written(solver, tmp_path / "x.db")
    answer(run, "symbols", path)
    found = rows(
        path,
        "SELECT function, file, line FROM frame WHERE callsite IN (SELECT callsite FROM frame WHERE inlined = 1)",
    )
    source = str(compiled_once.with_suffix(".c"))
    assert found == [("inlined", source, 25), ("norm", source, 27)]


def test_a_second_time_changes_nothing(run: Run, solver: Path, tmp_path: Path) -> None:
    path = written(solver, tmp_path / "x.db")
    path.chmod(0o640)
    answer(run, "symbols", path)
    content, facts = path.read_bytes(), path.stat()
    assert facts.st_mode & 0o777 == 0o640
    assert "0 of them new or better" in answer(run, "symbols", path)
    assert path.read_bytes() == content
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (facts.st_ino, facts.st_mtime_ns)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["bin", "x.db"]


def test_stored_names_stay_where_the_program_is_not(run: Run, solver: Path, tmp_path: Path) -> None:
    """Names of several machines add up: a module that is missing here does not remove what was found there."""
    path = written(solver, tmp_path / "x.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO callsite VALUES (1000, '/opt/other', 'abcd', 64, NULL)")
    first = answer(run, "symbols", path).splitlines()
    assert first[1:] == [
        "/opt/other: 1 call site without function: not on this machine; its build id is abcd"
    ]
    before = rows(path, "SELECT * FROM frame")
    solver.unlink()
    assert answer(run, "symbols", path).splitlines() == [
        first[0].rpartition(",")[0] + ", 0 of them new or better",
        first[1],
    ]
    assert rows(path, "SELECT * FROM frame") == before


def test_each_module_that_is_missing_is_named_with_the_reason(run: Run, solver: Path, tmp_path: Path) -> None:
    build = ProfileBuilder(ranks=1)
    bare = tmp_path / "bare"
    subprocess.run(["objcopy", "--strip-debug", solver, bare], check=True)
    offset = recorded(solver)[0][1][-1]
    build.sites[1] = (str(solver), "00ff", offset)
    build.sites[2] = (str(solver), "", offset)
    build.sites[3] = ("", "", 0)
    build.sites[4] = (str(bare), build_id(bare), offset)
    build.sites[5] = (str(solver), build_id(solver), 1)
    build.sites[6] = ("/nowhere/lib.so", "ab", offset)
    build.sites[7] = ("/nowhere/lib.so", "ab", offset + 1)
    lines = answer(run, "symbols", build.write(tmp_path / "x.db")).splitlines()
    assert lines[0] == "1 of 7 call sites have names, 1 of them new or better"
    assert {line.partition(": ")[2] for line in lines[1:]} == {
        "1 call site without function: the run did not find out to which file they belong",
        "2 call sites without function: not on this machine; its build id is ab",
        "1 call site without line: it has no debug information",
        "1 call site without function: the run stored no build id of it, so that no file can be recognised",
        f"1 call site without function: the build differs: the file has build id {build_id(solver)}, that of the run had 00ff",
        "1 call site without function: addr2line does not know them",
    }


def test_without_addr2line_it_is_refused(
    run: Run, solver: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(solver, tmp_path / "x.db")
    without_tools(monkeypatch, tmp_path)
    assert refused(run, "symbols", path) == "commlens: addr2line is not installed: install binutils\n"


def test_a_directory_keeps_the_names_in_its_index_also_when_merged(
    run: Run, solver: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = split(written(solver, tmp_path / "x.db"), tmp_path / "x.commlens")
    before = reports(run, parts)
    answer(run, "symbols", parts)
    shard = parts / "shard.0.db"
    assert "use the directory" in refused(run, "symbols", shard)
    solver.unlink()
    without_tools(monkeypatch, tmp_path)
    assert reports(run, parts) == before
    answer(run, "merge", parts, "-o", tmp_path / "merged.db")
    assert reports(run, tmp_path / "merged.db") == before


def test_a_profile_of_an_older_version_takes_names(run: Run, tmp_path: Path) -> None:
    path = Path(shutil.copy(OLD, tmp_path / "old.db"))
    (site,) = rows(path, "SELECT MIN(callsite) FROM key WHERE callsite <> 0")[0]
    replace_table(path, "frame", [(site, 0, "solve", "/src/a.c", 7)])
    assert "solve a.c:7" in answer(run, "report", path, "--callsites", "--top", 0)


def test_names_are_no_longer_than_the_profile_stores() -> None:
    assert shortened("ä" * 2048) == "ä" * 2048
    long = shortened("ä" * 2049)
    assert long.endswith("ää...")
    assert LONGEST_NAME - 2 < len(long.encode()) <= LONGEST_NAME


# A profile that cannot be changed.


def test_a_read_only_profile_is_one_line(run: Run, solver: Path, tmp_path: Path) -> None:
    path = written(solver, tmp_path / "x.db")
    path.chmod(0o444)
    assert refused(run, "symbols", path) == f"commlens: {path}: cannot be changed: it is read-only\n"


def test_a_change_that_sqlite_did_not_finish_is_one_line(run: Run, solver: Path, tmp_path: Path) -> None:
    path = written(solver, tmp_path / "x.db")
    (tmp_path / "x.db-journal").write_bytes(b"some")
    done = run("symbols", path)
    assert done.exit_code == 2
    assert f"{path}: cannot be changed: {path}-journal has a change that was not finished" in done.stderr


ENDED = """
import os, resource, signal, sys
from pathlib import Path
from commlens.cli import commlens
if sys.argv[1] == "killed":
    Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
elif sys.argv[1] == "full":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (Path(sys.argv[2]).stat().st_size + 100,) * 2)
else:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024,) * 2)
commlens(["symbols", sys.argv[2]], prog_name="commlens")
"""


@pytest.mark.parametrize("how", ["killed", "full", "very full"])
def test_a_command_that_does_not_reach_its_end_leaves_the_profile_as_it_was(
    solver: Path, tmp_path: Path, how: str
) -> None:
    """The limit of file sizes stands for a full disk."""
    path = written(solver, tmp_path / "x.db")
    content = path.read_bytes()
    done = subprocess.run([sys.executable, "-c", ENDED, how, path], capture_output=True, text=True)
    assert path.read_bytes() == content
    if how == "killed":
        assert done.returncode == -signal.SIGKILL
    else:
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"commlens: {path}: cannot be changed: File too large\n"
        assert not list(tmp_path.glob(".commlens-*"))
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


# Hostile tables.


def test_invalid_rows_are_left_out(run: Run, solver: Path, tmp_path: Path) -> None:
    path = written(solver, tmp_path / "x.db")
    answer(run, "symbols", path)
    (leaf,) = rows(path, "SELECT MIN(callsite) FROM key WHERE callsite <> 0")[0]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE frame SET function = ? WHERE callsite = ?", ("evil\x1b[2J\nname", leaf))
        connection.execute("INSERT INTO frame VALUES (999999, 0, 'nobody', '', 0)")
        connection.execute("INSERT INTO frame VALUES (?, 256, 'too deep', '', 0)", (leaf,))
        connection.execute("INSERT INTO frame VALUES (?, 9, 'no line', '', 'x')", (leaf,))
    done = run("report", path, "--callsites", "--flat", "--top", 0)
    assert done.exit_code == 3
    assert "table frame: 3 rows are invalid and left out" in done.stderr
    assert "evil\\x1b[2J\\nname" in done.stdout
    assert "\x1b" not in done.stdout


def test_a_view_of_the_name_is_neither_read_nor_replaced(run: Run, solver: Path, tmp_path: Path) -> None:
    path = written(solver, tmp_path / "x.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "CREATE VIEW frame AS SELECT 1 AS callsite, 0 AS inlined, 'x' AS function, '' AS file, 0 AS line"
        )
    done = run("symbols", path)
    assert done.exit_code == 2
    assert f"{path}: cannot be changed: its table frame was not written by commlens" in done.stderr
    assert rows(path, "SELECT type FROM sqlite_master WHERE name = 'frame'") == [("view",)]


def test_the_library_does_not_write_the_table(solver: Path, tmp_path: Path) -> None:
    path = written(solver, tmp_path / "x.db")
    assert "frame" in _schema.RELATIONS
    assert rows(path, "SELECT name FROM sqlite_master WHERE name = 'frame'") == []
    with open_profile(str(path)) as connection:
        assert connection.execute("SELECT COUNT(*) FROM frame").fetchone()[0] == 0
