# SPDX-License-Identifier: Apache-2.0
"""The manual pages: every command, every option, every variable, and nothing that troff complains about."""

from __future__ import annotations

import re
import subprocess

import click
import pytest
from tests.needs import need_programs

import manual
import output
from commlens.cli import commands

PAGES = manual.texts()
OPTIONS = output.read_toml("spec/options.toml")


def shown(name: str) -> str:
    """Return a page as `man` shows it, in one line; fail if troff has a warning."""
    need_programs("man", "groff", package="man-db and groff-base")
    done = subprocess.run(
        ["man", "--warnings", "-E", "UTF-8", "-l", output.ROOT / "generated" / "man" / name],
        env={"PATH": "/usr/bin:/bin", "MANWIDTH": "2000", "MANROFFOPT": "-c", "LC_ALL": "C.UTF-8", "MAN_KEEP_FORMATTING": ""},
        capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.stderr == ""
    return " ".join(done.stdout.split())


@pytest.mark.parametrize("name", commands())
def test_a_page_has_the_help_and_every_option(name: str) -> None:
    command = commands()[name]
    text = shown(f"commlens-{name}.1")
    assert " ".join((command.help or "").replace("\b", "").split())[:60] in text
    for param in command.params:
        if isinstance(param, click.Option):
            for spelling in (*param.opts, *param.secondary_opts):
                assert re.search(rf"(?<![\w-]){re.escape(spelling)}(?![\w-])", text), spelling
            assert " ".join((param.help or "").split())[:40] in text


def test_the_first_page_names_all_commands() -> None:
    text = shown("commlens.1")
    for name in commands():
        assert f" commlens-{name}(1) " in text


def test_variables_are_described_as_in_the_reference() -> None:
    text = shown("commlens.conf.5")
    for name, option in OPTIONS.items():
        assert f" {name} {' '.join(option['doc'].split())}" in text


def test_the_options_of_the_runner_are_those_it_has() -> None:
    source = (output.ROOT / "core" / "programs" / "commlens_run.c").read_text(encoding="utf-8")
    for spelling in manual.RUN_OPTIONS:
        assert f'"{spelling}"' in source
    assert set(re.findall(r'^ *"  (--[a-z]*) ', source, re.MULTILINE)) == set(manual.RUN_OPTIONS)
    assert "commlens-run [--] PROGRAM" in shown("commlens-run.1")


def test_there_is_no_page_without_a_command() -> None:
    folder = output.ROOT / "generated" / "man"
    assert {f"generated/man/{path.name}" for path in folder.iterdir()} == set(PAGES)


def test_text_cannot_become_a_request() -> None:
    assert manual.roff(".so /etc/passwd\n'x \\n-") == "\\&.so /etc/passwd\n\\&'x \\en\\-"
