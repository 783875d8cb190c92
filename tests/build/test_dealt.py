# SPDX-License-Identifier: Apache-2.0
"""`make test` runs a case of the MPI tests marked `dealt` with one of the two libraries, `make test-all` with both."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def collected(*options: str) -> set[tuple[str, str]]:
    """Return the dealt cases of the MPI tests that pytest would run, and with which library."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--collect-only",
        "--quiet",
        "-p",
        "no:cacheprovider",
        "-m",
        "dealt",
    ]
    environment = {name: value for name, value in os.environ.items() if name != "COMMLENS_TEST_MPI"}
    done = subprocess.run(
        [*command, *options, "tests/mpi"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    found = re.findall(r"^(tests/mpi/.*\[.*?)(openmpi|mpich)(?=[-\]])(.*)$", done.stdout, re.MULTILINE)
    return {(before + after, library) for before, library, after in found}


def test_a_case_runs_with_one_library_and_both_libraries_run_half() -> None:
    every, dealt = collected("--every-case"), collected()
    cases = {case for case, _ in every}
    assert len(cases) > 100
    assert every == {(case, library) for case in cases for library in ("openmpi", "mpich")}
    assert dealt < every
    assert Counter(case for case, _ in dealt) == Counter(cases)
    by_file = Counter((case.partition("::")[0], library) for case, library in dealt)
    for file in {file for file, _ in by_file}:
        assert abs(by_file[file, "openmpi"] - by_file[file, "mpich"]) <= 2, file


def test_a_test_that_is_asked_for_by_name_runs_with_both_libraries() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "--quiet", "-p", "no:cacheprovider",
         "tests/mpi/test_storage.py::test_over_quota"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "4 tests collected" in done.stdout
