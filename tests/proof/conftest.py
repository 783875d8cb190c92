# SPDX-License-Identifier: Apache-2.0
"""The proof is run as a package from the root of the repository."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "python")]
