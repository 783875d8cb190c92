# SPDX-License-Identifier: Apache-2.0
"""What `make test-rust` needs of the tests with MPI."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "mpi"))
