# SPDX-License-Identifier: Apache-2.0
"""The files that commlens place writes, read by the launchers of Debian: the ranks are where they were meant to be."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from commlens.place import formats
from commlens.place.machine import Slot

# Each rank writes a file: launchers may mix what ranks print.
WHERE = """\
import os, pathlib, sys
rank = os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ["PMI_RANK"]
words = [os.uname().nodename, *map(str, sorted(os.sched_getaffinity(0)))]
pathlib.Path(sys.argv[1], f"rank-{rank}").write_text(" ".join(words))
"""


def ranks(command: Sequence[str | Path], folder: Path) -> dict[int, tuple[str, tuple[int, ...]]]:
    """Return host and CPUs of each rank that a launcher starts; the ranks write into the folder."""
    as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    others = {name: value for name, value in os.environ.items() if not name.startswith("OMPI_MCA_")}
    result = subprocess.run(
        [*command, sys.executable, "-c", WHERE, folder],
        env={**others, **as_root},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    found = {}
    for path in folder.glob("rank-*"):
        host, *cpus = path.read_text(encoding="utf-8").split()
        found[int(path.name.removeprefix("rank-"))] = (host, tuple(map(int, cpus)))
    return found


def test_open_mpi_binds_each_rank_to_the_cores_of_its_slot(tmp_path: Path) -> None:
    host = platform.node()
    # Cores and CPUs have the same numbers where each core has one CPU.
    cpus = sorted(os.sched_getaffinity(0))[:2]
    assert len(cpus) == 2, "this test needs two CPUs"
    slots = [Slot(host, (cpu,), (cpu,)) for cpu in reversed(cpus)]
    file = tmp_path / "ranks"
    formats.save(file, formats.rankfile(slots))
    found = ranks(["mpirun.openmpi", "-np", "2", "--rankfile", file], tmp_path)
    assert {rank: where[0] for rank, where in found.items()} == {0: host, 1: host}
    assert found[0][1] != found[1][1]
    assert all(slots[rank].cpus[0] in found[rank][1] for rank in found)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        (formats.machinefile, ("mpiexec.mpich", "-n", "2", "-f")),
        (
            formats.one_host_a_line,
            ("mpirun.openmpi", "-np", "2", "--bind-to", "none", "--map-by", "seq", "--hostfile"),
        ),
    ],
)
def test_launchers_accept_the_nodes_of_the_ranks(
    tmp_path: Path, text: object, command: tuple[str, ...]
) -> None:
    host = platform.node()
    file = tmp_path / "hosts"
    assert callable(text)
    formats.save(file, text([Slot(host), Slot(host)]))
    found = ranks([*command, file], tmp_path)
    assert {rank: where[0] for rank, where in found.items()} == {0: host, 1: host}
