# SPDX-License-Identifier: Apache-2.0
"""The ranks of each region: the slowest one, and all of them."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

from conftest import MS, Run
from test_regions import read

RANKS_OF_SOLVE = """\
├─ solve               8    151 ms        3    142 ms   4.00 ms  62.7 %     1.06   35.1 %   68.8 %   51.0 %
│  │ rank 3            2    151 ms                      4.00 ms  49.0 %     1.06
│  │ rank 2            2    145 ms                      4.00 ms  80.0 %     1.02
│  │ and 1 more rank
│  │ rank 0            2    133 ms                      4.00 ms  78.2 %     0.94
│  │ MPI in W0.0 62.9 %, s*.1 x2 37.1 %
"""


def test_all_ranks_are_lines_with_the_most_and_the_least(marked: Path, run: Run) -> None:
    assert RANKS_OF_SOLVE in run("regions", marked, "--all-ranks", "--top", 3).stdout
    lines = run("regions", marked, "--all-ranks").stdout.splitlines()
    of_ranks = [line for line in lines if re.search(r" rank \d", line)]
    assert len(of_ranks) == 4 * 7 + 2  # two ranks are not in update
    for top in (1, 2):
        lines = run("regions", marked, "--all-ranks", "--top", top).stdout.splitlines()
        assert [line.split("rank")[1].split()[0] for line in lines if " rank " in line][:2] == ["0", "3"]
        assert "│ and 2 more ranks" in lines


def test_the_rows_of_ranks_are_data(marked: Path, run: Run) -> None:
    rows = read(run, "regions", marked, "--all-ranks")["ranks"]
    assert [(row["rank"], row["time_ns"], row["mpi_ns"]) for row in rows if row["path"] == "solve"] == [
        (3, 151 * MS, 74 * MS), (2, 145 * MS, 116 * MS), (1, 139 * MS, 62 * MS), (0, 133 * MS, 104 * MS),
    ]  # fmt: skip
    text = run("regions", marked, "--all-ranks", "--format", "csv").stdout
    assert [int(row["rank"]) for row in csv.DictReader(io.StringIO(text))] == [row["rank"] for row in rows]


def test_the_slowest_rank_is_named(marked: Path, run: Run) -> None:
    rows = read(run, "regions", marked)["regions"]
    assert {row["name"]: (row["slowest_rank"], row["rank_max_ns"]) for row in rows} == {
        "": (0, 200 * MS), "set-up": (0, 40 * MS), "solve": (3, 151 * MS), "time steps": (3, 123 * MS),
        "exchange": (3, 54 * MS), "norm": (0, 63 * MS), "update": (1, 48 * MS), "output": (0, 24 * MS),
    }  # fmt: skip
    parts = read(run, "regions", marked, "--executions")["parts"]
    assert [row["slowest_rank"] for row in parts if row["path"] == "solve"] == [3, 3]
