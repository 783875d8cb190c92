# SPDX-License-Identifier: Apache-2.0
"""Every procedure the MPI library declares, plain and large-count form: counted as often as it was called.

programs/every.c makes each call of its text and of every_*.h exactly once on each rank, so the text is what the profile
must say.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from declarations import declared, preprocessed
from harness import PROGRAMS, ROOT, Mpi
from launches import Result

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_NAME = re.compile(r"\b(MPI_[A-Z][A-Za-z0-9_]*) *\(")
_LINE_MARK = re.compile(r'# \d+ "(.*)"')

# They need a second program: test_communicators.py.
ELSEWHERE = {"Comm_spawn", "Comm_spawn_multiple", "Comm_accept", "Comm_connect", "Comm_join"}
ELSEWHERE |= {"Open_port", "Close_port", "Publish_name", "Lookup_name", "Unpublish_name"}


def calls_in_every_c(mpi: Mpi, *flags: str) -> Counter[str]:
    """Return how often each procedure is called in the lines of every.c and every_*.h this MPI compiles."""
    inside = False
    found = Counter[str]()
    for line in preprocessed(mpi, *flags, str(PROGRAMS / "every.c")).splitlines():
        if mark := _LINE_MARK.match(line):
            inside = Path(mark[1]).stem.startswith("every")
        elif inside:
            found.update(_NAME.findall(line))
    return found


def counted_procedures() -> set[str]:
    """Return the procedures spec/calls.toml wants counted."""
    spec = tomllib.loads((ROOT / "spec" / "calls.toml").read_text(encoding="utf-8"))
    return {name for entry in spec["measure"] if entry.get("counted", True) for name in entry["calls"]}


@pytest.mark.parametrize("form", ["plain", "large"])
def test_every_procedure_is_counted_as_often_as_it_is_called(mpi: Mpi, form: str) -> None:
    procedures = declared(mpi)
    large = {name for name in procedures if f"{name}_c" in procedures}
    if form == "large" and not large:
        assert mpi.family == "openmpi", "Open MPI has none up to 5.0"
        pytest.skip("this MPI library has no large-count forms")
    flags: tuple[str, ...] = ()
    if form == "large":
        header = mpi.workdir / "large.h"
        header.write_text("".join(f"#define {name} {name}_c\n" for name in sorted(large)))
        flags = ("-DLARGE", "-include", str(header))
    called = calls_in_every_c(mpi, *flags)

    counted = counted_procedures()
    elsewhere = {f"MPI_{name}" for name in ELSEWHERE}
    plain = {name.removesuffix("_c") for name in called}
    missing = counted & procedures.keys() - plain - elsewhere
    assert not missing or not mpi.known, "every.c calls all that this MPI declares"
    if form == "large":
        assert {name for name in called if name in large} == set(), "all in their large form"

    program = mpi.compile("every.c", flags=("-Wno-deprecated-declarations", "-include", "mpi.h", *flags))
    without, under = mpi.pair(2, [program], timeout=120)
    mpi.skip_if_broken(without)
    assert (under.rc, under.lines) == (without.rc, without.lines)
    assert under.rc == 0, under
    summed = Counter[str]()
    for name, times in called.items():
        summed[name.removesuffix("_c")] += times
    check_counts(under, summed)


@pytest.mark.parametrize("binding", ["MPIF_H", "USE_MPI", "USE_MPI_F08"])
def test_from_fortran_as_well(mpi: Mpi, binding: str) -> None:
    flags = ["-cpp", f"-D{binding}", "-fallow-argument-mismatch", "-w"]
    if mpi.name == "mpich":
        flags.append("-DMPI4")
    command = [mpi.compilers["fortran"], "-E", *flags, str(PROGRAMS / "every.F90")]
    text = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    called = Counter(re.findall(r"^ *call (MPI_\w+)", text, re.MULTILINE))
    assert len(called) > 200
    result = mpi.run(2, [mpi.compile("every.F90", "fortran", flags=flags)], timeout=120)
    mpi.skip_if_broken(result)
    assert result.rc == 0, result
    # Open MPI 5's binding does without these two procedures of C, and the profile says so.
    unseen = {
        row["procedure"]
        for row in result.open().rows("SELECT procedure FROM coverage WHERE state = 'unseen'")
    }
    assert unseen <= (set() if mpi.known else {"MPI_Info_get", "MPI_Info_get_nthkey"})
    check_counts(result, Counter({name: times for name, times in called.items() if name not in unseen}))


def check_counts(under: Result, called: Counter[str]) -> None:
    """Compare the profile of a program with how often each of its ranks called what."""
    profile = under.open()
    profile.check()
    counted = counted_procedures()
    expected = Counter({name: times for name, times in called.items() if name in counted})
    measured: dict[int, Counter[str]] = {0: Counter(), 1: Counter()}
    for count in profile.counts():
        measured[count.rank][count.op] += count.calls
    for rank in (0, 1):
        assert measured[rank] == expected, (
            f"rank {rank}: {(measured[rank] - expected, expected - measured[rank])}"
        )
