# SPDX-License-Identifier: Apache-2.0
"""The tree of call paths in the page: its data, and in a browser its sums, its filter and its keys."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from browser import Browser, browser
from build_profile import ProfileBuilder
from test_page import ROOT, compare, written
from test_page_data import page_of

from commlens.page.paths import Flat, cut, fitting
from commlens.profile import open_profile
from commlens.symbols.paths import PathTree

ARROW = " > "

# Path, procedure, calls and time of each rank: what the profile below has.
CALLS = [
    ("main > setup > read", "MPI_Bcast", 2, 100),
    ("main > solve > exchange", "MPI_Isend", 5, 200),
    ("main > solve > exchange", "MPI_Waitall", 5, 1500),
    ("main > solve > norm", "MPI_Allreduce", 7, 900),
    ("main > solve > norm > reduce", "MPI_Allreduce", 1, 50),
    ("thread > progress", "MPI_Recv", 30, 250),
]
RANKS = 3


def builder(calls: list[tuple[str, str, int, int]] = CALLS) -> ProfileBuilder:
    """Return a profile in which function F of a path is at offset F of a module that nobody has."""
    build = ProfileBuilder(ranks=RANKS)
    halves = build.comm("s0.1", [0, 1], parent=1, creator="MPI_Comm_split")
    known: dict[str, int] = {}
    offsets: dict[str, int] = {}
    for path, op, number, time_ns in calls:
        names = path.split(ARROW)
        for i, name in enumerate(names):
            inner = ARROW.join(names[: i + 1])
            if inner in known:
                continue
            known[inner] = site = len(build.sites)
            build.sites[site] = ("/opt/app", "", offsets.setdefault(name, 16 + len(offsets)))
            if i:
                build.callers[site] = known[ARROW.join(names[:i])]
        for rank in range(RANKS):
            comm = halves if op == "MPI_Allreduce" and rank < 2 else 1
            build.count(comm, op, rank, number, time_ns * (rank + 1), 8, 8, 16, callsite=known[path])
    return build


def functions() -> dict[str, str]:
    """Return the name that the page has for each function of the calls."""
    names = dict.fromkeys(name for path, *_ in CALLS for name in path.split(ARROW))
    return {f"app+0x{16 + i:x}": name for i, name in enumerate(names)}


def named(path: str) -> str:
    """Return a path of the page with the names of the functions."""
    return ARROW.join(functions().get(name, name) for name in path.split(ARROW))


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return builder().write(tmp_path_factory.mktemp("paths") / "paths.db")


def path_texts(head: dict[str, Any], tables: dict[str, list[dict[str, int]]]) -> list[str]:
    """Return the paths of all nodes, by number."""
    texts: list[str] = []
    for row in tables["paths"]:
        name = head["path_names"][row["name"]]
        texts.append(name if row["parent"] < 0 else f"{texts[row['parent']]}{ARROW}{name}")
    return texts


# Data.


def test_the_page_has_the_tree_and_the_node_of_each_call_site(profile: Path) -> None:
    head, tables = page_of(profile)
    texts = path_texts(head, tables)
    with open_profile(str(profile)) as connection:
        used = [site for (site,) in connection.execute("SELECT DISTINCT callsite FROM key")]
        tree = PathTree(connection, used)
        wanted = {site: tree.path_text(site) for site in used}
    assert {row["callsite"]: texts[row["node"]] for row in tables["leaves"]} == wanted
    assert {named(text) for text in wanted.values()} == {path for path, *_ in CALLS}
    assert head["folded"] == []


def test_all_nodes_inside_a_node_follow_it(profile: Path) -> None:
    _, tables = page_of(profile)
    parents = [row["parent"] for row in tables["paths"]]
    around: list[set[int]] = []
    for number, parent in enumerate(parents):
        assert parent < number
        around.append({number} if parent < 0 else {number, *around[parent]})
    for number in range(len(parents)):
        inside = [other for other, outer in enumerate(around) if number in outer]
        assert inside == list(range(number, number + len(inside)))


def test_without_callers_there_is_no_tree(small: Path) -> None:
    head, tables = page_of(small)
    assert (head["path_names"], tables["paths"], tables["leaves"]) == ([], [], [])
    assert head["sites"]


def test_without_room_for_call_sites_there_is_no_tree(profile: Path) -> None:
    head, tables = page_of(profile, 1)
    assert (head["path_names"], tables["paths"], tables["leaves"]) == ([], [], [])
    assert head["folded"][0].startswith("calls: call sites and ")


def test_a_tree_that_is_too_large_loses_its_innermost_functions() -> None:
    names, parents, levels = ["main"], [-1], [0]
    leaf = {}
    for chain in range(200):
        for level in range(1, 60):
            parents.append(0 if level == 1 else len(names) - 1)
            names.append(f"f{chain * 7919 % 1009}_{level * 104729 % 6007}_{chain}")
            levels.append(level)
        leaf[chain] = len(names) - 1
    flat = Flat(names, parents, levels, leaf)
    whole = fitting(flat, {}, 10**6)
    assert (whole.nodes.rows, whole.losses) == (len(names), [])
    for most in (20_000, 8_000, 3_000):
        found = fitting(flat, {}, most)
        depth = 1 + (found.nodes.rows - 1) // 200
        assert found.size <= most
        assert 1 <= depth < 60
        assert found.losses == [f"call paths: only the {depth} outermost of 60 functions are told apart"]
    none = fitting(flat, {7: "site"}, 50)
    assert (none.nodes.rows, none.names, none.sites, none.losses) == (
        0, [], {7: "site"}, ["call paths: left out"],
    )  # fmt: skip


def test_a_cut_moves_calls_to_the_functions_that_are_left() -> None:
    flat = Flat(["a", "b", "c", "d", "e"], [-1, 0, 1, 0, -1], [0, 1, 2, 1, 0], {1: 2, 2: 3, 3: 4})
    assert cut(flat, 9) == flat
    assert cut(flat, 1) == Flat(["a", "e"], [-1, -1], [0, 0], {1: 0, 2: 0, 3: 1})


# In a browser.


@pytest.fixture(scope="module")
def tab() -> Iterator[Browser]:
    with browser() as found:
        yield found


def expected(
    below: str = "", procedure: str = "", ranks: Sequence[int] = range(RANKS)
) -> dict[str, tuple[int, int]]:
    """Return calls and time of every path and of every procedure inside it, of those below a path and of some ranks."""
    calls, times = Counter[str](), Counter[str]()
    for path, op, number, time_ns in CALLS:
        if not (path.startswith(below) and op.startswith(procedure)):
            continue
        for rank in ranks:
            names = [*path.split(ARROW), op]
            for i in range(len(names)):
                calls[ARROW.join(names[: i + 1])] += number
                times[ARROW.join(names[: i + 1])] += time_ns * (rank + 1)
    return {path: (calls[path], times[path]) for path in calls}


def shown(tab: Browser) -> dict[str, tuple[int, int]]:
    """Return calls and time of every row of the view.

    A function that calls MPI itself is a leaf beside the functions inside it of the same name: they are added up here.
    """
    found: dict[str, tuple[int, int]] = {}
    for row in csv.DictReader(io.StringIO(tab.results()["callpaths"]["csv"])):
        path, calls, time_ns = named(row["call_path"]), int(row["calls"]), int(row["time_ns"])
        old = found.get(path, (0, 0))
        found[path] = (old[0] + calls, old[1] + time_ns)
    return found


@pytest.mark.long
def test_the_sums_are_those_of_all_calls_inside(tab: Browser, profile: Path) -> None:
    tab.open(written(profile), "view=callsites")
    assert shown(tab) == expected()
    tab.go("view=callsites&rank=1")
    assert shown(tab) == expected(ranks=[1])
    tab.go("view=callsites&family=2")
    assert shown(tab) == expected(procedure="MPI_Allreduce", ranks=[0, 1])
    assert tab.complaints() == []


def number(tab: Browser, path: str) -> int:
    """Return the node of a path, by the title of its row in the tree, all of whose rows are open."""
    titles = tab.run(
        "document.querySelector('#callpaths .buttons button').click();"
        "return [...document.querySelectorAll('#callpaths .branch[role]')].map((each) => [each.id, each.title])"
    )
    return next(int(id.removeprefix("path-")) for id, title in titles if named(title) == path)


@pytest.mark.long
def test_a_path_restricts_every_view_to_its_call_sites(tab: Browser, profile: Path) -> None:
    tab.open(written(profile), "view=callsites")
    node = number(tab, "main > solve")
    tab.run("document.getElementById(arguments[0]).click()", f"path-{node}")
    tab.wait_until("document.querySelectorAll('.chip').length === 1")
    assert named(
        tab.run("return document.querySelector('.chip').textContent").removeprefix("call path ")[:-2]
    ) == ("main > solve")
    assert shown(tab) == expected(), "the chart has all paths, the selected one is marked"
    assert tab.run("return document.querySelector('[aria-selected=true]').id") == f"path-{node}"
    inside, _ = expected(below="main > solve")["main"]
    with open_profile(str(profile)) as connection:
        for view in ("callsites", "communicators", "sizes", "ranks"):
            tab.go(f"view={view}&path={node}")
            compared = {
                id: compare(connection, id, result)
                for id, result in tab.results().items()
                if result["sql"] and id != "lineage"
            }
            assert all(compared.values()), compared
        tab.go(f"view=sizes&path={node}&rank=0")
        rows = csv.DictReader(io.StringIO(tab.results()["operations"]["csv"]))
        assert sum(int(row["calls"]) for row in rows) == inside // RANKS
    for lost in ("12345", "-1"):
        tab.go(f"view=callsites&path={lost}")
        assert tab.results()["callsites"]["csv"].count("\n") == 1
    assert tab.complaints() == []


@pytest.mark.long
def test_a_procedure_in_the_tree_restricts_to_it_and_its_path_and_back(tab: Browser, profile: Path) -> None:
    tab.open(written(profile), "view=callsites")
    node = number(tab, "main > solve > exchange > MPI_Waitall")
    tab.run("document.getElementById(arguments[0]).click()", f"path-{node}")
    tab.wait_until("document.querySelectorAll('.chip').length === 3")  # both, and the one for all
    assert list(shown(tab)) == [
        "main",
        "main > solve",
        "main > solve > exchange",
        "main > solve > exchange > MPI_Waitall",
    ]
    rows = list(csv.DictReader(io.StringIO(tab.results()["callsites"]["csv"])))
    assert [(row["operation"], row["calls"]) for row in rows] == [("MPI_Waitall", str(5 * RANKS))]
    tab.run("document.getElementById(arguments[0]).click()", f"path-{node}")
    tab.wait_until("document.querySelectorAll('.chip').length === 0")
    assert shown(tab) == expected()


@pytest.mark.long
def test_the_chart_works_by_keyboard(tab: Browser, profile: Path) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    tab.open(written(profile), "view=callsites")

    def press(*keys: str) -> str:
        for key in keys:
            ActionChains(tab.driver).send_keys(key).perform()
        text: str = tab.run("return document.querySelector('.flame-box .readout').textContent")
        return named(text.partition(": ")[2])

    while tab.run("return document.activeElement.id") != "flame":
        press(Keys.TAB)
    assert press() == "main"
    assert press(Keys.ARROW_DOWN) == "main > solve"
    assert press(Keys.ARROW_RIGHT) == "main > setup"
    assert press(Keys.ARROW_LEFT, Keys.ARROW_DOWN) == "main > solve > exchange"
    assert press(Keys.ARROW_DOWN) == "main > solve > exchange > MPI_Waitall"
    assert press(Keys.ARROW_UP, Keys.ARROW_UP) == "main > solve"
    assert press(Keys.HOME, Keys.ARROW_RIGHT) == "thread"
    press(Keys.ENTER)
    tab.wait_until("document.querySelectorAll('.chip').length === 1")
    assert tab.run("return document.activeElement.id") == "flame"
    press(Keys.ESCAPE)
    tab.wait_until("document.querySelectorAll('.chip').length === 0")
    assert tab.complaints() == []


@pytest.mark.long
def test_a_click_into_the_chart_picks_the_box_there(tab: Browser, profile: Path) -> None:
    tab.open(written(profile), "view=callsites")
    tab.redraw()  # the boxes get their places when the chart is drawn
    tab.run(
        "const chart = document.getElementById('flame'); const box = chart.getBoundingClientRect();"
        "chart.dispatchEvent(new MouseEvent('click', { clientX: box.left + 20, clientY: box.top + 35, bubbles: true }))"
    )
    tab.wait_until("document.querySelectorAll('.chip').length === 1")
    assert named(tab.run("return document.querySelector('[aria-selected=true]').title")) == "main > solve"


def many(paths: int) -> list[tuple[str, str, int, int]]:
    """Return calls on many paths, of which most are narrower than a pixel."""
    return [
        (f"main > a{i % 7} > b{i % 61} > c{i % 1201} > d{i}", "MPI_Bcast", 1, 10 + i) for i in range(paths)
    ]


@pytest.mark.long
def test_thousands_of_paths_make_few_rows_and_are_all_in_the_table(tab: Browser, tmp_path: Path) -> None:
    profile = builder(many(4000)).write(tmp_path / "many.db")
    tab.open(written(profile), "view=callsites")
    rows = list(csv.DictReader(io.StringIO(tab.results()["callpaths"]["csv"])))
    assert sum(row["name"] == "MPI_Bcast" for row in rows) == 4000
    assert tab.run("return document.querySelectorAll('#callpaths .branch[role]').length") <= 200
    tab.run("document.querySelector('#callpaths .buttons button').click()")
    assert tab.run("return document.querySelectorAll('#callpaths .branch[role]').length") <= 1000
    assert (
        tab.run("return document.querySelector('#callpaths .buttons button').textContent")
        == "Open the upper levels"
    )
    site = tab.run("return window.commlens().callsites.csv").splitlines()[-1].split(",")[0]
    tab.go(f"view=callsites&callsite={site}")
    tab.wait_until("document.querySelector('#callpaths .tree').scrollTop > 0")
    assert tab.run(
        "const row = document.querySelector('[aria-selected=true]').getBoundingClientRect();"
        "const box = document.querySelector('#callpaths .tree').getBoundingClientRect();"
        "return row.top >= box.top && row.bottom <= box.bottom"
    )
    assert tab.complaints() == []


@pytest.mark.long
@pytest.mark.parametrize("width", [360, 1400, 2560])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_view_breaks_no_rule_of_accessibility(
    tab: Browser, profile: Path, theme: str, width: int
) -> None:
    tab.resize(width)
    tab.open(written(profile), f"view=callsites&theme={theme}&path=1")
    tab.run((ROOT / "page" / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8"))
    found = tab.run_async(
        "axe.run({resultTypes: ['violations']}).then((found) => arguments[0](found.violations.map("
        "(each) => [each.id, each.help, each.nodes.map((node) => node.html).slice(0, 3)])))"
    )
    assert found == []
    assert tab.run("return document.documentElement.scrollWidth <= window.innerWidth")
    tab.resize(1400)


@pytest.mark.long
def test_a_profile_without_paths_has_the_call_sites_only(tab: Browser, small: Path) -> None:
    tab.open(written(small), "view=callsites&path=3")
    assert set(tab.results()) == {"callsites"}
    assert tab.results()["callsites"]["csv"].count("\n") > 1
    assert tab.complaints() == []
