# SPDX-License-Identifier: Apache-2.0
"""`commlens ranks`: one row per rank, the busiest and the idlest always among those shown."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from build_profile import EMPTY, ProfileBuilder
from conftest import MS, Run, Steps, small_builder
from summarise import summarised
from test_page_data import page_of

from commlens.reports.ranks import SILENT, UNKNOWN

RANKS = """\
rank    time   in MPI   share  outside MPI  calls      sent  received  node
   1  1.00 s  96.0 ms   9.6 %       904 ms    137   140 KiB   140 KiB  node0  busiest
   2  1.00 s   103 ms  10.3 %       897 ms    132   100 KiB   100 KiB  node1
   3  1.00 s   117 ms  11.7 %       883 ms    142   100 KiB  1.05 MiB  node1
   0  1.00 s   129 ms  12.9 %       871 ms    155  1.05 MiB   101 KiB  node0  idlest
"""

BY_BYTES = """\
rank    time   in MPI   share  outside MPI  calls      sent  received  node
   0  1.00 s   129 ms  12.9 %       871 ms    155  1.05 MiB   101 KiB  node0  idlest
   1  1.00 s  96.0 ms   9.6 %       904 ms    137   140 KiB   140 KiB  node0  busiest
and 1 more rank with 897 ms outside MPI
   3  1.00 s   117 ms  11.7 %       883 ms    142   100 KiB  1.05 MiB  node1
"""

REVERSED = """\
rank    time   in MPI   share  outside MPI  calls      sent  received  node
   0  1.00 s   129 ms  12.9 %       871 ms    155  1.05 MiB   101 KiB  node0  idlest
and 2 more ranks with 883 ms to 897 ms outside MPI, 890 ms on average
   1  1.00 s  96.0 ms   9.6 %       904 ms    137   140 KiB   140 KiB  node0  busiest
"""


def test_the_ranks(small: Path, run: Run) -> None:
    assert run("ranks", small).stdout == RANKS


def test_the_busiest_and_the_idlest_rank_are_shown_in_any_order(small: Path, run: Run) -> None:
    assert run("ranks", small, "--sort", "sent", "--top", 1).stdout == BY_BYTES
    assert run("ranks", small, "--reverse", "--top", 1).stdout == REVERSED


def without_time_of_death(path: Path) -> Path:
    """Write a profile of three ranks that a signal ended after 1 s, and of rank 1, which was last seen after 1 ms."""
    build = ProfileBuilder(ranks=4, app_ns=1000 * MS)
    for rank in range(4):
        build.count(1, "MPI_Barrier", rank, 1, MS // 2 if rank == 1 else 100 * (rank + 1) * MS)
        build.states[rank] = "ended" if rank == 1 else "SIGTERM"
    build.write(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE rank SET app_ns = ? WHERE rank = 1", (MS,))
    return path


def test_a_rank_without_a_time_of_death_has_no_time_outside_mpi(tmp_path: Path, run: Run) -> None:
    path = without_time_of_death(tmp_path / "killed.db")
    rows = json.loads(run("ranks", path, "--format", "json").stdout)
    assert {row["rank"]: row["outside_ns"] for row in rows} == {
        0: 900 * MS,
        1: None,
        2: 700 * MS,
        3: 600 * MS,
    }
    lines = run("ranks", path).stdout.splitlines()
    assert lines[4].split()[:7] == ["1", "1.00", "ms", "500", "µs", "50.0", "%"]
    assert lines[4].split()[7] == "-"
    assert not any(mark in line for line in lines[:-1] for mark in ("busiest", "idlest"))
    assert lines[-2:] == ["", SILENT]
    others = run("ranks", path, "--rank", "0,2-3").stdout
    assert "busiest" in others and "idlest" in others and SILENT not in others


def test_regions_of_a_rank_without_a_time_of_death_have_no_efficiencies(tmp_path: Path, run: Run) -> None:
    path = without_time_of_death(tmp_path / "killed.db")
    columns = ("parallel_efficiency", "load_balance", "communication_efficiency")

    def efficiencies(*options: str) -> list[float | None]:
        (row,) = json.loads(run("regions", path, "--format", "json", *options).stdout)["regions"]
        return [row[column] for column in columns]

    assert efficiencies() == [None, None, None]
    assert "load balance is not known" in run("regions", path).stdout
    assert efficiencies("--rank", "0,2-3") == pytest.approx([2.2 / 3, 2.2 / 2.7, 0.9])
    of_page = page_of(path)[0]["sheets"]["regions"]["columns"]
    assert [of_page[column] for column in columns] == [[None], [None], [None]]


def test_the_guide_shows_what_is_printed() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guide" / "read.md").read_text(encoding="utf-8")
    assert "".join(f"    {line}\n" for line in BY_BYTES.splitlines()) in guide


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("outside", [1, 2, 3, 0]),
        ("time", [0, 1, 2, 3]),
        ("mpi", [0, 3, 2, 1]),
        ("share", [0, 3, 2, 1]),
        ("calls", [0, 3, 1, 2]),
        ("sent", [0, 1, 2, 3]),
        ("received", [3, 1, 0, 2]),
        ("rank", [0, 1, 2, 3]),
        ("node", [0, 1, 2, 3]),
    ],
)
def test_all_ranks_are_in_csv_and_json_in_the_order_asked_for(
    small: Path, run: Run, sort: str, order: list[int]
) -> None:
    rows = json.loads(run("ranks", small, "--sort", sort, "--top", 1, "--format", "json").stdout)
    assert [row["rank"] for row in rows] == order
    as_csv = csv.DictReader(io.StringIO(run("ranks", small, "--sort", sort, "--format", "csv").stdout))
    texts = [{key: "" if value is None else str(value) for key, value in row.items()} for row in rows]
    assert list(as_csv) == texts
    query = run("ranks", small, "--sort", sort, "--sql").stdout.split("\n", 1)[1].rstrip().rstrip(";")
    assert json.loads(run("sql", small, query, "--format", "json").stdout) == rows


def test_the_numbers_of_a_rank(small: Path, run: Run) -> None:
    first = json.loads(run("ranks", small, "--sort", "rank", "--format", "json").stdout)[0]
    mpi_ns = 128_501_000
    assert first == {
        "rank": 0, "node": "node0", "app_ns": 1000 * MS, "mpi_ns": mpi_ns, "mpi_share": mpi_ns / (1000 * MS),
        "outside_ns": 1000 * MS - mpi_ns, "calls": 155, "bytes_sent": 240 + 61440 + 40960 + 1_000_000 + 777,
        "bytes_received": 240 + 61440 + 40960 + 333, "threads": 1, "state": "finalized",
        "cpu_ns": None, "preempted": None,
    }  # fmt: skip


def test_selected_ranks_are_compared_with_each_other(small: Path, run: Run) -> None:
    lines = [line.split() for line in run("ranks", small, "--rank", "0,2-3").stdout.splitlines()[1:]]
    assert [(line[0], line[-1]) for line in lines] == [("2", "busiest"), ("3", "node1"), ("0", "idlest")]
    refused = run("ranks", small, "--rank", "4-9")
    assert (refused.exit_code, refused.stderr) == (
        2,
        "commlens: no rank from 4 to 9 in this profile; the highest is 3\n",
    )


def test_threads_that_overlap_leave_the_time_outside_unknown(tmp_path: Path, run: Run) -> None:
    build = ProfileBuilder(ranks=3)
    for rank in range(3):
        build.count(1, "MPI_Bcast", rank, 1, (rank + 1) * 100 * MS)
    path = build.write(tmp_path / "x.db")
    connection = sqlite3.connect(path)
    connection.execute("UPDATE rank SET threads = 2, state = 'SIGKILL' WHERE rank = 0")
    connection.commit()
    connection.close()
    for options, order in (((), ["1", "2", "0"]), (("--reverse",), ["2", "1", "0"])):
        shown, legend = run("ranks", path, *options).stdout.split("\n\n")
        assert legend == f"{UNKNOWN}\n"
        lines = [line.split() for line in shown.splitlines()[1:]]
        assert [line[0] for line in lines] == order
        assert lines[-1][7:] == ["-", "1", "0", "B", "0", "B", "node0", "SIGKILL"]


def test_an_estimated_time_in_mpi_beyond_the_run_leaves_no_time_outside(tmp_path: Path, run: Run) -> None:
    build = ProfileBuilder(ranks=2)
    for rank in range(2):
        build.count(1, "MPI_Bcast", rank, 1, 100 * MS)
    path = build.write(tmp_path / "x.db")
    connection = sqlite3.connect(path)
    connection.execute("UPDATE rank SET mpi_ns = app_ns + 1000 WHERE rank = 1")
    connection.commit()
    connection.close()
    rows = json.loads(run("ranks", path, "--format", "json").stdout)
    assert {row["rank"]: row["outside_ns"] for row in rows} == {0: 900 * MS, 1: 0}
    assert "load balance  50.0 %: average" in run("report", path).stdout
    useful = run("sql", path, "SELECT rank, useful_ns FROM region_rank WHERE region = 0", "--format", "csv")
    assert useful.stdout.splitlines()[1:] == [f"0,{900 * MS}", "1,0"]


def test_cpu_time_and_preemptions_are_shown_where_they_are_known(tmp_path: Path, run: Run) -> None:
    build = small_builder()
    build.use = {0: (990 * MS, 1234), 1: (0, 0)}  # of the others they are unknown
    path = build.write(tmp_path / "x.db")
    lines = run("ranks", path, "--sort", "rank").stdout.splitlines()
    assert [line[71:] for line in lines] == [
        "CPU time  preempted  node",
        "  990 ms      1,234  node0  idlest",
        "    0 ns          0  node0  busiest",
        "                     node1",
        "                     node1",
    ]
    rows = json.loads(run("ranks", path, "--sort", "rank", "--format", "json").stdout)
    assert [(row["cpu_ns"], row["preempted"]) for row in rows] == [
        (990 * MS, 1234),
        (0, 0),
        (None, None),
        (None, None),
    ]


def test_a_summary_has_no_single_ranks(tmp_path: Path, run: Run) -> None:
    result = run("ranks", summarised(small_builder().write(tmp_path / "full.db")))
    assert result.exit_code != 0
    assert result.stderr == (
        "commlens: the list of ranks needs data of single ranks, but this profile has summary detail: "
        "query its table spread with 'commlens sql', or run with COMMLENS_DETAIL=full\n"
    )


def test_many_ranks_are_compared_soon(tmp_path: Path, run: Run, steps: Steps) -> None:
    ranks = 32_768
    path = tmp_path / "many.db"
    connection = sqlite3.connect(path)
    connection.executescript(EMPTY)
    connection.executescript(f"""
        CREATE TEMP TABLE n AS WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {ranks - 1})
            SELECT i FROM n;
        INSERT INTO op VALUES (0, 'unknown', 'other'), (1, 'MPI_Bcast', 'collective');
        INSERT INTO callsite VALUES (0, '', '', 0, NULL);
        INSERT INTO region VALUES (0, NULL, '', 'program');
        INSERT INTO meta VALUES ('ranks', '{ranks}');
        INSERT INTO rank SELECT i, 1, 'n' || (i / 64), i, '', 0, 60000000000, 1000000 * i, 1, 8, 0, 'finalized', NULL, NULL FROM n;
        INSERT INTO comm VALUES (1, 1, 'W0.0', NULL, 'intra', NULL, NULL, NULL, {ranks}, NULL, 0, '0-{ranks - 1}',
            NULL, 0, NULL, 1, 1);
        INSERT INTO key SELECT (i + 1) * {ranks}, 1, 1, i, 0, 0, 1, 100, 100, 0 FROM n WHERE i < 8;
        INSERT INTO cell_row SELECT key.id + n.i, 0, 1000, 50, 200, 0, 0, 0 FROM key JOIN n;
    """)
    connection.commit()
    connection.close()
    lines = run("ranks", path, "--top", 2).stdout.splitlines()
    assert 0 < steps.taken < 3000 * ranks  # without an index it is the square of the ranks
    assert [line.split()[0] for line in lines[1:]] == ["0", "1", "and", "32767"]
    assert lines[3] == "and 32,765 more ranks with 27.2 s to 60.0 s outside MPI, 43.6 s on average"
