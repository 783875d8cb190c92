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


def test_selected_ranks_have_regions_of_their_own(marked: Path, run: Run) -> None:
    """Ranks 0 and 2 are never in update, and rank 3, the slowest in solve, does not count."""
    found = read(run, "regions", marked, "--rank", "0,2", "--all-ranks")
    assert {
        row["name"]: (row["ranks"], row["calls"], row["time_ns"], row["slowest_rank"], row["rank_max_ns"])
        for row in found["regions"]
    } == {
        "": (2, 2, 400 * MS, 0, 200 * MS), "set-up": (2, 2, 80 * MS, 0, 40 * MS),
        "solve": (2, 4, 278 * MS, 2, 145 * MS), "time steps": (2, 4, 222 * MS, 2, 117 * MS),
        "exchange": (2, 12, 84 * MS, 2, 48 * MS), "norm": (2, 12, 126 * MS, 0, 63 * MS),
        "output": (2, 4, 48 * MS, 0, 24 * MS),
    }  # fmt: skip
    assert {row["rank"] for row in found["ranks"]} == {0, 2}
    assert [row["share"] for row in found["regions"] if row["name"] == "solve"] == [278 / 400]
    assert [(row["name"], row["sum"]) for row in found["metrics"] if row["path"] == "solve/time steps"] == [
        ("residual", 3.9375)
    ]
    assert (
        sum(row["iterations"] for row in found["histograms"])
        == sum(row["calls"] for row in found["loops"])
        == 12
    )


def test_all_ranks_selected_by_number_are_all_ranks(marked: Path, run: Run) -> None:
    options = ("regions", marked, "--all-ranks", "--iterations", "--executions", "--unfold")
    assert read(run, *options, "--rank", "0-3") == read(run, *options)


def test_the_time_in_communicators_is_that_of_the_selected_ranks(marked: Path, run: Run) -> None:
    def times(*ranks: str) -> dict[tuple[int, str], tuple[int, int]]:
        rows = read(run, "regions", marked, "--unfold", *ranks)["communicators"]
        return {(row["region"], row["communicator"]): (row["calls"], row["time_ns"]) for row in rows}

    apart = [times("--rank", str(rank)) for rank in range(4)]
    assert times() == {
        key: tuple(map(sum, zip(*(of[key] for of in apart if key in of)))) for key in set().union(*apart)
    }


def test_ranks_that_are_not_there_are_refused(marked: Path, run: Run) -> None:
    done = run("regions", marked, "--rank", "4")
    assert (done.exit_code, done.stderr) == (2, "commlens: no rank 4 in this profile; the highest is 3\n")


def test_the_selection_is_said(marked: Path, run: Run) -> None:
    selected = run("regions", marked, "--rank", "0,2-3").stdout.splitlines()
    whole = run("regions", marked).stdout.splitlines()
    assert selected[:2] == ["selection     ranks 0, 2-3; all numbers are of the selected ranks", ""]
    assert selected[2].split()[0] == whole[0].split()[0] == "region"
