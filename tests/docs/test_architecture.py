# SPDX-License-Identifier: Apache-2.0
"""The page that follows one call names files and functions that exist, and the tables that the schema has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from commlens.profile._schema import RELATIONS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
TOP = "core|docs|gen|generated|include|python|spec"
PATHS = sorted(set(re.findall(rf"(?<![\w./])(?:{TOP})/[\w./]*\w", PAGE)))
FUNCTION = re.compile(r"`((?:\w+(?:::|\.))?\w+)\(\)`")
ROWS = [(m[1], m[2]) for m in re.finditer(rf"^\| `((?:{TOP})/[\w./]*\.\w+)` \|(.*)$", PAGE, re.MULTILINE)]


@pytest.mark.parametrize("path", PATHS)
def test_a_file_or_folder_exists(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_function_is_in_the_file_of_its_row(row: tuple[str, str]) -> None:
    path, text = row
    source = (ROOT / path).read_text(encoding="utf-8")
    names = FUNCTION.findall(text)
    names += re.findall(r"`(\w+)`", text.split("|")[0])  # a type or a macro in the column of functions
    for name in names:
        for part in re.split(r"::|\.", name):
            assert re.search(rf"\b{part}\b", source), f"{path}: {name}"


def test_rows_name_functions_and_functions_are_in_rows() -> None:
    assert len(ROWS) > 30
    assert {Path(path).suffix for path, _ in ROWS} >= {".c", ".cpp", ".h", ".S", ".py"}
    outside = [line for line in PAGE.splitlines() if FUNCTION.search(line) and not line.startswith("| `")]
    assert outside == []


def test_the_tables_of_a_profile_exist() -> None:
    section = PAGE.partition("\n## 5. The tables\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith(("| `", "| view `"))]
    names = [name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert {"comm", "key", "cell"} <= set(names)
    assert [name for name in names if name not in RELATIONS] == []
