# SPDX-License-Identifier: Apache-2.0
"""Write the profile's tables and views from spec/schema.toml.

Out: generated/schema_sql.h               the statements that create an empty profile, for the library
     generated/schema_rows.h              a struct per table, which the library fills and inserts
     python/commlens/profile/_schema.py   the same statements and the columns' descriptions, for the reader
     docs/reference/tables.md             the same descriptions, for the user
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
FACTS = {"null", "range", "most", "values", "ref", "zero", "since", "absent", "former_name", "former_values"}
RANGES = {
    "": (0, 1 << 60),
    "world": (0, 1 << 31),
    "difference": (-(1 << 60), 1 << 60),
    "any": (-(1 << 63), (1 << 63) - 1),
}
LONGEST_TEXT = 4096  # bytes
OLDEST = 2  # the oldest version that the reader supports
IDENTIFIER = re.compile(r"[a-z][a-z0-9_]*\Z")


def require(holds: bool, complaint: str) -> None:
    """Refuse a specification that is not consistent."""
    if not holds:
        raise SystemExit(f"{SPEC}: {complaint}")


def read_spec() -> dict[str, Any]:
    """Return the checked specification: without gaps, duplicates and dangling references."""
    spec = output.read_toml(SPEC)
    tables, views = spec["table"], spec.get("view", {})
    require(not set(tables) & set(views), "a name is both table and view")
    for name, relation in [*tables.items(), *views.items(), *spec.get("former", {}).items()]:
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
            unknown = set(column) - FACTS - {"name", "type", "key", "unit", "doc"}
            require(not unknown, f"{what}: unknown fact {', '.join(sorted(unknown))}")
            span = column.get("range", "")
            require(isinstance(span, list) or span in RANGES, f"{what}: unknown range {span}")
            seen.add(column["name"])
    columns = {f"{name}.{c['name']}" for name, table in tables.items() for c in table["columns"]}
    for name, table in tables.items():
        key = [c["name"] for c in table["columns"] if c.get("key")]
        primary = table.get("primary_key", [])
        # A table needs no key if nothing refers to its rows and they are written in the order of the searches.  Without
        # a key they take less space.
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
        # In this order SQLite stores the columns, too.
        first = [c["name"] for c in table["columns"][: len(primary)]]
        require(first == primary, f"{name}: the columns of the primary key come first, in its order")
        for column in table["columns"]:
            ref = column.get("ref")
            require(ref is None or ref in columns, f"{name}.{column['name']}: no column {ref}")
    for name, view in views.items():
        require("sql" in view, f"{name}: a view needs its sql")
    return spec


def key_of(table: dict[str, Any]) -> list[str]:
    """Return the columns of a table's key, or none."""
    return table.get("primary_key") or [c["name"] for c in table["columns"] if c.get("key")]


def range_of(column: dict[str, Any]) -> tuple[int, int]:
    """Return the smallest and the largest allowed value of an integer column."""
    span = column.get("range", "")
    return tuple(span) if isinstance(span, list) else RANGES[span]


def described(column: dict[str, Any]) -> str:
    """Return a column's description after its unit, as in the schema of the file."""
    return f"[{column['unit']}] {column['doc']}" if column["unit"] else column["doc"]


def create_table(name: str, table: dict[str, Any]) -> str:
    """Return the CREATE TABLE statement; a large profile contains its comments, so `.schema` shows them."""
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
        *(create_table(name, table) for name, table in written(spec).items()),
    ]


def written(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the tables that the library writes, without those that a command of the reader adds."""
    return {name: table for name, table in spec["table"].items() if not table.get("added_by")}


def view_statements(spec: dict[str, Any]) -> list[str]:
    """Return the statements that add the views."""
    return [create_view(name, view) for name, view in spec.get("view", {}).items()]


def bare(statement: str) -> str:
    """Return a statement without comments, references, and the blanks and words that SQL does not need."""
    lines = [line.partition("--")[0].strip() for line in statement.splitlines()]
    parts = " ".join(line for line in lines if line).split("'")
    for i in range(0, len(parts), 2):  # between them are texts
        parts[i] = re.sub(r" REFERENCES \w+\(\w+\)", "", parts[i])
        parts[i] = re.sub(r" *(<=|>=|<>|\|\||[,()=<>+*/-]) *", r"\1", parts[i])
        parts[i] = re.sub(
            r"\bAS (?=[a-z_\"]+\b(?!\())", "", parts[i]
        )  # also before a word: "x AS y", ")AS y"
    return "'".join(parts)


def cpp_literal(statements: list[str]) -> str:
    """Return the statements as one string, with one literal per statement to stay below compiler limits."""
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

// Turns an empty database into an empty profile: identification and tables.
inline constexpr char tables_sql[] =
{cpp_literal(table_statements(spec))};

// The same without comments and references.
inline constexpr char bare_tables_sql[] =
{cpp_literal([bare(statement) for statement in table_statements(spec)])};

// Creates the views.
inline constexpr char views_sql[] =
{cpp_literal(view_statements(spec))};

// The same without comments.
inline constexpr char bare_views_sql[] =
{cpp_literal([bare(statement) for statement in view_statements(spec)])};

}}  // namespace commlens::out
"""


CPP_TYPES = {"INTEGER": "Integer", "TEXT": "Text", "REAL": "Real"}
CPP_KEYWORDS = {"class"}


def shape(name: str, number: int, table: dict[str, Any]) -> str:
    """Return the TableShape of a table."""
    numbered = [i for i, c in enumerate(table["columns"]) if c.get("key")]
    keys = len(table.get("primary_key", ()))
    return f'{{"{name}", {number}, {keys}, {numbered[0] if numbered else -1}}}'


def row_struct(name: str, number: int, table: dict[str, Any]) -> str:
    """Return the struct for the rows of a table; it names its columns in the same order as its statement."""
    columns = [
        (c["name"], c["name"] + "_" * (c["name"] in CPP_KEYWORDS), c["type"]) for c in table["columns"]
    ]
    members = "\n".join(f"  {CPP_TYPES[kind]} {member};" for _, member, kind in columns)
    visits = "\n".join(f'    visit("{name}.{column}", {member});' for column, member, _ in columns)
    return f"""struct {"".join(word.capitalize() for word in name.split("_"))} {{
  static constexpr TableShape shape{shape(name, number, table)};
{members}

  template <class Visit>
  void each(Visit visit) const {{
{visits}
  }}
}};"""


def rows_text(spec: dict[str, Any]) -> str:
    """Return generated/schema_rows.h."""
    tables = list(enumerate(written(spec).items()))
    structs = "\n\n".join(row_struct(name, number, table) for number, (name, table) in tables)
    shapes = "\n".join(f"  TableShape{shape(name, number, table)}," for number, (name, table) in tables)
    return f"""// SPDX-License-Identifier: Apache-2.0
// DO NOT EDIT: written by gen/schema.py from spec/schema.toml.
#pragma once

#include "core/out/records.h"

// A row of each table of a profile; spec/schema.toml describes the columns.
// clang-format off
namespace commlens::out::rows {{

{structs}

// All tables, in the order of their statements.
inline constexpr TableShape shapes[] = {{
{shapes}
}};

}}  // namespace commlens::out::rows
"""


def python_column(kind: str, column: dict[str, Any]) -> str:
    """Return a column as the reader's module writes it."""
    facts = [repr(column[fact]) for fact in ("name", "type", "unit", "doc")]
    if kind == "table":
        facts += [f"{name}={value!r}" for name, value in facts_of(column).items()]
    return f"            Column({', '.join(facts)}),"


def python_relation(kind: str, name: str, entry: dict[str, Any]) -> str:
    """Return a table or view as the reader's module writes it."""
    columns = "\n".join(python_column(kind, c) for c in entry["columns"])
    more = "".join(
        f"        {fact}={value!r},\n"
        for fact, value in (
            ("key", tuple(key_of(entry))),
            ("since", entry.get("since", OLDEST)),
            ("former_name", entry.get("former_name", "")),
            ("added_by", entry.get("added_by", "")),
        )
        if value and value != OLDEST
    )
    sql = create_table(name, entry) if kind == "table" else create_view(name, entry)
    require('"""' not in sql and "\\" not in sql, "a statement ends the Python string")
    return (
        f"    {name!r}: Relation(\n        {kind!r},\n        {entry['doc']!r},\n        (\n{columns}\n        ),\n"
        f'        """\\\n{sql}\n""",\n{more}    ),'
    )


PYTHON_TYPES = f'''\
class Column(NamedTuple):
    """One column of a table or view; for tables also its constraints, which the head of spec/schema.toml describes."""

    name: str
    type: str
    unit: str
    doc: str
    low: int = {RANGES[""][0]}
    high: int = {RANGES[""][1]}
    is_of_world: bool = False
    most: int = {LONGEST_TEXT}
    values: tuple[str, ...] = ()
    ref: str = ""
    zero: bool = False
    null: bool = False
    since: int = {OLDEST}
    absent: str = "NULL"
    former_name: str = ""
    former_values: tuple[tuple[str, str], ...] = ()


class Relation(NamedTuple):
    """One table or view, and the statement that creates it."""

    kind: str
    doc: str
    columns: tuple[Column, ...]
    sql: str
    key: tuple[str, ...] = ()
    since: int = {OLDEST}
    former_name: str = ""
    added_by: str = ""
'''
"""The types of the reader's module."""


def python_text(spec: dict[str, Any]) -> str:
    """Return python/commlens/profile/_schema.py."""
    relations = [python_relation("table", n, t) for n, t in spec["table"].items()]
    relations += [python_relation("view", n, v) for n, v in spec.get("view", {}).items()]
    former = [python_relation("table", n, t) for n, t in spec.get("former", {}).items()]
    until = {n: t["until"] for n, t in spec.get("former", {}).items()}
    meta_keys = spec["table"]["meta"]["keys"]
    keys = "\n".join(f"    {k['name']!r}: {k['doc']!r}," for k in meta_keys)
    numbers = tuple(k["name"] for k in meta_keys if k.get("number"))
    return f'''# SPDX-License-Identifier: Apache-2.0
# DO NOT EDIT: written by gen/schema.py from spec/schema.toml.
"""Tables and views of a profile, in the schema version of this reader."""

from __future__ import annotations

from typing import NamedTuple

VERSION = {spec["version"]}
APPLICATION_ID = {spec["application_id"]}


{PYTHON_TYPES}

RELATIONS: dict[str, Relation] = {{
{chr(10).join(relations)}
}}

FORMER: dict[str, Relation] = {{
{chr(10).join(former)}
}}

FORMER_UNTIL = {until!r}

META_KEYS: dict[str, str] = {{
{keys}
}}

META_NUMBERS = {numbers!r}

SQL = "".join(
    [
        f"PRAGMA application_id = {{APPLICATION_ID}};\\nPRAGMA user_version = {{VERSION}};\\n",
        *(relation.sql for relation in RELATIONS.values() if not relation.added_by),
    ]
)

ADDED_SQL = "".join(relation.sql for relation in RELATIONS.values() if relation.added_by)
'''


def facts_of(column: dict[str, Any]) -> dict[str, Any]:
    """Return the constraints of a column that differ from the defaults."""
    low, high = range_of(column)
    found = {
        "low": low if low != RANGES[""][0] else None,
        "high": high if high != RANGES[""][1] else None,
        "is_of_world": column.get("range") == "world" or None,
        **{
            fact: column.get(fact)
            for fact in ("most", "ref", "zero", "null", "since", "absent", "former_name")
        },
        "former_values": tuple(column["former_values"].items()) if "former_values" in column else None,
        "values": tuple(column["values"]) if "values" in column else None,
    }
    return {name: value for name, value in found.items() if value is not None}


def allowed(column: dict[str, Any]) -> str:
    """Return the values of a column, for the reference."""
    if column["type"] == "INTEGER" and isinstance(column.get("range"), list):
        text = "{:,} to {:,}".format(*column["range"])
    elif column.get("range") == "difference":
        text = "may be negative"
    elif column.get("range") == "any":
        text = "any"
    elif "most" in column:
        text = f"at most {column['most']:,} bytes"
    else:
        text = "or 0" if column.get("zero") else ""
    return ", ".join(part for part in (text, "or NULL" if column.get("null") else "") if part)


def markdown(text: str) -> str:
    r"""Return a text whose asterisks are no emphasis; in code they are none anyway.

    >>> markdown("3 * 4, s*.1, `x * y`")
    '3 \\* 4, s\\*.1, `x * y`'
    """
    parts = text.split("`")
    return "`".join(part if i % 2 else part.replace("*", r"\*") for i, part in enumerate(parts))


def markdown_text(spec: dict[str, Any]) -> str:
    """Return docs/reference/tables.md."""

    def section(name: str, entry: dict[str, Any], *, is_table: bool) -> list[str]:
        lines = [
            f"### {name}",
            "",
            markdown(entry["doc"]),
            "",
            *(
                ["| column | type | unit | meaning | values |", "|---|---|---|---|---|"]
                if is_table
                else ["| column | type | unit | meaning |", "|---|---|---|---|"]
            ),
        ]
        for c in entry["columns"]:
            key = c.get("key") or c["name"] in entry.get("primary_key", [])
            meaning = markdown(c["doc"]).replace("|", "\\|") + (" Key." if key else "")
            if "ref" in c:
                meaning += f" → `{c['ref']}`"
            values = f" {allowed(c)} |" if is_table else ""
            lines.append(f"| `{c['name']}` | {c['type']} | {c['unit']} | {meaning} |{values}")
        return [*lines, ""]

    lines = [
        "<!-- DO NOT EDIT: written by gen/schema.py from spec/schema.toml. -->",
        "# Tables of a profile",
        "",
        "A profile is one SQLite file. `PRAGMA application_id` is "
        f"{spec['application_id']}, `PRAGMA user_version` is the schema version, {spec['version']}.",
        "All times are integers in nanoseconds, all volumes integers in bytes. `commlens schema` shows the descriptions",
        "below; those of a profile of more than 1 MiB, and of the index of shards, are also in the file: `sqlite3 PROFILE .schema`.",
        "",
        "Unless column *values* states otherwise, values are never NULL, numbers are never negative, and texts have at most",
        "4,096 bytes. The row to which → points exists, except for ranks, of which some may be missing. The reader checks this",
        "when it opens a profile. It leaves invalid rows out; an invalid value that may be NULL or 0 becomes NULL or 0.",
        "`commlens` then prints the number of these rows and ends with exit code 3.",
        "",
        "## Tables",
        "",
    ]
    for name, table in spec["table"].items():
        lines += section(name, table, is_table=True)
    lines += ["## Keys of meta", "", "| key | value |", "|---|---|"]
    lines += [f"| `{k['name']}` | {markdown(k['doc'])} |" for k in spec["table"]["meta"]["keys"]]
    lines += [
        "",
        "## Views",
        "",
        "The profile contains these views: any SQLite client sees the numbers that a report prints.",
        "",
    ]
    for name, view in spec.get("view", {}).items():
        lines += section(name, view, is_table=False)
        lines += ["```sql", textwrap.dedent(view["sql"]).strip(), "```", ""]
    return "\n".join(lines).rstrip() + "\n"


def texts() -> dict[str, str]:
    """Return the generated files: path from the root of the repository -> content."""
    spec = read_spec()
    return {
        "generated/schema_sql.h": header_text(spec),
        "generated/schema_rows.h": rows_text(spec),
        "python/commlens/profile/_schema.py": python_text(spec),
        "docs/reference/tables.md": markdown_text(spec),
    }


if __name__ == "__main__":
    sys.exit(output.main(texts()))
