# SPDX-License-Identifier: Apache-2.0
"""Add up the JUnit files of a test run.

One line per suite, then what failed, why something was skipped, and the totals as the last line.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

MOST_NAMES = 40


def outcome(case: ElementTree.Element) -> str:
    """Return 'failed', 'skipped' or 'passed' for one test case."""
    tags = {child.tag for child in case}
    if tags & {"failure", "error"}:
        return "failed"
    return "skipped" if "skipped" in tags else "passed"


def main(results: Path, steps_failed: list[str]) -> int:
    """Print the summary; return 1 when a test or a step failed, or when nothing ran."""
    total: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    failed = []
    print()
    for file in sorted(results.glob("*.xml")):
        cases = list(ElementTree.parse(file).getroot().iter("testcase"))
        count = Counter(outcome(case) for case in cases)
        seconds = sum(float(case.get("time") or 0) for case in cases)
        numbers = "".join(f"{count[what]:6} {what}" for what in ("passed", "failed", "skipped"))
        print(f"{file.stem:16}{numbers}{seconds:8.0f} s")
        total += count
        failed += [
            f"{case.get('classname')} {case.get('name')}" for case in cases if outcome(case) == "failed"
        ]
        reasons.update(
            skip.get("message") or "no reason given" for case in cases for skip in case.iter("skipped")
        )
    for reason, times in reasons.most_common():
        print(f"    skipped {times}: {reason}")
    shown = steps_failed + failed[:MOST_NAMES]
    for name in shown:
        print(f"    FAILED  {name}")
    if len(failed) > MOST_NAMES:
        print(f"    FAILED  and {len(failed) - MOST_NAMES} more tests")
    # A step can fail without a failed test: lint, a build that broke, a test runner that crashed.
    failures = max(total["failed"], len(steps_failed))
    print(f"\n{total['passed']} passed, {failures} failed, {total['skipped']} skipped")
    return int(failures > 0 or total["passed"] == 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
