# SPDX-License-Identifier: Apache-2.0
"""A small part of the proof (`make proof`, docs/evidence/transparency.md): a few files of mpi4py's own tests, both MPIs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from harness import ROOT, Mpi
from test_languages import mpi4py_env

sys.path.append(str(ROOT))

from proof import fetch
from proof.compare import different
from proof.run import Pairs, Program
from proof.suites import MPI4PY, SUITES

FILES = {"test_p2p_buf": 40, "test_cco_nb_vec": 50, "test_comm": 20, "test_request": 5, "test_exceptions": 30}
"""And how many of its cases, at least, do not just say that they were skipped."""


@pytest.mark.parametrize("file", FILES)
def test_cases_of_mpi4py_end_as_they_do_without_commlens(mpi: Mpi, file: str, tmp_path: Path) -> None:
    main = fetch.sdist("mpi4py", MPI4PY) / "test" / "main.py"
    program = Program(file, (sys.executable, main, "--no-builddir", "-v", file), mpi4py_env(mpi), seconds=600)
    pairs = Pairs(SUITES["mpi4py"], mpi, program, 2, tmp_path)
    cases = pairs.compare(again=3)
    assert not {name: cases[name] for name in different(cases)}
    assert sum(case.under[0].outcome == "ok" for case in cases.values()) > FILES[file]
    assert pairs.calls > 100
