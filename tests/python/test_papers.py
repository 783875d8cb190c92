# SPDX-License-Identifier: Apache-2.0
"""What docs/papers.md names is there: commands run on a recorded profile, and other names exist."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import click
import pytest
from conftest import Run

from commlens.cli import commands

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
HEADING = "| section | says | source | in commlens | differs, and why |"
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for table in PAGE.split(HEADING)[1:]
    for line in table.splitlines()[2:]
    if line.startswith("| ")
]
CODE = [word for row in ROWS for cell in row[3:] for word in re.findall(r"`([^`]+)`", cell)]
COMMANDS = sorted({word for word in CODE if word.startswith("commlens ")})
NOT_RUN = ("doctor", "history", "overhead", "recover")
"""Read no profile, or the snapshots of a run, which are not recorded here: their command lines are parsed."""
RECORDED = ROOT / "tests" / "profiles"


@pytest.fixture
def profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the profiles that the page names into the current directory."""
    monkeypatch.chdir(tmp_path)
    names = ("profile.db", "before.db", "after.db")
    for name, recorded in zip(names, ("version16", "version14", "version15"), strict=True):
        shutil.copy(RECORDED / f"{recorded}.db", name)
    Path("runs").mkdir()
    for version in (13, 14, 15, 16):
        shutil.copy(RECORDED / f"version{version}.db", "runs")


def is_run(words: list[str]) -> bool:
    """Return whether the command can be run on a recorded profile."""
    return words[1] not in NOT_RUN and not {"--at", "--between"} & set(words)


def test_the_page_has_a_table_for_each_system() -> None:
    assert PAGE.count(HEADING) == 4
    for row in ROWS:
        assert len(row) == 5 and all(row), row
        assert set(row[2].split(", ")) <= {"abstract", "manual", "notes"}, row
    assert len(ROWS) > 50
    assert sum(is_run(shlex.split(command)) for command in COMMANDS) > 30


@pytest.mark.usefixtures("profiles")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page(command: str, run: Run) -> None:
    words = shlex.split(command)
    if is_run(words):
        arguments: list[str] = []
        for word in words[1:]:
            arguments += map(str, sorted(Path().glob(word))) if word == "runs/*.db" else [word]
        done = run(*arguments)
        assert (done.exit_code, done.stderr) == (0, ""), command
        written = [Path(words[at + 1]) for at, word in enumerate(words) if word in ("--to", "-o")]
        assert done.stdout or all(path.stat().st_size > 0 for path in written if path.suffix)
    else:
        known = commands()[words[1]]
        given = {
            word for word in words[: words.index("--") if "--" in words else None] if word.startswith("-")
        }
        options = {name for param in known.params if isinstance(param, click.Option) for name in param.opts}
        assert given <= options, command


def test_functions_files_and_benchmarks_of_the_page_exist() -> None:
    header = (ROOT / "include" / "commlens" / "commlens.h").read_text(encoding="utf-8")
    header += (ROOT / "core" / "state" / "online.cpp").read_text(encoding="utf-8")
    options = (ROOT / "docs" / "reference" / "options.md").read_text(encoding="utf-8")
    named = [word for row in ROWS for cell in row[3:] for word in re.findall(r"`([^`]+)`", cell)]
    assert named
    for word in named:
        if re.fullmatch(r"(tests|bench)/[\w/.]+", word):
            assert (ROOT / word).is_file(), word
        elif re.fullmatch(r"COMMLENS_[A-Z_]+", word):
            assert f"| `{word}` |" in options, word
        elif re.fullmatch(r"commlens_\w+", word):
            assert re.search(rf"\b{word}\(", header), word
