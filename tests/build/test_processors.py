# SPDX-License-Identifier: Apache-2.0
"""The page about other processors: it has what the record beside it has, and a new run replaces that run only."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "evidence" / "processors.md"
FAILED = """<testsuite><testcase name="hot" classname="hot"><failure message="Failed"/><system-out>x failed checks in
 failed checks in not_known_to_anybody
3 passed, 1 failed
</system-out></testcase></testsuite>
"""


def written(results: Path, page: Path) -> str:
    """Add results to the record beside a page, and return the text of the page."""
    subprocess.run(
        [sys.executable, ROOT / "tools" / "processors_page.py", results, page], check=True, cwd=ROOT
    )
    return page.read_text(encoding="utf-8")


def test_a_run_replaces_what_the_record_has_of_it_and_nothing_else(tmp_path: Path) -> None:
    for suffix in (".md", ".json"):
        shutil.copy(PAGE.with_suffix(suffix), tmp_path)
    page, results = tmp_path / PAGE.name, tmp_path / "results"
    results.mkdir()
    before = written(results, page)
    assert before == PAGE.read_text(encoding="utf-8")
    (results / "unit-riscv64.xml").write_text(FAILED, encoding="utf-8")
    (results / "self-test-riscv64.txt").write_text("all checks passed\n", encoding="utf-8")
    after = written(results, page).splitlines()
    gone, new = (
        sorted(set(a) - set(b)) for a, b in ((before.splitlines(), after), (after, before.splitlines()))
    )
    assert all("riscv64" in line or line.startswith("- `") for line in gone)
    assert [line.rpartition(" | `")[0] for line in new if line.startswith("|")] == [
        "| riscv64 | `commlens self-test`, with Debian's Open MPI and MPICH | 1 | 1 | 0",
        "| riscv64 | unit tests: hot | 3 | 1 | 0",
    ]
    assert "- `hot`: `not_known_to_anybody`: not yet understood" in new
    record = json.loads((tmp_path / "processors.json").read_text(encoding="utf-8"))
    assert record["runs"]["unit riscv64"]["failed"] == 1
    assert written(tmp_path / "nothing", page).splitlines() == after
