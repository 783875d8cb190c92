# SPDX-License-Identifier: Apache-2.0
"""Write the algorithms that MPI libraries offer from spec/algorithms.toml.

Out: python/commlens/algorithms/_offered.py
"""

from __future__ import annotations

import re
import sys
from typing import Any

import output

MADE = "DO NOT EDIT: written by gen/algorithms.py from spec/algorithms.toml."
FACTS = ("title", "version", "variable", "source", "complete")


def library_text(key: str, facts: dict[str, Any]) -> str:
    """Return one library as an item of a dictionary."""
    missing = [fact for fact in FACTS if fact not in facts]
    if missing:
        raise SystemExit(f"spec/algorithms.toml: {key}: {', '.join(missing)} is missing")
    if re.compile(facts["version"]).groups != 2:
        raise SystemExit(f"spec/algorithms.toml: {key}: version needs two groups")
    segmented = {collective: tuple(names) for collective, names in facts.get("segmented", {}).items()}
    lines = [
        f"    {key!r}: Library(",
        *(f"        {facts[fact]!r}," for fact in FACTS),
        f"        {segmented!r},",
    ]
    lines += ["        {"]
    for version, lists in facts["since"].items():
        major, minor = map(int, version.split("."))
        rows = [f"                {collective!r}: {tuple(names)!r}," for collective, names in lists.items()]
        lines += [f"            ({major}, {minor}): {{", *rows, "            },"]
    rules = {collective: tuple(fact) for collective, fact in facts.get("rules", {}).items()}
    tables = [table_text(collective, table) for collective, table in facts.get("table", {}).items()]
    return "\n".join(
        [*lines, "        },", f"        {rules!r},", "        {", *tables, "        },", "    ),"]
    )


def table_text(collective: str, table: dict[str, Any]) -> str:
    """Return what a selection table says about one collective as an item of a dictionary."""
    names = ("needs", "parameters")
    needs, parameters = ({name: tuple(keys) for name, keys in table.get(part, {}).items()} for part in names)
    since = {name: tuple(map(int, version.split("."))) for name, version in table.get("since", {}).items()}
    facts = (
        table["bytes"],
        table.get("bytes_need", ""),
        table.get("composition", ""),
        needs,
        parameters,
        since,
    )
    return f"            {collective!r}: Table({', '.join(map(repr, facts))}),"


def python_text(spec: dict[str, Any]) -> str:
    """Return python/commlens/algorithms/_offered.py."""
    libraries = "\n".join(library_text(key, facts) for key, facts in spec["library"].items())
    return f'''# SPDX-License-Identifier: Apache-2.0
# {MADE}
"""The algorithms that MPI libraries offer, by library, version and collective."""

from __future__ import annotations

from typing import NamedTuple


class Table(NamedTuple):
    """What a selection table of a library says about one collective."""

    bytes: str
    bytes_need: str
    composition: str
    needs: dict[str, tuple[str, ...]]
    parameters: dict[str, tuple[str, ...]]
    since: dict[str, tuple[int, int]]


class Library(NamedTuple):
    """One MPI library; the head of spec/algorithms.toml describes its facts."""

    title: str
    version: str
    variable: str
    source: str
    is_complete: bool
    segmented: dict[str, tuple[str, ...]]
    since: dict[tuple[int, int], dict[str, tuple[str, ...]]]
    rules: dict[str, tuple[int, str]]
    tables: dict[str, Table]


LIBRARIES: dict[str, Library] = {{
{libraries}
}}
'''


def texts() -> dict[str, str]:
    """Return the generated files: path from the root of the repository -> content."""
    return {"python/commlens/algorithms/_offered.py": python_text(output.read_toml("spec/algorithms.toml"))}


if __name__ == "__main__":
    sys.exit(output.main(texts()))
