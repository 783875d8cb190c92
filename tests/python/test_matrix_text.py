# SPDX-License-Identifier: Apache-2.0
"""What `commlens matrix` draws and refuses, letter by letter."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from build_profile import ProfileBuilder
from conftest import Run, marked_builder
from matrices import grid, star, talking
from rich.cells import cell_len
from summarise import summarised
from test_shards import split
from test_text import in_terminal

from commlens.matrix.shades import Cells
from commlens.render.shades import level_count

# Text.


def ring_of_four(tmp_path: Path) -> Path:
    """Return the profile of a ring in which every other link carries more, on two nodes."""
    build = ProfileBuilder(ranks=4, nodes=2)
    for rank in range(4):
        for other in ((rank + 1) % 4, (rank - 1) % 4):
            build.send(rank, other, 3, 1536 if {rank, other} in ({0, 1}, {2, 3}) else 1024)
    build.tell_peer("put", 0, 2, 1, 8)
    build.tell_peer("all_to_all", 0, None, 5, 64, op="MPI_Alltoallv")
    return build.write(tmp_path / "ring.db")


WHOLE = """\
two-sided messages, as sent: 8 pairs of 4 ranks, 24 messages, 30.0 KiB

   0   1   2   3
0 │    @@@@    ====│
  │    @@@@    ====│
1 │@@@@    ====    │
  │@@@@    ====    │
2 │    ====    @@@@│
  │    ====    @@@@│
3 │====    @@@@    │
  │====    @@@@    │
2.25 KiB .:-=+*#%@ 4.50 KiB
rows send, columns receive; a cell is one pair of ranks; logarithmic scale from half the maximum

pattern     ring, both ways
locality    in a node 60.0 %, between nodes 40.0 %
symmetry    100.0 % of the traffic is matched in the opposite direction
partners    per rank, minimum / median / maximum: sends to 2 / 2 / 2, receives from 2 / 2 / 2, either 2 / 2 / 2
note        sockets and core complexes: the sockets of node0 are unknown here; run 'lstopo node0.xml' on that node and pass the file with --topology node0.xml
both ends   sent and received are equal in all 8 pairs

kind of traffic  messages     bytes
sent                   24  30.0 KiB  drawn
received               24  30.0 KiB  the other end of sent
put                     1       8 B  --kind put

shape of collectives  calls  bytes
all-to-all                5  320 B  counted on all ranks

from  to  messages     bytes   share  from node  to node
0     1          3  4.50 KiB  15.0 %  node0      node0
1     0          3  4.50 KiB  15.0 %  node0      node0
and 6 more pairs
"""


def test_the_whole_output(tmp_path: Path, run: Run) -> None:
    result = run("matrix", ring_of_four(tmp_path), "--top", 2)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == WHOLE


def without_styles(text: str) -> str:
    """Return what a terminal shows, without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_picture_fits_its_terminal(tmp_path: Path, width: int) -> None:
    path = talking(300, grid((15, 20), "00", star(2))).write(tmp_path / "p.db")
    shown = in_terminal(width, "matrix", str(path))
    picture = [line for line in without_styles(shown).splitlines() if line.endswith("│")]
    assert picture
    assert max(map(cell_len, picture)) <= width
    assert any(half in "".join(picture) for half in "▀▄")


@pytest.mark.long
def test_no_colours_mean_shades_and_a_dumb_terminal_ascii(tmp_path: Path) -> None:
    path = ring_of_four(tmp_path)
    shades = in_terminal(80, "matrix", str(path), NO_COLOR="1")
    assert "│    ████    ▒▒▒▒│" in without_styles(shades)
    dumb = in_terminal(80, "matrix", str(path), TERM="dumb")
    assert "│    @@@@    ====│" in dumb


def test_nearly_equal_values_have_one_shade(tmp_path: Path, run: Run) -> None:
    build = ProfileBuilder(ranks=2)
    build.send(0, 1, 10, 100_000)
    build.send(1, 0, 10, 100_030)
    shown = run("matrix", build.write(tmp_path / "p.db")).stdout
    assert "0 │        @@@@@@@@│" in shown
    assert "1 │@@@@@@@@        │" in shown
    assert "977 KiB in each that is drawn\nrows send, columns receive; a cell is one pair of ranks\n" in shown
    for kind in ("shades", "colours"):
        cells = Cells(np.array([[0, 1_000_000], [1_000_300, 0]]), ~np.eye(2, dtype=bool), 2, 1)
        assert len(set(cells.levels(level_count(kind))[cells.used].tolist())) == 1, kind


def test_the_scale_reaches_from_the_smallest_to_the_largest_value(tmp_path: Path, run: Run) -> None:
    build = ProfileBuilder(ranks=2)
    build.send(0, 1, 1, 1 << 10)
    build.send(1, 0, 1, 1 << 20)
    shown = run("matrix", build.write(tmp_path / "p.db")).stdout
    assert "0 │        ........│" in shown
    assert (
        "1.00 KiB .:-=+*#%@ 1.00 MiB\nrows send, columns receive; a cell is one pair of ranks; logarithmic scale\n"
        in shown
    )


@pytest.mark.parametrize("by", ["rank", "node"])
def test_no_line_of_the_legend_is_wider_than_the_terminal(tmp_path: Path, by: str) -> None:
    shown = without_styles(in_terminal(80, "matrix", str(ring_of_four(tmp_path)), "--by", by))
    assert max(map(cell_len, shown.splitlines())) <= 80


# Bad input.


def test_what_a_profile_cannot_say_is_refused_in_one_line(tmp_path: Path, run: Run) -> None:
    build = marked_builder()
    path = build.write(tmp_path / "p.db")
    old = tmp_path / "old.db"
    old.write_bytes(path.read_bytes())
    with closing(sqlite3.connect(old)) as connection, connection:
        connection.executescript("DROP VIEW pair; DROP TABLE peer; PRAGMA user_version = 5;")
        connection.execute("UPDATE meta SET value = '5' WHERE key = 'schema_version'")
    off = ProfileBuilder(ranks=2, meta={"options": "COMMLENS_ENABLE=1\nCOMMLENS_MATRIX=off"}).write(
        tmp_path / "off.db"
    )
    unkept = talking(2, {(0, 1)}).write(tmp_path / "unkept.db")
    for arguments, words in (
        ([old], "this profile has schema version 5: the communication matrix needs version 6 or later"),
        ([summarised(path)], "a matrix needs data of single ranks, but this profile has summary detail"),
        ([off], "this profile has no communication matrix: COMMLENS_MATRIX was off in the run"),
        ([path, "--comm", "s0.7"], "no communicator 's0.7' in this profile"),
        ([path, "--op", "Alreduce"], "no operation 'Alreduce'; did you mean MPI_Allreduce?"),
        (
            [path, "--op", "Bcast", "--kind", "p2p"],
            "--op applies only to messages inside calls",
        ),
        ([path, "--region", "exchanges"], "no code region 'exchanges' in this profile"),
        ([unkept, "--region", "solve"], "the run needs COMMLENS_MATRIX_BY=region"),
        ([unkept, "--slice", "1"], "the run needs COMMLENS_MATRIX_BY=slice"),
        ([path, "--check", "--kind", "collective"], "--check compares both ends of two-sided messages"),
        ([path, "--check", "--region", "solve"], "--check compares both ends of two-sided messages"),
        ([tmp_path / "none.db"], "none.db: no such file"),
    ):
        result = run("matrix", *arguments)
        assert (result.exit_code, result.stdout) == (2, ""), arguments
        assert words in result.stderr
        assert result.stderr.count("\n") == 1
    assert run("matrix", path, "--kind", "p2q").exit_code == 2


def test_regions_that_were_kept_apart_may_have_no_messages(tmp_path: Path, run: Run) -> None:
    path = ProfileBuilder(ranks=2, meta={"options": "COMMLENS_MATRIX_BY=both"}).write(tmp_path / "p.db")
    result = run("matrix", path, "--slice", "1")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "no such messages match\n" in result.stdout


def test_nobody_talks(tmp_path: Path, run: Run) -> None:
    path = ProfileBuilder(ranks=3).write(tmp_path / "p.db")
    assert run("matrix", path).stdout == (
        "two-sided messages, as sent: 0 pairs of 3 ranks, 0 messages, 0 B\nno such messages in this profile\n"
    )
    shown = run("matrix", path, "--kind", "collective").stdout
    assert "COMMLENS_MATRIX=all counts them, if the MPI library exposes them (Open MPI)" in shown
    seen = ProfileBuilder(ranks=3, meta={"inside": "measured"}).write(tmp_path / "seen.db")
    shown = run("matrix", seen, "--kind", "collective").stdout
    assert shown.endswith("no such messages in this profile\n"), "nothing was missed"
    for ending in (".png", ".svg", ".csv", ".npz", ".mtx", ".graphml"):
        assert run("matrix", path, "--to", tmp_path / f"m{ending}").exit_code == 0, ending
    assert run("matrix", path, "--by", "node").exit_code == 0


def test_another_kind_of_traffic_is_named_by_its_option(tmp_path: Path, run: Run) -> None:
    path = ring_of_four(tmp_path)
    shown = run("matrix", path, "--kind", "get").stdout.splitlines()
    assert shown[1] == "no such messages in this profile; the profile has --kind p2p, --kind put"
    shown = run("matrix", path, "--kind", "get", "--comm", "W0.0").stdout.splitlines()
    assert shown[1] == "no such messages match; the selection has --kind p2p, --kind put"


def test_one_rank_and_messages_without_bytes(tmp_path: Path, run: Run) -> None:
    build = ProfileBuilder(ranks=1)
    build.send(0, 0, 3, 0)
    shown = run("matrix", build.write(tmp_path / "p.db")).stdout
    assert "1 pair of 1 rank, 3 messages, 0 B\n" in shown
    assert "│@@@@@@@@@@@@@@@@│" in shown
    assert "pattern     one rank\n" in shown


def test_a_directory_of_several_files_says_the_same(tmp_path: Path, run: Run) -> None:
    build = talking(8, grid((2, 4), "00", star(2)))
    whole = build.write(tmp_path / "whole.db")
    parts = split(whole, tmp_path / "parts.commlens")
    assert run("matrix", parts).stdout == run("matrix", whole).stdout
    (parts / "shard.1.db").unlink()
    result = run("matrix", parts)
    assert result.exit_code == 3
    assert "rank 2 is not in this profile" in result.stdout
