# SPDX-License-Identifier: Apache-2.0
"""The algorithms in spec/algorithms.toml are those that the installed libraries offer."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from harness import Mpi

from commlens.algorithms._offered import LIBRARIES
from commlens.cli import commlens


def in_table(mpi: Mpi) -> dict[str, tuple[str, ...]]:
    """Return the lists of the release of an MPI library."""
    version = tuple(map(int, mpi.release.split(".")[:2]))
    lists: dict[str, tuple[str, ...]] = {}
    for since, changed in sorted(LIBRARIES[mpi.family].since.items()):
        lists.update(changed if since <= version else {})
    return lists


def test_open_mpi_offers_what_the_table_says(mpi: Mpi) -> None:
    if mpi.family != "openmpi":
        pytest.skip("only Open MPI has coll/tuned")
    launcher = shutil.which(mpi.launcher)
    assert launcher is not None
    command = [str(Path(launcher).with_name("ompi_info")), "--param", "coll", "tuned", "--level", "9"]
    told = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, **mpi.environment}
    ).stdout
    found = re.findall(r'"coll_tuned_(\w+)_algorithm".*?Valid values: ([^\n]*)', told, re.DOTALL)
    offered = {name: re.findall(r'\d+[:|]"?([^",]+)"?', values) for name, values in found}
    assert {name: tuple(names[1:]) for name, names in offered.items()} == in_table(mpi)
    assert {names[0] for names in offered.values()} == {"ignore"}


def test_mpich_offers_what_the_table_says(mpi: Mpi) -> None:
    if mpi.name.partition("-")[0] not in ("mpich", "mpich5") or mpi.family != "mpich":
        pytest.skip("only MPICH describes its variables in the library")
    linked = subprocess.run(
        ["ldd", mpi.compile("algorithms.c")],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **mpi.environment},
    )
    path = re.search(r"libmpi(?:ch)?\.so\S* => (\S+)", linked.stdout)
    assert path is not None, linked.stdout
    texts = Path(path[1]).read_bytes().decode("latin-1").split("\0")
    table = in_table(mpi)
    for collective, names in table.items():
        # The same description serves MPI_Scan and MPI_Exscan, which the library calls allgather.
        title = "allgather" if collective in ("scan", "exscan") else collective
        # In some releases nothing separates the lines.
        listed = "".join(rf"{name} +- Force .*?" for name in names)
        described = re.compile(
            rf"Variable to select {title} algorithm\n?auto - [^)]*\)\n?{listed}", re.DOTALL
        )
        counts = [text.count(" - Force ") for text in texts if described.fullmatch(text)]
        assert len(names) in counts, collective


def test_the_plan_of_a_run_has_its_calls_and_the_variable_of_its_library(mpi: Mpi) -> None:
    """The program makes 10 allreduces of 4 KiB on four ranks."""
    result = mpi.run(4, [mpi.compile("algorithms.c"), "allreduce", "4096", "0"])
    assert result.rc == 0, result
    said = CliRunner().invoke(commlens, ["tune", str(result.profile), "--format", "json"])
    assert said.exit_code == 0, said.output
    found = json.loads(said.output)
    (place,) = [one for one in found["places"] if one["operation"] == "MPI_Allreduce"]
    assert (place["calls_per_rank"], place["size_max"], place["bin"]) == (10, 4, 13)
    assert place["operation_ns"] + place["waiting_ns"] == place["time_ns"]
    assert place["gain_max_ns"] <= place["operation_max_ns"] <= place["time_ns"]
    collective = place["operation"].removeprefix("MPI_").lower()
    library = LIBRARIES[mpi.family if mpi.name.partition("-")[0] != "intel" else "intel"]
    assert place["variable"] == library.variable.format(collective=collective, COLLECTIVE=collective.upper())


def test_the_plan_names_the_algorithm_that_open_mpi_was_told_to_use(mpi: Mpi) -> None:
    if mpi.family != "openmpi":
        pytest.skip("only Open MPI shows the messages inside collectives")
    told = ["--mca", "coll_tuned_use_dynamic_rules", "1", "--mca", "coll_tuned_allgather_algorithm", "4"]
    command: list[str | Path] = [mpi.compile("algorithms.c"), "allgather", "100", "0"]
    result = mpi.run(5, command, {"COMMLENS_MATRIX": "all"}, launcher_args=told)
    assert result.rc == 0, result
    said = CliRunner().invoke(commlens, ["tune", str(result.profile), "--format", "json"])
    assert said.exit_code == 0, said.output
    (place,) = [one for one in json.loads(said.output)["places"] if one["operation"] == "MPI_Allgather"]
    assert place["algorithm"] == "ring"
    assert place["offered"].split(", ")[3] == "ring"
