# SPDX-License-Identifier: Apache-2.0
"""Check that files and functions are not too long.

    python tools/check_sizes.py [ROOT]

Prints a line for each file and each function that is longer than its limit.  Ends with 1 if there is one.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import complaints

FOLDERS = (
    "adapters",
    "bench",
    "core",
    "fuzz",
    "gen",
    "page/src",
    "proof",
    "python",
    "slurm",
    "tests",
    "tools",
)
SUFFIXES = {".S", ".c", ".cpp", ".h", ".py", ".sh", ".ts"}
MOST_LINES = 600
MOST_FUNCTION_LINES = 60

GENERATED = {
    "python/commlens/findings/_rules.py",
    "python/commlens/fleet/_dataset.py",
    "python/commlens/profile/_schema.py",
}


def sources(root: Path) -> Iterator[Path]:
    """Yield the hand-written files."""
    for folder in FOLDERS:
        yield from sorted(
            p
            for p in (root / folder).rglob("*")
            if p.suffix in SUFFIXES and p.relative_to(root).as_posix() not in GENERATED
        )


def functions(code: str) -> Iterator[tuple[str, int]]:
    r"""Yield name and length of each Python function that is not nested in another; methods as CLASS.METHOD.

    >>> list(functions("class A:\n    def f(self):\n        pass\n"))
    [('A.f', 2)]
    """

    def walk(node: ast.AST, prefix: str) -> Iterator[tuple[str, int]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield prefix + child.name, (child.end_lineno or child.lineno) - child.lineno + 1
            elif isinstance(child, ast.ClassDef):
                yield from walk(child, f"{prefix}{child.name}.")
            else:
                yield from walk(child, prefix)

    yield from walk(ast.parse(code), "")


def cpp_functions(code: str) -> Iterator[tuple[str, int]]:
    r"""Yield the first line and the length of each C++ function, as the formatter indents it.

    >>> list(cpp_functions("int f(int a,\n      int b) {\n  if (a) {\n  }\n}\nstruct A {\n  A() {\n  }\n};\n"))
    [('int f', 5), ('A', 2)]
    """
    start = {"": (0, ""), "  ": (0, "")}
    for number, line in enumerate(code.splitlines(), 1):
        for indent in start:
            if line == f"{indent}}}":
                first, text = start[indent]
                head = text.split("(")[0]
                if "(" in text and not re.match(r"(if|for|while|switch|do|else|try|return|case)\b|.*=", head):
                    yield head, number - first + 1
            elif re.match(rf"{indent}[A-Za-z_~\[]", line):
                start[indent] = (number, line.strip())


@cache
def sizes(root: Path) -> tuple[dict[str, int], dict[str, int]]:
    """Return the lines of each file and of each function."""
    lines: dict[str, int] = {}
    of_functions: dict[str, int] = {}
    for path in sources(root):
        name, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8", errors="replace")
        lines[name] = len(text.splitlines())
        if path.suffix != ".sh":
            for function, length in functions(text) if path.suffix == ".py" else cpp_functions(text):
                key = f"{name}:{function}"
                of_functions[key] = max(length, of_functions.get(key, 0))
    return lines, of_functions


def too_long(root: Path) -> list[str]:
    """Return one line for each file and each function over its limit."""
    return [
        f"{name}: {lines} lines, more than {limit}"
        for found, limit in zip(sizes(root), (MOST_LINES, MOST_FUNCTION_LINES))
        for name, lines in found.items()
        if lines > limit
    ]


def good(root: Path) -> str:
    """Return the line for a tree without such files and functions."""
    lines, of_functions = sizes(root)
    return f"check_sizes: {len(lines):,} files and {len(of_functions):,} functions are small enough"


if __name__ == "__main__":
    sys.exit(complaints.main(too_long, good))
