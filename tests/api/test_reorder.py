# SPDX-License-Identifier: Apache-2.0
"""commlens_reorder() without the profiler: a duplicate, whatever MPI library the program uses."""

from __future__ import annotations

from pathlib import Path

import pytest
from application import PROGRAMS, Kit, run

SAID = """\
test_inter 1
split 1 1 0
free 51
dup 1
1: 0 101
test_inter 2
dup 2
2: 0 102
test_inter 3
split 3 1 0
3: -1 9
test_inter 4
split 4 1 0
free 54
dup 4
4: -1 9
test_inter 0
0: -1 9
test_inter 1
split 1 1 0
free 51
dup 1
Fortran: 0 101
null: -1
"""

LIBRARIES = {
    "MPICH": ("libmpi.so", ()),
    "Open MPI": ("libmpi.so", ("-DPOINTERS", "-DOPEN_MPI")),
    "the standard interface": ("libmpi_abi.so.0", ("-DPOINTERS",)),
}


def library_of(kit: Kit, library: str, flags: tuple[str, ...]) -> Path:
    """Build a stand-in for an MPI library."""
    mpi = kit.work / library
    run("cc", "-shared", "-fPIC", f"-Wl,-soname,{library}", *flags, PROGRAMS / "mpi.c", "-o", mpi)
    return mpi


def build(kit: Kit, library: str, flags: tuple[str, ...]) -> Path:
    """Build the program with a stand-in for an MPI library."""
    mpi = library_of(kit, library, flags)
    rpath = f"-Wl,-rpath,{kit.work}"
    return kit.build(PROGRAMS / "reorder.c", *flags, *kit.link, "-Wl,--no-as-needed", mpi, rpath)


@pytest.mark.parametrize(("library", "flags"), LIBRARIES.values(), ids=LIBRARIES.keys())
def test_it_is_a_duplicate_with_each_kind_of_handle(kit: Kit, library: str, flags: tuple[str, ...]) -> None:
    assert kit.run(build(kit, library, flags)).output == SAID


@pytest.mark.parametrize(("library", "flags"), LIBRARIES.values(), ids=LIBRARIES.keys())
def test_it_finds_mpi_that_was_loaded_for_a_plugin(kit: Kit, library: str, flags: tuple[str, ...]) -> None:
    """Python loads its extensions, and with mpi4py MPI, so that others do not see their names."""
    program = kit.build(PROGRAMS / "reorder.c", *flags, *kit.link)
    assert kit.run(program, library_of(kit, library, flags)).output == SAID


@pytest.mark.parametrize("flags", [(), ("-DEARLY", "-DSESSIONS"), ("-DSESSIONS",)], ids=str)
def test_while_mpi_is_usable(kit: Kit, flags: tuple[str, ...]) -> None:
    """A communicator of a session can be there without MPI_Init."""
    assert kit.run(build(kit, "libmpi.so", flags)).output == SAID


NONE = "".join(f"{n}: -1 9\n" for n in (1, 2, 3, 4, 0)) + "Fortran: -1 9\nnull: -1\n"


@pytest.mark.parametrize("flags", [("-DEARLY",), ("-DLATE",), ("-DLATE", "-DSESSIONS")], ids=str)
@pytest.mark.parametrize("pointers", [(), ("-DPOINTERS", "-DOPEN_MPI")], ids=["integers", "pointers"])
def test_before_and_after_mpi_it_calls_nothing(
    kit: Kit, flags: tuple[str, ...], pointers: tuple[str, ...]
) -> None:
    assert kit.run(build(kit, "libmpi.so", (*flags, *pointers))).output == NONE


def test_without_mpi_there_is_no_communicator(kit: Kit) -> None:
    assert kit.run(kit.build(PROGRAMS / "reorder.c", *kit.link)).output == NONE


def test_fortran_passes_integers_of_any_size(kit: Kit) -> None:
    source = kit.write(
        "reorder.f90",
        """
        use commlens
        integer :: comm, made, outcome
        logical :: reordered
        comm = 5
        made = 9
        call commlens_reorder(comm, made, reordered, outcome)
        print '(i0, 1x, i0, 1x, l1)', made, outcome, reordered
        end
        """,
    )
    for flags in ((), ("-fdefault-integer-8",)):
        program = kit.build(source, *flags)
        assert kit.run(program).output == "9 -1 F\n"
        profiled = kit.run(program, preload=kit.profiler)
        assert profiled.output == "12 1 T\n"
        assert profiled.calls == ["0 reorder 5"]
