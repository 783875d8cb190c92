# SPDX-License-Identifier: Apache-2.0
"""Everything a user can type or read is documented, and the documentation names nothing else."""

from __future__ import annotations

import re
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from commlens.cli import commands, commlens
from commlens.profile import _schema

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"
OF_OTHERS = {"--arenas", "--distribution", "--parsable2", "--strict"}
"""Options of fuzz.reader, srun, sacct and twine on lines that also name a command of ours."""
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def page(name: str) -> str:
    return (REFERENCE / name).read_text(encoding="utf-8")


def section(text: str, heading: str) -> str:
    """Return a section of a page, without those beside it."""
    level = heading.split(" ")[0]
    start = text.index(f"\n{heading}\n")
    end = re.compile(rf"^#{{1,{len(level)}}} ", re.MULTILINE).search(text, start + len(heading) + 2)
    return text[start : end.start() if end else len(text)]


@pytest.mark.parametrize("name", sorted(commands()))
def test_every_command_option_and_argument_is_in_the_reference(name: str) -> None:
    text = section(page("commands.md"), f"## commlens {name}")
    for param in commands()[name].params:
        if isinstance(param, click.Option):
            assert param.help, param.name
            for option in (*param.opts, *param.secondary_opts):
                assert re.search(rf"^\| .*`{re.escape(option)}[ `]", text, re.MULTILINE), option
        else:
            assert (param.metavar or str(param.name).upper()) in text


def test_the_reference_names_no_option_that_does_not_exist() -> None:
    known = {"--help", "--version", *OF_OTHERS}
    for command in commands().values():
        for param in command.params:
            known.update([*param.opts, *param.secondary_opts])
    ours = re.compile(rf"\bcommlens ({'|'.join(map(re.escape, commands()))})\b")
    lines = 0
    for name in PAGES:
        for line in filter(ours.search, name.read_text(encoding="utf-8").splitlines()):
            used = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", line))
            assert used <= known, f"{name.name}: {line}"
            lines += bool(used)
    assert lines > 100


@pytest.mark.parametrize("name", sorted(_schema.RELATIONS))
def test_every_table_view_and_column_is_in_the_reference(name: str) -> None:
    text = section(page("tables.md"), f"### {name}").replace("\\*", "*")
    relation = _schema.RELATIONS[name]
    assert relation.doc in text
    for column in relation.columns:
        row = next(line for line in text.splitlines() if line.startswith(f"| `{column.name}` |"))
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]
        assert cells[1:3] == [column.type, column.unit]
        assert cells[3].startswith(column.doc.replace("|", "\\|"))


def test_every_key_of_meta_is_in_the_reference() -> None:
    text = section(page("tables.md"), "## Keys of meta").replace("\\*", "*")
    for key, doc in _schema.META_KEYS.items():
        assert f"| `{key}` | {doc} |" in text


def test_tables_and_views_have_the_columns_that_are_documented_and_no_others() -> None:
    connection = sqlite3.connect(":memory:")
    connection.executescript(_schema.SQL + _schema.ADDED_SQL)
    made = dict(connection.execute("SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view')"))
    assert made == {name: relation.kind for name, relation in _schema.RELATIONS.items()}
    for name, relation in _schema.RELATIONS.items():
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
        assert columns == [column.name for column in relation.columns], name
    assert connection.execute("PRAGMA user_version").fetchone() == (_schema.VERSION,)
    assert connection.execute("PRAGMA application_id").fetchone() == (_schema.APPLICATION_ID,)
    connection.close()


def test_library_and_reader_have_the_same_schema() -> None:
    header = (ROOT / "generated" / "schema_sql.h").read_text(encoding="utf-8")
    statements = {
        name: "".join(re.findall(r'R"sql\((.*?)\)sql"', literals, re.DOTALL))
        for name, _, literals in (part.partition("[] =") for part in header.split("constexpr char ")[1:])
    }
    assert statements["tables_sql"] + statements["views_sql"] == _schema.SQL
    # A shard's tables are the same without comments.
    shapes = []
    for sql in (statements["tables_sql"], statements["bare_tables_sql"]):
        with closing(sqlite3.connect(":memory:")) as db:
            db.executescript(sql)
            names = [name for (name,) in db.execute("SELECT name FROM sqlite_master ORDER BY name")]
            facts = [db.execute(f"PRAGMA {fact}").fetchone() for fact in ("application_id", "user_version")]
            shapes.append(
                (facts, [(name, db.execute(f"PRAGMA table_info({name})").fetchall()) for name in names])
            )
    assert shapes[0] == shapes[1]
    assert "--" not in statements["bare_tables_sql"]


def test_coverage_says_how_and_where_of_every_procedure() -> None:
    text = (ROOT / "docs" / "evidence" / "coverage.md").read_text(encoding="utf-8")
    rows = [
        re.split(r" (?<!\\)\| ", line.strip("| ")) for line in text.splitlines() if line.startswith("| `MPI_")
    ]
    spec = tomllib.loads((ROOT / "spec" / "calls.toml").read_text(encoding="utf-8"))
    named = {name for block in spec["measure"] + spec["skip"] for name in block.get("calls", ())}
    listed = [row[0].strip("`") for row in rows]
    assert len(listed) == len(set(listed)) > 500
    assert named <= set(listed)
    for row in rows:
        assert len(row) == 3, row
        assert all(cell.strip() for cell in row), row


def test_every_environment_variable_is_in_the_reference() -> None:
    options = tomllib.loads((ROOT / "spec" / "options.toml").read_text(encoding="utf-8"))
    text = page("options.md")
    assert options
    for name, option in options.items():
        assert f"`{name}`" in text
        assert option["doc"].replace("*", "\\*") in text
        assert not option["default"] or f"`{option['default']}`" in text


def test_no_page_names_an_environment_variable_that_does_not_exist() -> None:
    known = set(tomllib.loads((ROOT / "spec" / "options.toml").read_text(encoding="utf-8")))
    interface = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "include").rglob("*.h*"))
    known |= set(re.findall(r"COMMLENS_[A-Z_]+", interface))
    build = "".join(
        path.read_text(encoding="utf-8") for path in [ROOT / "CMakeLists.txt", *ROOT.glob("cmake/*.cmake")]
    )
    known |= set(re.findall(r"^ *(?:option|set)\((COMMLENS_[A-Z_]+)", build, re.MULTILINE))
    for path in PAGES:
        used = set(re.findall(r"\bCOMMLENS_[A-Z_]*[A-Z]", path.read_text(encoding="utf-8")))
        assert used <= known, path.name


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if not re.match(r"[a-z]+:", target):
            assert (path.parent / target).exists(), target


def test_the_lines_that_the_guide_explains_are_said() -> None:
    """Word by word, with an ellipsis for what differs."""
    sources = [*(ROOT / "core").rglob("*.cpp"), *(ROOT / "core").rglob("*.c"), *(ROOT / "core").rglob("*.h")]
    said = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    said = re.sub(r'"\s*\n\s*"', "", said)  # one literal on several lines
    text = (ROOT / "docs" / "guide" / "trouble.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| `([^`]*)` \|", text, re.MULTILINE)
    assert len(lines) > 25
    for line in lines:
        for piece in re.split(r" ?… ?|: …$", line):
            assert piece.strip(" ;:,") in said, line


def test_the_version_is_the_one_declared() -> None:
    version = (ROOT / "VERSION").read_text(encoding="utf-8").strip()
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    assert CliRunner().invoke(commlens, ["--version"]).output == f"commlens, version {version}\n"


def test_every_command_explains_itself() -> None:
    for name in commands():
        for flag in ("-h", "--help"):
            result = CliRunner().invoke(commlens, [name, flag])
            assert result.exit_code == 0
            assert result.output.startswith(f"Usage: commlens {name} ")
