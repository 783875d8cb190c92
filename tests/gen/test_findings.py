# SPDX-License-Identifier: Apache-2.0
"""gen/findings.py: a rule that is not whole is refused, and the library and the reader have the same rules."""

from __future__ import annotations

import copy
import re
import sqlite3
from contextlib import closing
from typing import Any

import pytest

import findings
import output
from commlens.render.units import size_text

RULES = output.read_toml("spec/findings.toml")
SCHEMA = output.read_toml("spec/schema.toml")


@pytest.fixture
def spoiled(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the specification as the generator will read it, for a test to spoil."""
    spec = copy.deepcopy(RULES)
    monkeypatch.setattr(output, "read_toml", lambda path: spec if "findings" in path else SCHEMA)
    return spec


@pytest.mark.parametrize("key", ["title", "text", "try", "reason", "misses"])
def test_a_rule_without_one_of_its_texts_is_refused(spoiled: dict[str, Any], key: str) -> None:
    spoiled["finding"]["polling"][key] = ""
    with pytest.raises(SystemExit, match=f"polling: {key} is missing"):
        findings.texts()


def test_an_unknown_threshold_is_refused(spoiled: dict[str, Any]) -> None:
    del spoiled["finding"]["polling"]["threshold"]["least_share"]
    with pytest.raises(SystemExit, match="polling: there is no threshold least_share"):
        findings.texts()


def test_a_threshold_without_use_is_refused(spoiled: dict[str, Any]) -> None:
    spoiled["finding"]["polling"]["threshold"]["most_share"] = 1
    with pytest.raises(SystemExit, match="polling: no use of threshold most_share"):
        findings.texts()


def test_an_unknown_format_and_an_unknown_view_are_refused(spoiled: dict[str, Any]) -> None:
    spoiled["finding"]["polling"]["evidence"][0][2] = "hours"
    with pytest.raises(SystemExit, match="polling: there is no format hours"):
        findings.texts()
    spoiled["finding"]["polling"]["views"] = ["sight"]
    with pytest.raises(SystemExit, match="polling: there is no view sight"):
        findings.texts()


def test_a_view_that_a_rule_uses_and_does_not_name_is_refused(spoiled: dict[str, Any]) -> None:
    spoiled["finding"]["late_ranks"]["views"].remove("family")
    with pytest.raises(SystemExit, match="late_ranks: no such table: family"):
        findings.texts()


def test_library_reader_and_page_have_every_rule_with_its_thresholds() -> None:
    texts = findings.texts()
    reader: dict[str, Any] = {"__name__": "rules"}
    exec(texts["python/commlens/findings/_rules.py"], reader)
    queries = {rule.name: rule.sql for rule in reader["RULES"]}
    for name, rule in RULES["finding"].items():
        query = findings.query(RULES, name)
        assert not re.search(r"(?<!\w):[a-z]", query), query
        assert rule["text"] in texts["generated/findings.h"]
        assert query.removeprefix("WITH ") in texts["generated/findings.h"]
        assert query == queries[name]
        assert f"## {name}\n" in texts["docs/reference/findings.md"]
        assert rule["reason"] in texts["docs/reference/findings.md"]


def test_sizes_are_named_as_in_the_tables_of_the_reader() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        for size_bin in range(40):  # up to 512 GiB
            low, high = (1 << size_bin) >> 1, (1 << size_bin) - 1
            statement = "SELECT " + findings.SIZE.sub(findings.size_sql, f"SIZE({size_bin})")
            assert connection.execute(statement).fetchone() == (size_text(low, high),), size_bin
