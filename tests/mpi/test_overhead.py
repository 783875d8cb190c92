# SPDX-License-Identifier: Apache-2.0
"""`commlens overhead` with real launchers and MPI libraries: the stopwatch measures, and no program notices it."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from harness import BUILD, ROOT, SANITIZER, Mpi, commlens
from test_languages import mpi4py_env

sys.path.insert(0, str(ROOT / "python"))
from commlens.overhead.legs import FOLDER_VARIABLE, STOPWATCH

RANKS = 2
NAP = 0.05  # seconds between MPI_Init and MPI_Finalize, and of the slow tool inside each of both

NAPS = {
    "nap.c": "#include <mpi.h>\n#include <unistd.h>\nint main(int n, char** words) {\n"
    "  MPI_Init(&n, &words);\n  usleep(50000);\n  MPI_Finalize();\n}\n",
    "nap.f90": "program nap\n  use mpi\n  integer :: rc, given\n  call MPI_Init_thread(MPI_THREAD_FUNNELED, given, rc)\n"
    "  call take_a_nap()\n  call MPI_Finalize(rc)\ncontains\n  subroutine take_a_nap()\n"
    "    interface\n      subroutine usleep(t) bind(c)\n        use iso_c_binding\n        integer(c_int), value :: t\n"
    "      end subroutine\n    end interface\n    call usleep(50000)\n  end subroutine\nend program\n",
    "nap.py": "import time\nfrom mpi4py import MPI\ntime.sleep(0.05)\n",
}
SLOW = (
    "#include <mpi.h>\n#include <unistd.h>\n"
    "int MPI_Finalize(void) { usleep(50000); return PMPI_Finalize(); }\n"
)

pytestmark = pytest.mark.skipif(SANITIZER is not None, reason="times of sanitizers are nobody's")


def program(mpi: Mpi, name: str, where: Path) -> list[str]:
    """Return how the program is started."""
    path = where / name
    path.write_text(NAPS[name])
    return [sys.executable if name.endswith(".py") else str(mpi.compile(path))] + (
        [str(path)] if name.endswith(".py") else []
    )


def measure(
    mpi: Mpi, where: Path, *arguments: str | Path, before: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    """Run commlens overhead in a folder, behind the words of another command."""
    command, environment = mpi.prepare(RANKS, [], mpi4py_env(mpi), where / "profile.db", "off")
    options = [str(argument) for argument in arguments]
    at = options.index("--") + 1
    options[at:at] = command
    return subprocess.run(
        [*before, sys.executable, "-m", "commlens", "overhead", *options],
        cwd=where,
        env={
            **environment,
            "PYTHONPATH": str(ROOT / "python"),
            "PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}",
        },
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


def runs(path: Path) -> dict[str, list[dict[str, int]]]:
    """Return all runs by tool, those that warm up, too."""
    found: dict[str, list[dict[str, int]]] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            assert row.pop("failure") == "", row
            found.setdefault(row.pop("tool"), []).append({name: int(value) for name, value in row.items()})
    return found


@pytest.mark.parametrize("name", NAPS)
def test_times_are_where_the_program_spends_them(mpi: Mpi, name: str) -> None:
    """A program that sleeps between, and a tool that sleeps inside MPI_Finalize: at least that long in net and hook."""
    where = mpi.fresh("overhead")
    (where / "slow.c").write_text(SLOW)
    slow = mpi.compile(where / "slow.c", shared=True)
    tools = ["--tool", "commlens", "--tool", f"slow={slow}"]
    if name == "nap.c":
        tools += ["--wrapper", "nice=nice -n 1"]
    done = measure(mpi, where, "--runs", "6", *tools, "--to", "raw.csv", "--", *program(mpi, name, where))
    assert done.returncode == 0, done
    found = runs(where / "raw.csv")
    assert set(found) == {"baseline", "commlens", "slow"} | ({"nice"} if name == "nap.c" else set())
    for tool, all_runs in found.items():
        assert len(all_runs) == 7
        for run in all_runs:
            assert run["processes"] == RANKS
            assert run["net_ns"] >= 1e9 * NAP
            # A tool in C is not asked by a program in Fortran where its MPI library goes on to PMPI_Finalize.
            assert run["hook_ns"] >= (1e9 * NAP if tool == "slow" and name != "nap.f90" else 0)
            assert run["wrap_ns"] > 0
            assert run["memory_bytes"] > 1 << 20
            assert (run["output_bytes"] > 0) == (tool == "commlens")
    assert (
        sorted(path.name for path in where.iterdir() if path.name.startswith((".commlens", "profile"))) == []
    )


def test_what_a_tool_puts_off_until_the_process_exits_is_part_of_mpi_finalize(mpi: Mpi) -> None:
    """IPM does so: it ends MPI when the application has left MPI_Finalize long ago."""
    where = mpi.fresh("put_off")
    (where / "late.c").write_text(
        "#include <mpi.h>\n#include <stdlib.h>\n#include <unistd.h>\n"
        "static void end(void) { usleep(50000); PMPI_Finalize(); }\n"
        "int MPI_Finalize(void) { atexit(end); return MPI_SUCCESS; }\n"
    )
    late = mpi.compile(where / "late.c", shared=True)
    times = where / "times"
    times.mkdir()
    result = mpi.run(
        RANKS,
        program(mpi, "nap.c", where),
        {FOLDER_VARIABLE: str(times)},
        mode="off",
        preload=[BUILD / "lib" / STOPWATCH, late],
        cwd=where,
    )
    assert result.rc == 0, result
    seen = [path.read_text().split() for path in times.iterdir()]
    assert len(seen) == RANKS
    for _, between, in_finalize, *_ in seen:
        assert min(int(between), int(in_finalize)) >= 1e9 * NAP


def test_a_tool_that_cannot_be_loaded_is_not_said_to_cost_nothing(mpi: Mpi) -> None:
    where = mpi.fresh("unloadable")
    (where / "tool.so").write_text("no library")
    done = measure(mpi, where, "--runs", "6", "--tool", "t=tool.so", "--", *program(mpi, "nap.c", where))
    assert done.returncode == 2, done
    assert f"t, round 0: {where}/tool.so is not loaded" in done.stderr


def test_commlens_in_the_runs_without_is_found_out(mpi: Mpi) -> None:
    """In a script that starts the application: if all runs contained commlens, it would appear to cost nothing.

    commlens-run in a script loads nothing in these runs, as on a machine that measures every job.
    """
    where = mpi.fresh("within")
    script = where / "job.sh"
    application = " ".join(program(mpi, "nap.c", where))
    script.write_text(f'#!/bin/sh\nexport LD_PRELOAD="$LD_PRELOAD:{mpi.library}"\nexec {application}\n')
    script.chmod(0o755)
    done = measure(mpi, where, "--runs", "6", "--", script)
    assert done.returncode == 2, done
    assert "baseline, round 0: commlens is loaded in the run without a tool" in done.stderr


def test_what_commlens_writes_is_the_same_behind_the_stopwatch(mpi: Mpi) -> None:
    """The profile's own time of MPI_Init is inside the stopwatch's, and it has all calls."""
    where = mpi.fresh("behind")
    listing = mpi.compile("listing1.c")
    plain = mpi.run(RANKS, [listing])
    done = measure(
        mpi, where, "--runs", "6", "--to", "raw.csv",
        "--tool", f"kept=commlens,COMMLENS_OUTPUT={where}/kept.db", "--", listing,
    )  # fmt: skip
    assert done.returncode == 0, done
    query = "SELECT op.name, SUM(calls) FROM cell JOIN key ON key.id = cell.key JOIN op ON op.id = key.op GROUP BY 1"
    profiles = sorted(where.glob("kept*.db"))
    assert len(profiles) == 7
    here = commlens("sql", plain.profile, query)
    assert here.returncode == 0, here.stderr
    for profile in profiles:
        there = commlens("sql", profile, query)
        assert (there.returncode, there.stdout) == (0, here.stdout)


def test_a_tool_that_crashes_is_counted(mpi: Mpi) -> None:
    """In MPI_Finalize, in every round but the warm-up; the launchers report the signal in different ways."""
    where = mpi.fresh("crashes")
    (where / "crash.c").write_text(
        "#include <mpi.h>\n#include <signal.h>\n#include <stdlib.h>\n#include <string.h>\n"
        "int MPI_Finalize(void) {\n"
        '  if (strstr(getenv("STOPWATCH_OF_COMMLENS"), "/0-") == NULL) raise(SIGSEGV);\n'
        "  return PMPI_Finalize();\n}\n"
    )
    crash = mpi.compile(where / "crash.c", shared=True)
    done = measure(
        mpi, where, "--runs", "6", "--tool", f"crash={crash}", "--tool", "commlens", "--format", "json", "--",
        *program(mpi, "nap.c", where),
    )  # fmt: skip
    assert done.returncode == 0, done
    tools = {tool["tool"]: (tool["runs"], tool["crashed"]) for tool in json.loads(done.stdout)["tools"]}
    runs, crashed = tools.pop("crash")
    assert runs == 0 and crashed.endswith(" of 6 runs")
    # Hydra names signal 1 instead of 11 in one of 200 crashes, without commlens as well.
    counts = {signal: int(of) for signal, of in re.findall(r"signal (\d+) in (\d+)", crashed)}
    assert counts.keys() <= {"11", "1"} and counts["11"] > 3 and sum(counts.values()) == 6, crashed
    assert tools == {"baseline": (6, ""), "commlens": (6, "")}


def test_a_full_disk_is_named(mpi: Mpi) -> None:
    """The stopwatch finds no room for its times in a file system of two pages."""
    where = mpi.fresh("full")
    there = where / "small"
    there.mkdir()
    mount = f'mount -t tmpfs -o size=8k none {there} && cd {there} && exec "$@"'
    fill = f"dd if=/dev/zero of={there}/filler bs=4k count=2 status=none; sleep 0.1; exec "
    listing = mpi.compile("listing1.c")
    done = measure(
        mpi, where, "--", "sh", "-c", f'{fill} "$0"', listing,
        before=["unshare", "-m", "bash", "-c", mount, "bash"],
    )  # fmt: skip
    assert done.returncode == 2, done
    assert f"commlens: {there}: disk full (No space left on device): the runs write" in done.stderr


def test_a_program_that_fails_is_said_to(mpi: Mpi) -> None:
    where = mpi.fresh("fails")
    done = measure(mpi, where, "--runs", "6", "--", "sh", "-c", "printf 'no such %s' input; exit 3")
    assert done.returncode == 2, done
    assert "baseline, round 0" in done.stderr and "no such input" in done.stderr


def test_a_program_without_mpi_is_said_to_have_none(mpi: Mpi) -> None:
    where = mpi.fresh("without")
    # Not just "true": MPICH's launcher may die of SIGPIPE if all processes end while it connects to them.
    done = measure(mpi, where, "--runs", "6", "--", "sleep", "0.5")
    assert done.returncode == 2, done
    assert "no process reached MPI_Init and MPI_Finalize" in done.stderr
