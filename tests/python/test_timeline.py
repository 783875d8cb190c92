# SPDX-License-Identifier: Apache-2.0
"""The timeline of a profile: rows, bars, heat map, and what is refused."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from build_profile import ProfileBuilder
from conftest import MS, Run, Steps, small_builder
from rich.cells import cell_len
from test_export_traces import sliced
from test_text import environment, in_terminal, program

# Four ranks for 420 ms, slices of 100 ms: set-up on the world, an exchange in the halves in which rank 3 computes, and
# a last slice of 20 ms in which rank 0 alone is in MPI.
SLICES = [
    *[(1, "MPI_Bcast", rank, 0, 1, (10 + 10 * rank) * MS, 1024 * (rank == 0), 1024) for rank in range(4)],
    *[(2, "MPI_Waitall", rank, slot, 5, 40 * MS, 0, 4096) for rank in (0, 1) for slot in (1, 2)],
    *[(3, "MPI_Waitall", 2, slot, 5, 80 * MS, 0, 4096) for slot in (1, 2)],
    (3, "MPI_Waitall", 3, 1, 5, 4 * MS, 0, 4096),
    *[(1, "MPI_Allreduce", rank, 3, 1, 50 * MS, 8, 8) for rank in range(4)],
    (1, "MPI_Barrier", 0, 4, 1, 20 * MS, 0, 0),
]

WHOLE = """\
4 ranks, 420 ms in 5 slices of 100 ms

 start  in MPI  0                  100 %  busiest         procedures            least          most                sent
  0 ms  25.0 %  ▓▓▓▓▓▓                    W0.0 25.0 %     MPI_Bcast 25.0 %      10.0 % rank 0  40.0 % rank 3   1.00 KiB
100 ms  41.0 %  ██████████                s*.1 x2 41.0 %  MPI_Waitall 41.0 %    4.0 % rank 3   80.0 % rank 2        0 B
200 ms  40.0 %  ██████████                s*.1 x2 40.0 %  MPI_Waitall 40.0 %    0 % rank 3     80.0 % rank 2        0 B
300 ms  50.0 %  ▓▓▓▓▓▓▓▓▓▓▓▓              W0.0 50.0 %     MPI_Allreduce 50.0 %  50.0 % rank 0  50.0 % rank 0       32 B
400 ms  25.0 %  ▓▓▓▓▓▓                    W0.0 25.0 %     MPI_Barrier 25.0 %    0 % rank 1     100.0 % rank 0       0 B

█ s*.1 x2   ▓ W0.0
shares of the ranks' time in the row; in MPI: inside MPI calls; least, most: the ranks with the smallest and the \
largest share in MPI
"""

HEAT = """
rank  0 ms                     100 ms                   200 ms                   300 ms                   400 ms
   0 │.........................==================================================+++++++++++++++++++++++++@@@@@@@@@@@@@@@@@@@@@@@@@│
   1 │:::::::::::::::::::::::::==================================================+++++++++++++++++++++++++                         │
   2 │-------------------------%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%+++++++++++++++++++++++++                         │
   3 │=========================.........................                         +++++++++++++++++++++++++                         │
in MPI: 0 % .:-=+*#%@ 100.0 %; a cell is one rank for 100 ms
"""


def builder(**meta: str) -> ProfileBuilder:
    build = ProfileBuilder(
        ranks=4, meta={"slice_ns": str(100 * MS), "slice_of": "communicator", **meta}, app_ns=420 * MS
    )
    half = {"parent": 1, "creator": "MPI_Comm_split", "callsite": 0, "family": 2, "created_ns": MS}
    build.comm("s0.1", [0, 1], **half)
    build.comm("s2.1", [2, 3], **half)
    for rank in range(4):
        build.count(1, "MPI_Bcast", rank, 1, MS, 1024)
        build.count(1, "MPI_Barrier", rank, 1, MS)
    return build


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sliced(builder(), tmp_path_factory.mktemp("timeline") / "timeline.db", SLICES)


def shown(run: Run, *arguments: object) -> str:
    result = run("timeline", *arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def data(run: Run, *arguments: object) -> Any:
    return json.loads(shown(run, *arguments, "--format", "json"))


def test_each_slice_is_a_row_with_its_communicators_and_extreme_ranks(profile: Path, run: Run) -> None:
    assert shown(run, profile).startswith(WHOLE)


def test_the_heat_map_has_a_line_for_each_rank_and_a_column_for_each_slice(profile: Path, run: Run) -> None:
    assert shown(run, profile) == WHOLE + HEAT


@pytest.mark.long
def test_a_terminal_gets_lines_that_fit_and_as_many_as_it_shows(tmp_path: Path) -> None:
    build = builder(slice_ns=str(4 * MS))
    slices = [
        (2, "MPI_Waitall", rank, slot, 5, MS * (rank + 1), 0, 4096) for rank in (0, 1) for slot in range(105)
    ]
    path = sliced(build, tmp_path / "long.db", slices)
    for columns in (60, 80, 100, 200):
        lines = in_terminal(columns, "timeline", path, NO_COLOR="1", LINES="50").splitlines()
        bare = ["".join(part.split("m", 1)[-1] for part in ("m" + line).split("\x1b[")) for line in lines]
        assert max(cell_len(line) for line in bare) <= columns
        if columns < 80:
            continue  # title and legend take more lines
        rows = [line for line in bare if " ms  " in line and "% rank" in line]
        assert (
            len(rows) == 35 and len(lines) < 50
        )  # lines of the terminal, of which the heat map of four ranks has six


def test_colours_show_two_ranks_in_a_line_where_lines_are_few(tmp_path: Path) -> None:
    build = ProfileBuilder(ranks=8, meta={"slice_ns": str(100 * MS)}, app_ns=420 * MS)
    slices = [(1, "MPI_Bcast", rank, slot, 1, 10 * rank * MS, 0, 0) for rank in range(8) for slot in range(4)]
    path = sliced(build, tmp_path / "eight.db", slices)
    labels = {}
    for lines in ("20", "50"):
        output = in_terminal(80, "timeline", path, LINES=lines, COLORTERM="truecolor")
        drawn = [
            "".join(part.split("m", 1)[-1] for part in ("m" + line).split("\x1b["))
            for line in output.splitlines()
        ]
        labels[lines] = [line.split()[0] for line in drawn if "│" in line]
        assert all("▀" in line for line in drawn if line.startswith("   6 │"))
    assert labels == {"20": ["0", "2", "4", "6"], "50": [str(rank) for rank in range(8)]}


def test_a_wide_terminal_gets_procedures_and_bytes(profile: Path) -> None:
    narrow, wide = (
        in_terminal(columns, "timeline", profile, NO_COLOR="1").splitlines()[2] for columns in (80, 200)
    )
    assert "procedures" not in narrow and "sent" not in narrow
    assert "procedures" in wide and "sent" in wide
    assert "least" in narrow and "most" in narrow and "busiest" in narrow


def test_rows_fold_slices(profile: Path, run: Run) -> None:
    output = shown(run, profile, "--rows", 2)
    assert output.splitlines()[0] == "4 ranks, 420 ms in 5 slices of 100 ms; a row is 3 slices, 300 ms"
    rows = data(run, profile, "--rows", 2)["slices"]
    assert [(row["begin_ns"], row["end_ns"], row["run_ns"], row["time_ns"]) for row in rows] == [
        (0, 300 * MS, 1200 * MS, (100 + 164 + 160) * MS),
        (300 * MS, 420 * MS, 480 * MS, 220 * MS),
    ]
    assert [(row["least_rank"], row["most_rank"]) for row in rows] == [(3, 2), (1, 0)]


def test_csv_and_json_have_a_row_per_slice(profile: Path, run: Run) -> None:
    rows = list(csv.DictReader(io.StringIO(shown(run, profile, "--format", "csv"))))
    found = data(run, profile)
    assert [row["time_ns"] for row in rows] == [str(row["time_ns"]) for row in found["slices"]]
    assert rows[1]["share"] == "0.41" and rows[1]["bytes_received"] == str(4 * 4096)
    assert list(found) == ["slices", "communicators", "procedures", "ranks"]
    assert [(row["row"], row["communicator"], row["communicators"], row["time_ns"]) for row in found["communicators"]] == [
        (0, "W0.0", 1, 100 * MS), (1, "s*.1", 2, 164 * MS), (2, "s*.1", 2, 160 * MS), (3, "W0.0", 1, 200 * MS),
        (4, "W0.0", 1, 20 * MS),
    ]  # fmt: skip
    assert [(row["row"], row["operation"]) for row in found["procedures"]] == [
        (0, "MPI_Bcast"), (1, "MPI_Waitall"), (2, "MPI_Waitall"), (3, "MPI_Allreduce"), (4, "MPI_Barrier"),
    ]  # fmt: skip
    last = [row for row in found["ranks"] if row["row"] == 4]
    assert [(row["rank"], row["run_ns"], row["time_ns"], row["share"]) for row in last] == [
        (0, 20 * MS, 20 * MS, 1.0), (1, 20 * MS, 0, 0.0), (2, 20 * MS, 0, 0.0), (3, 20 * MS, 0, 0.0),
    ]  # fmt: skip


def test_a_selection_counts_what_is_selected(profile: Path, run: Run) -> None:
    of_op = data(run, profile, "--op", "waitall")["slices"]
    assert [row["time_ns"] for row in of_op] == [0, 164 * MS, 160 * MS, 0, 0]
    of_ranks = data(run, profile, "--rank", "2-3")["slices"]
    assert [(row["ranks"], row["time_ns"]) for row in of_ranks] == [
        (2, 70 * MS), (2, 84 * MS), (2, 80 * MS), (2, 100 * MS), (2, 0),
    ]  # fmt: skip
    assert [row["name"] if "name" in row else row["communicator"] for row in data(run, profile, "--unfold")["communicators"]] == [
        "W0.0", "s2.1", "s0.1", "s0.1", "s2.1", "W0.0", "W0.0",
    ]  # fmt: skip


def test_one_communicator_of_a_family_has_its_own_name(profile: Path, run: Run) -> None:
    found = data(run, profile, "--comm", "s2.1")["communicators"]
    assert {(row["communicator"], row["communicators"]) for row in found} == {("s2.1", 1)}
    found = data(run, profile, "--comm", "s*.1")["communicators"]
    assert {(row["communicator"], row["communicators"]) for row in found} == {("s*.1", 2)}


def test_only_the_members_of_selected_communicators_count(profile: Path, run: Run) -> None:
    rows = data(run, profile, "--comm", "s2.1")["slices"]
    assert [(row["ranks"], row["run_ns"], row["time_ns"]) for row in rows] == [
        (2, 200 * MS, 0), (2, 200 * MS, 84 * MS), (2, 200 * MS, 80 * MS), (2, 200 * MS, 0), (2, 40 * MS, 0),
    ]  # fmt: skip
    assert (rows[1]["least_rank"], rows[1]["most_rank"]) == (3, 2)


def test_only_operations_of_a_class_count(profile: Path, run: Run) -> None:
    one = [row["operation"] for row in data(run, profile, "--class", "completion")["procedures"]]
    assert set(one) == {"MPI_Waitall"}
    both = [
        row["operation"]
        for row in data(run, profile, "--class", "completion", "--class", "collective")["procedures"]
    ]
    assert set(both) == {"MPI_Waitall", "MPI_Bcast", "MPI_Allreduce", "MPI_Barrier"}


def test_slices_of_families_refuse_a_part_of_one(tmp_path: Path, run: Run) -> None:
    path = sliced(
        builder(slice_of="family"), tmp_path / "family.db", [(2, "MPI_Waitall", 3, 1, 5, 8 * MS, 0, 0)]
    )
    assert [row["time_ns"] for row in data(run, path, "--comm", "s*.1")["slices"]] == [0, 8 * MS, 0, 0, 0]
    refused = run("timeline", path, "--comm", "s2.1")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr == (
        "commlens: --comm s2.1: the time slices of this profile are those of families, and 's*.1' is one: select all of it\n"
    )
    refused = run("timeline", path, "--unfold")
    assert refused.stderr == "commlens: --unfold: the time slices of this profile are those of families\n"


def test_ranks_that_ended_early_do_not_count_afterwards(tmp_path: Path, run: Run) -> None:
    path = sliced(builder(), tmp_path / "early.db", SLICES)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE rank SET app_ns = ? WHERE rank = 3", (150 * MS,))
        connection.execute("DELETE FROM slice WHERE rank = 3 AND slot > 1")
    rows = data(run, path)["slices"]
    assert [(row["ranks"], row["run_ns"]) for row in rows] == [
        (4, 400 * MS), (4, 350 * MS), (3, 300 * MS), (3, 300 * MS), (3, 60 * MS),
    ]  # fmt: skip


def test_pauses_are_part_of_the_time(tmp_path: Path, run: Run) -> None:
    """A rank that counted only 100 ms has slices up to 420 ms, because they go by the clock."""
    path = sliced(builder(), tmp_path / "paused.db", SLICES)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE rank SET app_ns = ?", (100 * MS,))
    rows = data(run, path)["slices"]
    assert [row["run_ns"] for row in rows] == [400 * MS, 400 * MS, 400 * MS, 400 * MS, 100 * MS]


@pytest.mark.parametrize("ranks", [(0,), (1,), (0, 3)])
def test_a_rank_that_counted_nothing_has_an_empty_line(
    tmp_path: Path, run: Run, ranks: tuple[int, ...]
) -> None:
    path = sliced(builder(), tmp_path / "nothing.db", SLICES)
    with closing(sqlite3.connect(path)) as connection, connection:
        for rank in ranks:
            connection.execute("UPDATE rank SET app_ns = 0 WHERE rank = ?", (rank,))
            connection.execute("DELETE FROM slice WHERE rank = ?", (rank,))
    lines = [line for line in shown(run, path).splitlines() if line.endswith("│")]
    usual = [line for line in HEAT.splitlines() if line.endswith("│")]
    for rank, (line, usual_line) in enumerate(zip(lines, usual, strict=True)):
        if rank in ranks:
            assert line == f"   {rank} │{'':125}│"
        else:  # without the rank with the largest share, letters stand for smaller shares
            assert [letter == " " for letter in line] == [letter == " " for letter in usual_line]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            "DROP TABLE slice; PRAGMA user_version = 2; UPDATE meta SET value = '2' WHERE key = 'schema_version'",
            "commlens: this profile has schema version 2: time slices need version 3 or later\n",
        ),
        (
            "UPDATE meta SET value = 'summary' WHERE key = 'detail'",
            "commlens: the timeline needs data of single ranks, but this profile has summary detail: "
            "query its table spread with 'commlens sql', or run with COMMLENS_DETAIL=full\n",
        ),
    ],
    ids=["old", "summary"],
)
def test_a_profile_that_cannot_have_slices_is_one_line(
    tmp_path: Path, run: Run, change: str, message: str
) -> None:
    path = sliced(builder(), tmp_path / "none.db", SLICES)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(change)
    result = run("timeline", path)
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", message)


def test_a_profile_without_slices_is_one_line(tmp_path: Path, run: Run) -> None:
    path = small_builder().write(tmp_path / "small.db")
    result = run("timeline", path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == ("commlens: this profile has no time slices: its table slice is empty\n")


def test_nothing_selected_is_said(profile: Path, run: Run) -> None:
    assert shown(run, profile, "--op", "Put").splitlines()[2:] == ["no calls match"]


def test_one_slice_or_one_rank_has_no_heat_map(profile: Path, run: Run) -> None:
    assert "a cell is" in shown(run, profile)
    assert "a cell is" not in shown(run, profile, "--rank", "2")


def test_threads_are_said(tmp_path: Path, run: Run) -> None:
    path = sliced(builder(), tmp_path / "threads.db", [(1, "MPI_Barrier", 0, 0, 1, 150 * MS, 0, 0)])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE rank SET threads = 2")
    output = shown(run, path, "--rank", "0")
    assert "share in MPI; the times of threads are summed" in output
    assert output.splitlines()[3].startswith("  0 ms  150.0 %  " + "█" * 24 + "  W0.0 150.0 %")


def test_every_statement_runs_in_any_client(profile: Path, run: Run) -> None:
    text = shown(run, profile, "--sql", "--comm", "s*.1", "--rank", "0-3")
    statements = [part for part in text.split(";\n\n") if part.strip()]
    assert [part.split("\n", 1)[0] for part in statements] == [
        "-- slices",
        "-- communicators",
        "-- procedures",
        "-- ranks",
    ]
    with closing(sqlite3.connect(profile)) as connection:
        assert [len(connection.execute(part).fetchall()) for part in statements] == [5, 2, 2, 20]


def test_an_output_without_unicode_gets_plain_letters(profile: Path) -> None:
    done = subprocess.run(
        program("timeline", profile),
        env=environment(PYTHONUTF8="0", PYTHONIOENCODING="ascii"),
        capture_output=True,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"?" not in done.stdout and b"%%%%" in done.stdout and b"####" in done.stdout


def test_names_from_the_profile_do_not_reach_the_terminal(tmp_path: Path, run: Run) -> None:
    path = sliced(builder(), tmp_path / "evil.db", SLICES)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE comm SET user_name = 'evil' || char(27) || '[2J' WHERE id = 1")
    output = shown(run, path)
    assert "\x1b" not in output and r'▓ W0.0 "evil\x1b[2J"' in output


def test_slices_without_end_are_folded(tmp_path: Path, run: Run) -> None:
    path = sliced(builder(slice_ns="1"), tmp_path / "endless.db", [(1, "MPI_Barrier", 0, 65535, 1, 7, 0, 0)])
    rows = data(run, path)["slices"]
    assert len(rows) <= 256 and sum(row["time_ns"] for row in rows) == 7


@pytest.mark.long
def test_many_ranks_are_blocks_and_take_seconds(tmp_path: Path, run: Run, steps: Steps) -> None:
    path = tmp_path / "many.db"
    ProfileBuilder(ranks=2, meta={"slice_ns": str(50 * MS)}).write(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript("""
            UPDATE meta SET value = '4096' WHERE key IN ('ranks', 'ranks_collected');
            CREATE TEMP TABLE n AS WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 4095)
                SELECT i FROM n;
            INSERT INTO rank SELECT i, 7, 'node', 1, '', 0, 1000000000, 0, 1, 0, 0, 'finalized', NULL, NULL FROM n;
            UPDATE comm SET members = '0-4095' WHERE id = 1;
            CREATE TEMP TABLE s AS WITH RECURSIVE s(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM s WHERE i < 19)
                SELECT i FROM s;
            INSERT INTO slice SELECT 1, 1, rank, i, 1, 10000000, 0, 0 FROM rank, s;
        """)
    output = shown(run, path, "--comm", "W0.0")
    assert 0 < steps.taken < 2000 * 4096 * 20
    assert "a cell is 128 ranks for 50.0 ms" in output
    assert output.count("│") == 2 * 32
