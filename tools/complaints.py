# SPDX-License-Identifier: Apache-2.0
"""Common code of the checks of the repository: root of the tree, lines to print, exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path


def main(complaints: Callable[[Path], list[str]], good: Callable[[Path], str]) -> int:
    """Print one line for each complaint, or the line `good` if there is none; return the exit code.

    The first argument of the program is the root of the tree to check; the default is this repository.
    """
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1]
    found = complaints(root)
    print("\n".join(found) or good(root))
    return 1 if found else 0
