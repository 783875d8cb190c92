# SPDX-License-Identifier: Apache-2.0
"""The other variables that `commlens tune` names: where they are planted, and nowhere else."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from build_profile import ProfileBuilder
from build_waits import Kind, RankWaits, add_samples
from conftest import Run

from commlens.algorithms._offered import LIBRARIES
from commlens.profile import open_profile
from commlens.tune._switches import SWITCHES
from commlens.tune.switches import CONDITIONS, read_switches, switches_of

MS = 10**6
OPEN_MPI_4, OPEN_MPI_5 = "Open MPI v4.1.4, package: Debian", "Open MPI v5.0.11"
MPICH_4, MPICH_5 = "MPICH Version:\t4.0.2", "MPICH Version:      5.0.2"
PML = "OMPI_MCA_pml"


def program(
    library: str = OPEN_MPI_4, ranks: int = 4, nodes: int = 1, settings: dict[str, str] | None = None
) -> ProfileBuilder:
    """Return a run of 1 s on each rank, without any call."""
    facts = {"mpi_library": library, "elapsed_ns": str(1000 * MS)}
    build = ProfileBuilder(ranks=ranks, app_ns=1000 * MS, meta=facts, nodes=nodes)
    build.settings = [("environment", name, value, ranks) for name, value in (settings or {}).items()]
    return build


def call(build: ProfileBuilder, op: str, size: int, calls: int = 100, each_ns: int = MS) -> None:
    """Let every rank make these calls; 100 of 1 ms are 10 % of the run time."""
    for rank in range(build.ranks):
        build.count(1, op, rank, calls, calls * each_ns, size)


def tried(build: ProfileBuilder, tmp_path: Path) -> list[str]:
    """Return the trials as settings of the environment."""
    path = build.write(tmp_path / "p.db")
    with open_profile(str(path)) as connection:
        trials = read_switches(connection, build.meta["mpi_library"])
    path.unlink()
    return [f"{name}={value}" for trial in trials for name, value in trial.environment.items()]


@pytest.mark.parametrize(
    ("size", "values"),
    [(4095, []), (4096, [16384]), (16383, [16384]), (16384, [32768]), (32767, [32768]), (32768, [])],
)
@pytest.mark.parametrize(("library", "btl"), [(OPEN_MPI_4, "vader"), (OPEN_MPI_5, "sm")])
def test_messages_beyond_the_limit_give_a_reason_to_raise_it(
    tmp_path: Path, library: str, btl: str, size: int, values: list[int]
) -> None:
    build = program(library)
    call(build, "MPI_Send", size)
    assert tried(build, tmp_path) == [f"OMPI_MCA_btl_{btl}_eager_limit={value}" for value in values]


def test_each_value_must_add_time(tmp_path: Path) -> None:
    build = program()
    call(build, "MPI_Send", 5000)
    call(build, "MPI_Recv", 20000)
    assert tried(build, tmp_path) == [f"OMPI_MCA_btl_vader_eager_limit={value}" for value in (16384, 32768)]


@pytest.mark.parametrize(
    ("op", "calls", "each_ns"),
    [("MPI_Send", 100, 99_000), ("MPI_Send", 9, 10 * MS), ("MPI_Allreduce", 100, MS)],
    ids=["less than 1 %", "few calls", "collective"],
)
def test_without_enough_messages_it_is_silent(tmp_path: Path, op: str, calls: int, each_ns: int) -> None:
    build = program()
    call(build, op, 5000, calls, each_ns)
    assert tried(build, tmp_path) == []


@pytest.mark.parametrize(
    "settings",
    [
        {PML: "ucx"},
        {PML: "cm"},
        {"OMPI_MCA_btl_vader_eager_limit": "8192"},
        {"btl_vader_eager_limit": "8192"},
    ],
)
def test_settings_of_the_run_may_leave_nothing_to_try(tmp_path: Path, settings: dict[str, str]) -> None:
    build = program(settings=settings)
    call(build, "MPI_Send", 5000)
    assert tried(build, tmp_path) == []


@pytest.mark.parametrize(
    ("library", "settings"),
    [(OPEN_MPI_4, {PML: "ucx"}), (OPEN_MPI_5, {"pml": "UCX"}), (MPICH_4, {"MPIR_CVAR_CH4_NETMOD": "ucx"})],
)
def test_the_limit_of_ucx_is_tried_where_the_settings_name_ucx(
    tmp_path: Path, library: str, settings: dict[str, str]
) -> None:
    for told, wanted in ((settings, ["UCX_RNDV_THRESH=65536"]), ({}, [])):
        build = program(library, settings=told)
        call(build, "MPI_Send", 40000)
        assert tried(build, tmp_path) == wanted
    build = program(library, settings={**settings, "UCX_RNDV_THRESH": "8k"})
    call(build, "MPI_Send", 40000)
    assert tried(build, tmp_path) == []


@pytest.mark.parametrize(
    ("peer", "size", "wanted"),
    [
        (1, 5000, ["OMPI_MCA_btl_vader_eager_limit=16384"]),
        (2, 5000, []),
        (2, 70000, ["OMPI_MCA_btl_tcp_eager_limit=131072"]),
        (1, 70000, []),
        (0, 5000, []),
        (None, 5000, []),
    ],
    ids=["within", "between", "between, large", "within, large", "itself", "no matrix"],
)
def test_on_several_nodes_the_matrix_tells_which_limit_matters(
    tmp_path: Path, peer: int | None, size: int, wanted: list[str]
) -> None:
    build = program(nodes=2)
    call(build, "MPI_Send", size)
    if peer is not None:
        build.send(0, peer, 100, size)
    assert tried(build, tmp_path) == wanted


@pytest.mark.parametrize(("library", "priority"), [(OPEN_MPI_4, 50), (OPEN_MPI_5, 0)])
@pytest.mark.parametrize(("nodes", "is_tried"), [(1, False), (2, True), (4, False)])
def test_collectives_across_nodes(
    tmp_path: Path, library: str, priority: int, nodes: int, is_tried: bool
) -> None:
    """On four nodes each rank has its own, so that there is nothing to do within a node."""
    build = program(library, nodes=nodes)
    call(build, "MPI_Bcast", 8)
    assert tried(build, tmp_path) == ([f"OMPI_MCA_coll_han_priority={priority}"] if is_tried else [])


def test_communicators_within_nodes_and_waiting_are_no_reason(tmp_path: Path) -> None:
    build = program(nodes=2)
    for ranks in ([0, 1], [2, 3]):
        half = build.comm(f"s{ranks[0]}.1", ranks, parent=1, creator="MPI_Comm_split", family=2)
        for rank in ranks:
            build.count(half, "MPI_Bcast", rank, 100, 100 * MS, 8)
    call(build, "MPI_Allreduce", 8)
    times = RankWaits(100 * MS, 98 * MS)
    add_samples(build, Kind(1, "MPI_Allreduce", 4), dict.fromkeys(range(4), times), 100, None, 0)
    assert tried(build, tmp_path) == []


@pytest.mark.parametrize(
    ("library", "wanted"),
    [(MPICH_4, "MPIR_CVAR_MAX_SMP_REDUCE_MSG_SIZE=65535"), (MPICH_5, "MPIR_CVAR_REDUCE_COMPOSITION=3")],
)
def test_large_collectives_of_mpich(tmp_path: Path, library: str, wanted: str) -> None:
    for size, nodes, found in ((65536, 2, [wanted]), (65535, 2, []), (65536, 1, [])):
        build = program(library, nodes=nodes)
        call(build, "MPI_Reduce", size)
        assert tried(build, tmp_path) == found


@pytest.mark.parametrize(
    "library", ["MPI of tomorrow 1.0", "Open MPI v3.1.4", "Intel(R) MPI Library 2021.8 for Linux* OS", ""]
)
def test_other_libraries_have_none(tmp_path: Path, library: str) -> None:
    build = program(library, nodes=2)
    call(build, "MPI_Send", 5000)
    call(build, "MPI_Allreduce", 100_000)
    assert tried(build, tmp_path) == []


def test_the_command_says_what_to_try_and_why(run: Run, tmp_path: Path) -> None:
    build = program()
    call(build, "MPI_Send", 5000)
    path = build.write(tmp_path / "p.db")
    text = " ".join(run("tune", path).stdout.split())
    assert text.endswith(
        "Also try OMPI_MCA_btl_vader_eager_limit=16384: 10.0 % of the run time is in point-to-point calls of 4-16 KiB, "
        "100 per rank; messages within a node up to this size are sent before the receive is posted (default: 4096 bytes)."
    )
    found: dict[str, Any] = json.loads(run("tune", path, "--format", "json").stdout)
    (trial,) = found["switches"]
    assert (trial["variable"], trial["value"]) == ("btl_vader_eager_limit", "16384")
    assert trial["environment"] == {"OMPI_MCA_btl_vader_eager_limit": "16384"}
    assert "Also try" not in run("tune", path, "--op", "bcast").stdout


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE rank SET node = ''",
        "UPDATE comm SET members = 'x-y:0, 0-99999999999:0'",
        "UPDATE comm SET members = NULL",
        "UPDATE key SET bin = 63",
        "UPDATE setting SET value = '\x1b[31m'",
        "UPDATE meta SET value = '-1' WHERE key IN ('elapsed_ns', 'ranks_collected')",
        "UPDATE meta SET value = 'none' WHERE key = 'elapsed_ns'",
        "UPDATE peer SET messages = -messages",
        "DELETE FROM rank",
        "DELETE FROM op",
    ],
)
@pytest.mark.parametrize("nodes", [1, 2])
def test_a_damaged_profile_is_read_or_refused(run: Run, tmp_path: Path, damage: str, nodes: int) -> None:
    build = program(nodes=nodes, settings={PML: "ob1"})
    call(build, "MPI_Send", 5000)
    call(build, "MPI_Allreduce", 100_000)
    build.send(0, 1, 100, 5000)
    path = build.write(tmp_path / "p.db")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(damage)
        connection.commit()
    done = run("tune", path)
    assert done.exit_code in (0, 1, 3), done.stderr
    assert "Traceback" not in done.stderr
    assert "\x1b" not in done.stdout


def test_the_table_is_sound() -> None:
    assert {one.library for one in SWITCHES} <= LIBRARIES.keys()
    assert {one.when for one in SWITCHES} == CONDITIONS.keys()
    for one in SWITCHES:
        assert one.way in ("node", "network", "any"), one
        assert len(one.values) in (1, 2), one
        assert len(one.only) in (0, 2), one
        assert one.default not in one.values, one
        if one.when == "p2p_near_limit":
            sizes = [one.above, *map(int, one.values)]
            assert sizes == sorted(sizes), one
            assert not any(size & (size - 1) for size in sizes), one  # limits of size bins
        else:
            assert one.operations, one
    for library in (OPEN_MPI_4, OPEN_MPI_5, MPICH_4, MPICH_5):
        variables = [one.variable for one in switches_of(library)]
        assert len(variables) == len(set(variables)) > 0
