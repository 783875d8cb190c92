# SPDX-License-Identifier: Apache-2.0
"""A machine made of shims: tools/setup.sh sees only the commands a test puts there."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# What the script itself is written with; everything it looks for is left out.
SHELL_TOOLS = (
    "bash",
    "cat",
    "cut",
    "dirname",
    "env",
    "grep",
    "mkdir",
    "rm",
    "sed",
    "sha256sum",
    "sort",
    "tail",
    "tr",
)


def without_make() -> dict[str, str]:
    """Return our environment without what an outer make tells an inner one."""
    return {
        name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    }


class Machine:
    """A copy of tools/ and a PATH with nothing but shims."""

    def __init__(self, path: Path) -> None:
        self.checkout = path / "checkout"
        self.bin = path / "bin"
        self.said = path / "said"
        shutil.copytree(ROOT / "tools", self.checkout / "tools")
        self.bin.mkdir()
        for tool in SHELL_TOOLS:
            found = shutil.which(tool)
            assert found, tool
            (self.bin / tool).symlink_to(found)

    def shim(self, name: str, script: str = "") -> None:
        """Add a command that notes its arguments, then runs `script`."""
        file = self.bin / name
        file.write_text(f'#!/bin/bash\necho "{name} $*" >>"{self.said}"\n{script}\n')
        file.chmod(0o755)

    def calls(self, name: str) -> list[str]:
        """Return the command lines with which the shim `name` was called."""
        lines = self.said.read_text().splitlines() if self.said.exists() else []
        return [line for line in lines if line.split()[0] == name]

    def setup(self, *groups: str) -> subprocess.CompletedProcess[str]:
        """Run tools/setup.sh with this PATH, without a terminal."""
        return subprocess.run(
            [str(self.bin / "bash"), "tools/setup.sh", *groups],
            cwd=self.checkout,
            env={"PATH": str(self.bin), "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
