# SPDX-License-Identifier: Apache-2.0
"""Check the direction of includes between the folders of core/, and of imports between those of python/commlens/.

    python tools/check_rooms.py [ROOT]

Prints a line for each include or import that points the wrong way, and ends with 1 if there is one.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import complaints

INCLUDES: dict[str, str] = {
    "api": "",
    "libc": "",
    "base": "",
    "hot": "base",
    "arena": "base hot",
    "process": "base",
    "place": "",
    "state": "base hot arena process",
    "job": "api base hot arena process state",
    "profile": "base process state",
    "out": "base profile",
    "collect": "base hot state profile out",
    "mpi": "api base hot arena process place state job profile out collect",
    "recover": "base hot arena process state profile out collect",
    "history": "base arena state recover",
    "programs": "base process out recover history",
}
"""The folders that the files of each folder of core/ may include, besides their own; only folders of lines above."""

IMPORTS: dict[str, str] = {
    "annotate": "",
    "base": "",
    "launch": "base",
    "symbols": "base",
    "render": "base",
    "profile": "base",
    "selection": "base profile",
    "reports": "base symbols render profile selection",
    "findings": "base symbols render profile",
    "jobs": "base launch symbols render profile selection",
    "algorithms": "base render profile selection",
    "matrix": "base render profile selection algorithms",
    "overhead": "base launch render",
    "compare": "base symbols render profile selection reports algorithms overhead",
    "waiting": "base render profile selection reports",
    "tune": "base launch render profile selection reports algorithms overhead compare waiting",
    "place": "base render profile selection algorithms matrix",
    "charts": "base render profile compare",
    "page": "base symbols render profile reports findings algorithms matrix compare waiting charts",
    "fleet": "base symbols render profile selection reports findings matrix",
    "doctor": "base launch symbols render",
    "selftest": "annotate base launch profile jobs overhead doctor",
    "export": "base symbols profile selection",
    "frames": "base profile export page",
    "__init__": "annotate frames",
    "cli": "base symbols render profile selection reports findings jobs algorithms matrix overhead compare waiting tune place charts page fleet doctor selftest export",
    "__main__": "cli",
}
"""The same for python/commlens/; each file beside its folders counts as a folder."""

INCLUDE = re.compile(r'^\s*#\s*include\s+"core/(\w+)/', re.MULTILINE)
PACKAGE = "commlens"


def included(path: Path, _: Path) -> Iterator[tuple[int, str]]:
    """Yield line and folder of each include of a file in core/."""
    text = path.read_text(encoding="utf-8")
    for match in INCLUDE.finditer(text):
        yield text.count("\n", 0, match.start(1)) + 1, match[1]


def imported(path: Path, top: Path) -> Iterator[tuple[int, str]]:
    """Yield line and room of each import of the package, also of those within functions."""
    for node in ast.walk(ast.parse(path.read_bytes(), str(path))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            folders = path.relative_to(top.parent).parts[: -node.level] if node.level else ()
            module = ".".join([*folders, *([node.module] if node.module else [])])
            names = [f"{module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            package, _, rest = name.partition(".")
            if package == PACKAGE:
                room = rest.partition(".")[0]
                yield node.lineno, room if room in IMPORTS or "." in rest else "__init__"


def rooms(top: Path, suffixes: set[str]) -> Iterator[tuple[Path, str]]:
    """Yield each file with such a suffix, and its folder below `top` or, beside the folders, its own name."""
    for path in sorted(top.rglob("*")):
        if path.suffix in suffixes:
            first, *rest = path.relative_to(top).parts
            yield path, first if rest else path.stem


def disordered(name: str, uses: Mapping[str, str]) -> Iterator[str]:
    """Yield a complaint for each room that may use a room of a line below it, because that allows a cycle."""
    above: set[str] = set()
    for room, used in uses.items():
        for other in used.split():
            if other not in above:
                yield f"{name}: {room} may use {other}, which is not above it"
        above.add(room)


def found(root: Path) -> list[str]:
    """Return one line for each include or import against the order, and for each room without a place in it."""
    lines = [*disordered("INCLUDES", INCLUDES), *disordered("IMPORTS", IMPORTS)]
    for top, suffixes, reader, name, uses in (
        ("core", {".h", ".c", ".cpp", ".S", ".inc"}, included, "INCLUDES", INCLUDES),
        ("python/commlens", {".py"}, imported, "IMPORTS", IMPORTS),
    ):
        for path, room in rooms(root / top, suffixes):
            file = path.relative_to(root)
            if room not in uses:
                lines.append(f"{file}: {top}/{room} has no line in {name} of tools/check_rooms.py")
                continue
            lines += [
                f"{file}:{number}: {top}/{room} must not use {top}/{other}"
                for number, other in reader(path, root / top)
                if other != room and other not in uses[room].split()
            ]
    return lines


if __name__ == "__main__":
    sys.exit(complaints.main(found, lambda _: "check_rooms: all includes and imports point one way"))
