# SPDX-License-Identifier: Apache-2.0
"""Folded stacks have the paths of the program and the times of the profile."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from build_paths import add_path, compiled, recorded
from build_profile import ProfileBuilder
from conftest import MS, Run


def folded(run: Run, profile: Path, output: Path, *options: str) -> dict[str, int]:
    """Return the times of an export by stack."""
    done = run("export", profile, "--to", "folded", "-o", output, *options)
    assert (done.exit_code, done.stdout, done.stderr) == (0, f"{output}\n", "")
    lines = [line.rsplit(" ", 1) for line in output.read_text(encoding="utf-8").splitlines()]
    assert len({stack for stack, _ in lines}) == len(lines)
    return {stack: int(time_ns) for stack, time_ns in lines}


def test_stacks_are_the_paths_of_the_program(run: Run, tmp_path: Path) -> None:
    solver = compiled(tmp_path)
    build = ProfileBuilder(ranks=2)
    for i, (_, path) in enumerate(recorded(solver)):
        site = add_path(build, solver, path)
        for rank in range(2):
            build.count(1, "MPI_Isend", rank, 1, 10**i + rank, 8, callsite=site)
    profile = build.write(tmp_path / "paths.db")
    wanted = {  # two ranks, of which the second takes a nanosecond more for each call
        "main;setup;exchange;MPI_Isend": 2 * 111_000_000_111 + 6,
        "main;setup;hypre_MPI_Isend;MPI_Isend": 2 * 1_000_000_001_000 + 2,
        "main;solve;halo;exchange;MPI_Isend": 2 * 1_110_000 + 3,
        "main;solve;norm;inlined;MPI_Isend": 2 * 10_000_000 + 1,
        "main;solve;hypre_MPI_Isend;MPI_Isend": 2 * 100_000_000 + 1,
    }
    assert folded(run, profile, tmp_path / "both") == wanted


@pytest.mark.parametrize("options, ranks", [((), "0, 1, 2, 3"), (("--rank", "0,2-3"), "0, 2, 3")])
def test_times_by_procedure_are_those_of_the_profile(
    run: Run, small: Path, tmp_path: Path, options: tuple[str, ...], ranks: str
) -> None:
    found: Counter[str] = Counter()
    for stack, time_ns in folded(run, small, tmp_path / "folded", *options).items():
        found[stack.rsplit(";", 1)[1]] += time_ns
    with closing(sqlite3.connect(small)) as connection:
        wanted = connection.execute(
            "SELECT name, SUM(time_ns) FROM cell JOIN key ON key.id = cell.key JOIN op ON op.id = key.op"
            f" WHERE cell.rank IN ({ranks}) GROUP BY name"
        ).fetchall()
    assert found == dict(wanted)


def test_separators_in_names_are_replaced(run: Run, tmp_path: Path) -> None:
    build = ProfileBuilder(ranks=1)
    build.sites[1] = ("/opt/a;b c\n", "", 16)
    build.count(1, "MPI_Bcast", 0, 1, MS, callsite=1)
    build.count(1, "MPI_Bcast", 0, 1, MS, size=8)
    profile = build.write(tmp_path / "names.db")
    assert folded(run, profile, tmp_path / "out") == {
        "a:b c\\n+0x10;MPI_Bcast": MS,
        "unknown;MPI_Bcast": MS,
    }
