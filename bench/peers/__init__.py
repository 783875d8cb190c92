# SPDX-License-Identifier: Apache-2.0
"""Other profilers beside commlens: built, run on the same programs, compared on one page."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# The modules of fuzz/ import others without the name of the folder.
for path in (ROOT / "tests" / "mpi", ROOT / "python", ROOT):
    if str(path) not in sys.path:
        sys.path.append(str(path))
