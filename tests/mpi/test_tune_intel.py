# SPDX-License-Identifier: Apache-2.0
"""`commlens tune` with Intel MPI: what its variables do, and the way from the profile to the proof."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner
from harness import Mpi

from commlens.algorithms.offered import offered
from commlens.algorithms.registry import COLLECTIVES
from commlens.cli import commlens
from commlens.tune.model import Candidate, Case, Choice
from commlens.tune.rules import write_rules

SIZES = tuple(8**i for i in range(1, 7))
NUMBERS = {
    "allreduce": (2, 7, 8),
    "reduce": (1, 5, 7),
    "reduce_scatter_block": (1, 3),
    "reduce_scatter": (1, 3, 5),
}
"""Algorithms that combine the ranks in another order for most sizes."""
MOST = 4  # processes of the largest communicator
Signatures = dict[tuple[str, int, int], str]


def intel_only(mpi: Mpi) -> str:
    """Return the first line of MPI_Get_library_version."""
    if mpi.name != "intel":
        pytest.skip("only Intel MPI has these variables")
    return f"Intel(R) MPI Library {mpi.release} for Linux* OS"


def signatures(mpi: Mpi, settings: Mapping[str, str]) -> Signatures:
    """Return a digest of the order in which the ranks are combined, by collective, processes and bytes."""
    done = mpi.run(MOST, [mpi.compile("chosen.c", None, "-ldl"), *NUMBERS], settings, mode="off")
    assert done.rc == 0, done
    lines = [line.split() for line in done.stdout.splitlines()]
    return {(name, int(size), int(bytes)): signature for name, size, bytes, signature in lines}


def variables(library: str, chosen: Mapping[tuple[str, int, int], int]) -> dict[str, str]:
    """Return the variables for algorithms by collective, processes and bytes."""
    choices = []
    for (collective, size, bytes), number in chosen.items():
        bin = -1 if collective == "reduce_scatter" else bytes.bit_length()
        case = Case(size, f"d{size}", collective, size, bin, bytes)
        choices.append(
            Choice(case, Candidate(number, f"preset {number}"), 2000.0, 1000.0, -0.5, -0.6, -0.4, 40)
        )
    rules = write_rules(choices, library, [], [choice.case for choice in choices])
    assert rules.refused == []
    return rules.variables


def test_ranges_count_for_exactly_the_sizes_that_the_model_says(mpi: Mpi) -> None:
    """With ranges of bytes or of processes each call combines the ranks as with the algorithm for all calls."""
    library = intel_only(mpi)
    calls = [(name, size, bytes) for name in NUMBERS for size in range(2, MOST + 1) for bytes in SIZES]
    alone = [
        signatures(
            mpi, variables(library, {call: NUMBERS[call[0]][k % len(NUMBERS[call[0]])] for call in calls})
        )
        for k in range(3)
    ]
    for way in ("bytes", "processes"):
        turns = {
            call: SIZES.index(call[2]) if way == "bytes" and call[0] != "reduce_scatter" else call[1]
            for call in calls
        }
        chosen = {call: turn % len(NUMBERS[call[0]]) for call, turn in turns.items()}
        settings = variables(library, {call: NUMBERS[call[0]][k] for call, k in chosen.items()})
        assert all(";" in value for value in settings.values())
        assert signatures(mpi, settings) == {call: alone[k][call] for call, k in chosen.items()}
        told_apart = {call[0] for call in calls if len({one[call] for one in alone}) > 1}
        assert told_apart == set(NUMBERS)


def test_the_library_has_as_many_algorithms_as_the_specification(mpi: Mpi) -> None:
    library = intel_only(mpi)
    tool = str(Path(mpi.launcher).with_name("impi_info"))
    for collective in COLLECTIVES:
        offer = offered(library, collective)
        assert offer is not None
        command = [tool, "-v", offer.variable]
        told = subprocess.run(
            command, capture_output=True, text=True, check=True, env={**os.environ, **mpi.environment}
        )
        found = re.search(r"range: 0-(\d+)", told.stdout)
        assert found is not None and int(found[1]) == len(offer.names), (collective, told.stdout)


def test_a_range_alone_counts_for_all_sizes(mpi: Mpi) -> None:
    """So no call can be left to the library's own choice."""
    intel_only(mpi)
    whole = signatures(mpi, {"I_MPI_ADJUST_ALLREDUCE": "8"})
    assert signatures(mpi, {"I_MPI_ADJUST_ALLREDUCE": "8:64-127@3-3"}) == whole
    assert whole != signatures(mpi, {})


def test_a_fast_algorithm_is_found_and_proven(
    mpi: Mpi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library's own choice takes 4 ms, algorithm 3 almost nothing, and all others three times as long."""
    intel_only(mpi)
    slow = mpi.compile("slow_by_default.c", None, "-ldl", flags=mpi.flags, shared=True)
    program = mpi.compile("tune_blocks.c")
    before = mpi.run(2, [program], mode="preload", preload=[slow])
    assert before.rc == 0, before
    for name, value in mpi.environment.items():
        monkeypatch.setenv(name, value)
    compiler = [mpi.compilers["c"], *mpi.flags, "-Wl,--no-as-needed", *mpi.libs]
    monkeypatch.setenv("MPICC", " ".join(compiler))
    monkeypatch.setenv("LD_PRELOAD", str(slow))
    monkeypatch.chdir(tmp_path)
    # The replay ends when all is known, after about 10 s without other load.  With 12 runs the difference is certain
    # even if load makes a run with the settings slower than its partner without.
    command = ["tune", before.profile, "--runs", 12, "--", mpi.launcher, "-n", 2, program]
    done = CliRunner().invoke(commlens, list(map(str, command)))
    monkeypatch.delenv("LD_PRELOAD")
    folder = before.profile.with_suffix(".tune")
    assert done.exit_code == 0, done.output
    assert "faster with certainty in 1 of 1 case" in done.output, done.output
    assert "\nFaster: " in done.output, done.output
    settings = (folder / "settings").read_text(encoding="utf-8")
    assert settings == "I_MPI_ADJUST_REDUCE_SCATTER_BLOCK=3\n"
    first = (folder / "measurements.csv").read_text(encoding="utf-8")
    assert ",0,preset 3\n" not in first and "reduce_scatter_block,3:0:preset%203\n" in first
