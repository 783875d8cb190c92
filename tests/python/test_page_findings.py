# SPDX-License-Identifier: Apache-2.0
"""From a finding on the page to what it is about: the button opens a view that shows it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import VIEWS, Browser, browser
from test_findings_cases import CASES
from test_findings_messages import late_sender
from test_findings_recorded import regions, serves

from commlens.findings._rules import RULES
from commlens.page.build import page
from commlens.page.facts import findings
from commlens.profile import open_profile

pytestmark = pytest.mark.long

BUILDS = {
    **{name: build for name, (build, _) in CASES.items()},
    "uneven region": regions({"A": 2, "B": 4}, {"A": 4.5, "B": 1.5}, {"A": 2, "B": 4}, {"A": 2, "B": 4}),
    "serving rank": serves(8, 3, 1),
    "late peer": late_sender(),
}


@pytest.fixture(scope="module")
def tab() -> Iterator[Browser]:
    with browser() as found:
        yield found


def test_each_rule_names_a_view() -> None:
    assert {rule.show for rule in RULES} <= set(VIEWS)


@pytest.mark.parametrize("case", BUILDS)
def test_the_button_of_a_finding_opens_a_view_with_its_calls(tab: Browser, case: str, tmp_path: Path) -> None:
    profile = BUILDS[case].write(tmp_path / "a.db")
    target = profile.with_suffix(".html")
    with open_profile(str(profile)) as connection:
        target.write_text(page(connection, profile), encoding="utf-8")
        finding = findings(connection)["found"][0]
    tab.open(target)
    rule = tab.run("return document.querySelector('.finding .about').textContent.match(/Rule (\\w+)/)[1]")
    tab.run("document.querySelector('.finding button').click()")
    (view,) = [each.show for each in RULES if each.name == rule]
    tab.wait_until(
        f"document.querySelector('nav a[aria-current]').textContent && location.hash.includes('view={view}')"
    )
    restricts = re.search(r"\b(family|comm)=\d", tab.run("return location.hash")) is not None
    assert restricts == (finding["family"] is not None)
    panels = tab.results()
    assert any(csv.count("\n") > 1 for csv in (panel["csv"] for panel in panels.values())), panels
    assert tab.complaints() == []
