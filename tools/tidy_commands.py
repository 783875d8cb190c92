# SPDX-License-Identifier: Apache-2.0
"""Write the compile commands that clang-tidy needs, as in tools/tidy_commands.py build/release build/tidy.

core/mpi is compiled once for each binary interface of MPI, and clang-tidy checks a file once for each of its commands.
Only a file that asks for the interface needs all of them.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

ASKS = re.compile(r"^#\s*(el)?if.*\b(OPEN_MPI|MPI_ABI_VERSION)\b", re.MULTILINE)


def needed(commands: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the first command of each file, and all commands of the files whose code depends on the interface."""
    first: dict[str, dict[str, Any]] = {}
    found = []
    for command in commands:
        is_first = first.setdefault(command["file"], command) is command
        if is_first or ASKS.search(Path(command["file"]).read_text(encoding="utf-8")):
            found.append(command)
    return found


def main(build: str, folder: str) -> None:
    """Write the commands of a build folder that clang-tidy needs into another folder."""
    commands = json.loads(Path(build, "compile_commands.json").read_text(encoding="utf-8"))
    Path(folder).mkdir(parents=True, exist_ok=True)
    Path(folder, "compile_commands.json").write_text(json.dumps(needed(commands)), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
