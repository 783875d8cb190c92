# SPDX-License-Identifier: Apache-2.0
"""The charts over iterations in view Regions, in a browser: their values, units and scales."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser, browser
from build_profile import ProfileBuilder
from test_page import written

pytestmark = pytest.mark.long

CHARTS = """\
return Object.fromEntries([...document.querySelectorAll(`#${arguments[0]} figure`)].map((figure) => [
  figure.querySelector('figcaption').textContent,
  [[...figure.querySelectorAll('title')].map((each) => each.textContent),
   [...figure.querySelectorAll('.tick[text-anchor=end]')].map((each) => each.textContent)]]))"""


@pytest.fixture(scope="module")
def tab() -> Iterator[Browser]:
    with browser() as found:
        yield found


def test_the_charts_have_average_and_range_over_the_ranks(tab: Browser, marked: Path) -> None:
    tab.open(written(marked), "view=regions")
    times = tab.run(CHARTS, "iterations")
    assert list(times) == ["solve/time steps"]
    assert times["solve/time steps"][0] == [
        f"iteration {i}: 19.0 ms on average, 17.5 ms to 20.5 ms" for i in range(3)
    ]
    metrics = tab.run(CHARTS, "metrics")
    assert set(metrics) == {"residual in solve/time steps", "cells updated in solve/time steps/update"}
    titles, _ = metrics["residual in solve/time steps"]
    assert titles[1] == "iteration 1: 0.2813 on average, 0.0625 to 0.5"
    titles, _ = metrics["cells updated in solve/time steps/update"]
    assert titles[2] == "iteration 2: 16380 cells on average, 16380 cells to 16380 cells"


def test_a_metric_whose_sum_no_number_can_hold_leaves_the_page_whole(tab: Browser, tmp_path: Path) -> None:
    build = ProfileBuilder(ranks=1)
    region = build.region("large")
    build.spend(region, 0, 1, 100)
    build.tell(build.metric("one sign"), region, 0, [1e308, 1e308])
    tab.open(written(build.write(tmp_path / "large.db")), "view=regions")
    assert "one sign" in tab.run("return document.querySelector('#metrics').textContent")
    assert tab.complaints() == []


def test_scales_suit_the_values(tab: Browser, tmp_path: Path) -> None:
    build = ProfileBuilder(ranks=1)
    loop = build.region("steps", 0, "loop")
    values = {
        "residual": [1.0, 1e-6],
        "heat": [-3.0, 5.0],
        "flat": [7.0, 7.0],
        "zero": [0.0, 0.0],
        "once": [1.0],
    }
    for name, told in values.items():
        metric = build.metric(name, "K" if name == "heat" else "")
        for i, value in enumerate(told):
            build.tell(metric, loop, 0, [value], iteration=i)
    build.tell(build.metric("lost"), loop, 0, [], not_finite=1, iteration=0)
    tab.open(written(build.write(tmp_path / "scales.db")), "view=regions")
    ticks = {title: axis[:-1] for title, (_, axis) in tab.run(CHARTS, "metrics").items()}
    assert ticks == {
        "residual in steps": ["0.000001", "0.00001", "0.0001", "0.001", "0.01", "0.1", "1"],
        "heat in steps": ["-4 K", "-2 K", "0 K", "2 K", "4 K", "6 K"],
        "flat in steps": ["0", "10"],
        "zero in steps": ["0", "1"],
    }
    assert tab.complaints() == []
