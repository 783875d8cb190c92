# SPDX-License-Identifier: Apache-2.0
"""Write the profile's tables and views from spec/schema.toml.

Out: generated/schema_sql.h       the statements that make an empty profile, for the library
     python/commlens/_schema.py   the same statements and the columns' descriptions, for the reader
     docs/reference/tables.md     the same descriptions, for the user
"""

from __future__ import annotations

import re
import sys
import textwrap
from typing import Any

import output

SPEC = "spec/schema.toml"

TYPES = {"INTEGER", "TEXT", "REAL"}
UNITS = {"", "ns", "bytes", "processes"}
IDENTIFIER = re.compile(r"[a-z][a-z0-9_]*\Z")


def require(holds: bool, complaint: str) -> None:
    """Refuse a specification that is not consistent."""
    if not holds:
        raise SystemExit(f"{SPEC}: {complaint}")


def read_spec() -> dict[str, Any]:
    """Return the specification, checked: no gap, no duplicate, no reference into nothing."""
    spec = output.read_toml(SPEC)
    tables, views = spec["table"], spec.get("view", {})
    require(not set(tables) & set(views), "a name is both table and view")
    for name, relation in {**tables, **views}.items():
        require(bool(IDENTIFIER.match(name)), f"'{name}' is no identifier")
        require(relation.get("doc", "").endswith("."), f"{name}: doc is missing or no sentence")
        seen: set[str] = set()
        for column in relation["columns"]:
            what = f"{name}.{column.get('name')}"
            require(bool(IDENTIFIER.match(column["name"])), f"{what}: no identifier")
            require(column["name"] not in seen, f"{what}: declared twice")
            require(column["type"] in TYPES, f"{what}: unknown type {column['type']}")
            require(column["unit"] in UNITS, f"{what}: unknown unit {column['unit']}")
            require(column["doc"].endswith("."), f"{what}: doc is no sentence")
            seen.add(column["name"])
    columns = {f"{name}.{c['name']}" for name, table in tables.items() for c in table["columns"]}
    for name, table in tables.items():
        key = [c["name"] for c in table["columns"] if c.get("key")]
        primary = table.get("primary_key", [])
        # Rows that nothing refers to, and that are written in the order in which they are looked for, need no key: they
        # take less room without.
        if table.get("keyless"):
            require(not key and not primary, f"{name}: keyless, but has a key")
            continue
        require(bool(key) != bool(primary), f"{name}: needs either one key column or primary_key")
        require(len(key) <= 1, f"{name}: more than one key column")
        require(
            bool(table.get("without_rowid")) == bool(primary), f"{name}: primary_key goes with without_rowid"
        )
        for column in primary:
            require(f"{name}.{column}" in columns, f"{name}: primary key {column} is no column")
        for column in table["columns"]:
            ref = column.get("ref")
            require(ref is None or ref in columns, f"{name}.{column['name']}: no column {ref}")
    for name, view in views.items():
        require("sql" in view, f"{name}: a view needs its sql")
    return spec


def described(column: dict[str, Any]) -> str:
    """Return a column's sentence with its unit in front, as it stands in the file's own schema."""
    return f"[{column['unit']}] {column['doc']}" if column["unit"] else column["doc"]


def create_table(name: str, table: dict[str, Any]) -> str:
    """Return the CREATE TABLE statement; its comments stay in the profile, so `.schema` explains it."""
    lines: list[tuple[str, str]] = []
    for column in table["columns"]:
        text = f"{column['name']} {column['type']}"
        if column.get("key"):
            text += " PRIMARY KEY"
        if "ref" in column:
            target, target_column = column["ref"].split(".")
            text += f" REFERENCES {target}({target_column})"
        lines.append((text, described(column)))
    if "primary_key" in table:
        lines.append((f"PRIMARY KEY ({', '.join(table['primary_key'])})", ""))
    body = []
    for i, (text, comment) in enumerate(lines):
        comma = "," if i + 1 < len(lines) else ""
        body.append(f"  {text}{comma}" + (f" -- {comment}" if comment else ""))
    end = ") WITHOUT ROWID;" if table.get("without_rowid") else ");"
    return "\n".join([f"CREATE TABLE {name} ( -- {table['doc']}", *body, end])


def create_view(name: str, view: dict[str, Any]) -> str:
    """Return the CREATE VIEW statement."""
    return f"CREATE VIEW {name} AS -- {view['doc']}\n{textwrap.dedent(view['sql']).strip()};"


def table_statements(spec: dict[str, Any]) -> list[str]:
    """Return the statements that turn an empty database into a profile without views."""
    return [
        f"PRAGMA application_id = {spec['application_id']};",
        f"PRAGMA user_version = {spec['version']};",
        *(create_table(name, table) for name, table in spec["table"].items()),
    ]


def view_statements(spec: dict[str, Any]) -> list[str]:
    """Return the statements that add the views."""
    return [create_view(name, view) for name, view in spec.get("view", {}).items()]


def bare(statement: str) -> str:
    """Return a statement of table_statements() without comments."""
    return "".join(line.partition("--")[0].strip() for line in statement.splitlines())


def cpp_literal(statements: list[str]) -> str:
    """Return the statements as one string, a literal for each: they concatenate, and none comes near a limit."""
    chunks = []
    for statement in statements:
        require(')sql"' not in statement, "a statement ends the C++ raw string")
        require(len(statement) < 16000, "a statement is longer than a C++ string literal may be")
        chunks.append(f'    R"sql({statement}\n)sql"')
    return "\n".join(chunks)


def header_text(spec: dict[str, Any]) -> str:
    """Return generated/schema_sql.h."""
    return f"""// SPDX-License-Identifier: Apache-2.0
// DO NOT EDIT: written by gen/schema.py from spec/schema.toml.
#pragma once

namespace commlens::out {{

inline constexpr int schema_version = {spec["version"]};
inline constexpr int application_id = {spec["application_id"]};

// Turns an empty database into an empty profile: identification and tables,
inline constexpr char tables_sql[] =
{cpp_literal(table_statements(spec))};

// the same without a word on what they mean, for one file of many,
inline constexpr char bare_tables_sql[] =
{cpp_literal([bare(statement) for statement in table_statements(spec)])};

// and views.
inline constexpr char views_sql[] =
{cpp_literal(view_statements(spec))};

}}  // namespace commlens::out
"""


def python_text(spec: dict[str, Any]) -> str:
    """Return python/commlens/_schema.py."""

    def relation(kind: str, name: str, entry: dict[str, Any]) -> str:
        columns = "\n".join(
            f"            Column({c['name']!r}, {c['type']!r}, {c['unit']!r}, {c['doc']!r}),"
            for c in entry["columns"]
        )
        return (
            f"    {name!r}: Relation(\n"
            f"        {kind!r},\n        {entry['doc']!r},\n        (\n{columns}\n        ),\n    ),"
        )

    relations = [relation("table", n, t) for n, t in spec["table"].items()]
    relations += [relation("view", n, v) for n, v in spec.get("view", {}).items()]
    keys = "\n".join(f"    {k['name']!r}: {k['doc']!r}," for k in spec["table"]["meta"]["keys"])
    sql = "\n".join([*table_statements(spec), *view_statements(spec)])
    require('"""' not in sql and "\\" not in sql, "a statement ends the Python string")
    return f'''# SPDX-License-Identifier: Apache-2.0
# DO NOT EDIT: written by gen/schema.py from spec/schema.toml.
"""Tables and views of a profile, as this reader knows them."""

from __future__ import annotations

from typing import NamedTuple

VERSION = {spec["version"]}
APPLICATION_ID = {spec["application_id"]}


class Column(NamedTuple):
    """One column of a table or view."""

    name: str
    type: str
    unit: str
    doc: str


class Relation(NamedTuple):
    """One table or view."""

    kind: str
    doc: str
    columns: tuple[Column, ...]


RELATIONS: dict[str, Relation] = {{
{chr(10).join(relations)}
}}

META_KEYS: dict[str, str] = {{
{keys}
}}

SQL = """\\
{sql}
"""
'''


def markdown_text(spec: dict[str, Any]) -> str:
    """Return docs/reference/tables.md."""

    def section(name: str, entry: dict[str, Any]) -> list[str]:
        lines = [
            f"### {name}",
            "",
            entry["doc"],
            "",
            "| column | type | unit | meaning |",
            "|---|---|---|---|",
        ]
        for c in entry["columns"]:
            key = c.get("key") or c["name"] in entry.get("primary_key", [])
            meaning = c["doc"].replace("|", "\\|") + (" Key." if key else "")
            if "ref" in c:
                meaning += f" → `{c['ref']}`"
            lines.append(f"| `{c['name']}` | {c['type']} | {c['unit']} | {meaning} |")
        return [*lines, ""]

    lines = [
        "<!-- DO NOT EDIT: written by gen/schema.py from spec/schema.toml. -->",
        "# Tables of a profile",
        "",
        "A profile is one SQLite file. `PRAGMA application_id` is "
        f"{spec['application_id']}, `PRAGMA user_version` is the schema version, {spec['version']}.",
        "All times are integers in nanoseconds, all volumes integers in bytes. The descriptions below are also in the",
        "file: `sqlite3 PROFILE .schema` shows them, and so does `commlens schema`.",
        "",
        "## Tables",
        "",
    ]
    for name, table in spec["table"].items():
        lines += section(name, table)
    lines += ["## Keys of meta", "", "| key | value |", "|---|---|"]
    lines += [f"| `{k['name']}` | {k['doc']} |" for k in spec["table"]["meta"]["keys"]]
    lines += [
        "",
        "## Views",
        "",
        "Views live in the profile: any SQLite client sees the numbers a report prints.",
        "",
    ]
    for name, view in spec.get("view", {}).items():
        lines += section(name, view)
        lines += ["```sql", textwrap.dedent(view["sql"]).strip(), "```", ""]
    return "\n".join(lines).rstrip() + "\n"


def texts() -> dict[str, str]:
    """Return the generated files: path from the root of the repository -> content."""
    spec = read_spec()
    return {
        "generated/schema_sql.h": header_text(spec),
        "python/commlens/_schema.py": python_text(spec),
        "docs/reference/tables.md": markdown_text(spec),
    }


if __name__ == "__main__":
    sys.exit(output.main(texts()))
