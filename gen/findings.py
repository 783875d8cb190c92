# SPDX-License-Identifier: Apache-2.0
"""Write the rules that find what is worth a look in a profile, from spec/findings.toml.

Out: generated/findings.h                  the rules for the library
     python/commlens/findings/_rules.py    the rules for the reader
     docs/reference/findings.md            the page for the user
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import sys
import textwrap
from typing import Any

import output
import schema

MADE = "DO NOT EDIT: written by gen/findings.py from spec/findings.toml."
TEXTS = ("title", "show", "text", "try", "reason", "misses")
FORMATS = ("time", "share", "count", "")
FIELD = re.compile(r"{(\w+)(?::(\w+))?}")
SIZE = re.compile(r"\bSIZE\(([\w.]+)\)")


def check(spec: dict[str, Any], views: dict[str, Any]) -> None:
    """Refuse a rule that lacks something, or that formats or evidence do not fit."""
    for name, rule in spec["finding"].items():
        for key in TEXTS:
            if not rule.get(key):
                raise SystemExit(f"spec/findings.toml: {name}: {key} is missing")
        for key in ("try", "reason", "misses"):
            if not rule[key].endswith("."):
                raise SystemExit(f"spec/findings.toml: {name}: {key} is no sentence")
        for view in rule["views"]:
            if view not in views:
                raise SystemExit(f"spec/findings.toml: {name}: there is no view {view}")
        formats = [form for _, form in FIELD.findall(rule["text"])] + [entry[2] for entry in rule["evidence"]]
        for form in formats:
            if form not in FORMATS:
                raise SystemExit(f"spec/findings.toml: {name}: there is no format {form}")
        query(spec, name)
    prepare(spec)


def prepare(spec: dict[str, Any]) -> None:
    """Refuse a rule whose query the library could not run."""
    of_schema = output.read_toml("spec/schema.toml")
    tables = "\n".join(schema.table_statements(of_schema))
    for name, rule in spec["finding"].items():
        views = [schema.create_view(view, of_schema["view"][view]) for view in rule["views"]]
        with contextlib.closing(sqlite3.connect(":memory:")) as profile:
            profile.executescript("\n".join([tables, *views]))
            try:
                profile.execute(f"EXPLAIN {query(spec, name)}")
            except sqlite3.Error as error:
                raise SystemExit(f"spec/findings.toml: {name}: {error}") from None


def size_sql(match: re.Match[str]) -> str:
    """Return SQL for the sizes of a bin, as the reader prints them: bin k has 2^(k-1) to 2^k - 1 bytes."""
    bin = match[1]
    return (
        f"CASE WHEN {bin} = 0 THEN '0 B' WHEN {bin} = 1 THEN '1 B'\n"
        f"            WHEN {bin} <= 10 THEN (1 << ({bin} - 1)) || '-' || ((1 << {bin}) - 1) || ' B'\n"
        f"            WHEN {bin} < 20 THEN (1 << ({bin} - 11)) || '-' || (1 << ({bin} - 10)) || ' KiB'\n"
        f"            WHEN {bin} = 20 THEN '512 KiB-1 MiB'\n"
        f"            WHEN {bin} < 30 THEN (1 << ({bin} - 21)) || '-' || (1 << ({bin} - 20)) || ' MiB'\n"
        f"            WHEN {bin} = 30 THEN '512 MiB-1 GiB'\n"
        f"            ELSE (1 << ({bin} - 31)) || '-' || (1 << ({bin} - 30)) || ' GiB' END"
    )


def query(spec: dict[str, Any], name: str) -> str:
    """Return the query of a rule, with the thresholds in place of their names."""
    rule = spec["finding"][name]
    numbers = {**spec["common"]["threshold"], **rule["threshold"]}
    used = set()

    def value(match: re.Match[str]) -> str:
        used.add(match[1])
        if match[1] not in numbers:
            raise SystemExit(f"spec/findings.toml: {name}: there is no threshold {match[1]}")
        return str(numbers[match[1]])

    sql = SIZE.sub(size_sql, spec["common"]["sql"].strip("\n") + "\n" + rule["sql"].strip("\n"))
    sql = re.sub(r"(?<![\w:]):(\w+)", value, sql)
    if unused := sorted(rule["threshold"].keys() - used):
        raise SystemExit(f"spec/findings.toml: {name}: no use of threshold {unused[0]}")
    return sql


def stored_views(spec: dict[str, Any]) -> list[str]:
    """Return the views that the library evaluates once for all rules: all but view cell, which is read by its key."""
    return sorted({view for rule in spec["finding"].values() for view in rule["views"]} - {"cell"})


def header_text(spec: dict[str, Any]) -> str:
    """Return generated/findings.h."""
    rules = "\n".join(
        f'    {{R"~({rule["text"]})~",\n     R"~({query(spec, name)})~"}},'
        for name, rule in spec["finding"].items()
    )
    views = ", ".join(f'"{view}"' for view in stored_views(spec))
    return f"""// SPDX-License-Identifier: Apache-2.0
// {MADE}
#pragma once

namespace commlens {{

struct FindingRule {{
  const char* text;   // with the columns of the query in braces
  const char* query;  // one row per finding, with column share
}};

// clang-format off
inline constexpr FindingRule finding_rules[] = {{
{rules}
}};
// clang-format on

// Views that several rules use, and that take long to prepare.
inline constexpr const char* finding_views[] = {{{views}}};

inline constexpr long long shortest_run_with_findings_ns = {spec["common"]["threshold"]["shortest_run_ns"]};

}}  // namespace commlens
"""


def python_text(spec: dict[str, Any]) -> str:
    """Return python/commlens/findings/_rules.py."""
    common = os.path.commonprefix([query(spec, name) for name in spec["finding"]]).rpartition("\n")[0]

    def rule_text(name: str, rule: dict[str, Any]) -> str:
        evidence = "".join(
            f"            ({column!r}, {label!r}, {form!r}),\n" for column, label, form in rule["evidence"]
        )
        thresholds = {**spec["common"]["threshold"], **rule["threshold"]}
        return (
            "    Rule(\n"
            f"        name={name!r},\n"
            + "".join(f"        {'advice' if key == 'try' else key}={rule[key]!r},\n" for key in TEXTS)
            + f"        thresholds={thresholds!r},\n"
            f"        evidence=(\n{evidence}        ),\n"
            f'        sql=COMMON + """{query(spec, name).removeprefix(common)}""",\n'
            "    ),\n"
        )

    rules = "".join(rule_text(name, rule) for name, rule in spec["finding"].items())
    return f'''# SPDX-License-Identifier: Apache-2.0
# {MADE}
"""The rules that find what is worth a look."""

from __future__ import annotations

from typing import NamedTuple


class Rule(NamedTuple):
    """One rule; spec/findings.toml says what each field is."""

    name: str
    title: str
    show: str
    text: str
    advice: str
    reason: str
    misses: str
    thresholds: dict[str, float]
    evidence: tuple[tuple[str, str, str], ...]
    sql: str


COMMON = """\\
{common}"""
"""Begins each query."""

RULES = (
{rules})
'''


def markdown_text(spec: dict[str, Any]) -> str:
    """Return docs/reference/findings.md."""
    common = spec["common"]
    lines = [
        f"<!-- {MADE} -->",
        "# Findings",
        "",
        "`commlens report` begins with what commlens finds by itself, and `commlens explain` shows it with its evidence.",
        "Each rule below is one SQL query on the profile; `commlens explain --sql` prints them. Findings are ordered by the",
        "part of the run that their cause costs at most, averaged over the ranks.",
        "",
        "A finding is a claim about this run. No finding means that none of these rules applies, not that nothing can be",
        "improved.",
        "",
        f"No rule applies to runs with one rank, to profiles of summary detail, or to runs shorter than"
        f" {common['threshold']['shortest_run_ns'] / 1e9:g} s.",
        common["reason"],
        "",
    ]
    for name, rule in spec["finding"].items():
        numbers = ", ".join(f"`{key}` {value:,}" for key, value in rule["threshold"].items())
        lines += [
            f"## {name}",
            "",
            f"{rule['title']}.",
            "",
            f"- **Thresholds**: {numbers}. {rule['reason']}",
            f"- **What to try**: {rule['try']}",
            f"- **What it misses**: {rule['misses']}",
            "",
            "| evidence | format |",
            "|---|---|",
            *(f"| {label} | {form} |" for _, label, form in rule["evidence"]),
            "",
            "```sql",
            textwrap.dedent(query(spec, name)),
            "```",
            "",
        ]
    return "\n".join(lines).rstrip() + "\n"


def texts() -> dict[str, str]:
    """Return the generated files: path from the root of the repository -> content."""
    spec, views = output.read_toml("spec/findings.toml"), output.read_toml("spec/schema.toml")["view"]
    check(spec, views)
    return {
        "generated/findings.h": header_text(spec),
        "python/commlens/findings/_rules.py": python_text(spec),
        "docs/reference/findings.md": markdown_text(spec),
    }


if __name__ == "__main__":
    sys.exit(output.main(texts()))
