# SPDX-License-Identifier: Apache-2.0
"""Finds commlens-run."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path


def find_runner(given: str | None, env: Mapping[str, str]) -> Path | None:
    """Return commlens-run: the given path, else from PATH, beside this command, or in a build tree."""
    if given is not None and ("/" in given or Path(given).name != "commlens-run"):
        return Path(given) if os.access(given, os.X_OK) else None
    found = shutil.which("commlens-run", path=env.get("PATH"))
    if found:
        return Path(found)
    root = Path(__file__).resolve().parents[3]
    for folder in (Path(sys.argv[0]).parent, Path(sys.executable).parent, root / "build" / "release" / "bin"):
        if os.access(folder / "commlens-run", os.X_OK):
            return (folder / "commlens-run").absolute()
    return None
