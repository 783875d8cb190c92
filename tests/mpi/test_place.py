# SPDX-License-Identifier: Apache-2.0
"""The files of commlens place and the command lines that it prints: launchers put the ranks where they are meant to be.

tools/slurm.sh does the same with Slurm.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from harness import Mpi
from hosts import Hosts
from test_survive import commlens

from commlens.place import formats
from commlens.place.machine import Slot
from commlens.place.objective import Graph


def formats_of(mpi: Mpi) -> tuple[str, ...]:
    """Return the formats that the launcher of an MPI library reads."""
    if mpi.name.startswith("openmpi"):
        return ("openmpi4" if mpi.major < 5 else "openmpi5", "openmpi-seq")
    if mpi.name.startswith("intel"):
        return ("intel",)
    return ("mpich",) if mpi.release.startswith("4.0") else ("mpich", "mpich-rankmap")


BINDING = ("openmpi4", "openmpi5")
"""Those that say which cores a rank gets."""

HOST_OF_RANK = (1, 0, 0, 1)  # neither the order of the hosts nor in turns

# Each rank writes a file: launchers may mix what ranks print.
APP = """\
#!{python}
import os, pathlib
rank = os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ["PMI_RANK"]
words = [os.uname().nodename, *map(str, sorted(os.sched_getaffinity(0)))]
pathlib.Path("ranks", rank).write_text(" ".join(words))
"""


def cores() -> list[tuple[int, ...]]:
    """Return the CPUs of each core that this process may use."""
    found: dict[tuple[str, str], list[int]] = {}
    for cpu in sorted(os.sched_getaffinity(0)):
        topology = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology")
        package, core = ((topology / name).read_text() for name in ("physical_package_id", "core_id"))
        found.setdefault((package, core), []).append(cpu)
    return [tuple(cpus) for cpus in found.values()]


def own_launchers(mpi: Mpi, folder: Path) -> str:
    """Return a PATH on which mpirun and mpiexec are the launchers of this library."""
    if Path(mpi.launcher).is_absolute():
        return f"{Path(mpi.launcher).parent}:{os.environ['PATH']}"
    folder.mkdir()
    for name in ("mpirun", "mpiexec"):
        (folder / name).write_text(f'#!/bin/sh\nexec {mpi.launcher} "$@"\n')
        (folder / name).chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def launched(mpi: Mpi, hosts: Hosts, folder: Path, line: str) -> dict[int, tuple[str, tuple[int, ...]]]:
    """Run a printed command line on the first host, and return host and CPUs of each rank."""
    (folder / "ranks").mkdir()
    (folder / "app").write_text(APP.format(python=sys.executable))
    (folder / "app").chmod(0o755)
    result = subprocess.run(
        hosts.on_first(line),
        cwd=folder,
        env={
            # How many ranks a processor gets, and their binding, are to be as the command line says.
            **{name: value for name, value in os.environ.items() if "_MCA_" not in name},
            **{name: value for name, value in mpi.environment.items() if "_MCA_" not in name},
            **hosts.reached,
            "PATH": own_launchers(mpi, folder / "bin"),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, (line, result.stdout, result.stderr)
    found = {}
    for path in (folder / "ranks").iterdir():
        host, *cpus = path.read_text().split()
        found[int(path.name)] = (host, tuple(map(int, cpus)))
    return found


def test_the_printed_command_line_puts_each_rank_where_it_is_meant_to_be(mpi: Mpi) -> None:
    known = cores()
    assert len(known) >= 2, "this test needs two cores"
    for name in formats_of(mpi):
        folder = mpi.fresh(name)
        hosts = Hosts(folder / "hosts", 2, 2)
        # The first rank of each host gets the second core.
        slots = [
            Slot(hosts.names[host], known[core], (core,)) for host, core in zip(HOST_OF_RANK, (1, 1, 0, 0))
        ]
        no_traffic = np.zeros(0, dtype=np.int64)
        graph = Graph.of_entries(len(slots), no_traffic, no_traffic, np.zeros(0))
        formats.save(folder / "a file", formats.write(name, slots, graph))
        found = launched(mpi, hosts, folder, formats.command(name, "a file", slots))
        assert {rank: host for rank, (host, _) in found.items()} == {
            rank: slot.node for rank, slot in enumerate(slots)
        }, name
        if name in BINDING:
            assert {rank: cpus for rank, (_, cpus) in found.items()} == {
                rank: slot.cpus for rank, slot in enumerate(slots)
            }, name


Line = tuple[str, int, int, int, int]
EXTERNAL = {("E", 0, 1, 300, 3), ("E", 3, 2, 5000, 1), ("S", 1, 0, 4, 1), ("R", 1, 2, 16, 1)}
"""What monitored.c sends itself: kind, origin, other rank, bytes, messages."""


def prof_lines(text: str, kinds: str) -> set[Line]:
    """Return the lines of these kinds with bytes of a .prof file."""
    found = re.findall(rf"^([{kinds}])\t(\d+)\t(\d+)\t([1-9]\d*) bytes\t(\d+) msgs sent", text, re.MULTILINE)
    return {(kind, *map(int, numbers)) for kind, *numbers in found}


def test_traffic_as_open_mpi_s_monitoring_writes_it_and_its_script_reads_it(mpi: Mpi) -> None:
    """Messages of the application agree with the component's; profile2mat makes of ours the matrix that we write."""
    if mpi.name != "openmpi" or shutil.which("profile2mat") is None:
        pytest.skip("the component and its script are those of Debian's Open MPI 4")
    program = mpi.compile("monitored.c")
    folder = mpi.fresh("monitoring")
    component = ["--mca", "pml_monitoring_enable", "2", "--mca", "pml_monitoring_enable_output", "3"]
    component += ["--mca", "pml_monitoring_filename", str(folder / "theirs")]
    assert mpi.run(4, [program], mode="off", launcher_args=component, env={"OMPI_MCA_pml": "^cm,ucx"}).rc == 0
    theirs = "".join(path.read_text() for path in sorted(folder.glob("theirs.*.prof")))
    assert prof_lines(theirs, "ESR") == EXTERNAL

    profile = mpi.run(4, [program], env={"COMMLENS_MATRIX": "all"}).profile
    commlens("place", profile, "--launcher", "monitoring", "--to", folder / "ours.prof", cwd=folder)
    assert prof_lines((folder / "ours.prof").read_text(), "ESR") == EXTERNAL
    commlens("place", profile, "--launcher", "treematch", "--to", folder / "ours.mat", cwd=folder)
    subprocess.run(["profile2mat", "ours.prof"], cwd=folder, capture_output=True, check=True)
    # The script halves the sum of both directions.
    halves = np.loadtxt(folder / "ours_size_all.mat")
    assert np.abs(2 * halves - np.loadtxt(folder / "ours.mat")).max() <= 1
    assert np.loadtxt(folder / "ours_msg_external.mat")[0, 1] == round(3 / 2)
