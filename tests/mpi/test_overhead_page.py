# SPDX-License-Identifier: Apache-2.0
"""docs/evidence/overhead.md: bench/overhead.py measures, stores and prints the numbers; compared with a plain model."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import statistics
import subprocess
import sys
from collections import defaultdict
from itertools import combinations_with_replacement
from operator import sub
from pathlib import Path

import pytest
from harness import ROOT, SANITIZER

ROUNDS = 2
PROGRAM = "bcast_barrier 10"
PHASES = ("collect", "gather", "agree", "write", "store")

pytestmark = pytest.mark.skipif(SANITIZER is not None, reason="times of sanitizers are nobody's")


def overhead(where: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command, with its numbers and its page in a folder."""
    command = [sys.executable, str(ROOT / "bench" / "overhead.py"), "--numbers", str(where), "--page"]
    environment = {**os.environ, "PATH": f"{ROOT / 'build' / 'release' / 'bin'}:{os.environ['PATH']}"}
    done = subprocess.run(
        [*command, str(where / "page.md"), *arguments],
        capture_output=True, text=True, timeout=1500, check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done


def rows(path: Path) -> list[dict[str, str]]:
    """Return the lines of a file of numbers."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def line(page: str, *begins: str) -> list[str]:
    """Return the cells of the one line of a table that begins so."""
    found = [
        cells
        for text in page.splitlines()
        if tuple((cells := [cell.strip() for cell in text.strip("|").split("|")])[: len(begins)]) == begins
    ]
    assert len(found) == 1, (begins, found)
    return found[0]


def hodges_lehmann(values: list[float]) -> float:
    """Return the median of the means of all pairs."""
    return statistics.median((a + b) / 2 for a, b in combinations_with_replacement(values, 2))


def number(cell: str) -> float:
    """Return the first number in a cell."""
    found = re.search(r"-?[\d,]+(\.\d+)?", cell)
    assert found, cell
    return float(found[0].replace(",", ""))


@pytest.fixture(scope="module", params=["openmpi", "mpich"])
def measured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Return an MPI library, and the folder of its measurements."""
    where = tmp_path_factory.mktemp("overhead")
    overhead(
        where, "--small", "--rounds", str(ROUNDS), "--only", PROGRAM.split()[0], "--calls", "--mpi", request.param,
        "--communicators", "1", "3",
    )  # fmt: skip
    return request.param, where


def test_the_page_says_what_the_numbers_say(measured: tuple[str, Path]) -> None:
    mpi, where = measured
    page = (where / "page.md").read_text()
    runs = rows(where / "apps.csv")
    assert {(run["mpi"], run["program"], run["processes"]) for run in runs} == {(mpi, PROGRAM, "2")}
    by_round: dict[int, dict[str, dict[str, str]]] = defaultdict(dict)
    for run in runs:
        by_round[int(run["round"])][run["tool"]] = run
    assert sorted(by_round) == list(range(ROUNDS + 1))
    whole = [by_round[number] for number in range(1, ROUNDS + 1)]

    net_s = statistics.median(int(r["baseline"]["net_ns"]) for r in whole) / 1e9
    for tool, what in (
        ("commlens", "two collectives as fast as they go"),
        ("minimal", "the same under a minimal wrapper"),
    ):
        of_tool = [(run[tool], run["baseline"]) for run in whole]
        ratio, hook, wrap = (
            hodges_lehmann(
                [difference(int(with_tool[name]), int(without[name])) for with_tool, without in of_tool]
            )
            for name, difference in (
                ("net_ns", lambda a, b: math.log(a / b)),
                ("hook_ns", sub),
                ("wrap_ns", sub),
            )
        )
        cells = line(page, f"`{PROGRAM}`", what)
        assert number(cells[2]) == pytest.approx(net_s, abs=0.0051)
        assert number(cells[3].replace("+", "")) == pytest.approx(100 * math.expm1(ratio), abs=0.51)
        assert cells[5] == "needs at least 6 runs"
        assert number(cells[6]) == pytest.approx(hook / 1e6, abs=0.051)
        assert number(cells[7]) == pytest.approx(wrap / 1e6, abs=0.051)


def test_calls_are_told_by_their_differences_within_rounds(measured: tuple[str, Path]) -> None:
    mpi, where = measured
    page = (where / "page.md").read_text()
    taken = {
        (row["row"], int(row["communicators"]), row["tool"], int(row["round"])): float(row["ns"])
        for row in rows(where / "calls.csv")
    }
    places = {(name, communicators) for name, communicators, _, _ in taken if communicators > 0}
    assert len(places) == 4 * 2
    largest = 0.0
    for name, communicators in places:
        cells = line(page, mpi, name, f"{communicators:,}")
        alone = [taken[name, communicators, "alone", n] for n in range(1, ROUNDS + 1)]
        assert number(cells[3]) == pytest.approx(statistics.median(alone), abs=0.051)
        for cell, tool in zip(cells[4:], ("minimal", "commlens")):
            differences = [taken[name, communicators, tool, n + 1] - ns for n, ns in enumerate(alone)]
            assert number(cell) == pytest.approx(hodges_lehmann(differences), abs=0.051)
            if tool == "commlens" and name.split()[0] in ("Allreduce", "Send"):
                largest = max(largest, hodges_lehmann(differences))
    cells = line(page, "blocking call, 1 and 64 communicators", mpi)
    assert cells[2] == "30 ns"
    assert number(cells[3]) == pytest.approx(largest, abs=0.051)
    assert (cells[4] == "met") == (largest <= 30)


def test_finalize_is_told_by_its_phases(measured: tuple[str, Path]) -> None:
    mpi, where = measured
    page = (where / "page.md").read_text()
    of: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row in rows(where / "finalize.csv"):
        of[row["program"], row["what"]].append(int(row["ns"]))
    assert {len(values) for values in of.values()} == {ROUNDS}
    names = ("without", "with", "wait", *PHASES)
    programs = {program for program, _ in of}
    assert set(of) == {(program, what) for program in programs for what in names}
    for program in programs:
        cells = line(page, mpi, f"`{program}`")
        medians = [statistics.median(of[program, what]) / 1e6 for what in names]
        assert [number(cell) for cell in cells[2:-1]] == pytest.approx(medians, abs=0.0051)
        assert number(cells[-1]) == pytest.approx(sum(medians[3:]), abs=0.0051)
        # Of each run, not of the medians: the phases are parts of what the stopwatch saw.
        for n in range(ROUNDS):
            assert sum(of[program, what][n] for what in PHASES) <= 2 * of[program, "with"][n]


def test_what_is_there_is_not_measured_again_and_the_page_is_the_same(measured: tuple[str, Path]) -> None:
    mpi, where = measured
    kept = {path.name: path.read_bytes() for path in where.iterdir()}
    options = ("--small", "--only", PROGRAM.split()[0], "--calls", "--mpi", mpi)
    overhead(where, "--rounds", str(ROUNDS), *options)
    overhead(where, "--render")
    assert {path.name: path.read_bytes() for path in where.iterdir()} == kept
    assert f"mini-{mpi}.svg" not in kept
    assert f"stress-{mpi}.svg" in kept


def test_a_look_at_the_clock_is_told_of_those_who_looked(tmp_path: Path) -> None:
    """Programs under one MPI library, calls under another."""
    titles = "round,position,tool,processes,net_ns,hook_ns,wrap_ns,memory_bytes,output_bytes,mpi,program"
    runs = [f"1,1,{tool},2,10,1,1,1,0,openmpi,{PROGRAM}" for tool in ("baseline", "commlens")]
    (tmp_path / "apps.csv").write_text("\n".join([titles, *runs]) + "\n")
    took = {("rdtsc", 0): 12.5, ("Send 8 B to MPI_PROC_NULL", 1): 5.0}
    calls = [
        f"mpich,{row},{n},{tool},1,{ns + more}"
        for (row, n), ns in took.items()
        for tool, more in (("alone", 0), ("minimal", 4), ("commlens", 20))
    ]
    (tmp_path / "calls.csv").write_text("\n".join(["mpi,row,communicators,tool,round,ns", *calls]) + "\n")
    overhead(tmp_path, "--render")
    said = " ".join((tmp_path / "page.md").read_text().split())
    assert "Here it takes 12.5 ns, and a wrapper that reads it twice and counts adds 4.0 to 4.0 ns" in said


def test_numbers_of_two_versions_are_not_said_to_be_of_the_last(tmp_path: Path) -> None:
    """Something is there of another commit; a second program is measured beside it."""
    program = ("--small", "--rounds", "1", "--only", PROGRAM.split()[0], "--mpi", "mpich")
    overhead(tmp_path, *program)
    kept = json.loads((tmp_path / "machine.json").read_text())
    earlier = {**kept, "commlens": "0.0.9, abc", "rounds asked for": "1", "beware": "busy"}
    (tmp_path / "machine.json").write_text(json.dumps(earlier))
    overhead(tmp_path, *program[:2], "2", *program[3:])
    page = (tmp_path / "page.md").read_text()
    assert line(page, "commlens")[1] == f"0.0.9, abc; {kept['commlens']}"
    assert line(page, "rounds asked for")[1] == "1; 2"
    assert line(page, "beware")[1].startswith("busy")


def test_what_is_measured_again_forgets_nothing_of_the_other_library(tmp_path: Path) -> None:
    header = "mpi,program,round,what,ns"
    (tmp_path / "finalize.csv").write_text(f"{header}\nopenmpi,a,1,wait,5\nmpich,a,1,wait,6\n")
    (tmp_path / "memory.json").write_text(json.dumps({"openmpi": {}, "mpich": {}}))
    (tmp_path / "machine.json").write_text("{}")

    def forget(mpi: str) -> None:
        script = f"import overhead; overhead.forget(overhead.Path('{tmp_path}'), ['{mpi}'])"
        subprocess.run([sys.executable, "-c", script], cwd=ROOT / "bench", check=True, timeout=60)

    forget("mpich")
    assert rows(tmp_path / "finalize.csv") == [
        {"mpi": "openmpi", "program": "a", "round": "1", "what": "wait", "ns": "5"}
    ]
    assert json.loads((tmp_path / "memory.json").read_text()) == {"openmpi": {}}
    assert (tmp_path / "machine.json").exists()
    forget("openmpi")
    assert rows(tmp_path / "finalize.csv") == []
    assert not (tmp_path / "machine.json").exists()


def test_memory_is_said_in_bytes(tmp_path: Path) -> None:
    """What bench/memory.py keeps, in its fields: KiB of a process, bytes of each thing."""
    of_dup = {
        "kib": {"1000": 3, "2000": 4},
        "ns": [1500.0, 1250.0, 2000.0],
        "instructions": 4321.4,
        "alone_ns": 800.0,
    }
    kept = {
        "alone_kib": 2048, "start_kib": 512, "peak_kib": 1536, "live_bytes": 700.4, "cell_bytes": 90.0,
        "request_bytes": 24.0, "churn": {"MPI_Comm_dup": of_dup},
    }  # fmt: skip
    (tmp_path / "memory.json").write_text(json.dumps({"mpich": kept}))
    overhead(tmp_path, "--render")
    page = (tmp_path / "page.md").read_text()
    assert line(page, "added at that time")[1:] == ["512 KiB"]
    assert line(page, "added per communicator in use")[1:] == ["700 B"]
    assert line(page, "added per request in flight")[1:] == ["24 B"]
    assert line(page, "mpich", "MPI_Comm_dup")[2:] == [
        "3.00 KiB", "4.00 KiB", "0.80", "1.50 (1.25 to 2.00)", "4,321",
    ]  # fmt: skip
    assert page.count("Not measured.") == 5
