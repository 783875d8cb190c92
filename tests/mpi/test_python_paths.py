# SPDX-License-Identifier: Apache-2.0
"""Call paths go on in Python: with its own files, functions and lines, in every version of CPython that is here."""

from __future__ import annotations

import json
import re
import subprocess
import sysconfig
from collections import Counter
from pathlib import Path

import pytest
from harness import PROGRAMS, ROOT, SANITIZER, TRIES, Mpi, commlens
from launches import Result
from profile_rows import Profile
from test_languages import mpi4py_env

VERSIONS = ("3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
PYTHONS = ROOT / "build" / "pythons"
MARK = "python:"
CALLED_AFTER_THE_END = re.compile(
    r"Fatal error in (internal|PMPI)_Iprobe|MPI_Iprobe\(\) function was called after MPI_FINALIZE"
)

PLACES_SQL = """WITH RECURSIVE path AS (
    SELECT id AS key, callsite AS site, '' AS text FROM key
    UNION ALL
    SELECT key, caller, printf('%s %s %s+%d', text, module, build_id, offset) FROM path JOIN callsite ON callsite.id = site
     WHERE site > 0)
SELECT op.name, comm.name AS comm, rank, text, calls FROM path JOIN key ON key.id = path.key JOIN cell ON cell.key = key.id
  JOIN op ON op.id = key.op JOIN comm ON comm.id = key.comm WHERE site IS NULL ORDER BY 1, 2, 3, 4"""

Place = tuple[str, str, int]
"""File, function and line."""


class Python:
    """An interpreter with mpi4py (tools/pythons.sh).

    Attributes
    ----------
    program : path
        The interpreter.
    environment : dict of str to str
        What it needs to find mpi4py.
    preload : tuple of path
        Libraries to preload.
    """

    def __init__(self, version: str, mpi: Mpi) -> None:
        if mpi.family == "abi":
            pytest.skip("mpi4py's wheel has no build for the standard interface")
        self.program = PYTHONS / version / "python"
        if not self.program.exists():
            pytest.skip(f"tools/pythons.sh has found no Python {version}")
        self.environment = {**mpi4py_env(mpi), "PYTHONPATH": str(PYTHONS / version / "packages")}
        self.preload: tuple[Path, ...] = ()
        if SANITIZER == "address,undefined":
            # Python's memory comes from the sanitizer, which then reports whoever reads what is freed.
            asan = subprocess.run(
                ["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
            )
            self.preload = (Path(asan.stdout.strip()).resolve(),)
            self.environment["PYTHONMALLOC"] = "malloc"


@pytest.fixture(params=VERSIONS)
def python(request: pytest.FixtureRequest, mpi: Mpi) -> Python:
    """Return one version of Python."""
    return Python(request.param, mpi)


def counted(profile: Profile, operation: str = "MPI_Barrier") -> Counter[tuple[Place, ...]]:
    """Return the calls of rank 0 by the Python frames of their paths, the innermost first."""
    sites = {
        row["id"]: row for row in profile.rows("SELECT id, module, build_id, offset, caller FROM callsite")
    }
    calls: Counter[tuple[Place, ...]] = Counter()
    for row in profile.rows(
        "SELECT key.callsite, SUM(cell.calls) AS calls FROM cell JOIN key ON key.id = cell.key "
        f"JOIN op ON op.id = key.op WHERE cell.rank = 0 AND op.name = '{operation}' GROUP BY key.id"
    ):
        path: list[Place] = []
        at = row["callsite"]
        while at:
            site = sites[at]
            if site["build_id"].startswith(MARK):
                path.append((site["module"], site["build_id"][len(MARK) :], site["offset"]))
            else:
                assert not path, "frames of compiled code come before those of Python"
            at = site["caller"]
        calls[tuple(path)] += row["calls"]
    return calls


def run_paths(
    mpi: Mpi, python: Python, frames: int, rounds: int
) -> tuple[Result, Counter[tuple[Place, ...]]]:
    """Run the program that counts its own paths; return these, as far as they have so many frames."""
    where = mpi.fresh("paths")
    result = mpi.run(
        2,
        [python.program, PROGRAMS / "python_paths.py", where, str(rounds)],
        {**python.environment, "COMMLENS_FRAMES": str(frames)},
        preload=python.preload,
    )
    assert result.rc == 0, result
    assert result.said == [f"commlens: profile of 2 ranks in {result.profile}"]
    expected: Counter[tuple[Place, ...]] = Counter()
    for path, calls in json.loads((where / "expected.json").read_text()):
        expected[tuple((file, function, line) for file, function, line in path[:frames])] += calls
    return result, expected


@pytest.mark.parametrize("frames", [1, 3, 64])
def test_paths_are_those_taken(mpi: Mpi, python: Python, frames: int) -> None:
    result, expected = run_paths(mpi, python, frames, 20)
    profile = result.open()
    profile.check()
    assert counted(profile) == expected
    assert len(expected) > 90


def test_known_paths_are_not_read_again(mpi: Mpi, python: Python, tmp_path: Path) -> None:
    """However many frames of Python make the same call with the same stack in C."""
    reads = tmp_path / "reads"
    counter = mpi.compile("count_reads.c", shared=True)
    result = mpi.run(
        1,
        [python.program, PROGRAMS / "python_depths.py"],
        {**python.environment, "READS_FILE": str(reads)},
        preload=(*python.preload, counter),
    )
    calls = int(result.stdout)
    assert (result.rc, calls) == (0, 7500), result
    assert sum(counted(result.open(), "MPI_Iprobe").values()) == calls
    # The start takes about 2,000 reads, a new path about 20.
    assert 0 < int(reads.read_text()) < calls


@pytest.mark.parametrize("memory", ["zeros", "missing", "text", "cycle"])
@pytest.mark.parametrize("version", ["3.9.1 (x)", "3.11.2 (x)"])
def test_strange_memory_leaves_native_paths(mpi: Mpi, version: str, memory: str) -> None:
    program = mpi.compile("no_python.c", flags=["-rdynamic"])
    result = mpi.run(2, [program, version, memory], {"COMMLENS_FRAMES": "8"})
    assert result.rc == 0, result
    reason = "call paths have no Python frames: its memory is not as expected"
    assert said(result) == ([f"commlens: {reason}"] if memory == "cycle" else [])
    assert counted(result.open()) == Counter({(): 5})


@pytest.mark.parametrize("frames", ["1", "8"])
@pytest.mark.parametrize("version", ["3.14.0 (x)", "3.99.0 (x)", "2.7", ""])
def test_an_unknown_version_leaves_native_paths(mpi: Mpi, version: str, frames: str) -> None:
    program = mpi.compile("no_python.c", flags=["-rdynamic"])
    result = mpi.run(2, [program, version, "zeros"], {"COMMLENS_FRAMES": frames})
    assert result.rc == 0, result
    is_undescribed = version.startswith("3.14")
    text = (
        "it does not describe its memory"
        if is_undescribed
        else "its frames are unknown to this version of commlens"
    )
    assert said(result) == [
        f"commlens: call paths have no Python frames: Python {version.split(' ')[0]}: {text}"
    ]
    assert counted(result.open()) == Counter({(): 5})


def said(result: Result) -> list[str]:
    """Return what commlens said, but for the name of the profile."""
    return [line for line in result.said if "profile of" not in line]


def test_without_call_sites_python_has_none(mpi: Mpi) -> None:
    python = Python("3.11", mpi)
    program = "from mpi4py import MPI\nMPI.COMM_WORLD.Barrier()"
    result = mpi.run(2, [python.program, "-c", program], {**python.environment, "COMMLENS_CALLSITES": "0"})
    assert result.rc == 0, result
    assert [row["id"] for row in result.open().rows("SELECT id FROM callsite")] == [0]


@pytest.mark.parametrize("frames", ["1", "16"])
def test_daemon_threads_call_mpi_while_the_interpreter_ends(mpi: Mpi, python: Python, frames: str) -> None:
    if SANITIZER == "address,undefined":
        pytest.skip("these threads do read freed memory, by system calls, and the sanitizer reports it")
    where = mpi.fresh("daemons")
    for _ in range(TRIES):
        result = mpi.run(
            1,
            [python.program, PROGRAMS / "python_daemons.py"],
            {**python.environment, "COMMLENS_FRAMES": frames, "PYTHONMALLOC": "malloc"},
            preload=python.preload,
            cwd=where,
        )
        # A thread that is preempted inside MPI may find the library unloaded, with or without commlens.
        if result.rc != 139:
            break
    # A thread that let go of the interpreter just before its call can reach MPI after MPI_Finalize, with or without
    # commlens. MPI ends the program then.
    assert result.rc == 0 or CALLED_AFTER_THE_END.search(result.stderr), result
    # A call that begins while the interpreter ends may have no Python frames any more.
    paths = {path for path in counted(result.open(), "MPI_Iprobe") if path}
    assert {path[0][1] for path in paths} == {"forever"}


@pytest.mark.parametrize("frames", ["1", "16"])
def test_calls_after_the_end_of_the_interpreter_have_no_python(mpi: Mpi, python: Python, frames: str) -> None:
    library = mpi.compile("after_python.c", shared=True)
    result = mpi.run(
        2,
        [python.program, PROGRAMS / "python_after.py", library],
        {**python.environment, "COMMLENS_FRAMES": frames},
        preload=python.preload,
    )
    assert result.rc == 0, result
    by_function = Counter[str]()
    for path, calls in counted(result.open()).items():
        by_function[path[0][1] if path else ""] += calls
    assert by_function == {"outer": 2, "": 3}


@pytest.mark.parametrize("frames", ["1", "16"])
def test_a_program_may_close_the_interpreter(mpi: Mpi, frames: str) -> None:
    library = Path(sysconfig.get_config_var("LIBDIR") or "/", sysconfig.get_config_var("INSTSONAME") or "")
    if ".so" not in library.name or not library.exists():
        pytest.skip("this Python has no shared library")
    program = mpi.compile("closed_python.c", "c", "-ldl")
    plain = mpi.run(1, [program, library], mode="off")
    assert (plain.rc, plain.stdout) == (0, "unloaded\n"), plain
    result = mpi.run(2, [program, library], {"COMMLENS_FRAMES": frames})
    # Its function for the thread state is called with every call of MPI, so that it must stay.
    assert (result.rc, result.stdout) == (0, 2 * "loaded\n"), result
    by_function = Counter[str]()
    for path, calls in counted(result.open()).items():
        by_function[path[0][1] if path else ""] += calls
    assert by_function == {"outer": 1, "": 3}


def test_files_of_several_writers_have_the_same_paths(mpi: Mpi) -> None:
    python = Python("3.11", mpi)
    found = []
    for writers in (1, 2):
        where = mpi.fresh("writers")
        result = mpi.run(
            2,
            [python.program, PROGRAMS / "python_paths.py", where, "1"],
            {**python.environment, "COMMLENS_FRAMES": "8", "COMMLENS_AGGREGATORS": str(writers)},
            preload=python.preload,
        )
        assert result.rc == 0, result
        profile = result.profile if writers == 1 else result.profile.with_suffix(".commlens")
        done = commlens("sql", profile, PLACES_SQL, "--format", "csv")
        assert done.returncode == 0, done
        found.append(done.stdout)
    assert found[0] == found[1]
    assert found[0].count("python:") > 100


def test_a_killed_job_leaves_its_paths(mpi: Mpi) -> None:
    python = Python("3.11", mpi)
    where = mpi.fresh("killed")
    program = "import os\nfrom mpi4py import MPI\ndef step():\n MPI.COMM_SELF.Barrier()\n"
    program += "for _ in range(7): step()\nMPI.COMM_WORLD.Barrier()\nMPI.COMM_WORLD.Barrier()\nos.kill(os.getpid(), 9)"
    env = {**python.environment, "COMMLENS_FRAMES": "8", "COMMLENS_ARENA_DIR": str(where)}
    result = mpi.run(
        2,
        [python.program, "-c", program],
        env,
        profile=where / "x.db",
        cwd=where,
        preload=python.preload,
        once=True,
    )
    assert result.rc != 0
    done = commlens("recover", "-o", where / "recovered.db", where)
    assert done.returncode == 0, done
    module = ("<string>", "<module>")
    found = counted(Profile(where / "recovered.db"))
    # A rank may be killed in the second barrier, when the other one has left it: then it has at least left the first one.
    assert found.pop(((*module, 7),), 0) <= 1
    assert found == {(("<string>", "step", 4), (*module, 5)): 7, ((*module, 6),): 1}


def test_the_report_names_lines_of_python(mpi: Mpi) -> None:
    python = Python("3.11", mpi)
    result, _ = run_paths(mpi, python, 8, 1)
    tree = commlens("report", result.profile, "--callsites").stdout
    assert "recursive python_paths.py:" in tree
    assert "MPI." not in "".join(line[:60] for line in tree.splitlines() if " python_paths.py:" in line)
    flat = commlens("report", result.profile, "--callsites", "--flat").stdout
    assert "comprehensions.<locals>" not in flat or "python_paths.py:" in flat
    folded = result.profile.with_suffix(".folded")
    done = commlens("export", result.profile, "--to", "folded", "-o", folded)
    assert done.returncode == 0, done
    stacks = folded.read_text().splitlines()
    assert any(line.startswith("<module> python_paths.py;exceptions;MPI_Barrier ") for line in stacks)
    assert not any("cpython" in line for line in stacks)
