# SPDX-License-Identifier: Apache-2.0
"""The same regions in C, C++, three kinds of Fortran and Python: the same entries, written out by hand.

The program is the example of a region profiler's paper: two executions of `main`, three iterations, `comm` within
`exchange`, and `update` on odd ranks only.
"""

from __future__ import annotations

import csv
import re
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from harness import BUILD, LINK, PROGRAMS, ROOT, Mpi
from profile_rows import Profile
from test_languages import mpi4py_env
from test_survive import commlens

RANKS = 4
INCLUDE = (f"-I{ROOT / 'include'}",)
FORTRAN = ("-cpp", f"-I{ROOT / 'fortran'}")

# Source, language for the compiler, options; "python" is run.
LANGUAGES = {
    "C": ("annotated.c", "c", INCLUDE),
    "C++": ("annotated.cpp", "c++", INCLUDE),
    "use mpi": ("annotated.F90", "fortran", FORTRAN),
    "use mpi_f08": ("annotated.F90", "fortran", (*FORTRAN, "-DUSE_MPI_F08")),
    "Fortran 77": ("annotated77.F", "fortran", ("-std=legacy",)),
    "Python": ("annotated.py", "python", ()),
}

ENTRIES = """
SELECT path, execution, iteration, rank, {calls} AS calls FROM {table} AS t
  JOIN region_path ON region_path.region = t.region ORDER BY 1, 2, 3, 4"""


def entries(profile: Profile, table: str, calls: str) -> list[tuple[Any, ...]]:
    """Return the regions of each rank, with their counts."""
    return [tuple(row.values()) for row in profile.rows(ENTRIES.format(table=table, calls=calls))]


def expected(paths: dict[str, list[int]]) -> list[tuple[Any, ...]]:
    """Return the entries of these paths, with their iterations; each once on the ranks that are there."""
    return sorted(
        (path, execution, iteration, rank, 1)
        for path, iterations in paths.items()
        for execution, iteration, rank in product((0, 1), iterations, range(RANKS))
        if rank % 2 == 1 or not path.endswith("update")
    )


REGIONS = expected(
    {
        "main": [-1],
        "main/steps": [-1],
        "main/steps/exchange": [0, 1, 2],
        "main/steps/exchange/comm": [0, 1, 2],
        "main/steps/update": [0, 1, 2],
    }
)
ITERATIONS = expected({"main/steps": [0, 1, 2]})


def command(mpi: Mpi, language: str) -> tuple[list[str | Path], dict[str, str]]:
    """Return how to run the program in a language."""
    source, compiler, flags = LANGUAGES[language]
    if compiler == "python":
        return [sys.executable, PROGRAMS / source], {"PYTHONPATH": str(ROOT / "python"), **mpi4py_env(mpi)}
    return [mpi.compile(source, compiler, *LINK, flags=flags)], {}


@pytest.mark.parametrize("language", LANGUAGES)
def test_all_languages_have_the_same_entries(mpi: Mpi, language: str) -> None:
    argv, env = command(mpi, language)
    plain = mpi.run(RANKS, argv, env=env, mode="off")
    assert (plain.rc, plain.stdout) == (0, ""), plain
    result = mpi.run(RANKS, argv, env=env)
    assert (result.rc, result.stdout) == (0, ""), result
    profile = result.open()
    profile.check()
    assert entries(profile, "region_time", "calls") == REGIONS
    assert entries(profile, "loop_time", "iterations") == ITERATIONS
    kinds = profile.rows("SELECT path, kind FROM region JOIN region_path ON region = id ORDER BY id")
    assert [tuple(row.values()) for row in kinds] == [
        ("", "program"), ("main", "region"), ("main/steps", "loop"), ("main/steps/exchange", "region"),
        ("main/steps/exchange/comm", "region"), ("main/steps/update", "region"),
    ]  # fmt: skip
    values = profile.rows(
        "SELECT m.name, unit, path, execution, iteration, rank, count, sum, min, max, last, not_finite "
        "FROM metric_value v JOIN metric m ON m.id = metric JOIN region_path p ON p.region = v.region ORDER BY 4, 5, 6"
    )
    assert [tuple(row.values()) for row in values] == [
        ("cells", "1", "main/steps/update", e, i, rank, 1, *[10.0 * i + rank] * 4, 0)
        for e, i, rank in product((0, 1), (0, 1, 2), (1, 3))
    ]
    tags = profile.rows(
        "SELECT path, name, value FROM tag JOIN region_path ON region_path.region = tag.region"
    )
    assert [tuple(row.values()) for row in tags] == [("main", "kind", "COMP")]
    barriers = profile.rows(
        "SELECT path, comm.name, calls FROM region_operation o JOIN region_path p ON p.region = o.region "
        "JOIN comm ON comm.id = o.comm JOIN op ON op.id = o.op WHERE op.name = 'MPI_Barrier'"
    )
    assert [tuple(row.values()) for row in barriers] == [("main/steps/exchange/comm", "W0.0", 6 * RANKS)]
    assert "commlens: rank" not in result.stderr


def test_the_annotations_of_tinyprof_give_its_entries(mpi: Mpi) -> None:
    """Iterations that are scopes: counted separately or together, and what follows a loop is not part of it."""
    flags = (f"-I{ROOT / 'include/commlens/tinyprof'}",)
    result = mpi.run(RANKS, [mpi.compile("tinyprof.cpp", "c++", *LINK, flags=flags)])
    assert (result.rc, result.stdout) == (0, ""), result
    assert "commlens: rank" not in result.stderr
    profile = result.open()
    profile.check()
    parts = {
        "main": [-1],
        "main/steps/exchange": [0, 1, 2],
        "main/steps/exchange/comm": [0, 1, 2],
        "main/steps/sweeps": [0, 1, 2],
        "main/steps/sweeps/update": [0, 1, 2],
    }
    loop = [("main/steps", execution, -1, rank, 3) for execution in (0, 1) for rank in range(RANKS)]
    assert entries(profile, "region_time", "calls") == sorted(expected(parts) + loop)
    together = [
        ("main/steps/sweeps", execution, -1, rank, 3) for execution in (0, 1) for rank in range(RANKS)
    ]
    assert entries(profile, "loop_time", "iterations") == sorted(
        expected({"main/steps": [0, 1, 2]}) + together
    )
    barriers = profile.rows(
        "SELECT path, SUM(calls) AS calls FROM region_operation o JOIN region_path p ON p.region = o.region "
        "JOIN op ON op.id = o.op WHERE op.name = 'MPI_Barrier' GROUP BY path ORDER BY path"
    )
    assert [tuple(row.values()) for row in barriers] == [
        ("main", 2 * RANKS), ("main/steps/exchange/comm", 6 * RANKS),
    ]  # fmt: skip
    tags = profile.rows(
        "SELECT path, name, value FROM tag JOIN region_path p ON p.region = tag.region ORDER BY 1"
    )
    assert [tuple(row.values()) for row in tags] == [
        ("main", "tag", "COMP"), ("main/steps/exchange/comm", "tag", "COMM"),
    ]  # fmt: skip


@pytest.mark.parametrize("language", ["C", "use mpi", "Fortran 77"])
def test_what_does_not_match_is_said_with_places_in_the_program(mpi: Mpi, language: str) -> None:
    """Not with those in a library through which the call comes."""
    source, compiler, flags = LANGUAGES[language]
    program = mpi.compile(source.replace("annotated", "unmatched"), compiler, *LINK, flags=flags)
    said = mpi.run(1, [program]).stderr
    assert re.findall(
        r"the end of .* has no begin|region .* had not ended|an iteration .* is outside any loop", said
    )
    assert set(re.findall(r"([^\s,]+)\+0x", said)) == {program.name}
    assert len(re.findall(r"\+0x", said)) == 4


def test_linked_behind_the_empty_functions_is_said(mpi: Mpi) -> None:
    api = BUILD / "lib"
    libs = ("-Wl,--no-as-needed", f"-L{api}", "-lcommlens-api", mpi.library)
    paths = f"-Wl,-rpath,{api}:{mpi.library.parent}"
    program = mpi.compile("annotated.c", "c", *libs, paths, flags=INCLUDE)
    result = mpi.run(2, [program], mode="link")
    assert (result.rc, result.stdout) == (0, ""), result
    assert result.stderr.count("is linked after") == 1
    profile = result.open()
    assert entries(profile, "region_time", "calls") == []
    assert profile.total("MPI_Barrier")[0] == 12


def test_the_compact_csv_has_the_same_entries(mpi: Mpi) -> None:
    """TinyProf's layout: | between processes, - between executions, + between iterations."""
    argv, env = command(mpi, "C")
    result = mpi.run(RANKS, argv, env=env)
    file = result.profile.with_suffix(".csv")
    commlens("export", result.profile, "--to", "tinyprof", "-o", file, cwd=mpi.workdir)
    with file.open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))

    def read(field: str) -> list[tuple[int, int, int, int]]:
        return [
            (execution, iteration, rank, int(value))
            for rank, process in enumerate(field.split("|"))
            for execution, values in enumerate(process.split("-") if process else [])
            for iteration, value in enumerate(values.split("+"))
            if value
        ]

    profile = result.open()
    for line, table, apart in (
        ("region", "region_time", False),
        ("region+", "region_time", True),
        ("loop+", "loop_time", True),
    ):
        for column in ("calls", "time_ns", "mpi_ns"):
            calls = "iterations" if (table, column) == ("loop_time", "calls") else column
            found = sorted(
                (row["region"], execution, iteration if apart else -1, rank, value)
                for row in rows
                if row["line"] == line
                for execution, iteration, rank, value in read(row[column])
            )
            kept = [e for e in entries(profile, table, calls) if (e[2] >= 0) == apart]
            assert found == kept, (line, column)
    assert [row["region"] for row in rows if row["line"] != "program" and not row["metric"]] == [
        "main", "main/steps", "main/steps", "main/steps/exchange", "main/steps/exchange/comm", "main/steps/update",
    ]  # fmt: skip
    assert {row["region"]: row["tag"] for row in rows if row["tag"]} == {"main": "kind=COMP"}
    (metric,) = (row for row in rows if row["metric"])
    assert [metric[name] for name in ("region", "line", "metric", "count", "last")] == [
        "main/steps/update", "metric+", "cells", "|1+1+1-1+1+1||1+1+1-1+1+1",
        "|1.0+11.0+21.0-1.0+11.0+21.0||3.0+13.0+23.0-3.0+13.0+23.0",
    ]  # fmt: skip
