# SPDX-License-Identifier: Apache-2.0
"""The comparison with other profilers: its results travel in an archive."""

from __future__ import annotations

import re
import shutil
import tarfile
from pathlib import Path

import pytest
from bench.peers import command, cost, places
from bench.peers.results import Store


@pytest.fixture(autouse=True)
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the results below a folder of the test."""
    monkeypatch.setattr(places, "RESULTS", tmp_path / "results")


def test_another_machine_goes_on_with_the_archive_beside_the_page(tmp_path: Path) -> None:
    """And writes the same page from it; what else an archive has is left in it."""
    store = Store(cost.CALLS, commit="abc")
    store.add_facts({"commit": "abc", "machine": "one"})
    store.put(("openmpi", "1"), "1", runs={"baseline": {"failure": "", "command": "", "ns": []}}, seconds=3)
    command.main(["--render", "--page", str(tmp_path / "one" / "page.md")])
    packed = tmp_path / "one" / places.ARCHIVE
    before = packed.read_bytes()
    with tarfile.open(packed, "w:xz") as added:
        for name in ("calls.json", "calls.jsonl"):
            added.add(places.RESULTS / name, name)
        for name in ("../escaped.json", "other.json"):
            added.add(store.path, name)
    shutil.rmtree(places.RESULTS)
    command.main(["--add", str(packed), "--page", str(tmp_path / "two" / "page.md")])
    assert [record["seconds"] for record in Store(cost.CALLS)] == [3]
    assert Store(cost.CALLS).facts() == {"commit": "abc", "machine": "one"}
    assert sorted(path.name for path in places.RESULTS.iterdir()) == ["calls.json", "calls.jsonl"]
    assert not (places.RESULTS.parent / "escaped.json").exists()
    pages = [(tmp_path / name / "page.md").read_text() for name in ("one", "two")]
    assert pages[0] == pages[1]
    assert "| calls | Open MPI `1` | abc |" in pages[0]
    assert (tmp_path / "two" / places.ARCHIVE).read_bytes() == before


def test_a_place_without_results_is_no_source_of_results(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=f"{re.escape(str(tmp_path))} has no results"):
        command.main(["--add", str(tmp_path), "--page", str(tmp_path / "page.md")])
    assert not (tmp_path / "page.md").exists()
