# SPDX-License-Identifier: Apache-2.0
"""Every view of a recorded profile looks as the images in images/, in both themes, wide and narrow.

After a change of the page that is meant to be seen, look at the views, and store what they look like now:

    .venv/bin/python -m pytest tests/python/test_page_images.py --renew-images
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from browser import VIEWS, Browser, browser
from page_images import MOST_DIFFERENT, Blocks, differences, read, reduced, screenshot, use_fonts, write
from test_page_paths import builder

from commlens.cli.compare import read_sides
from commlens.compare.model import compare
from commlens.page.build import page
from commlens.page.comparison import of_page
from commlens.profile import open_profile
from commlens.reports.query import Selection

pytestmark = pytest.mark.long

PROFILE = Path(__file__).parents[1] / "profiles" / "version11.db"
BEFORE = PROFILE.with_name("version8.db")
COMPARISON = "comparison"
CALLPATHS = "callpaths"
"""View Call sites of a run with call paths."""

SHOWN = (*VIEWS, COMPARISON, CALLPATHS)
IMAGES = Path(__file__).parent / "images"
PATIENCE_S = 10
WIDTHS = (1400, 380)

FAULTS = {
    "a chart is missing": "#comm-operations .bars { visibility: hidden }",
    "a bar is missing": ".bars li:first-child { visibility: hidden }",
    "the tree is missing": ".tree { visibility: hidden }",
    "a text is missing": ".about { visibility: hidden }",
    "text has the colour of the paper": "* { color: var(--paper) !important }",
    "panels overlap": ".panel { height: 9rem } .view { gap: 0 }",
    "panels lie on each other": "#lineage { position: relative; top: -6rem }",
}
TRIFLES = {
    "text is a pixel lower": "h2, p, td, th { position: relative; top: 1px }",
    "charts are a pixel lower": "svg, canvas, .bars, .icicle { transform: translateY(1px) }",
    "all is a pixel to the right": "main { position: relative; left: 1px }",
    "text has other edges": "* { -webkit-text-stroke: 0.2px; text-rendering: geometricPrecision }",
}


@contextlib.contextmanager
def shown(
    target: Path, comparison: dict[str, Any] | None = None, profile: Path = PROFILE
) -> Iterator[Browser]:
    """Show the page of a profile, by default the recorded one, whatever debug information this machine has."""
    with (
        open_profile(str(profile)) as connection,
        patch("commlens.page.paths.distinct_labels", lambda _, ids: {id: f"record+{id}" for id in ids}),
    ):
        target.write_text(page(connection, profile, comparison=comparison), encoding="utf-8")
    with browser() as found:
        found.open(target)
        use_fonts(found)
        yield found


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with shown(tmp_path_factory.mktemp("images") / "page.html") as found:
        yield found


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Return a browser with the comparison of two recordings of the same program."""
    with pytest.MonkeyPatch.context() as patches:
        patches.chdir(PROFILE.parent)  # the page has the paths as they are given
        runs, _ = read_sides(([BEFORE.name], [PROFILE.name]), Selection(), keep_going=False)
    with shown(tmp_path_factory.mktemp("images") / "two.html", of_page(compare(*runs))) as found:
        yield found


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Return a browser with a profile that has call paths."""
    folder = tmp_path_factory.mktemp("images")
    with shown(folder / "deep.html", profile=builder(branching()).write(folder / "deep.db")) as found:
        yield found


def branching() -> list[tuple[str, str, int, int]]:
    """Return calls on paths of different depths and weights."""
    ops = ("MPI_Waitall", "MPI_Allreduce", "MPI_Bcast", "MPI_Sendrecv")
    names = ("solve", "exchange", "norm", "advance", "smooth")
    paths = [
        f"main > {names[i % 3]} > "
        + " > ".join(f"{name}{i % (k + 2)}" for k, name in enumerate(names[: i % 5]))
        for i in range(48)
    ]
    return [
        (path.removesuffix(" > "), ops[i % len(ops)], 1 + i, 10**6 * (1 + 4000 // (1 + i)))
        for i, path in enumerate(paths)
    ]


def seen(tab: Browser, view: str, width: int, theme: str) -> bytes:
    tab.resize(width)
    tab.go(f"view={'callsites' if view == CALLPATHS else view}&theme={theme}")
    return screenshot(tab)


def image(view: str, width: int, theme: str) -> Path:
    return IMAGES / f"{view}-{width}-{theme}.png"


def looks_as(png: bytes, wanted: Path) -> bool:
    return wanted.exists() and differences(reduced(png), read(wanted)) <= MOST_DIFFERENT


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_view_looks_as_its_image(
    tab: Browser,
    two: Browser,
    deep: Browser,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    theme: str,
    width: int,
) -> None:
    others = []
    for view in SHOWN:
        browser_of = {COMPARISON: two, CALLPATHS: deep}
        shows, wanted = browser_of.get(view, tab), image(view, width, theme)
        png = seen(shows, view, width, theme)
        if request.config.getoption("--renew-images"):
            write(reduced(png), wanted)
            continue
        end = time.monotonic() + PATIENCE_S
        while not looks_as(png, wanted) and time.monotonic() < end:  # it may still be drawing
            time.sleep(0.2)
            png = screenshot(shows)
        if not looks_as(png, wanted):
            (tmp_path / wanted.name).write_bytes(png)
            others.append(f"{tmp_path / wanted.name} does not look as {wanted}")
    assert not others, "\n".join([*others, "if that is meant to be: --renew-images"])


def test_a_fault_is_found_and_a_trifle_is_not(tab: Browser) -> None:
    wanted = read(image("communicators", 380, "light"))
    tab.run("document.head.append(Object.assign(document.createElement('style'), { id: 'planted' }))")
    counted = {}
    for name, style in (FAULTS | TRIFLES).items():
        tab.run("document.getElementById('planted').textContent = arguments[0]", style)
        counted[name] = differences(reduced(seen(tab, "communicators", 380, "light")), wanted)
    tab.run("document.getElementById('planted').remove()")
    assert {name for name, number in counted.items() if number > MOST_DIFFERENT} == set(FAULTS), counted


def test_the_other_theme_is_found() -> None:
    for view in VIEWS:
        light, dark = (read(image(view, 1400, theme)) for theme in ("light", "dark"))
        assert differences(light, dark) > light[..., 0].size / 2


def blank(rows: int = 40, columns: int = 50) -> Blocks:
    return np.full((rows, columns, 3), 255, np.uint8)


def test_blocks_may_move_by_one_and_a_height_may_differ_by_one() -> None:
    bar, moved, none = blank(), blank(), blank()
    bar[10:12, 5:45], moved[11:13, 5:45] = 60, 60
    assert differences(bar, moved) == 0
    assert differences(bar, none) == differences(none, bar) >= 80
    assert differences(bar, bar[:-1]) == 0
    assert differences(bar, bar[:-2]) == 40 * 50


def test_the_images_are_small_and_those_of_the_views() -> None:
    expected = {
        image(view, width, theme) for view in SHOWN for width in WIDTHS for theme in ("light", "dark")
    }
    assert set(IMAGES.iterdir()) == expected
    assert sum(path.stat().st_size for path in expected) < 300_000
