# SPDX-License-Identifier: Apache-2.0
"""View Waiting of the page: its numbers are those of `commlens waits`, its words name the late rank."""

from __future__ import annotations

import csv
import io
import json
import random
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from browser import Browser, browser
from build_profile import ProfileBuilder
from build_waits import Kind, RankWaits, add_random_messages, add_random_waits, add_samples, add_unsplit
from conftest import Run
from test_page import compare
from test_page_collectives import page_of as html
from test_page_data import page_of
from test_waits import late_rank_builder
from test_waits_messages import late_sender_builder

from commlens.page.waiting import read_waiting
from commlens.profile import open_profile

ROOT = Path(__file__).parents[2]
RECORDED = Path(__file__).parents[1] / "profiles"
MS = 10**6


@pytest.fixture(scope="module")
def tab() -> Iterator[Browser]:
    with browser() as found:
        yield found


def random_builder(seed: int, kinds: Sequence[str] = ("collectives", "messages")) -> ProfileBuilder:
    """Return a run of two nodes with families of communicators, samples, and calls that were not split."""
    dice = random.Random(seed)
    build = ProfileBuilder(ranks=12, nodes=2)
    for i in range(3):
        build.comm(f"s{i}.1", list(range(i, 12, 3)), parent=1, family=2, creator="MPI_Comm_split")
    build.comm("d0.1", list(range(12)), parent=1, creator="MPI_Comm_dup")
    if "collectives" in kinds:
        add_random_waits(build, dice)
    if "messages" in kinds:
        add_random_messages(build, dice)
    return build


@pytest.fixture
def late(tmp_path: Path) -> Path:
    return late_rank_builder(outside=True).write(tmp_path / "late.db")


def key_of(profile: Path, communicator: str, operation: str, size: int) -> str:
    """Return the id of the bar of a line."""
    with open_profile(str(profile)) as connection:
        sql = "SELECT family, op.id FROM family, op WHERE family.name = ? AND op.name = ?"
        family, op = connection.execute(sql, (communicator, operation)).fetchone()
    return f"wait-{family}.{op}.{size}"


def printed(run: Run, profile: Path, *options: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run("waits", profile, "--format", "json", *options).stdout)
    return found


@pytest.mark.parametrize("seed", range(4))
def test_the_page_has_the_numbers_of_the_command(tmp_path: Path, run: Run, seed: int) -> None:
    profile = random_builder(seed).write(tmp_path / "random.db")
    wanted = printed(run, profile)
    head, tables = page_of(profile)
    found = head["waiting"]
    assert len(found["lines"]) == len(wanted["waits"]) > 5
    ranks: dict[int, list[dict[str, int]]] = {}
    for row in tables["waits"]:
        ranks.setdefault(row.pop("line"), []).append(row)
    own = {
        (line["communicator"], line["operation"], line["bin"]): (i, line)
        for i, line in enumerate(found["lines"])
    }
    for wait in wanted["waits"]:
        place, line = own[wait["communicator"], wait["operation"], wait["bin"]]
        rows = wait.pop("ranks")
        assert line.items() >= wait.items()
        names = set(ranks[place][0])
        assert ranks[place] == [{name: row[name] for name in row if name in names} for row in rows]
        assert len(names) == 10
    assert [{name: row[name] for name in row if name != "why"} for row in found["unsplit"]] == wanted[
        "unsplit"
    ]
    assert found["time_ns"] == sum(wait["time_ns"] for wait in wanted["waits"])


def test_a_budget_that_is_too_small_keeps_the_ranks_of_the_lines_with_the_most_waiting(
    tmp_path: Path,
) -> None:
    profile = random_builder(1).write(tmp_path / "random.db")
    with open_profile(str(profile)) as connection:
        whole = read_waiting(connection, 10**9)
        some = read_waiting(connection, 10_000)
        none = read_waiting(connection, 1)
    assert whole.losses == []
    assert len(some.ranks.block) <= 500 < len(whole.ranks.block)
    assert 0 < some.ranks.rows < whole.ranks.rows
    assert none.ranks.rows == 0
    lines = len(whole.facts["lines"])
    assert none.losses == [f"waiting by rank: only the 0 of {lines} lines with the most waiting have it"]
    assert none.facts == some.facts == whole.facts
    head, _ = page_of(profile, 1)
    assert none.losses[0] in head["folded"]


def test_a_profile_without_samples_has_its_counters_read_no_further_time(small: Path) -> None:
    statements: list[str] = []
    with open_profile(str(small)) as connection:
        connection.set_trace_callback(statements.append)
        assert read_waiting(connection, 10**6).facts["lines"] == []
    assert statements
    assert not [sql for sql in statements if "cell" in sql or "split." in sql]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "version10.db",
            "this profile has schema version 10: waiting needs version 11 or later. Run the program with",
        ),
        (
            "version11-summary.db",
            "a profile of summary detail (COMMLENS_DETAIL) has no samples of calls. Run",
        ),
        ("off", "COMMLENS_WAITING was 0 in this run. Run the program with"),
        ("none", "No sampled calls: commlens samples messages, collectives and MPI_Win_fence"),
    ],
)
def test_without_samples_the_page_gives_the_reason_and_the_remedy(
    tmp_path: Path, name: str, words: str
) -> None:
    profile = RECORDED / name
    if not profile.suffix:
        options = {"off": "COMMLENS_MATRIX=p2p\nCOMMLENS_WAITING=0", "none": "COMMLENS_WAITING=1"}[name]
        profile = ProfileBuilder(ranks=2, meta={"options": options}).write(tmp_path / "x.db")
    with open_profile(str(profile)) as connection:
        assert read_waiting(connection, 10**6).facts["refused"].startswith(words)


@pytest.mark.long
def test_the_late_rank_is_named_and_drawn(tab: Browser, late: Path) -> None:
    tab.open(html(late), "view=waiting")
    tab.complaints()
    text = tab.run("return document.getElementById('waiting').textContent")
    assert "300 ms of waiting in 304 ms of collectives (98.7 %), summed over the ranks" in text
    (first, second) = tab.run(
        "return [...document.querySelectorAll('#waiting .bar')].map((each) => each.textContent)"
    )
    assert first == "MPI_Allreduce, 8-15 B W0.0 MPI_COMM_WORLD98.7 % of 304 ms"
    assert second == "MPI_Bcast, 0 B W0.0 MPI_COMM_WORLDnot split: 1.00 µs"
    words = tab.run("return document.querySelector('#late-ranks .about').textContent")
    assert words == (
        "Rank 2 on node0 is last in 100.0 % of the sampled calls, far more often than by chance. It computes longer: "
        "before such a call it spends 4.00 ms outside MPI, the others 1.00 ms (median)."
    )
    point = "document.querySelector('#late-ranks canvas')"
    tab.run(
        f"{point}.dispatchEvent(new MouseEvent('mousemove', {{ clientX: {point}.getBoundingClientRect().left + {point}.clientWidth * 0.6 }}))"
    )
    assert tab.run("return document.querySelector('#late-ranks .readout').textContent") == (
        "rank 2 on node0: waits 0 ns per call, is last in 100 of 100 calls, by 1.00 ms; 80.0 % of the time between them outside MPI"
    )
    (row,) = csv.DictReader(io.StringIO(tab.results()["unsplit"]["csv"]))
    assert (row["operation"], row["calls"], row["reason"]) == ("MPI_Bcast", "7", "no data")
    assert row["why"] == "a block is empty, so that some members need not wait for each other"
    tab.go("view=summary")
    assert "98.7 % of the 304 ms in sampled collectives is waiting" in tab.run(
        "return document.getElementById('waits').textContent"
    )
    assert tab.complaints() == []


@pytest.mark.long
def test_a_sender_without_samples_is_named_and_drawn(tab: Browser, tmp_path: Path) -> None:
    file = html(late_sender_builder().write(tmp_path / "late.db"))
    tab.open(file, "view=waiting")
    tab.complaints()
    assert "360 ms of waiting in 373 ms of messages (96.5 %), summed over the ranks" in tab.run(
        "return document.getElementById('waiting').textContent"
    )
    assert tab.run("return document.querySelector('#late-ranks .about').textContent") == (
        "100.0 % of the waiting is for rank 0 on node0: 3.00 ms on average in 120 calls. It sends late in region solve."
    )
    point = "document.querySelector('#late-ranks canvas')"
    readouts = []
    for part in (0.1, 0.4):
        tab.run(
            f"{point}.dispatchEvent(new MouseEvent('mousemove', {{ clientX: {point}.getBoundingClientRect().left + {point}.clientWidth * {part} }}))"
        )
        readouts.append(tab.run("return document.querySelector('#late-ranks .readout').textContent"))
    assert readouts == [
        "rank 0 on node0: has no sampled calls of its own, causes 100.0 % of the waiting: late in 120 calls, by 3.00 ms, "
        "mostly in region solve",
        "rank 1 on node0: waits 3.00 ms per call, causes 0 % of the waiting",
    ]
    rows = list(csv.DictReader(io.StringIO(tab.results()["late-ranks"]["csv"])))
    names = (
        "rank",
        "samples",
        "waiting_per_call_ns",
        "last",
        "late_share",
        "behind_per_call_ns",
        "late_region",
    )
    assert [rows[0][name] for name in names] == ["0", "0", "", "120", "1", "", "solve"]
    assert not re.search("NaN|Infinity|undefined", tab.run("return document.body.innerText"))
    tab.go("view=summary")
    assert "96.5 % of the 373 ms in sampled messages is waiting" in tab.run(
        "return document.getElementById('waits').textContent"
    )
    assert tab.complaints() == []


@pytest.mark.long
@pytest.mark.parametrize("kind", ["collectives", "messages"])
def test_a_bar_selects_its_ranks_and_the_address_keeps_it(
    tab: Browser, tmp_path: Path, run: Run, kind: str
) -> None:
    profile = random_builder(2, [kind]).write(tmp_path / "random.db")
    file = html(profile)
    tab.open(file, "view=waiting")
    tab.complaints()
    wanted = {(w["communicator"], w["operation"], w["bin"]): w for w in printed(run, profile)["waits"]}
    ids = tab.run("return [...document.querySelectorAll('#waiting .bar')].map((each) => each.id)")
    found = {
        (row["communicator"], row["operation"], int(row["bin"])): row
        for row in csv.DictReader(io.StringIO(tab.results()["waiting"]["csv"]))
    }
    assert set(found) == set(wanted)
    # Of some collectives no call was split.
    assert (len(ids) > len(wanted)) == (kind == "collectives")
    for place, row in found.items():
        assert float(row["waiting_share"]) == wanted[place]["waiting_share"]
        assert [row["share_low"], row["share_high"]] == [
            "" if wanted[place][n] is None else str(wanted[place][n]).removesuffix(".0")
            for n in ("share_low", "share_high")
        ]
    whiskers = sum(w["share_low"] not in (None, w["share_high"]) for w in wanted.values())
    assert tab.run("return document.querySelectorAll('.whisker').length") == whiskers > 0
    with closing(sqlite3.connect(profile)) as connection:
        connection.row_factory = sqlite3.Row
        for id in ids:
            tab.run("const bar = document.getElementById(arguments[0]); bar.focus(); bar.click()", id)
            tab.wait_until(f"location.hash.endsWith('wait={id.removeprefix('wait-')}')")
            tab.wait_until(f"document.activeElement.id === '{id}'")
            assert tab.run("return document.querySelector('#waiting .bar[aria-pressed=true]').id") == id
            results = tab.results()
            assert ("late-ranks" in results) == ("late-nodes" in results)
            if "late-ranks" not in results:
                assert tab.run("return document.querySelector('#late-ranks h2').textContent").startswith(
                    "Not split: "
                )
            for panel in ("late-ranks", "late-nodes"):
                if panel in results:
                    assert compare(connection, panel, results[panel]) > 0
    title = "return [document.querySelector('#late-ranks h2')?.textContent, location.hash]"
    family, operation, size = next(iter(found))
    (id,) = [id for id in ids if id == key_of(profile, family, operation, size)]
    tab.run("document.getElementById(arguments[0]).click()", id)
    tab.wait_until(f"location.hash.endsWith('{id.removeprefix('wait-')}')")
    shown, address = tab.run(title)
    tab.open(file, address.removeprefix("#"))
    assert tab.run(title) == [shown, address]
    words_of = {"times": "up to [0-9]+ (times|calls)", "time": "waited for up to"}
    for value in ("time", "times") if kind == "collectives" else ("times", "time"):
        tab.run(f"document.querySelector('#late-ranks input[value={value}]').click()")
        tab.wait_until(f"location.hash.endsWith('late={value}')")
        assert re.search(words_of[value], tab.run("return document.getElementById('late-ranks').textContent"))
    assert tab.complaints() == []


@pytest.mark.long
def test_a_communicator_of_the_filter_has_the_rows_of_the_command(
    tab: Browser, tmp_path: Path, run: Run
) -> None:
    profile = random_builder(3).write(tmp_path / "random.db")
    tab.open(html(profile), "view=waiting")
    for fragment, options in (
        ("family=2", ("s*.1",)),
        ("comm=3", ("s*.1",)),
        ("family=1", ("W0.0",)),
        ("family=1&op=17", ("W0.0", "--op", "Reduce")),
    ):
        tab.go(f"view=waiting&{fragment}")
        results = tab.results()
        wanted = printed(run, profile, "--comm", *options)
        for id, rows in (("waiting", wanted["waits"]), ("unsplit", wanted["unsplit"])):
            assert (id in results) == bool(rows)
            if rows:
                found = csv.DictReader(io.StringIO(results[id]["csv"]))
                assert sorted((r["operation"], r["bin"], r["calls"]) for r in found) == sorted(
                    (r["operation"], str(r["bin"]), str(r["calls"])) for r in rows
                )
    tab.go("view=waiting&comm=3")
    assert "s1.1 counts with its family s*.1" in tab.run(
        "return document.querySelector('#waiting .about').textContent"
    )


@pytest.mark.long
@pytest.mark.parametrize("width", [380, 1400])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_names_of_strangers_are_text_and_no_rule_of_accessibility_is_broken(
    tab: Browser, tmp_path: Path, theme: str, width: int
) -> None:
    evil = "<img src=x onerror='window.evil=1'></script><script>window.evil=2</script>\u202e" + "x" * 300
    build = late_rank_builder(outside=True)
    build.nodes = 2
    comm = build.comm(evil, [0, 1, 2, 3], user_name=evil, parent=1)
    for rank in range(4):
        build.count(comm, "MPI_Barrier", rank, 40, 40 * MS)
    waits = {
        rank: RankWaits(20 * MS, 9 * MS * (rank != 1), 20 * (rank == 1), 5 * MS, 5 * MS) for rank in range(4)
    }
    add_samples(build, Kind(comm, "MPI_Barrier", 0), waits, 20, 40, 10**6)
    add_unsplit(build, Kind(comm, "MPI_Barrier", 0), "order", 3)
    tab.resize(width)
    tab.open(html(build.write(tmp_path / "evil.db")), f"view=waiting&theme={theme}&wait={comm}.16.0")
    tab.complaints()
    shown = tab.run("return document.querySelector('#late-ranks h2').textContent")
    assert "<img src=x onerror='window.evil=1'>" in shown
    assert "\u202e" not in shown
    assert tab.run("return [window.evil ?? null, document.querySelectorAll('img, #page script').length]") == [
        None,
        0,
    ]
    assert tab.run("return document.documentElement.scrollWidth <= window.innerWidth")
    assert tab.run("return document.querySelectorAll('.whisker').length") == 1
    axe = ROOT / "page" / "node_modules" / "axe-core" / "axe.min.js"
    tab.run(axe.read_text(encoding="utf-8"))
    tab.run("for (const each of document.querySelectorAll('details')) each.open = true")
    found = tab.run_async(
        "axe.run({resultTypes: ['violations']}).then((found) => arguments[0](found.violations.map("
        "(each) => [each.id, each.help, each.nodes.map((node) => node.html).slice(0, 3)])))"
    )
    assert found == []
    assert tab.complaints() == []
    tab.resize(1400)
