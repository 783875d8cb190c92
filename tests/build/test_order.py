# SPDX-License-Identifier: Apache-2.0
"""The functions that small jobs run lie together in the library, so that a process maps little of the rest."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "release"


@pytest.mark.parametrize("mpi", ["openmpi", "mpich", "abi"])
def test_functions_of_small_jobs_lie_together(mpi: str) -> None:
    if not (BUILD / "ordered.ld").exists():
        pytest.skip("only GNU's linker puts functions in an order")
    library = BUILD / "lib" / mpi / "libcommlens.so"
    done = subprocess.run(["nm", "-S", library], capture_output=True, text=True, check=True)
    functions = [line.split() for line in done.stdout.splitlines() if line.count(" ") == 3]
    wanted = set((ROOT / "cmake" / "order.txt").read_text().split())
    wrappers = [f for f in functions if f[2] in "tT" and "wrap_MPI" in f[3] and not f[3].endswith(".cold")]
    inside = [f for f in wrappers if f[3] in wanted]
    first, last = (pick(int(f[0], 16) for f in inside) for pick in (min, max))
    others = [f for f in wrappers if f[3] not in wanted and first < int(f[0], 16) < last]
    assert len(inside) >= 10, (
        "cmake/order.txt knows the wrappers by other names: bench/order.py writes it anew"
    )
    assert not others
