# SPDX-License-Identifier: Apache-2.0
"""Check the files of the repository: only known names at its root, and binaries only where they are expected.

    python tools/check_tree.py [ROOT]

Prints a line for each file that is out of place and ends with 1 if there is one.  Untracked files count,
unless git ignores them.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import complaints

AT_ROOT = frozenset(
    [
        ".ci",
        ".clang-format",
        ".clang-tidy",
        ".editorconfig",
        ".github",
        ".gitignore",
        "CHANGELOG.md",
        "CITATION.cff",
        "CMakeLists.txt",
        "CMakePresets.json",
        "CODE_OF_CONDUCT.md",
        "CONTRIBUTING.md",
        "LICENSE",
        "Makefile",
        "README.md",
        "SECURITY.md",
        "VERSION",
        "adapters",
        "bench",
        "cmake",
        "codemeta.json",
        "core",
        "docs",
        "fortran",
        "fuzz",
        "gen",
        "generated",
        "include",
        "mkdocs.yml",
        "proof",
        "packaging",
        "page",
        "paper",
        "pyproject.toml",
        "python",
        "slurm",
        "spec",
        "tests",
        "third_party",
        "tools",
    ]
)
BINARIES = (
    "docs/evidence/comparison.tar.xz",
    "fuzz/arena/corpus/",
    "tests/profiles/",
    "tests/python/images/",
)
LOOKED_AT = 8192
"""Number of bytes to read; a file without a zero byte among them is text, as for git."""


def files(root: Path) -> list[str]:
    """Return the paths of all files that git tracks or would add, relative to `root`."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return sorted({name for name in listed.split("\0") if name and (root / name).is_file()})


def is_binary(path: Path) -> bool:
    """Return whether a file has a zero byte near its beginning."""
    with path.open("rb") as file:
        return b"\0" in file.read(LOOKED_AT)


def found(root: Path) -> list[str]:
    """Return one line for each file that is out of place."""
    lines = []
    for name in files(root):
        if name.split("/")[0] not in AT_ROOT:
            lines.append(f"{name}: not on the list of what is at the root (AT_ROOT in tools/check_tree.py)")
        if not name.startswith(BINARIES) and is_binary(root / name):
            lines.append(f"{name}: a binary; these belong into {' or '.join(BINARIES)}")
    return lines


if __name__ == "__main__":
    sys.exit(
        complaints.main(
            found, lambda root: f"check_tree: all {len(files(root)):,} files are where they belong"
        )
    )
