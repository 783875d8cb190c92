# SPDX-License-Identifier: Apache-2.0
"""Look at the direction of includes between the folders of core/.

    python tools/check_rooms.py [ROOT]

Prints a line for each include that points the wrong way, and ends with 1 if there is one.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

USES: dict[str, str] = {
    "api": "",
    "libc": "",
    "base": "",
    "hot": "base",
    "arena": "base hot",
    "process": "base",
    "state": "base hot arena process",
    "job": "base hot arena process state",
    "profile": "base process state",
    "out": "base profile",
    "collect": "base hot state profile out",
    "mpi": "api base hot arena process state job profile out collect",
    "recover": "base hot arena process state profile out collect",
    "programs": "base out recover",
}
"""What the files of each folder may include, besides their own folder's."""

INCLUDE = re.compile(r'^\s*#\s*include\s+"core/(\w+)/', re.MULTILINE)


def complaints(root: Path) -> list[str]:
    """Return one line for each include against the order, and for each folder without a place in it."""
    lines = []
    for path in sorted((root / "core").rglob("*")):
        if path.suffix not in {".h", ".c", ".cpp", ".S", ".inc"}:
            continue
        room = path.relative_to(root / "core").parts[0]
        if room not in USES:
            lines.append(f"{path.relative_to(root)}: core/{room} has no line in USES of tools/check_rooms.py")
            continue
        text = path.read_text(encoding="utf-8")
        for match in INCLUDE.finditer(text):
            if match[1] != room and match[1] not in USES[room].split():
                number = text.count("\n", 0, match.start(1)) + 1
                lines.append(f"{path.relative_to(root)}:{number}: core/{room} must not use core/{match[1]}")
    return lines


def main() -> int:
    """Print all complaints; return the exit code."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1]
    found = complaints(root)
    print("\n".join(found) or "check_rooms: all includes point one way")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
