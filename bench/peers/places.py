# SPDX-License-Identifier: Apache-2.0
"""Where the comparison keeps its files. All of them are below build/, which git ignores, but for the page."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOME = Path(os.environ.get("PEERS_HOME", ROOT / "build" / "peers"))
"""The folder of everything; the environment chooses another one, for tests."""

SOURCES = HOME / "src"
INSTALLED = HOME / "install"
LOGS = HOME / "log"
RESULTS = HOME / "results"
PROGRAMS = HOME / "programs"
PAGE = ROOT / "docs" / "comparison.md"
ARCHIVE = Path("evidence", "comparison.tar.xz")
"""Beside the page: all results."""
RUNNER = ROOT / "build" / "release" / "bin" / "commlens-run"


def name_folders(text: str) -> str:
    """Return a text as the page shows it: names instead of this machine's folders.

    >>> name_folders(f"{INSTALLED}/AMG {HOME}/programs {ROOT}/tools")
    'PREFIX/AMG PEERS/programs ./tools'
    """
    for folder, name in ((INSTALLED, "PREFIX"), (HOME, "PEERS"), (ROOT, ".")):
        text = text.replace(str(folder), name)
    return text
