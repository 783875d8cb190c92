# SPDX-License-Identifier: Apache-2.0
"""`commlens compare` with profiles of real runs."""

from __future__ import annotations

import json
from pathlib import Path

from harness import Mpi, commlens

BY_ID = ("-Wl,--build-id",)


def profile(mpi: Mpi, program: Path, ranks: int, messages: int) -> Path:
    """Return the profile of a run."""
    result = mpi.run(ranks, [program, str(messages)])
    assert result.profile.is_file(), result
    return result.profile


def test_more_messages_fail_with_communicator_and_call_site(mpi: Mpi) -> None:
    program = mpi.compile("compared.c", flags=BY_ID)
    before, after = profile(mpi, program, 2, 10), profile(mpi, program, 2, 15)
    found = commlens("compare", before, after, "--fail-if", "messages > 0%")
    assert found.returncode == 1, found
    lines = [line for line in found.stdout.splitlines() if line.startswith("failed")]
    assert len(lines) == 2
    assert "MPI_Send 512-1023 B on s0.1 (MPI_Comm_split at make_pairs compared.c:" in lines[0]
    assert lines[0].endswith(": messages 10 → 15 (+50.0 %)")
    assert commlens("compare", before, before, "--fail-if", "messages > 0%").returncode == 0


def test_a_newer_build_on_more_ranks_is_matched_by_lineage(mpi: Mpi) -> None:
    before = profile(mpi, mpi.compile("compared.c", flags=BY_ID), 2, 10)
    after = profile(mpi, mpi.compile("compared.c", flags=(*BY_ID, "-DNEWER")), 4, 10)
    found = json.loads(commlens("compare", before, after, "--format", "json").stdout)
    (pairs,) = [node for node in found["matched"] if node["origin"].startswith("MPI_Comm_split")]
    assert pairs["rule"] == "function"
    (only,) = found["unmatched"]
    assert (only["side"], only["origin"].split(" ")[0]) == ("B", "MPI_Comm_dup")
    (row,) = [row for row in found["rows"] if row["operation"] == "MPI_Send"]
    assert (row["calls_a"], row["calls_b"], row["bytes_b"]) == (10, 20, 20_000)
