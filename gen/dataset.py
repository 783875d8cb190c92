# SPDX-License-Identifier: Apache-2.0
"""Write the tables of a dataset from spec/dataset.toml, and the table of codes from spec/codes.toml.

Out: python/commlens/fleet/_dataset.py   tables, columns and codes, for the reader
     docs/reference/dataset.md           the same descriptions, for the user
"""

from __future__ import annotations

import re
import sys
from typing import Any

import output

SPEC, CODES = "spec/dataset.toml", "spec/codes.toml"
TYPES = {"BIGINT", "INTEGER", "DOUBLE", "TEXT", "TIMESTAMP"}
UNITS = {"", "ns", "bytes", "processes"}
PERSONAL = {"user", "path", "command", "text"}
COLUMN_FACTS = {"name", "type", "unit", "doc", "null", "personal", "since"}
TABLE_FACTS = {"doc", "by", "key", "most", "order", "columns"}
IDENTIFIER = re.compile(r"[a-z][a-z0-9_]*\Z")


def require(holds: bool, complaint: str) -> None:
    """Refuse a specification that is not consistent."""
    if not holds:
        raise SystemExit(complaint)


def columns_of(spec: dict[str, Any], table: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the columns of a table, those that all tables of jobs have first."""
    common: list[dict[str, Any]] = spec["common"]["columns"] if table["by"] == "job" else []
    return [*common, *table["columns"]]


def check_column(where: str, column: dict[str, Any], version: int) -> None:
    """Refuse a column that is not described as the head of the specification says."""
    unknown = ", ".join(sorted(set(column) - COLUMN_FACTS))
    require(not unknown, f"{where}: unknown fact {unknown}")
    require(bool(IDENTIFIER.match(column["name"])), f"{where}: no identifier")
    require(column["type"] in TYPES, f"{where}: unknown type {column['type']}")
    require(column["unit"] in UNITS, f"{where}: unknown unit {column['unit']}")
    require(column["doc"].endswith("."), f"{where}: doc is no sentence")
    require(column.get("personal", "text") in PERSONAL, f"{where}: unknown kind of personal data")
    require(1 <= column.get("since", 1) <= version, f"{where}: since is no version")


def read_spec() -> dict[str, Any]:
    """Return the checked specification."""
    spec = output.read_toml(SPEC)
    for name, table in spec["table"].items():
        require(bool(IDENTIFIER.match(name)), f"{name}: no identifier")
        unknown = ", ".join(sorted(set(table) - TABLE_FACTS))
        require(not unknown, f"{name}: unknown fact {unknown}")
        require(table["doc"].endswith("."), f"{name}: doc is no sentence")
        require(table["by"] in ("job", "none"), f"{name}: by is neither job nor none")
        columns = columns_of(spec, table)
        names = [column["name"] for column in columns]
        require(len(set(names)) == len(names), f"{name}: a column is declared twice")
        for column in columns:
            check_column(f"{name}.{column['name']}", column, spec["version"])
        needed = {"cluster", "month", *table["key"], *([table["order"]] if "most" in table else [])}
        missing = ", ".join(sorted(needed - set(names)))
        require(not missing, f"{name}: no column {missing}")
    return spec


def read_codes() -> dict[str, Any]:
    """Return the checked table of codes."""
    codes = output.read_toml(CODES)
    names = [code["name"] for code in codes["code"]]
    require(len(set(names)) == len(names), f"{CODES}: a code is named twice")
    for code in codes["code"]:
        unknown = ", ".join(sorted(set(code) - {"name", "programs", "build_ids"}))
        require(not unknown, f"{CODES}: {code['name']}: unknown fact {unknown}")
    return codes


def python_column(column: dict[str, Any]) -> str:
    """Return a column as the reader's module writes it."""
    facts = [repr(column[fact]) for fact in ("name", "type", "unit", "doc")]
    facts += [f"{fact}={column[fact]!r}" for fact in ("null", "personal", "since") if fact in column]
    return f"            Column({', '.join(facts)}),"


def python_table(spec: dict[str, Any], name: str, table: dict[str, Any]) -> str:
    """Return a table as the reader's module writes it."""
    columns = "\n".join(map(python_column, columns_of(spec, table)))
    most = f"        most={table['most']},\n        order={table['order']!r},\n" if "most" in table else ""
    return (
        f"    {name!r}: Table(\n        {table['doc']!r},\n        (\n{columns}\n        ),\n"
        f"        key={tuple(table['key'])!r},\n        is_of_job={table['by'] == 'job'},\n{most}    ),"
    )


def python_text(spec: dict[str, Any], codes: dict[str, Any]) -> str:
    """Return python/commlens/fleet/_dataset.py."""
    tables = "\n".join(python_table(spec, name, table) for name, table in spec["table"].items())
    known = "\n".join(
        f"    Code({code['name']!r}, {tuple(code.get('programs', ()))!r}, {tuple(code.get('build_ids', ()))!r}),"
        for code in codes["code"]
    )
    return f'''# SPDX-License-Identifier: Apache-2.0
# DO NOT EDIT: written by gen/dataset.py from spec/dataset.toml and spec/codes.toml.
"""Tables of a dataset, in the version of this reader; and the codes that it recognises."""

from __future__ import annotations

from typing import NamedTuple

VERSION = {spec["version"]}


class Column(NamedTuple):
    """One column; the head of spec/dataset.toml describes its facts."""

    name: str
    type: str
    unit: str
    doc: str
    null: bool = False
    personal: str = ""
    since: int = 1


class Table(NamedTuple):
    """One table. most: rows of one job, 0 without a limit; those with the least of column `order` are left out."""

    doc: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    is_of_job: bool
    most: int = 0
    order: str = ""


class Code(NamedTuple):
    """How a code is recognised: patterns of the executable's file name, and build ids."""

    name: str
    programs: tuple[str, ...]
    build_ids: tuple[str, ...]


TABLES: dict[str, Table] = {{
{tables}
}}

INTERPRETERS = {tuple(codes["interpreters"])!r}

CODES: tuple[Code, ...] = (
{known}
)
'''


def described(column: dict[str, Any]) -> str:
    """Return what a column may contain, for the reference."""
    parts = ["or NULL"] if column.get("null") else []
    if "personal" in column:
        parts.append(f"personal: {column['personal']}")
    return ", ".join(parts)


def markdown_text(spec: dict[str, Any]) -> str:
    """Return docs/reference/dataset.md."""
    lines = [
        "<!-- DO NOT EDIT: written by gen/dataset.py from spec/dataset.toml. -->",
        "# Tables of a dataset",
        "",
        "`commlens ingest` turns profiles into rows of Parquet files; `commlens fleet` asks about them. The",
        "[guide](../guide/fleet.md) explains both, and [decision 48](../decisions/0048-dataset.md) how the files are stored.",
        f"This is version {spec['version']} of the tables. Times are in nanoseconds, volumes in bytes, dates in UTC. Columns",
        "marked *personal* hold tokens instead of values if the profiles were read with `--pseudonymise`.",
        "",
    ]
    for name, table in spec["table"].items():
        lines += [f"## {name}", "", table["doc"]]
        if "most" in table:
            lines[-1] += f" At most {table['most']:,} rows a job, those with the most of `{table['order']}`."
        lines += ["", "| column | type | unit | meaning | values |", "|---|---|---|---|---|"]
        for column in columns_of(spec, table):
            meaning = column["doc"].replace("|", "\\|") + (" Key." if column["name"] in table["key"] else "")
            cells = (f"`{column['name']}`", column["type"], column["unit"], meaning, described(column))
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def texts() -> dict[str, str]:
    """Return the generated files: path from the root of the repository -> content."""
    spec = read_spec()
    return {
        "python/commlens/fleet/_dataset.py": python_text(spec, read_codes()),
        "docs/reference/dataset.md": markdown_text(spec),
    }


if __name__ == "__main__":
    sys.exit(output.main(texts()))
