# SPDX-License-Identifier: Apache-2.0
"""What people see: whole outputs, letter by letter, and how they behave in terminals and pipes."""

from __future__ import annotations

import csv
import doctest
import importlib
import io
import json
import os
import pkgutil
import shlex
import signal
import sqlite3
import subprocess
import sys
import termios
from contextlib import closing
from pathlib import Path

import pytest
from build_profile import ProfileBuilder
from conftest import Run, small_builder
from rich.cells import cell_len

import commlens
from commlens.render.table import json_text

REPORT = """\
command       ./listing1 --steps 30
started       2026-11-21T10:00:00Z, job 4711
where         4 ranks on 2 nodes: node0 (2), node1 (2)
MPI           Open MPI v4.1.4 (MPI 3.1, threads single)
time          1.00 s from MPI_Init to MPI_Finalize
in MPI        11.1 % of it, 566 calls; per rank 111 ms on average, from 96.0 ms (rank 1) to 129 ms (rank 0)
load balance  98.3 %: average / maximum time outside MPI (busiest: rank 1, idlest: rank 0)
commlens      0.1.0 cost 0.3 %: 1.00 ms in MPI_Init, 2.00 ms in MPI_Finalize, 15 ns per call

communicator             size        calls  calls/rank  collectives  max/rank  avg/rank  avg/call  longest   share      sent  received  non-contig.
s*.1 x2                  2 ranks       401       100.2          200    100 ms   85.1 ms    849 µs  2.67 ms  76.6 %   400 KiB   400 KiB
  MPI_Comm_split of W0.0 at listing1+0x1234
  MPI_Allreduce          1-2 KiB       400         100          200    100 ms   85.0 ms    850 µs  2.67 ms  76.5 %   400 KiB   400 KiB
  MPI_Comm_free          0 B             1         0.2                 500 µs    125 µs    500 µs  1.00 ms   0.1 %       0 B       0 B

W0.0 MPI_COMM_WORLD      4 ranks       146        36.5         30.5   18.0 ms   15.0 ms    411 µs  2.00 ms  13.5 %   978 KiB   978 KiB
  MPI_Allreduce          8-15 B        120          30           30   13.0 ms   11.5 ms    383 µs   867 µs  10.3 %     960 B     960 B
  MPI_Isend              64-128 KiB     10         2.5                5.00 ms   1.25 ms    500 µs  1.00 ms   1.1 %   977 KiB       0 B
  MPI_Comm_split         0 B             4           1                1.00 ms   1.00 ms   1.00 ms  2.00 ms   0.9 %       0 B       0 B
  MPI_Irecv              64-128 KiB     10         2.5                3.00 ms    750 µs    300 µs   600 µs   0.7 %       0 B   977 KiB
  MPI_Alltoallv          varies          2         0.5          0.5   2.00 ms    500 µs   1.00 ms  2.00 ms   0.4 %     777 B     333 B

{W0.0,s0.1}                             10         2.5                40.0 ms   10.0 ms   4.00 ms  8.00 ms   9.0 %       0 B       0 B
  completion of requests of several communicators
  MPI_Waitall            0 B            10         2.5                40.0 ms   10.0 ms   4.00 ms  8.00 ms   9.0 %       0 B       0 B

a0.2                     2 ranks         5         2.5          2.5   4.00 ms   2.00 ms    800 µs  1.60 ms   0.9 %  40.0 KiB  40.0 KiB       40.0 %
  "halo grid", MPI_Cart_create of s*.1 at listing1+0x1300, cart 2x1 periodic 00
  MPI_Neighbor_alltoall  4-8 KiB         5         2.5          2.5   4.00 ms   2.00 ms    800 µs  1.60 ms   0.9 %  40.0 KiB  40.0 KiB       40.0 %

-                                        4           1                1.00 µs   1.00 µs   1.00 µs  2.00 µs  <0.1 %       0 B       0 B
  calls that belong to no communicator
  MPI_Comm_get_parent    0 B             4           1                1.00 µs   1.00 µs   1.00 µs  2.00 µs  <0.1 %       0 B       0 B
"""

REPORT_OF_RANKS = """\
communicator         size     calls  calls/rank  collectives  max/rank  avg/rank  avg/call  longest   share      sent  received
s*.1 x2              2 ranks    400         100          200    100 ms   85.0 ms    850 µs  2.67 ms  76.5 %   400 KiB   400 KiB
  MPI_Comm_split of W0.0 at listing1+0x1234
  MPI_Allreduce      1-2 KiB    240          60          120   80.0 ms   65.0 ms   1.08 ms  2.67 ms  58.5 %   240 KiB   240 KiB
    listing1+0x1234
    rank 3                       60                            80.0 ms             1.33 ms  2.67 ms  18.0 %  60.0 KiB  60.0 KiB
    rank 2                       60                            70.0 ms             1.17 ms  2.33 ms  15.7 %  60.0 KiB  60.0 KiB
    and 1 more rank with 13.5 % of the MPI time
    rank 0                       60                            50.0 ms              833 µs  1.67 ms  11.2 %  60.0 KiB  60.0 KiB
  MPI_Allreduce      1-2 KiB    160          40           80   20.0 ms   20.0 ms    500 µs  1.00 ms  18.0 %   160 KiB   160 KiB
    listing1+0x1300
    rank 0                       40                            20.0 ms              500 µs  1.00 ms   4.5 %  40.0 KiB  40.0 KiB
    rank 1                       40                            20.0 ms              500 µs  1.00 ms   4.5 %  40.0 KiB  40.0 KiB
    and 1 more rank with 4.5 % of the MPI time
    rank 3                       40                            20.0 ms              500 µs  1.00 ms   4.5 %  40.0 KiB  40.0 KiB

W0.0 MPI_COMM_WORLD  4 ranks    120          30           30   13.0 ms   11.5 ms    383 µs   867 µs  10.3 %     960 B     960 B
  MPI_Allreduce      8-15 B     120          30           30   13.0 ms   11.5 ms    383 µs   867 µs  10.3 %     960 B     960 B
    listing1+0x1234
    rank 3                       30                            13.0 ms              433 µs   867 µs   2.9 %     240 B     240 B
    rank 2                       30                            12.0 ms              400 µs   800 µs   2.7 %     240 B     240 B
    and 1 more rank with 2.5 % of the MPI time
    rank 0                       30                            10.0 ms              333 µs   667 µs   2.2 %     240 B     240 B
"""

TREE = """\
communicator         size     calls  max/rank  avg/rank  created   freed
W0.0 MPI_COMM_WORLD  4 ranks    146   18.0 ms   15.0 ms     0 ns       -
│ ranks 0, 1, 2, 3
└─ s*.1 x2           2 ranks    401    100 ms   85.1 ms  1.00 ms  1 of 2
   │ MPI_Comm_split of W0.0 at listing1+0x1234
   └─ a0.2           2 ranks      5   4.00 ms   2.00 ms  3.00 ms  800 ms
        ranks 0, 1, "halo grid", MPI_Cart_create of s*.1 at listing1+0x1300, cart 2x1 periodic 00
"""

UNFOLDED_TREE = """\
communicator         size     calls  max/rank  avg/rank  created   freed
W0.0 MPI_COMM_WORLD  4 ranks    146   18.0 ms   15.0 ms     0 ns       -
│ ranks 0, 1, 2, 3
├─ s0.1              2 ranks    201   80.0 ms   75.2 ms  1.00 ms  900 ms
│  │ ranks 0, 1, MPI_Comm_split of W0.0 at listing1+0x1234
│  └─ a0.2           2 ranks      5   4.00 ms   2.00 ms  3.00 ms  800 ms
│       ranks 0, 1, "halo grid", MPI_Cart_create of s0.1 at listing1+0x1300, cart 2x1 periodic 00
└─ s2.1              2 ranks    200    100 ms   95.0 ms  1.00 ms       -
     ranks 2, 3, MPI_Comm_split of W0.0 at listing1+0x1234
"""


def below_head(output: str) -> str:
    """Return a report without the lines about the run."""
    return output.split("\n\n", 1)[1]


def test_the_report(small: Path, run: Run) -> None:
    assert run("report", small).stdout == REPORT


def test_the_report_with_ranks_and_call_sites_cut_to_two(small: Path, run: Run) -> None:
    result = run("report", small, "--all-ranks", "--callsites", "--top", 2, "--op", "allreduce")
    assert below_head(result.stdout) == REPORT_OF_RANKS


def test_what_top_leaves_out_is_counted(small: Path, run: Run) -> None:
    lines = below_head(run("report", small, "--top", 1).stdout).splitlines()
    assert lines[4:] == [
        "  and 1 more row with 0.1 % of the MPI time",
        "",
        "and 4 more families with 23.4 % of the MPI time",
    ]


def test_top_zero_leaves_out_nothing(small: Path, run: Run) -> None:
    assert run("report", small, "--top", 0).stdout == REPORT
    ranks = run("report", small, "--top", 0, "--all-ranks").stdout
    assert ranks.count("\n    rank ") == 4 + 1 + 4 + 1 + 4 + 1 + 1 + 1 + 1 + 4


@pytest.mark.parametrize(
    "arguments, line",
    [
        (
            ["--rank", "0,2-3"],
            "ranks 0, 2-3; the header is of the whole run, shares are of the MPI time of the selected ranks",
        ),
        (
            [
                "--comm",
                "s0.1",
                "--op",
                "allreduce",
                "--class",
                "collective",
                "--size",
                "1K:",
                "--time",
                "0.01:0.2",
            ],
            "communicator s0.1, MPI_Allreduce, class collective, messages of >= 1 KiB, rows of 10.0 ms to 200 ms; "
            "the header is of the whole run, shares are of the MPI time of all ranks",
        ),
    ],
)
def test_the_head_names_the_selection_and_the_base_of_the_shares(
    small: Path, run: Run, arguments: list[str], line: str
) -> None:
    head = run("report", small, *arguments).stdout.split("\n\n")[0]
    assert head.splitlines()[-1] == f"selection     {line}"
    assert "selection" not in run("report", small).stdout


def test_a_selection_without_calls(small: Path, run: Run) -> None:
    result = run("report", small, "--op", "MPI_Put")
    assert result.exit_code == 0
    assert below_head(result.stdout) == "no calls match\n"
    as_csv = run("report", small, "--op", "MPI_Put", "--format", "csv").stdout
    assert as_csv.startswith("family,communicator,")
    assert as_csv.count("\n") == 1


def test_warnings_stand_before_the_numbers(tmp_path: Path, run: Run) -> None:
    path = ProfileBuilder(ranks=2, meta={"ranks": "3"}).write(tmp_path / "x.db")
    head = run("report", path).stdout.split("\n\n")[0]
    assert "warning       only 2 of 3 ranks are in this profile" in head.splitlines()


def test_the_tree(small: Path, run: Run) -> None:
    assert run("comms", small).stdout == TREE


def test_the_tree_unfolded(small: Path, run: Run) -> None:
    assert run("comms", small, "--unfold").stdout == UNFOLDED_TREE


def test_the_tree_of_selected_communicators(small: Path, run: Run) -> None:
    def names(*options: str) -> list[str]:
        rows = json.loads(run("comms", small, *options, "--format", "json").stdout)
        return [row["communicator"] for row in rows]

    assert names("--comm", "s*.1", "--comm", "a0.2") == ["s*.1", "a0.2"]
    assert names("--comm", "s2.1") == ["s2.1"], "a part of a family is not the family"
    assert names("--comm-size", "2", "--unfold") == ["s0.1", "s2.1", "a0.2"]
    shown = run("comms", small, "--comm", "a0.2").stdout.splitlines()
    assert shown[1].startswith("a0.2 "), "without its parents"
    assert run("comms", small, "--comm", "zz").exit_code == 2


def test_the_tree_has_the_same_rows_in_csv_json_and_sql(small: Path, run: Run) -> None:
    rows = json.loads(run("comms", small, "--format", "json").stdout)
    assert [row["communicator"] for row in rows] == ["W0.0", "s*.1", "a0.2"]
    as_csv = list(csv.DictReader(io.StringIO(run("comms", small, "--format", "csv").stdout)))
    expected = [{k: "" if v is None else str(v) for k, v in row.items()} for row in rows]
    assert as_csv == expected
    query = run("comms", small, "--sql").stdout.split("\n", 1)[1].rstrip().rstrip(";")
    assert json.loads(run("sql", small, query, "--format", "json").stdout) == rows


@pytest.mark.long
def test_two_thousand_communicators_stay_readable(tmp_path: Path, run: Run) -> None:
    build = ProfileBuilder(ranks=8)
    parent = 1
    for i in range(2000):
        # A chain of 1000 duplicates of duplicates, and 1000 different children of the world.
        parent = build.comm(f"d0.{i}", [0], parent=parent if i < 1000 else 1, creator="MPI_Comm_dup")
        build.count(parent, "MPI_Bcast", 0, 1, 1000 + i)
    path = build.write(tmp_path / "many.db")
    report = run("report", path).stdout.splitlines()
    assert len(report) < 60
    assert report[-1] == "and 1,990 more families with 99.3 % of the MPI time"
    tree = run("comms", path, "--format", "json")
    assert len(json.loads(tree.stdout)) == 2001
    drawn = run("comms", path, "--top", 2).stdout.splitlines()
    assert sum("and 999 more" in line for line in drawn) == 1
    everything = run("comms", path, "--top", 0).stdout.splitlines()
    assert len(everything) == 1 + 2 * 2001  # two lines for each below the heading
    assert max(map(len, everything)) < 120


def test_control_characters_in_names_do_not_reach_the_terminal(tmp_path: Path, run: Run) -> None:
    build = ProfileBuilder(ranks=1, meta={"command_line": "app \x1b[31m\nred"})
    build.comm("d0.1", [0], user_name="evil\x1b]0;title\x07", creator="MPI_Comm_dup")
    build.count(2, "MPI_Bcast", 0, 1, 1000)
    path = build.write(tmp_path / "x.db")
    for command in ("report", "comms"):
        output = run(command, path).stdout
        assert "\x1b" not in output
        assert r'"evil\x1b]0;title\x07"' in output
    assert r"app \x1b[31m\nred" in run("report", path).stdout


def program(*arguments: object) -> list[str]:
    """Return the command line of the real program."""
    return [sys.executable, "-m", "commlens", *map(str, arguments)]


def environment(**more: str) -> dict[str, str]:
    """Return an environment without what would change colours or encodings."""
    unwanted = {"FORCE_COLOR", "NO_COLOR", "COLUMNS", "PYTHONIOENCODING", "TTY_COMPATIBLE"}
    return {**{k: v for k, v in os.environ.items() if k not in unwanted}, "PYTHONUTF8": "1", **more}


def test_a_pipe_gets_no_colours_and_no_shorter_lines(small: Path) -> None:
    done = subprocess.run(
        program("report", small), env=environment(TERM="xterm-256color"), capture_output=True, check=True
    )
    assert done.stdout.decode() == REPORT


def test_json_has_a_line_for_each_row() -> None:
    rows = {
        "rows": [{"name": 'é"\n', "time": 1.5}, {"name": b"\x01", "time": float("inf")}],
        "none": [],
        "of": {"a": [1, 2]},
    }
    text = """{
  "rows": [
    {"name": "é\\"\\n", "time": 1.5},
    {"name": "01", "time": null}
  ],
  "none": [],
  "of": {
    "a": [1, 2]
  }
}
"""
    assert json_text(rows) == text
    assert json_text([]) == "[]\n"


def test_a_pipe_gets_colours_if_a_variable_forces_them(small: Path) -> None:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        forced = environment(TERM="xterm-256color", **{name: "1"})
        done = subprocess.run(program("report", small), env=forced, capture_output=True, check=True)
        assert b"\x1b[1m" in done.stdout, name


@pytest.mark.parametrize(
    "command", ["report", "comms", "regions", "ranks", "explain", "coverage", "sql", "schema"]
)
def test_a_command_loads_no_large_package_that_it_does_not_use(small: Path, command: str) -> None:
    line = program(
        command, *([] if command == "schema" else [small]), *(["SELECT 1"] if command == "sql" else [])
    )
    done = subprocess.run(
        [line[0], "-X", "importtime", *line[1:]], env=environment(), capture_output=True, check=True
    )
    loaded = {entry.rpartition(b"|")[2].strip().decode() for entry in done.stderr.splitlines()}
    assert "commlens.cli" in loaded
    assert not loaded & {"numpy", "rich.console", "rich.progress"}


@pytest.mark.long
def test_a_reader_that_goes_away_is_no_error(small: Path) -> None:
    endless = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000) SELECT i FROM n"
    )
    with subprocess.Popen(
        program("sql", small, endless, "--format", "csv"),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"i\n"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == -signal.SIGPIPE


def test_an_output_without_unicode_gets_plain_letters(small: Path) -> None:
    for command in ("report", "comms"):
        done = subprocess.run(
            program(command, small),
            env=environment(PYTHONUTF8="0", PYTHONIOENCODING="ascii"),
            capture_output=True,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert b"?" not in done.stdout
        assert (b"500 us" if command == "report" else b"`- s*.1 x2") in done.stdout


def test_json_without_unicode_has_the_same_names(tmp_path: Path) -> None:
    build = ProfileBuilder(ranks=1)
    name = "größer → 日本語 \U0001f600"
    build.spend(build.region(name), 0, 1, 100)
    done = subprocess.run(
        program("regions", build.write(tmp_path / "x.db"), "--format", "json"),
        env=environment(PYTHONUTF8="0", PYTHONIOENCODING="ascii"),
        capture_output=True,
    )
    assert [row["name"] for row in json.loads(done.stdout)["regions"]][1:] == [name]


def in_terminal(columns: int, *arguments: object, **more: str) -> str:
    """Return what the program prints on a terminal of that width."""
    master, slave = os.openpty()
    termios.tcsetwinsize(slave, (50, columns)) if sys.version_info >= (3, 11) else _set_width(slave, columns)
    process = subprocess.Popen(
        program(*arguments),
        env=environment(**{"TERM": "xterm-256color", **more}),
        stdin=slave,
        stdout=slave,
        stderr=slave,
    )
    os.close(slave)
    output = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # Linux says so when the last writer has gone
            break
        if not part:
            break
        output += part
    os.close(master)
    assert process.wait(timeout=60) == 0
    return output.decode().replace("\r\n", "\n")


def _set_width(terminal: int, columns: int) -> None:
    import fcntl
    import struct

    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))


@pytest.mark.parametrize("columns", [80, 100, 140])
@pytest.mark.parametrize("command", ["report", "comms", "schema"])
def test_a_terminal_gets_lines_that_fit(small: Path, command: str, columns: int) -> None:
    arguments: list[object] = [command] if command == "schema" else [command, small]
    lines = in_terminal(columns, *arguments, NO_COLOR="1").splitlines()
    bare = ["".join(part.split("m", 1)[-1] for part in ("m" + line).split("\x1b[")) for line in lines]
    assert max(cell_len(line) for line in bare) <= columns


def test_a_terminal_keeps_numbers_with_their_units_and_narrow_columns_narrow(small: Path) -> None:
    output = in_terminal(80, "report", small, NO_COLOR="1")
    assert "2.00 ms in MPI_Finalize,\n              15 ns per call\n" in output
    heading = in_terminal(80, "ranks", small, NO_COLOR="1").splitlines()[0]
    assert "rank   in MPI   share  outside MPI  calls      sent  received  node" in heading
    assert "  rank" not in heading


def test_a_terminal_gets_colours_and_bars(small: Path) -> None:
    output = in_terminal(140, "report", small)
    assert "\x1b[1m" in output
    assert "███████▌" in output


def test_nothing_that_matters_is_cut_at_eighty_columns(small: Path) -> None:
    output = in_terminal(80, "report", small, NO_COLOR="1")
    for text in (
        "MPI_Neighbor_alltoall",
        "{W0.0,s0.1}",
        "76.6 %",
        "85.1 ms",
        "977 KiB",
        "cart 2x1 periodic 00",
    ):
        assert text in output


@pytest.mark.long
def test_the_examples_in_the_docstrings() -> None:
    tried = 0
    for module in pkgutil.walk_packages(commlens.__path__, "commlens."):
        if module.name != "commlens.__main__":
            failed, count = doctest.testmod(importlib.import_module(module.name))
            assert failed == 0, module.name
            tried += count
    assert tried >= 8


def test_sql_prints_tables_csv_and_json(small: Path, run: Run) -> None:
    query = "SELECT name, size, user_name FROM comm WHERE id IN (0, 4) ORDER BY id"
    assert run("sql", small, query).stdout == "name  size  user_name\n-\na0.2     2  halo grid\n"
    assert (
        run("sql", small, query, "--format", "csv").stdout == "name,size,user_name\n-,,\na0.2,2,halo grid\n"
    )
    assert json.loads(run("sql", small, query, "--format", "json").stdout) == [
        {"name": "-", "size": None, "user_name": None},
        {"name": "a0.2", "size": 2, "user_name": "halo grid"},
    ]


def test_schema_lists_every_table_view_and_column(run: Run) -> None:
    from commlens.profile._schema import META_KEYS, RELATIONS

    overview = run("schema").stdout
    for name, relation in RELATIONS.items():
        assert f"  {name} " in overview
        columns = run("schema", name).stdout
        for column in relation.columns:
            assert f"  {column.name} " in columns
            assert column.doc in columns
    assert all(f"  {key} " in run("schema", "meta").stdout for key in META_KEYS)


def test_a_profile_on_read_only_media_is_read_even_in_wal_mode(tmp_path: Path, small: Path) -> None:
    """SQLite wants to make a second file beside a database in WAL mode, even to read it."""
    media = tmp_path / "media"
    media.mkdir()
    path = media / "x.db"
    path.write_bytes(small.read_bytes())
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    command = shlex.join([*program("report", path)])
    if os.geteuid() == 0:
        # To root every folder is writable, unless its mount is not; a mount of our own does not outlive the command.
        mount = f"mount --bind {media} {media} && mount -o remount,ro,bind {media}"
        if subprocess.run(["unshare", "-m", "sh", "-c", mount], capture_output=True).returncode != 0:
            pytest.skip("no folder can be made read-only here")
        done = subprocess.run(
            ["unshare", "-m", "sh", "-c", f"{mount} && {command}"], env=environment(), capture_output=True
        )
    else:
        media.chmod(0o555)
        done = subprocess.run(program("report", path), env=environment(), capture_output=True)
        media.chmod(0o755)
    assert done.stdout.decode() == REPORT


def test_waiting_for_who_still_collects_is_not_counted_twice(run: Run, tmp_path: Path) -> None:
    """On paper: rank 0 collects 1 ms and gathers 5 ms, 3 of which rank 1 still collects: 1 + 5 + 1 + 1 + 2, not 4 + 9."""
    path = small_builder().write(tmp_path / "phases.db")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(
            "UPDATE overhead SET ns = CASE rank WHEN 1 THEN 4000000 ELSE 1000000 END WHERE what = 'collect'"
        )
        for what, ms in (("gather", 5), ("agree", 1), ("write", 1), ("store", 2)):
            db.execute("INSERT INTO overhead (rank, what, ns) VALUES (0, ?, ?)", (what, ms * 10**6))
    said = run("report", path).stdout
    assert "1.00 ms in MPI_Init, 10.0 ms in MPI_Finalize," in said
    assert (
        "finalize      collect 4.00 ms, gather 5.00 ms, agree 1.00 ms, write 1.00 ms, store 2.00 ms, after the last rank arrived"
        in said
    )
