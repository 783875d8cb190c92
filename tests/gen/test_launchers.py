# SPDX-License-Identifier: Apache-2.0
"""gen/launchers.py: a library has one family, and no name of the specification stands in code a second time."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest

import launchers
import output

ROOT = Path(__file__).resolve().parents[2]
FAMILIES = output.read_toml("spec/abi.toml")["family"]
VARIABLES = output.read_toml("spec/launchers.toml")["variables"]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_library_that_programs_link_belongs_to_its_family_only(family: str) -> None:
    for soname in FAMILIES[family]["sonames"]:
        owners = {name for name, facts in FAMILIES.items() if soname.startswith(tuple(facts["libraries"]))}
        assert owners == {family}


def test_a_family_that_does_not_exist_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    read = output.read_toml

    def spoiled(path: str) -> dict[str, Any]:
        spec = copy.deepcopy(read(path))
        if path == "spec/launchers.toml":
            spec["recognised"][0]["family"] = "lam"
        return spec

    monkeypatch.setattr(output, "read_toml", spoiled)
    with pytest.raises(SystemExit, match="unknown family lam"):
        launchers.texts()


def test_lists_of_variables_stand_in_the_specification_only() -> None:
    """One variable alone may have a meaning of its own; two in a list of code would be a second place."""
    names = "|".join({name for facts in VARIABLES.values() for name in facts["names"]})
    pair = re.compile(rf'"(?:{names})",\s*"(?:{names})"')
    files = [*(ROOT / "core").rglob("*.c*"), *(ROOT / "core").rglob("*.h"), *(ROOT / "python").rglob("*.py")]
    found = {path.name for path in files if pair.search(path.read_text(encoding="utf-8"))}
    assert len(files) > 200
    assert found == set()
