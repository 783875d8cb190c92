# SPDX-License-Identifier: Apache-2.0
"""The tutorial and the questions: each command runs on the recorded profile, and prints what the page shows."""

from __future__ import annotations

import re
import shlex
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import click
import pytest
from conftest import Run

from commlens.cli import commands

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
RECORDED = ROOT / "tests" / "profiles"
PROFILES = {
    "before.db": "tutorial/before.db",
    "after.db": "tutorial/after.db",
    "slab.db": "tutorial/slab.db",
    "cp2k.db": "applications/cp2k.db",
    "espresso.db": "applications/quantum-espresso.db",
}
QUESTIONS = sorted((DOCS / "questions").glob("*.md"))
COMING_FROM = sorted((DOCS / "from").glob("*.md"))
LEFT_OUT = "…"
CONDITION_MET = {"--fail-if": 1}


@dataclass
class Example:
    """A command of a page, with the lines of output that the page shows."""

    page: str
    command: str
    shown: list[str] = field(default_factory=list)


def blocks(text: str) -> list[tuple[bool, list[str]]]:
    """Return the indented blocks of a page, each with whether the paragraph before it announces an output."""
    found = []
    lines = [*text.splitlines(), "end"]
    start = before = None
    for at, line in enumerate(lines):
        if line.startswith("    ") and (start is not None or not lines[at - 1].strip()):
            start = at if start is None else start
        elif line.strip():
            if start is not None:
                block = [given[4:] for given in lines[start:at]]
                found.append((before in ("prints:", "prints, shortened:"), block))
                start = None
            before = line
    return found


def examples(page: Path) -> list[Example]:
    """Return the commands of a page that have a profile to read."""
    result: list[Example] = []
    for is_output, block in blocks(page.read_text(encoding="utf-8")):
        if is_output:
            result[-1].shown = "\n".join(block).rstrip().splitlines()
        else:
            result += [Example(page.stem, line) for line in block if line.startswith("commlens ")]
    return [example for example in result if is_run(example.command)]


def is_run(command: str) -> bool:
    """Return whether all profiles of a command are recorded."""
    words = shlex.split(command)
    named = [word for at, word in enumerate(words) if word.endswith(".db") and words[at - 1] != "-o"]
    return bool(named) and "--" not in words and set(named) <= set(PROFILES)


EXAMPLES = [example for page in (DOCS / "guide" / "tutorial.md", *QUESTIONS) for example in examples(page)]


def missing(shown: list[str], printed: list[str]) -> list[str]:
    """Return the shown lines that are not printed in this order, without gaps but where a line is left out."""
    at, may_skip, absent = 0, False, []
    for line in shown:
        if line == LEFT_OUT:
            may_skip = True
            continue
        try:
            found = printed.index(line, at)
        except ValueError:
            absent.append(line)
            continue
        if found > at and not may_skip:
            absent.append(f"{line}, after lines that the page leaves out without saying so")
        at, may_skip = found + 1, False
    if not may_skip and at < len(printed):
        absent.append(f"{LEFT_OUT} at the end")
    return absent


def without_places(lines: list[str]) -> list[str]:
    """Return the lines without places in libraries: their names are known only where the same library is installed."""
    place = re.compile(r"\bat (?:\S+ in (lib\S+)|(lib\S+)\+0x[0-9a-f]+)")
    return [place.sub(lambda found: f"at {found[1] or found[2]}", line) for line in lines]


@pytest.fixture
def profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the profiles that the pages name into the current directory."""
    monkeypatch.chdir(tmp_path)
    for name, recorded in PROFILES.items():
        shutil.copy(RECORDED / recorded, name)


@pytest.mark.usefixtures("profiles")
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda given: f"{given.page}-{given.command[9:]}")
def test_a_command_of_a_page_prints_what_the_page_shows(example: Example, run: Run) -> None:
    words = shlex.split(example.command)[1:]
    done = run(*words)
    assert done.exit_code == next((code for option, code in CONDITION_MET.items() if option in words), 0)
    assert done.stderr == ""
    printed = [line.rstrip() for line in done.stdout.rstrip("\n").splitlines()]
    absent = missing(without_places(example.shown), without_places(printed))
    assert absent == [] or not example.shown, done.stdout


def test_a_place_in_a_library_is_left_out() -> None:
    lines = [
        "│ at MPI_Send in libexample.so.2",
        "at libexample.so.2+0x1f, twice",
        "at pw.x+0x53d596",
        "at main",
    ]
    assert without_places(lines) == ["│ at libexample.so.2", "at libexample.so.2, twice", *lines[2:]]


def test_the_pages_have_examples() -> None:
    assert len(EXAMPLES) > 20
    assert sum(bool(example.shown) for example in EXAMPLES) > 17
    assert len(QUESTIONS) > 7
    for page in QUESTIONS:
        headings = re.findall(r"^## (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        if page.stem != "README":
            assert headings == ["Read the answer", "What to do", "What it cannot say"], page
            assert any(example.page == page.stem for example in EXAMPLES), page


def test_lines_that_differ_are_found() -> None:
    printed = ["one", "two", "three", "four"]
    assert missing(["one", LEFT_OUT, "three", LEFT_OUT], printed) == []
    assert missing([LEFT_OUT, "four"], printed) == []
    assert missing(["one", "three", LEFT_OUT], printed) != []
    assert missing(["one", LEFT_OUT], printed) == []
    assert missing(["one"], printed) != []
    assert missing(["two", "one", LEFT_OUT], printed) != []


@pytest.mark.parametrize(
    "page", [*QUESTIONS, *COMING_FROM], ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_commands_options_and_variables_in_the_text_exist(page: Path) -> None:
    """Code in the text can be typed as it stands, but it has no profile of its own to run on."""
    text = page.read_text(encoding="utf-8")
    variables = (DOCS / "reference" / "options.md").read_text(encoding="utf-8")
    for name in set(re.findall(r"COMMLENS_[A-Z_]+", text)):
        assert f"`{name}`" in variables, name
    typed = re.findall(r"`(commlens [^`]+)`", text)
    typed += [
        line
        for is_output, block in blocks(text)
        if not is_output
        for line in block
        if line.startswith("commlens ")
    ]
    for command in typed:
        words = command.split(" -- ")[0].split()
        if words[1] in ("help", "before*.db") or words[1].startswith("-"):
            continue
        assert words[1] in commands(), command
        known = {
            name
            for param in commands()[words[1]].params
            if isinstance(param, click.Option)
            for name in (*param.opts, *param.secondary_opts)
        }
        assert {word for word in words[2:] if re.match(r"--?[a-z]", word)} <= known | {"--help"}, command


def test_the_recorded_runs_are_those_that_the_tutorial_starts() -> None:
    text = (DOCS / "guide" / "tutorial.md").read_text(encoding="utf-8")
    started = dict(
        re.findall(r"^    COMMLENS_OUTPUT=(\S+) mpirun .*commlens-run (lmp .*)$", text, re.MULTILINE)
    )
    assert started.keys() == {"before.db", "after.db"}
    for name, command in started.items():
        with closing(sqlite3.connect(f"file:{RECORDED / PROFILES[name]}?mode=ro", uri=True)) as profile:
            recorded = profile.execute("SELECT value FROM meta WHERE key = 'command_line'").fetchone()
        assert recorded == (command,)
        given = shlex.split(command)[2]
        assert (ROOT / "tools" / "demo" / given).is_file()
