# SPDX-License-Identifier: Apache-2.0
"""Makes the builders of the reader's tests importable; imported before them."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

for folder in ("tests/python", "python"):
    if str(ROOT / folder) not in sys.path:
        sys.path.insert(0, str(ROOT / folder))
