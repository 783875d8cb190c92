# SPDX-License-Identifier: Apache-2.0
"""What the checks of the repository share: the root that they look at, the lines that they print, the exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path


def main(complaints: Callable[[Path], list[str]], good: Callable[[Path], str]) -> int:
    """Print one line for each complaint, or the one that all is good; return the exit code.

    The first argument of the program is the root of the tree to look at; without one it is that of this repository.
    """
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1]
    found = complaints(root)
    print("\n".join(found) or good(root))
    return 1 if found else 0
