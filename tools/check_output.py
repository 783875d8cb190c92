# SPDX-License-Identifier: Apache-2.0
"""Finds output that bypasses commlens.base.escape: names from outside could otherwise control the terminal.

Usage: tools/check_output.py FOLDER

FOLDER is python/commlens. Prints a line for each use of a name that only the files of ALLOWED may use; then fails.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

# Full name, with all its attributes -> the files that may use it.  Renaming imports are followed.
ALLOWED: dict[str, tuple[str, ...]] = {
    "print": (),
    "input": (),
    "click.echo": (),
    "click.echo_via_pager": (),
    "click.get_binary_stream": (),
    "click.get_text_stream": (),
    "click.secho": (),
    # Programs of MPI jobs, whose output replay.py and run.py read.
    "sys.stdout": ("render/screen.py", "__main__.py", "selftest/in_python.py", "tune/replay_mpi4py.py"),
    "sys.stderr": ("base/messages.py", "tune/replay_mpi4py.py"),
    "sys.__stdout__": (),
    "sys.__stderr__": (),
    "os.write": (),
    "os.writev": (),
    "logging": (),
    "traceback": (),
    "rich.print": (),
    "rich.print_json": (),
    "rich.get_console": (),
    "rich.console.Console": ("render/screen.py", "base/progress.py"),
    "rich.live": ("render/screen.py",),
    "rich.progress": ("base/progress.py",),
    "rich.prompt": (),
    "csv.writer": ("base/outputs.py",),
    "csv.DictWriter": (),
    "html": ("base/escape.py",),
    "xml.sax.saxutils": (),
}
# Methods of a console, of any object.
METHODS = {
    "console.print": ("render/screen.py",),
    "console.out": (),
    "console.log": (),
    "console.print_json": (),
}
ADVICE = "print by commlens.render.screen.Screen or commlens.base.messages.print_message, write by commlens.base.escape"


def dotted(node: ast.AST, imported: dict[str, str]) -> str:
    """Return a name such as sys.stdout.write with what its first part was imported as; empty if it is no name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([imported.get(node.id, node.id), *reversed(parts)])


def uses(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Return line and full name of each name that a module imports or uses."""
    imported: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
                if alias.asname:
                    imported[alias.asname] = alias.name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}"
                imported[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    for node in ast.walk(tree):
        if isinstance(node, (ast.Name, ast.Attribute)):
            yield node.lineno, dotted(node, imported)


def is_below(name: str, known: str) -> bool:
    """Return whether a name is `known` or an attribute of it."""
    return name == known or name.startswith(f"{known}.")


def findings(file: Path, folder: Path) -> Iterator[str]:
    """Return a line for each name that the file may not use."""
    own = file.relative_to(folder).as_posix()
    found: dict[tuple[int, str], None] = {}
    for number, name in uses(ast.parse(file.read_bytes(), str(file))):
        for known, files in ALLOWED.items():
            if is_below(name, known) and own not in files:
                found[number, known] = None
        for known, files in METHODS.items():
            if f".{name}".endswith(f".{known}") and own not in files:
                found[number, known] = None
    for number, known in sorted(found):
        yield f"{file}:{number}: {known}: {ADVICE}"


def main() -> int:
    """Check all files; return the exit code."""
    folder = Path(sys.argv[1])
    found = [line for file in sorted(folder.rglob("*.py")) for line in findings(file, folder)]
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
