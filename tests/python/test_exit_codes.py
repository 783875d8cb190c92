# SPDX-License-Identifier: Apache-2.0
"""The meanings of exit codes: each command has those of the codes that it uses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from commlens import cli
from commlens.cli.exit_codes import FAILED, OF_COMMAND, UNTESTED, WITHOUT_PARTS, meanings

FOLDER = Path(cli.__file__).parent


def test_meanings_are_of_commands() -> None:
    assert {*OF_COMMAND, *WITHOUT_PARTS} <= {*cli.COMMANDS}


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_a_command_has_the_meanings_of_its_codes(name: str) -> None:
    source = (FOLDER / f"{name.replace('-', '_')}.py").read_text(encoding="utf-8")
    used = {
        code
        for word, code in (("FAILED", FAILED), ("UNTESTED", UNTESTED))
        if re.search(rf"\b{word}\b", source)
    }
    assert used == {*meanings(name)} & {FAILED, UNTESTED}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_exit_codes_are_named(path: Path) -> None:
    assert not re.search(r"\bexit\((.* (if|else) )?\d", path.read_text(encoding="utf-8"))
