# SPDX-License-Identifier: Apache-2.0
"""A call site is the line of the application, whatever the language."""

from __future__ import annotations

import re
import subprocess

import pytest
from harness import PROGRAMS, Mpi

LANGUAGES = {
    "c": ("sites.c", ()),
    "mpif.h": ("sites.F90", ("-cpp", "-DMPIF_H", "-fallow-argument-mismatch", "-w")),
    "use mpi": ("sites.F90", ("-cpp", "-DUSE_MPI", "-fallow-argument-mismatch", "-w")),
    "use mpi_f08": ("sites.F90", ("-cpp", "-DUSE_MPI_F08")),
}


@pytest.mark.parametrize("mode", ["run", "link"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_each_line_is_a_call_site(mpi: Mpi, language: str, mode: str) -> None:
    source, flags = LANGUAGES[language]
    lines = (PROGRAMS / source).read_text().splitlines()
    # the line that makes n calls says so behind the call
    expected = {
        n: number
        for number, line in enumerate(lines, 1)
        for n in (1, 3, 5)
        if re.search(rf"[!*] {n} calls?\b", line)
    }
    assert len(expected) == 3

    program = mpi.compile(
        source, "c" if source.endswith(".c") else "fortran", flags=flags, link=mode == "link"
    )
    result = mpi.run(2, [program], mode=mode)
    assert result.rc == 0, result
    profile = result.open()
    profile.check()
    sites = profile.rows(
        "SELECT x.rank, x.calls, s.module, s.offset, s.build_id FROM cell x JOIN key k ON k.id = x.key "
        "JOIN op o ON o.id = k.op JOIN callsite s ON s.id = k.callsite WHERE o.name = 'MPI_Barrier' ORDER BY 1, 2"
    )
    assert [(site["rank"], site["calls"]) for site in sites] == [
        (rank, n) for rank in (0, 1) for n in (1, 3, 5)
    ]
    assert {site["module"] for site in sites} == {str(program)}
    for site in sites:
        # the address after the call: one byte less is in it
        done = subprocess.run(
            ["addr2line", "-e", str(program), hex(site["offset"] - 1)],
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.split()[0].endswith(f"{source}:{expected[site['calls']]}")


def test_a_program_that_is_not_position_independent(mpi: Mpi) -> None:
    program = mpi.compile("sites.c", flags=("-no-pie", "-fno-pie"))
    profile = mpi.run(2, [program]).open()
    sites = profile.rows("SELECT offset FROM callsite WHERE module = ? ORDER BY offset", str(program))
    lines = subprocess.run(
        ["addr2line", "-e", str(program), *(hex(site["offset"] - 1) for site in sites)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert len(lines) == 3
    assert all("sites.c:" in line for line in lines)


def test_the_build_id_tells_which_program_it_was(mpi: Mpi) -> None:
    program = mpi.compile("sites.c", flags=("-Wl,--build-id=sha1",))
    notes = subprocess.run(["readelf", "-n", str(program)], capture_output=True, text=True, check=True).stdout
    (build_id,) = re.findall(r"Build ID: (\w+)", notes)
    profile = mpi.run(2, [program]).open()
    assert profile.rows("SELECT DISTINCT build_id FROM callsite WHERE module = ?", str(program)) == [
        {"build_id": build_id}
    ]
