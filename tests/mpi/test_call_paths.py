# SPDX-License-Identifier: Apache-2.0
"""Call paths are those that the program took, whatever the frames of its functions look like."""

from __future__ import annotations

import os
import subprocess
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection
from pathlib import Path

import pytest
from build_once import PATIENCE
from harness import Mpi, commlens
from profile_rows import Profile
from test_callsites import LANGUAGES
from test_output_targets import NO_PROC
from test_regions import checked

CALLS = int(os.environ.get("COMMLENS_TEST_CALLS", "30000"))
"""Calls of each rank and thread; a million take some minutes."""
OPERATIONS = ("MPI_Allreduce", "MPI_Barrier", "MPI_Waitall")
FUNCTIONS = (
    ["plain"], ["pointed"], ["other"], ["allocating"], ["varying"], ["aligned"], ["realigned"],
    ["sorting", "compare"], ["throwing", "Guard", "at_end"], ["jumping"],
)  # fmt: skip
"""What each step of a path calls, in the order of `function` of programs/call_paths.cpp."""

PATHS_SQL = """WITH RECURSIVE path AS (
    SELECT id AS key, callsite AS site, '' AS text FROM key
    UNION ALL
    SELECT key, caller, printf('%s %s+%d', text, module, offset) FROM path JOIN callsite ON callsite.id = site WHERE site > 0)
SELECT op.name, comm.name AS comm, rank, text, calls FROM path JOIN key ON key.id = path.key JOIN cell ON cell.key = key.id
  JOIN op ON op.id = key.op JOIN comm ON comm.id = key.comm WHERE site IS NULL ORDER BY 1, 2, 3, 4"""

Path_ = tuple[str, ...]
"""A call path: names of functions of the program, outermost first, and the procedure."""


def functions_of(program: Path) -> tuple[list[int], list[str]]:
    """Return the addresses and names of the functions of a program."""
    done = subprocess.run(
        ["nm", "--defined-only", "--numeric-sort", program], capture_output=True, text=True, check=True
    )
    found = [line.split() for line in done.stdout.splitlines()]
    # Link-time optimisation adds symbols for source files, and on aarch64 symbols without a name.
    code = [
        (int(word[0], 16), word[2])
        for word in found
        if len(word) == 3 and word[1] in "tTwW" and ".cpp." not in word[2]
    ]
    return [address for address, _ in code], [name.split(".")[0] for _, name in code]


def expected(output: str, inlined: bool) -> Counter[Path_]:
    """Return the calls of each path, from what the program has counted."""
    calls: Counter[Path_] = Counter()
    for line in output.splitlines():
        if not line.startswith("path "):
            continue
        number, *counts = map(int, line.split()[1:4])
        steps = [name for step in map(int, line.split()[4:]) for name in FUNCTIONS[step]]
        if inlined:
            steps = [name for name in steps if name != "Guard"]
        for beginning, count in zip((("main", "run"), ("run",)), counts, strict=True):
            first = ("on_own_stack",) if number % 10 == 9 else beginning
            if count:
                calls[(*first, *steps, OPERATIONS[number % 3])] += count
    return calls


def counted(
    profile: Profile, program: Path, operations: Collection[str] = OPERATIONS, module: str | None = None
) -> Counter[Path_]:
    """Return the calls of each path in the profile, without the frames of libraries.

    module: what the profile calls the program, if not by its path.
    """
    addresses, names = functions_of(program)
    sites = {row["id"]: row for row in profile.rows("SELECT id, module, offset, caller FROM callsite")}
    calls: Counter[Path_] = Counter()
    rows = profile.rows(
        "SELECT op.name, key.callsite, SUM(cell.calls) AS calls FROM cell JOIN key ON key.id = cell.key "
        "JOIN op ON op.id = key.op JOIN comm ON comm.id = key.comm WHERE cell.rank = 0 GROUP BY key.id"
    )
    for row in rows:
        path, at = [row["name"]], row["callsite"]
        while at:
            site = sites[at]
            if site["module"] == (str(program) if module is None else module):
                name = names[bisect_right(addresses, site["offset"] - 1) - 1]
                if name != "_start":
                    path.insert(0, "Guard" if "Guard" in name else name)
            at = site["caller"]
        if row["name"] in operations:
            calls[tuple(path)] += row["calls"]
    return calls


@pytest.mark.dealt
@pytest.mark.parametrize("threads", [False, True], ids=["one thread", "two threads"])
@pytest.mark.parametrize("optimised", ["-O0", "-O2", "-O3 -fomit-frame-pointer -flto"])
def test_paths_are_those_taken(mpi: Mpi, optimised: str, threads: bool) -> None:
    program = mpi.compile("call_paths.cpp", "c++", flags=optimised.split())
    arguments: list[str | Path] = [program, str(CALLS), *(["threads"] if threads else [])]
    result = mpi.run(2, arguments, {"COMMLENS_FRAMES": "64"})
    assert result.rc == 0, result
    is_inlined = optimised != "-O0"
    assert counted(checked(result), program) == expected(result.stdout, is_inlined)


def shortened(paths: Counter[Path_], frames: int) -> Counter[Path_]:
    """Return the same calls by the innermost frames of their paths."""
    calls: Counter[Path_] = Counter()
    for path, count in paths.items():
        calls[path[-frames - 1 :]] += count
    return calls


def test_as_many_frames_as_asked_for(mpi: Mpi) -> None:
    program = mpi.compile("call_paths.cpp", "c++", flags=["-O2", "-DWITHOUT_LIBRARIES"])
    found = {}
    for frames in ("1", "2", "5"):
        result = mpi.run(2, [program, str(CALLS)], {"COMMLENS_FRAMES": frames})
        found[frames] = counted(checked(result), program)
        assert found[frames] == shortened(expected(result.stdout, True), int(frames))
    assert len(found["1"]) < len(found["2"]) < len(found["5"])


def test_without_call_sites_there_are_no_paths(mpi: Mpi) -> None:
    program = mpi.compile("call_paths.cpp", "c++", flags=["-O2"])
    result = mpi.run(2, [program, "100"], {"COMMLENS_FRAMES": "64", "COMMLENS_CALLSITES": "0"})
    assert result.rc == 0, result
    assert [row["id"] for row in result.open().rows("SELECT id FROM callsite")] == [0]


def test_calls_of_code_without_unwind_tables_are_counted_at_their_call_site(mpi: Mpi) -> None:
    flags = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]
    program = mpi.compile("sites.c", flags=flags)
    profile = checked(mpi.run(2, [program], {"COMMLENS_FRAMES": "64"}))
    rows = profile.rows(
        "SELECT caller, SUM(calls) AS calls FROM counter JOIN callsite ON callsite.id = callsite "
        f"WHERE operation = 'MPI_Barrier' AND module = '{program}' GROUP BY offset ORDER BY calls"
    )
    assert [(row["caller"], row["calls"]) for row in rows] == [(None, 2), (None, 6), (None, 10)]


@pytest.mark.dealt
@pytest.mark.parametrize("missing", ["all", "blocks"])
def test_without_memory_for_new_paths_every_call_is_counted(mpi: Mpi, missing: str) -> None:
    program = mpi.compile("short_of_memory.c", flags=["-O1", "-fno-optimize-sibling-calls"])
    result = mpi.run(2, [program, missing], {"COMMLENS_FRAMES": "64"})
    assert result.stdout.count("short\n") == 2, result
    assert result.rc == 0, result
    profile = result.open()
    ranks = profile.rows("SELECT rank, calls, lost_calls FROM rank")
    assert [row["calls"] for row in ranks] == [2 * 4096] * 2
    assert all((row["lost_calls"] > 0) == (missing == "all") for row in ranks)
    # Once there is memory again, all paths are whole.
    whole = counted(profile, program, {"MPI_Barrier"})
    assert len([path for path in whole if path[0] == "main"]) == 4096


def test_paths_do_not_need_proc(mpi: Mpi) -> None:
    if os.geteuid() != 0:
        pytest.fail("only root can take /proc away: run this test as root")
    program = mpi.compile("call_paths.cpp", "c++", flags=["-O2"])
    where = mpi.fresh("without-proc")
    env = {**os.environ, **mpi.environment, "COMMLENS_FRAMES": "64", "COMMLENS_OUTPUT": str(where / "x.db")}

    def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
        without = ["unshare", "-m", "bash", "-c", NO_PROC, "bash", " ".join(map(str, command))]
        return subprocess.run(
            without, env=env, cwd=where, capture_output=True, text=True, timeout=60 * PATIENCE
        )

    if run(mpi.compile("sites.c")).returncode != 0:
        pytest.skip(f"{mpi.name} does not start without /proc")
    done = run(mpi.runner, program, "2000")
    assert done.returncode == 0, done
    # Only /proc knows the path of the executable.
    assert counted(Profile(where / "x.db"), program, module="") == expected(done.stdout, True)


def test_files_of_several_writers_have_the_same_paths(mpi: Mpi) -> None:
    program = mpi.compile("call_paths.cpp", "c++", flags=["-O2"])
    found = []
    for writers in (1, 3):
        env = {"COMMLENS_FRAMES": "64", "COMMLENS_AGGREGATORS": str(writers)}
        result = mpi.run(4, [program, "2000"], env, once=True)
        assert result.rc == 0, result
        profile = result.profile if writers == 1 else result.profile.with_suffix(".commlens")
        done = commlens("sql", profile, PATHS_SQL, "--format", "csv")
        assert done.returncode == 0, done
        found.append(done.stdout)
    assert found[0] == found[1]
    assert len(found[0].splitlines()) > 4 * 150


def test_a_killed_job_leaves_its_paths(mpi: Mpi) -> None:
    program = mpi.compile("call_paths.cpp", "c++", flags=["-O2"])
    where = mpi.fresh("killed")
    env = {"COMMLENS_FRAMES": "64", "COMMLENS_ARENA_DIR": str(where)}
    result = mpi.run(2, [program, "2000", "kill"], env, profile=where / "x.db", cwd=where, once=True)
    assert result.rc != 0
    done = commlens("recover", "-o", where / "recovered.db", where)
    assert done.returncode == 0, done
    assert counted(Profile(where / "recovered.db"), program) == expected(result.stdout, True) + Counter(
        {("main", "MPI_Barrier"): 1}
    )


@pytest.mark.parametrize("language", [one for one in LANGUAGES if one != "c"])
def test_a_path_of_fortran_leaves_out_the_binding(mpi: Mpi, language: str) -> None:
    source, flags = LANGUAGES[language]
    program = mpi.compile(source, "fortran", flags=[*flags, "-O0"])
    profile = checked(mpi.run(2, [program], {"COMMLENS_FRAMES": "16"}))
    assert counted(profile, program, {"MPI_Barrier"}) == Counter(
        {("main", "MAIN__", "MPI_Barrier"): 1 + 3 + 5}
    )
    inner = profile.rows(
        "SELECT DISTINCT module FROM key JOIN op ON op.id = key.op JOIN callsite ON callsite.id = key.callsite "
        "WHERE op.name = 'MPI_Barrier'"
    )
    assert inner == [{"module": str(program)}]


def test_the_report_shows_a_tree_from_main_inwards(mpi: Mpi) -> None:
    program = mpi.compile("call_paths.cpp", "c++", flags=["-O2"])
    result = mpi.run(2, [program, "2000"], {"COMMLENS_FRAMES": "64"})
    assert result.rc == 0, result
    text = commlens("report", result.profile, "--callsites").stdout
    tree = [line.strip() for line in text.splitlines()]
    assert any(line.startswith("main ") for line in tree)
    assert any(line.startswith(("run ", "main > run ")) for line in tree)
    assert "_start" not in text and "__libc" not in text
