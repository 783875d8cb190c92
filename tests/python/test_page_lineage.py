# SPDX-License-Identifier: Apache-2.0
"""The lineage of communicators as a tree, in a browser: its rows, its keys, and what they do to the other views."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Browser, browser
from build_profile import ProfileBuilder
from test_page import written

from commlens.render.units import bytes_text, time_text

pytestmark = pytest.mark.long

MS = 10**6
ROWS = """\
return [...document.querySelectorAll('#lineage [role=treeitem]')].map((row) => [
  Number(row.getAttribute('aria-level')), row.querySelector('.branch-name').textContent,
  ...[...row.querySelectorAll('.branch-value')].map((value) => value.textContent)])"""


@pytest.fixture(scope="module")
def tab() -> Iterator[Browser]:
    with browser() as found:
        yield found


def press(tab: Browser, *keys: str) -> Any:
    """Press keys and return the name and state of the row that has the focus."""
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(tab.driver).send_keys(*keys).perform()
    return tab.run(
        "const row = document.activeElement; return [row.querySelector('.branch-name')?.textContent,"
        " row.getAttribute('aria-expanded')]"
    )


def names(tab: Browser) -> list[str]:
    return [row[1] for row in tab.run(ROWS)]


def deep(path: Path, levels: int) -> Path:
    """Write a profile in which each communicator is a duplicate of the one before, and return its path."""
    build, last = ProfileBuilder(ranks=2), 1
    for i in range(levels):
        last = build.comm(f"d{i}.{i}", [0, 1], parent=last, creator="MPI_Comm_dup")
        build.count(last, "MPI_Barrier", 0, 1, MS)
    return build.write(path)


def test_the_tree_has_the_numbers_of_its_table(tab: Browser, small: Path) -> None:
    tab.open(written(small), "view=communicators")
    found = {
        row["communicator_label"]: row for row in csv.DictReader(io.StringIO(tab.results()["lineage"]["csv"]))
    }
    rows = tab.run(ROWS)
    assert [row[:2] for row in rows] == [[1, "W0.0 MPI_COMM_WORLD"], [2, "s*.1"], [3, "a0.2 halo grid"]]
    for _, name, size, communicators, *measured in rows:
        row = found.pop(name)
        assert [size, communicators] == [row["size"], row["communicators"]]
        times = ("with_children_ns", "time_ns", "slowest_ns")
        sums = [time_text(int(row[each])) for each in times]
        assert measured == [*sums, *(bytes_text(int(row[f"bytes_{way}"])) for way in ("sent", "received"))]
    assert found == {}
    assert [row[4] for row in rows] == [
        time_text(ns) for ns in (404 * MS + MS // 2, 344 * MS + MS // 2, 4 * MS)
    ]


def test_the_tree_follows_the_keys_of_aria(tab: Browser, small: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    world, half, grid = "W0.0 MPI_COMM_WORLD", "s*.1", "a0.2 halo grid"
    tab.open(written(small), "view=communicators")
    tab.run("document.querySelector('#lineage [role=treeitem][tabindex=\"0\"]').focus()")
    assert press(tab, Keys.END) == [grid, None]
    assert press(tab, Keys.ARROW_LEFT) == [half, "true"]
    assert press(tab, Keys.ARROW_UP, Keys.ARROW_UP) == [world, "true"]
    assert press(tab, Keys.ARROW_DOWN, Keys.ARROW_LEFT) == [half, "false"]
    assert names(tab) == [world, half]
    assert press(tab, Keys.ARROW_RIGHT) == [half, "true"]
    assert press(tab, Keys.ARROW_RIGHT) == [grid, None]
    assert press(tab, Keys.HOME, Keys.ARROW_LEFT) == [world, "false"]
    assert names(tab) == [world]
    press(tab, Keys.ENTER)
    tab.wait_until("document.querySelectorAll('.chip').length === 1")
    assert tab.run("return location.hash") == "#view=communicators&family=1"
    assert press(tab) == [world, "false"], "the row keeps the focus and stays closed"
    assert press(tab, Keys.ENTER) == [world, "false"]
    tab.wait_until("document.querySelectorAll('.chip').length === 0")


def test_a_click_on_a_row_restricts_as_the_box_does(tab: Browser, small: Path) -> None:
    shown = []
    for place in ("#lineage .box", "#lineage [role=treeitem]"):
        tab.open(written(small), "view=communicators")
        tab.run(f"document.querySelectorAll('{place}')[1].click()")
        tab.wait_until("document.querySelectorAll('.chip').length === 1")
        picked = (
            "document.querySelectorAll('#lineage [aria-selected=true], #lineage .box[aria-pressed=true]')"
        )
        assert tab.run(f"return {picked}.length") == 2
        shown.append((tab.run("return location.hash"), tab.results()))
    assert shown[0] == shown[1]


def test_a_family_in_a_closed_branch_is_shown_if_the_address_selects_it(tab: Browser, small: Path) -> None:
    tab.open(written(small), "view=communicators")
    tab.run("document.querySelectorAll('#lineage .buttons button')[1].click()")
    assert names(tab) == ["W0.0 MPI_COMM_WORLD"]
    tab.run("document.querySelector('#lineage .twig').click()")
    assert names(tab) == ["W0.0 MPI_COMM_WORLD", "s*.1"]
    tab.go("view=communicators&family=4")
    assert tab.run("return document.querySelector('#lineage [aria-selected=true]').id") == "branch-4"


@pytest.mark.parametrize("width", [380, 1400])
def test_a_chain_of_500_communicators_keeps_to_the_width(tab: Browser, tmp_path: Path, width: int) -> None:
    tab.resize(width)
    tab.open(written(deep(tmp_path / "deep.db", 500)), "view=communicators")
    assert len(tab.run(ROWS)) == 40
    tab.run("document.querySelector('#lineage .buttons button').click()")
    rows = tab.run(ROWS)
    assert [row[0] for row in rows] == list(range(1, 502))
    assert rows[-1][1] == "level 501 d499.499"
    for part in (".tree", "[id=branch-501] .branch-name"):
        fits = (
            "const part = document.querySelector(arguments[0]); return part.scrollWidth <= part.clientWidth"
        )
        assert tab.run(fits, f"#lineage {part}"), part
    assert tab.run("return document.documentElement.scrollWidth <= window.innerWidth")
    tab.resize(1400)


def test_communicators_are_folded_and_a_family_without_its_parent_is_a_root(
    tab: Browser, tmp_path: Path
) -> None:
    build = ProfileBuilder(ranks=2)
    for first in range(1, 2001, 500):
        for i in range(500):
            family = {} if i == 0 else {"family": first + 1}
            build.comm(f"s{i}.{first}", [0, 1], parent=1, creator="MPI_Comm_split", **family)
    build.comm("a0.9", [0, 1], parent=0, creator="MPI_Comm_dup")
    tab.open(written(build.write(tmp_path / "many.db")), "view=communicators")
    assert [(row[0], row[3]) for row in tab.run(ROWS)] == [(1, "1"), *[(2, "500")] * 4, (1, "1")]
    assert tab.complaints() == []
