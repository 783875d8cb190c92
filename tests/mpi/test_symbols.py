# SPDX-License-Identifier: Apache-2.0
"""What the library shows to the program it is loaded into, and what it asks for."""

from __future__ import annotations

import re
import subprocess
import sys

import evidence
from build_once import PATIENCE
from harness import ROOT, Mpi

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def _symbols(mpi: Mpi, which: str) -> list[tuple[str, str]]:
    done = subprocess.run(
        ["nm", "-D", f"--{which}-only", str(mpi.library)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60 * PATIENCE,
    )
    found = []
    for line in done.stdout.splitlines():
        *_, kind, name = line.split()
        found.append((kind, name))
    assert found
    return found


def test_exports_are_mpi_names_and_ours(mpi: Mpi) -> None:
    """C names, the names Fortran calls them by (mpi_x_, MPI_X, mpi_x_f08_), and commlens_*, for Fortran COMMLENS_*_F."""
    exported = [name.partition("@")[0] for kind, name in _symbols(mpi, "defined") if kind != "A"]
    strange = [
        name
        for name in exported
        if not re.fullmatch(r"(P?MPI_\w+|p?mpi_[a-z0-9_]+|commlens_\w+|COMMLENS_\w+_F)", name)
    ]
    assert strange == []
    assert {"MPI_Init", "PMPI_Init", "MPI_Allreduce", "PMPI_Allreduce"} <= set(exported)
    plain = {name for name in exported if name.startswith("MPI_") and not name.isupper()}
    assert {f"P{name}" for name in plain} == {
        name for name in exported if name.startswith("PMPI_") and not name.isupper()
    }
    # mpi4py looks for these with dlopen(None), before any MPI library is there
    assert (
        plain & {"MPI_Get_version", "MPI_Get_library_version", "MPI_Abi_get_version", "MPI_Abi_get_info"}
        == set()
    )


def test_every_function_that_annotated_programs_call_is_there(mpi: Mpi) -> None:
    """Else it would be the empty one that is called.  Beside them is what libcommlens.a calls."""
    empty = mpi.library.parents[1] / "libcommlens-api.so"
    done = subprocess.run(
        ["nm", "-D", "--defined-only", str(empty)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60 * PATIENCE,
    )
    wanted = {line.split()[-1] for line in done.stdout.splitlines()}
    assert {"commlens_begin", "commlens_begin_f_", "COMMLENS_BEGIN_F"} <= wanted
    assert {name for _, name in _symbols(mpi, "defined") if name.lower().startswith("commlens_")} == {
        *wanted,
        "commlens_stand_aside",
    }


def test_what_is_not_measured_is_not_touched(mpi: Mpi) -> None:
    """A procedure that spec/calls.toml leaves out has no entry of ours: its calls go straight to the MPI library."""
    spec = tomllib.loads((ROOT / "spec" / "calls.toml").read_text(encoding="utf-8"))
    blocks = spec["skip"]
    prefixes = tuple(block["prefix"] for block in blocks if "prefix" in block)
    skipped = {name for block in blocks for name in block.get("calls", ())}
    skipped = {name for name in mpi.procedures if name in skipped or name.startswith(prefixes)}
    skipped -= set(spec["tool"]["calls"])
    assert len(skipped) > 30
    ours = {name.partition("@")[0] for _, name in _symbols(mpi, "defined")}
    assert skipped & ours == set()
    library = mpi.run(1, [mpi.compile("listing1.c")]).open().meta()["mpi_library"]
    evidence.note(evidence.short_name(library), skipped)


def test_only_libc_is_asked_for(mpi: Mpi) -> None:
    for kind, name in _symbols(mpi, "undefined"):
        versioned = re.fullmatch(r"\w+@GLIBC_[\d.]+", name)
        # Weak: what start files and the parts of the static libstdc++ made for transactional memory would use.
        optional = kind == "w" and re.fullmatch(r"__gmon_start__|_ITM_\w+|_ZGT\w+|__cxa_pure_virtual", name)
        assert versioned or optional, f"{kind} {name}"
    done = subprocess.run(
        ["readelf", "-d", str(mpi.library)], capture_output=True, text=True, check=True, timeout=60 * PATIENCE
    )
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", done.stdout))
    assert needed <= {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}, needed
    assert "TEXTREL" not in done.stdout


def test_it_can_be_loaded_into_a_program_without_mpi(mpi: Mpi) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", "echo fine; exit 4"],
        env={"LD_PRELOAD": str(mpi.library), "LD_BIND_NOW": "1", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=30 * PATIENCE,
    )
    assert (done.returncode, done.stdout, done.stderr) == (4, "fine\n", "")


def test_the_runner_is_small_and_asks_for_little(mpi: Mpi) -> None:
    done = subprocess.run(
        ["readelf", "-d", str(mpi.runner)], capture_output=True, text=True, check=True, timeout=60 * PATIENCE
    )
    assert set(re.findall(r"\(NEEDED\).*\[(.*)\]", done.stdout)) <= {"libc.so.6"}
