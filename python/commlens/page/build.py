# SPDX-License-Identifier: Apache-2.0
"""Puts the page together: the built script and style, and the data of one profile."""

from __future__ import annotations

import base64
import hashlib
import sqlite3
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from commlens.base.escape import Target, escape
from commlens.page.facts import read_facts
from commlens.page.pack import compressed, head
from commlens.page.paths import read_paths
from commlens.page.tables import read_tables
from commlens.page.waiting import read_waiting
from commlens.profile._schema import VERSION
from commlens.profile.shape import version_of

BUDGET = 15 * 10**6
"""Bytes of the counters in the page, unless --budget says otherwise."""

MOST_IN_PAGE = 16 * 2**20
"""Size in bytes of the largest profile that is in the page as a whole, for view SQL; compressed it is a fifth of that."""

PAGE = """\
<!doctype html>
<html lang="en" data-start="{start}">
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


def profile_blocks(connection: sqlite3.Connection, profile: Path) -> tuple[dict[str, str], str]:
    """Return the profile and SQLite as blocks of the page, or none and the reason."""
    instead = f"Query it with: commlens sql {escape(profile.name, Target.LINE)} 'SELECT ...'"
    if not profile.is_file():
        return {}, f"This profile is a directory of several files. {instead}"
    if version_of(connection) != VERSION:
        return {}, f"An older commlens wrote this profile, with other tables and views. {instead}"
    if profile.stat().st_size > MOST_IN_PAGE:
        return {}, f"This profile has more than {MOST_IN_PAGE >> 20} MiB, too much for a page. {instead}"
    return {
        "sqlite": compressed(asset("_sqlite.js").encode()),
        "profile": compressed(profile.read_bytes()),
    }, ""


def policy_for(script: str, *, is_served: bool) -> str:
    """Return the Content-Security-Policy of a page with a script."""
    scripts = " ".join(hash_source(text) for text in (script, asset("_sqlite.js")))
    connect = "'self'" if is_served else "'none'"
    return (
        f"default-src 'none'; script-src {scripts} 'wasm-unsafe-eval'; style-src 'unsafe-inline'; "
        f"img-src data: blob:; connect-src {connect}; base-uri 'none'; form-action 'none'"
    )


def page(
    connection: sqlite3.Connection,
    profile: Path,
    budget: int = BUDGET,
    *,
    is_served: bool = False,
    start: str = "",
    comparison: dict[str, Any] | None = None,
    wrappers: Sequence[str] = (),
) -> str:
    """Return the page of a profile.

    The policy of the page: the browser runs the script of commlens and SQLite, nothing else, and reaches no network.

    Parameters
    ----------
    connection, profile : sqlite3.Connection, Path
        The open profile, and its file or directory.
    budget : int
        Bytes that the counters may take in the page.
    is_served : bool
        Whether the server of commlens.page.serve sends the page and answers its queries.
    start : str
        View and filter for an address without a fragment, in the form of a fragment: view=sizes&family=2.
    comparison : dict or None
        A comparison with other runs (commlens.page.comparison), which the page shows first.
    wrappers : sequence of str
        Patterns of functions that only pass calls on to MPI, as option --wrapper has them.
    """
    tables, waiting = read_tables(connection, budget), read_waiting(connection, budget)
    paths = read_paths(connection, tables, budget, wrappers)
    own, no_sql = ({}, "") if is_served else profile_blocks(connection, profile)
    facts: dict[str, Any] = {
        **read_facts(connection, tables, paths, budget),
        "waiting": waiting.facts,
        "no_sql": no_sql,
        "is_served": is_served,
        "comparison": comparison,
    }
    facts["folded"] += waiting.losses
    script, style = asset("_page.js"), asset("_page.css")
    packed = {
        **{name: table.packed for name, table in tables.items()},
        "waits": waiting.ranks,
        "paths": paths.nodes,
        "leaves": paths.leaves,
    }
    blocks = {
        "head": head(facts, packed),
        **{name: table.block for name, table in packed.items()},
        **own,
    }
    return PAGE.format(
        start=escape(start, Target.HTML),
        policy=policy_for(script, is_served=is_served),
        title=escape(f"{facts['program']} - commlens", Target.HTML),
        style=style,
        script=script,
        blocks="\n".join(BLOCK.format(name=name, block=block) for name, block in blocks.items()),
    )
