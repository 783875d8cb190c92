# SPDX-License-Identifier: Apache-2.0
"""gen/options.py: every option once, and every variable the code asks for is one."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest

import options
import output

OPTIONS = output.read_toml("spec/options.toml")


@pytest.fixture
def spoiled(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the specification as the generator will read it, for a test to spoil."""
    spec = copy.deepcopy(OPTIONS)
    monkeypatch.setattr(output, "read_toml", lambda _: spec)
    return spec


@pytest.mark.parametrize("name", ["COMMLENS_lower", "COMMLENS_", "OUTPUT", "COMMLENS_TWO__WORDS"])
def test_a_name_the_library_would_not_find_is_refused(spoiled: dict[str, Any], name: str) -> None:
    spoiled[name] = spoiled["COMMLENS_QUIET"]
    with pytest.raises(SystemExit, match=f"{name}: bad name or type"):
        options.texts()


def test_an_unknown_type_is_refused(spoiled: dict[str, Any]) -> None:
    spoiled["COMMLENS_QUIET"]["type"] = "boolean"
    with pytest.raises(SystemExit, match="COMMLENS_QUIET: bad name or type"):
        options.texts()


def test_a_doc_that_is_no_sentence_is_refused(spoiled: dict[str, Any]) -> None:
    spoiled["COMMLENS_QUIET"]["doc"] = "says less"
    with pytest.raises(SystemExit, match="COMMLENS_QUIET: doc is no sentence"):
        options.texts()


@pytest.mark.parametrize("fact", ["type", "default", "doc"])
def test_an_option_without_one_of_its_facts_is_refused(spoiled: dict[str, Any], fact: str) -> None:
    del spoiled["COMMLENS_QUIET"][fact]
    with pytest.raises(SystemExit, match=f"COMMLENS_QUIET: no {fact}$"):
        options.texts()


def test_the_default_of_a_switch_is_one_the_library_understands() -> None:
    for name, option in OPTIONS.items():
        if option["type"] == "bool":
            assert option["default"] in ("0", "1"), name


def test_header_and_page_have_every_option_once() -> None:
    texts = options.texts()
    for name, option in OPTIONS.items():
        key = name.removeprefix("COMMLENS_").lower()
        assert texts["generated/options.h"].count(f'{{"{name}", "{key}", ') == 1
        assert texts["docs/reference/options.md"].count(f"| `{name}` |") == 1
        assert option["doc"].replace("*", "\\*") in texts["docs/reference/options.md"]


def test_every_variable_the_code_asks_for_is_declared() -> None:
    asked = set()
    for file in (output.ROOT / "core").rglob("*.[ch]*"):
        asked |= set(re.findall(r'getenv\("(COMMLENS_\w+)"\)', file.read_text()))
    assert asked
    assert asked <= set(OPTIONS)
