# SPDX-License-Identifier: Apache-2.0
"""Shared code of the generators: reads a specification, writes or compares the results."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent


def read_toml(path: str) -> dict[str, Any]:
    """Return the TOML file at `path`, relative to the root of the repository."""
    with (ROOT / path).open("rb") as file:
        return tomllib.load(file)


def main(texts: dict[str, str]) -> int:
    """Write `texts` (path -> content), or with --check name the files that differ; return the exit code."""
    if sys.argv[1:] not in ([], ["--check"]):
        print(f"usage: {sys.argv[0]} [--check]", file=sys.stderr)
        return 2
    stale = []
    for path, text in texts.items():
        file = ROOT / path
        if file.exists() and file.read_text(encoding="utf-8") == text:
            continue
        if sys.argv[1:]:
            stale.append(path)
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    for path in stale:
        print(
            f"{path} is not what its specification says: run 'make gen' and commit the result",
            file=sys.stderr,
        )
    return 1 if stale else 0
