# SPDX-License-Identifier: Apache-2.0
"""Public test programs without and with commlens: is there any difference?  See README.md."""

import sys
from pathlib import Path

# How MPI programs are launched is known there already.
sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "mpi"))
