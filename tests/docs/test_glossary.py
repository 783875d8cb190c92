# SPDX-License-Identifier: Apache-2.0
"""What the glossary says a term is carried by is there, under that name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from commlens.launch._options import OPTIONS
from commlens.profile._schema import RELATIONS

ROOT = Path(__file__).resolve().parents[2]
ROWS = [
    tuple(cell.strip() for cell in line.strip("|").split(" | "))
    for line in (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith("| term ")
]
HEADERS = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "core").rglob("*.h"))


def is_there(kind: str, name: str) -> bool:
    """Return whether a table or view, a file, an option or a C++ type has this name."""
    if kind:
        return name in RELATIONS and RELATIONS[name].kind == kind
    if "/" in name:
        return (ROOT / name).is_file()
    if name.startswith("COMMLENS_"):
        return name in OPTIONS
    return bool(re.search(rf"\b(?:struct|class|enum class|using)\b[^;{{(]*\b{name}\b", HEADERS))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_what_carries_a_term_exists(row: tuple[str, ...]) -> None:
    assert len(row) == 3 or row[2:] == ()
    for kind, name in re.findall(r"(table |view )?`([^`]+)`", row[2] if len(row) == 3 else ""):
        assert is_there(kind.strip(), name), f"{row[0]}: {kind}{name}"


def test_a_term_has_one_line() -> None:
    terms = [term for row in ROWS for term in row[0].split(", ")]
    assert len(ROWS) > 40
    doubled = {term for term in terms if terms.count(term) > 1}
    assert doubled == {"hook"}, "the hook of net, hook, wrap is a part of the cost"
