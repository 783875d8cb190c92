# SPDX-License-Identifier: Apache-2.0
"""Compares table coverage with the output of nm, and with the calls made."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from harness import PROGRAMS, Mpi, commlens
from launches import Result
from test_languages import mpi4py_env

from commlens.reports._bindings import CXX

NAMES = re.compile(r"P?MPIX?_\w+|p?mpix?_\w+")


def undefined(path: Path | str) -> set[str]:
    """Return the MPI names that a file imports, as nm lists them."""
    done = subprocess.run(
        ["nm", "-D", "--undefined-only", str(path)], capture_output=True, text=True, check=True, timeout=60
    )
    names = {line.split()[-1].partition("@")[0] for line in done.stdout.splitlines()}
    # Data of Open MPI's Fortran binding, and its callbacks, are nothing to call.
    return {n for n in names if NAMES.fullmatch(n) and not re.match(r"mpi_fortran_|.*_fn_$", n)}


def states(result: Result) -> dict[str, tuple[str, int | None]]:
    """Return state and calls of each procedure."""
    assert result.rc == 0, result
    return {
        row["procedure"]: (row["state"], row["calls"])
        for row in result.open().rows("SELECT procedure, state, calls FROM procedure")
    }


@pytest.mark.parametrize("language", ["C", "mpif.h", "mpi", "mpi_f08"])
def test_a_program_imports_what_nm_says_and_all_of_it_is_measured(mpi: Mpi, language: str) -> None:
    if language == "C":
        program = mpi.compile("tour.c")
    else:
        define = {"mpif.h": "MPIF_H", "mpi": "USE_MPI", "mpi_f08": "USE_MPI_F08"}[language]
        flags = ["-cpp", f"-D{define}", "-fallow-argument-mismatch", "-w"]
        program = mpi.compile("tour.F90", "fortran", flags=flags)
    result = mpi.run(4, [program])
    assert result.rc == 0, result
    rows = result.open().rows("SELECT symbol, object, state, ranks FROM coverage")
    assert {row["symbol"] for row in rows} == undefined(program)
    assert len(rows) > 30
    assert {(row["object"], row["state"], row["ranks"]) for row in rows} == {(program.name, "measured", 4)}


def test_what_was_never_called_is_told_from_what_was(mpi: Mpi) -> None:
    program = mpi.compile("imports.c")
    silent = states(mpi.run(2, [program]))
    assert silent == {
        "MPI_Alltoall": ("measured", 0),
        "MPI_Comm_rank": ("measured", 0),
        "MPI_Finalize": ("measured", None),
        "MPI_Init": ("measured", None),
        "MPI_Sendrecv_replace": ("measured", 0),
        "MPI_Wtime": ("skipped", None),
    }
    sent = states(mpi.run(2, [program, "send"]))
    assert sent == silent | {"MPI_Comm_rank": ("measured", 2), "MPI_Sendrecv_replace": ("measured", 2)}


def test_what_is_bound_past_us_is_unseen(mpi: Mpi) -> None:
    plugin = mpi.compile("imports.c", flags=["-DPLUGIN", "-fPIC", "-shared"])
    # Position independent: else the executable has its own copy of Open MPI's MPI_COMM_WORLD, and the plugin another.
    host = mpi.compile("imports.c", flags=["-fPIC"])
    assert mpi.run(2, [host, "plugin", plugin], mode="off").rc == 0
    found = states(mpi.run(2, [host, "plugin", plugin]))
    assert found["MPI_Barrier"] == ("unseen", None)
    assert found["MPI_Init"] == ("measured", None)


def test_what_a_fortran_binding_does_by_itself_is_unseen(mpi: Mpi) -> None:
    result = mpi.run(2, [mpi.compile("attributes.F90", "fortran")])
    assert result.lines == ["found", "found"]
    found = states(result)
    assert found == {
        "MPI_Barrier": ("measured", 2),
        "MPI_Comm_get_attr": ("unseen", None),
        "MPI_Finalize": ("measured", None),
        "MPI_Init": ("measured", None),
    }


def test_of_mpi4py_everything_this_mpi_has_is_measured_or_left_out_on_purpose(mpi: Mpi) -> None:
    result = mpi.run(4, [sys.executable, PROGRAMS / "tour.py"], env=mpi4py_env(mpi))
    assert result.rc == 0, result
    profile = result.open()
    rows = profile.rows("SELECT object, state, COUNT(*) AS names FROM coverage GROUP BY 1, 2")
    (object,) = {row["object"] for row in rows}
    assert re.fullmatch(rf"MPI\.{mpi.family}\..*\.so", object)
    count = {row["state"]: row["names"] for row in rows}
    # The wheel knows more of MPI than an older library has, and the extensions for fault tolerance of some.
    assert {"measured", "skipped"} <= set(count) <= {"measured", "skipped", "absent", "unseen"}
    assert ("absent" in count) or not mpi.known
    unseen = profile.rows("SELECT procedure FROM coverage WHERE state = 'unseen'")
    assert [row for row in unseen if not row["procedure"].startswith("MPIX_")] == []
    assert count["measured"] > 300
    # mpi4py calls nothing it does not import.
    assert profile.rows("SELECT * FROM procedure WHERE objects IS NULL") == []
    calls = {row["procedure"]: row["calls"] for row in profile.rows("SELECT procedure, calls FROM procedure")}
    assert calls["MPI_Alltoallv"] == 4
    assert calls["MPI_Rsend"] == 0


def test_a_tool_behind_us_is_not_the_mpi_library(mpi: Mpi) -> None:
    """A tool that counts sends by PMPI_Send imports that name; the application's own import is measured."""
    tool = mpi.compile("count_sends.c", shared=True)
    result = mpi.run(4, [mpi.compile("tour.c")], preload=[tool])
    rows = result.open().rows("SELECT symbol, state FROM coverage WHERE object = ?", tool.name)
    assert {row["symbol"] for row in rows} == undefined(tool)
    assert {row["state"] for row in result.open().rows("SELECT state FROM coverage")} == {"measured"}


def test_the_cxx_bindings_import_what_the_list_says(mpi: Mpi, tmp_path: Path) -> None:
    """An empty C++ program imports the procedures of the bindings, at every level of optimisation, or none of them."""
    source = tmp_path / "empty.cpp"
    source.write_text("#include <mpi.h>\nint main(int n, char** a) { MPI_Init(&n, &a); MPI_Finalize(); }\n")
    has_bindings = mpi.family == "openmpi" and mpi.release.startswith("4.")
    for level in ("-O0", "-O2"):
        program = mpi.compile(source, flags=[level])
        found = undefined(program) - {"MPI_Init", "MPI_Finalize"}
        assert found == (CXX if has_bindings else set()), level


def test_a_cxx_program_is_listed_by_what_it_calls(mpi: Mpi) -> None:
    profile = mpi.run(4, [mpi.compile("tour.cpp")]).profile
    done = commlens("coverage", profile)
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.split("\n\n")[1].splitlines()[1:] if line.startswith("MPI_")]
    calls = [int(line.split()[1].replace(",", "")) for line in rows]
    assert calls == sorted(calls, reverse=True) and calls[0] > 0
    if mpi.family == "openmpi" and mpi.release.startswith("4."):
        assert min(calls) > 0
        assert "procedures without calls, which the C++ bindings in mpi.h import into tour-" in done.stdout
    else:
        assert "C++ bindings" not in done.stdout
