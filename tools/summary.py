# SPDX-License-Identifier: Apache-2.0
"""Add up the JUnit files of a test run, and the times of its steps.

    python tools/summary.py RESULTS [FAILED...]

RESULTS holds a JUnit file per suite and steps.tsv, which tools/step.sh writes. Prints the time of each step, the ten slowest
tests of each suite, one line per suite, the reasons for skipped tests, and the failures. The last line has the totals.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

MOST_NAMES = 40
SLOWEST = 10
WORTH_NAMING = 1.0
"""Seconds; the list of the slowest tests leaves out shorter ones."""


@dataclass(frozen=True)
class Case:
    """One test case of a JUnit file."""

    element: ElementTree.Element

    @property
    def name(self) -> str:
        """File and test, or the name of a C++ suite."""
        return f"{self.element.get('classname')} {self.element.get('name')}"

    @property
    def outcome(self) -> str:
        """'failed', 'skipped' or 'passed'."""
        tags = {child.tag for child in self.element}
        if tags & {"failure", "error"}:
            return "failed"
        return "skipped" if "skipped" in tags else "passed"

    @property
    def seconds(self) -> float:
        """Its duration."""
        return float(self.element.get("time") or 0)

    @property
    def reasons(self) -> list[str]:
        """The reasons why it was skipped."""
        return [skip.get("message") or "no reason given" for skip in self.element.iter("skipped")]


@dataclass(frozen=True)
class Suite:
    """One JUnit file."""

    file: Path

    @property
    def name(self) -> str:
        """Its name in tools/test.sh."""
        return self.file.stem

    @cached_property
    def _root(self) -> ElementTree.Element:
        return ElementTree.parse(self.file).getroot()

    @cached_property
    def cases(self) -> list[Case]:
        """All its test cases."""
        return [Case(element) for element in self._root.iter("testcase")]

    @cached_property
    def seconds(self) -> float:
        """Time from begin to end; less than the sum of its tests if they run in parallel."""
        return sum(float(suite.get("time") or 0) for suite in self._root.iter("testsuite"))

    @cached_property
    def outcomes(self) -> Counter[str]:
        """Number of tests that passed, failed and were skipped."""
        return Counter(case.outcome for case in self.cases)

    def slowest(self) -> list[Case]:
        """Return the slowest tests, the slowest first."""
        slow = [case for case in self.cases if case.seconds >= WORTH_NAMING]
        return sorted(slow, key=lambda case: -case.seconds)[:SLOWEST]


def steps(results: Path) -> dict[str, float]:
    """Return the seconds of each step that is not a suite, in the order of the run."""
    seconds: dict[str, float] = {}
    file = results / "steps.tsv"
    for line in file.read_text().splitlines() if file.exists() else ():
        area, label, took = line.split("\t")
        if area != "test":
            seconds[f"{area} {label}"] = seconds.get(f"{area} {label}", 0) + float(took)
    return seconds


def print_times(suites: list[Suite], results: Path) -> None:
    """Print the time of each step and suite."""
    times = {**steps(results), **{f"tests {suite.name}": suite.seconds for suite in suites}}
    print("time by step and suite, of those that took a second and more")
    for label, took in times.items():
        if took >= WORTH_NAMING:
            print(f"    {label:56}{took:7.0f} s")
    print(f"    {'sum':56}{sum(times.values()):7.0f} s")
    file = results / "seconds"
    if file.exists():
        print(f"    {'from begin to end':56}{float(file.read_text()):7.0f} s")
    for suite in suites:
        if slowest := suite.slowest():
            print(f"slowest of {suite.name}")
            for case in slowest:
                print(f"    {case.seconds:7.1f} s  {case.name}")


def print_outcomes(suites: list[Suite]) -> None:
    """Print a line per suite, and the reasons for skipped tests."""
    print()
    for suite in suites:
        numbers = "".join(f"{suite.outcomes[what]:6} {what}" for what in ("passed", "failed", "skipped"))
        print(f"{suite.name:16}{numbers}{suite.seconds:8.0f} s")
    reasons = Counter(reason for suite in suites for case in suite.cases for reason in case.reasons)
    for reason, times in reasons.most_common():
        print(f"    skipped {times}: {reason}")


def main(results: Path, steps_failed: list[str]) -> int:
    """Print the summary; return 1 when a test or a step failed, or when nothing ran."""
    suites = [Suite(file) for file in sorted(results.glob("*.xml"))]
    print()
    print_times(suites, results)
    print_outcomes(suites)
    failed = [case.name for suite in suites for case in suite.cases if case.outcome == "failed"]
    for name in steps_failed + failed[:MOST_NAMES]:
        print(f"    FAILED  {name}")
    if len(failed) > MOST_NAMES:
        print(f"    FAILED  and {len(failed) - MOST_NAMES} more tests")
    total = sum((suite.outcomes for suite in suites), Counter[str]())
    # A step can fail without a failed test: lint, a build that broke, a test runner that crashed.
    failures = max(total["failed"], len(steps_failed))
    print(f"\n{total['passed']} passed, {failures} failed, {total['skipped']} skipped")
    return int(failures > 0 or total["passed"] == 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
