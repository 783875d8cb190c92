# SPDX-License-Identifier: Apache-2.0
"""The site of docs/: every page, command, option and variable is in it and is found, without a network."""

from __future__ import annotations

import html
import importlib
import json
import re
import subprocess
from pathlib import Path

import click
import pytest

from commlens.cli import commands

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "build" / "site"


@pytest.fixture(scope="module")
def site() -> Path:
    """Make the site."""
    done = subprocess.run(
        [ROOT / "tools" / "site.sh"], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return SITE


def text_of(page: Path) -> str:
    """Return what a page shows, in one line."""
    body = page.read_text(encoding="utf-8").partition("<article")[2].partition("</article>")[0]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", body)).split())


def test_every_page_is_there_and_loads_nothing_from_the_network(site: Path) -> None:
    sources = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
    for source in sources:
        name = "index.html" if source.name == "README.md" else f"{source.stem}.html"
        page = site / source.parent / name
        loaded = re.findall(
            r"<(?:script|img|link)[^>]*(?:src|href)=\"?(https?:[^\" >]+)", page.read_text(encoding="utf-8")
        )
        assert loaded == [], page


def test_every_command_option_and_variable_is_in_the_site(site: Path) -> None:
    text = text_of(site / "reference" / "commands.html")
    words = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", text))
    for name, command in commands().items():
        assert re.search(rf"commlens {name}(?![\w-])", text), name
        for param in command.params:
            if isinstance(param, click.Option):
                assert {*param.opts, *param.secondary_opts} <= words, name
    variables = re.findall(r"^\[(\w+)\]", (ROOT / "spec" / "options.toml").read_text(), re.MULTILINE)
    words = set(re.findall(r"\w+", text_of(site / "reference" / "options.html")))
    assert variables
    assert [name for name in variables if name not in words] == []


def test_the_search_works_without_a_server(site: Path) -> None:
    """A browser may not read other files of a folder; so the index is a script that a page loads."""
    script = (site / "search" / "search_index.js").read_text(encoding="utf-8")
    entries = json.loads(script[script.index("{") : script.rindex("}") + 1])["docs"]
    found = {entry["location"] for entry in entries if "COMMLENS_FLUSH_EVERY" in entry["text"]}
    assert any(location.startswith("reference/options.html") for location in found)
    assert any(location.startswith("guide/") for location in found)
    start = (site / "index.html").read_text(encoding="utf-8")
    assert "iframe-worker" in start


def test_the_guide_is_in_the_order_of_its_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    site_pages = importlib.import_module("site_pages")
    pages = site_pages.pages_of(ROOT / "docs", "guide")
    assert pages[:3] == ["guide/README.md", "guide/tutorial.md", "guide/install.md"]
    assert {Path(page).name for page in pages} == {
        path.name for path in (ROOT / "docs" / "guide").glob("*.md")
    }
