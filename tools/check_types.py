# SPDX-License-Identifier: Apache-2.0
"""Check that each type of core/ has one definition.

    python tools/check_types.py [ROOT]

Prints a line for each type that two files define under one name, and ends with 1 if there is one. The C++ linker merges
the functions of two such types without a message (the one definition rule).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import complaints

NO_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])\'|^\s*#(?:\\\n|[^\n])*',
    re.DOTALL | re.MULTILINE,
)
OPENING = re.compile(
    r"\b(?P<kind>namespace|struct|class|union|enum(?:\s+class|\s+struct)?)\b(?P<attributes>(?:\s*\[\[.*?\]\]|\s*alignas\([^{;]*?\))*)"
    r"\s*(?P<name>[\w:]*)(?:\s+final)?(?:\s*:[^{;()]*)?\s*$",
    re.DOTALL,
)


def types(code: str) -> Iterator[str]:
    """Yield the full name of each type that a file defines in a namespace with a name.

    >>> list(types("namespace a { struct B { struct C {}; }; namespace { class D {}; } } enum class E : int {};"))
    ['a::B', 'E']
    """
    scopes: list[str | None] = []  # names of the enclosing namespaces; None: any other block
    start = 0
    for brace in re.finditer(r"[{};]", code):
        if brace[0] == "{":
            opening = OPENING.search(code, start, brace.start())
            is_namespace = opening is not None and opening["kind"] == "namespace"
            if opening is not None and not is_namespace and opening["name"] and None not in scopes:
                yield "::".join([scope for scope in scopes if scope] + [opening["name"]])
            scopes.append(opening["name"] or None if opening is not None and is_namespace else None)
        elif brace[0] == "}" and scopes:
            scopes.pop()
        start = brace.end()


def doubles(root: Path) -> list[str]:
    """Return one line for each type that a second file of core/ defines under the same name."""
    lines = []
    first: dict[str, Path] = {}
    for path in sorted((root / "core").rglob("*")):
        if path.suffix not in {".h", ".cpp"}:
            continue
        for name in types(NO_CODE.sub(" ", path.read_text(encoding="utf-8"))):
            other = first.setdefault(name, path)
            if other != path:
                lines.append(f"{path.relative_to(root)}: {name} is defined in {other.relative_to(root)}, too")
    return lines


if __name__ == "__main__":
    sys.exit(complaints.main(doubles, lambda _: "check_types: each type has one definition"))
