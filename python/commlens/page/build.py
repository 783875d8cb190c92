# SPDX-License-Identifier: Apache-2.0
"""Puts the page together: the built script and style, and the data of one profile."""

from __future__ import annotations

import base64
import hashlib
import sqlite3
from importlib import resources
from typing import Any

from commlens.base.escape import Target, escape
from commlens.page.facts import read_facts
from commlens.page.pack import head
from commlens.page.tables import read_tables

BUDGET = 15 * 10**6
"""Bytes of the counters in the page, unless --budget says otherwise."""

PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>{style}</style>
<body>
<noscript>This page draws with JavaScript, which is switched off here. It contains the script: no network is needed.</noscript>
<main id="page" aria-busy="true">Reading the profile …</main>
{blocks}
<script>{script}</script>
</body>
</html>
"""

BLOCK = '<script type="text/plain" id="data-{name}">{block}</script>'


def hash_source(text: str) -> str:
    """Return the source of a Content-Security-Policy that allows exactly one text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def asset(name: str) -> str:
    """Return a file that the build of the page wrote into this package."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def page(connection: sqlite3.Connection, budget: int = BUDGET) -> str:
    """Return the page of a profile.

    The browser runs the script of commlens and nothing else, and reaches no network: the policy of the page says so.
    """
    tables = read_tables(connection, budget)
    facts: dict[str, Any] = read_facts(connection, tables, budget)
    script, style = asset("_page.js"), asset("_page.css")
    policy = (
        f"default-src 'none'; script-src {hash_source(script)}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    packed = {name: table.packed for name, table in tables.items()}
    blocks = {"head": head(facts, packed), **{name: table.block for name, table in packed.items()}}
    return PAGE.format(
        policy=policy,
        title=escape(f"{facts['program']} - commlens", Target.HTML),
        style=style,
        script=script,
        blocks="\n".join(BLOCK.format(name=name, block=block) for name, block in blocks.items()),
    )
