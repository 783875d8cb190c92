# SPDX-License-Identifier: Apache-2.0
"""A job on several hosts: every rank is where it is, and what one host has kept is found on that host.

tools/hosts.sh and tools/slurm.sh do the same on networks and under a batch system; docs/hosts.md.
"""

from __future__ import annotations

import pytest
from harness import Mpi
from hosts import Hosts, run_on
from launches import started
from processes import kill_at_once
from profile_rows import Profile
from test_sessions import NO_SESSIONS
from test_shards import COMMS_SQL, COUNTS_SQL, merged
from test_survive import Running, check_counts, check_names, commlens


def nodes(profile: Profile) -> list[str]:
    """Return the hosts of the ranks, in their order."""
    return profile.column("SELECT node FROM rank ORDER BY rank")


def test_every_rank_has_its_host(mpi: Mpi) -> None:
    hosts = Hosts(mpi.fresh("several"), 3, 2)
    program = mpi.compile("hosts.c")
    plain = run_on(mpi, hosts, program, mode="off")
    result = run_on(mpi, hosts, program)
    assert (result.rc, result.lines) == (plain.rc, plain.lines)
    assert plain.rc == 0, plain
    assert [line.split()[:3] for line in plain.lines] == [
        [str(rank), hosts.host_of(rank), "2"] for rank in range(6)
    ]
    profile = result.open()
    profile.check()
    assert nodes(profile) == [hosts.host_of(rank) for rank in range(6)]
    assert profile.meta()["nodes"] == "3"
    of_hosts = {name: row for name, row in profile.comms().items() if row["user_name"] == "host"}
    assert [row["members"] for row in of_hosts.values()] == ["0-1", "2-3", "4-5"]
    assert profile.comms()["s0.2"]["groups"] == [[0, 2, 4]]
    assert profile.calls("MPI_Bcast") == {
        name: dict.fromkeys(row["groups"][0], 7) for name, row in of_hosts.items()
    }
    head = commlens("report", result.profile, cwd=mpi.workdir).splitlines()
    where = ", ".join(f"{name} (2)" for name in hosts.names)
    assert f"where         6 ranks on 3 nodes: {where}" in head
    assert [list(path.glob("*.arena")) for path in hosts.shared_memory.values()] == [[], [], []]


@pytest.mark.parametrize("writers", [2, 3])
def test_hosts_that_were_not_told_how_many_write(mpi: Mpi, writers: int) -> None:
    """Open MPI's remote shell does not pass the environment on: only rank 0 certainly has the user's options."""
    hosts = Hosts(mpi.fresh("several"), 3, 2)
    program = mpi.compile("hosts.c")
    one = run_on(mpi, hosts, program)
    many = run_on(mpi, hosts, program, env={"COMMLENS_AGGREGATORS": str(writers)})
    assert (many.rc, many.lines) == (one.rc, one.lines)
    directory = many.profile.with_suffix(".commlens")
    assert sorted(path.name for path in directory.iterdir()) == [
        "index.db", *(f"shard.{n}.db" for n in range(writers))
    ]  # fmt: skip
    for number in range(writers):
        first = 6 // writers * number
        assert nodes(Profile(directory / f"shard.{number}.db")) == [
            hosts.host_of(rank) for rank in range(first, first + 6 // writers)
        ]
    profile, expected = merged(directory), one.open()
    profile.check()
    assert profile.rows(COUNTS_SQL) == expected.rows(COUNTS_SQL)
    assert profile.rows(COMMS_SQL) == expected.rows(COMMS_SQL)
    assert nodes(profile) == nodes(expected)
    assert profile.meta()["nodes"] == "3"


def test_each_host_keeps_what_its_ranks_counted(mpi: Mpi) -> None:
    """SIGKILL; recover makes one profile of all hosts, and names the missing ranks without one of them."""
    hosts = Hosts(mpi.fresh("several"), 2, 2)
    where = mpi.fresh("survive")
    (where / "counts").mkdir()
    command, environment = hosts.prepare(
        mpi, [mpi.compile("survive.c"), where / "counts", "run"], {}, where / "profile.db"
    )
    with started(command, environment, where) as process:
        running = Running(mpi, where, process)
        kill_at_once([one.pid for one in running.wait_until_ready()])
        running.wait()
    counted = running.counted()
    for name, path in hosts.shared_memory.items():
        left = {int(arena.name.split("-")[2]) for arena in path.glob("commlens-*.arena")}
        assert left == {counted[rank].pid for rank in range(hosts.size) if hosts.host_of(rank) == name}

    places = [*hosts.shared_memory.values()]
    said = commlens("recover", "-o", "all.db", *places, cwd=where)
    assert "4 of 4 ranks" in said and "missing" not in said
    profile = Profile(where / "all.db")
    check_counts(profile, counted, [0, 1, 2, 3])
    check_names(profile)
    assert nodes(profile) == [hosts.host_of(rank) for rank in range(4)]
    assert profile.meta()["nodes"] == "2"
    assert profile.column("SELECT DISTINCT state FROM rank") == ["ended"]

    said = commlens("recover", "-o", "first.db", places[0], cwd=where, code=3)
    assert "2 of 4 ranks" in said and "missing: 2-3" in said
    profile = Profile(where / "first.db")
    check_counts(profile, counted, [0, 1])
    assert nodes(profile) == [hosts.names[0]] * 2
    assert (profile.meta()["ranks"], profile.meta()["ranks_collected"]) == ("4", "2")
    assert "only 2 of 4 ranks are in this profile" in commlens("report", "first.db", cwd=where)


def test_parts_of_a_program_of_sessions_find_each_other(mpi: Mpi) -> None:
    """Hydra over a remote shell sets no variable that all its processes share and no other launch has."""
    hosts = Hosts(mpi.fresh("several"), 2, 1)
    result = run_on(mpi, hosts, mpi.compile("sessions.c"), "only")
    if result.rc == NO_SESSIONS:
        assert mpi.name == "openmpi"
        pytest.skip("this MPI library has no sessions")
    assert result.rc == 0, result
    profile = result.open()
    profile.check()
    assert nodes(profile) == hosts.names
    assert profile.calls("MPI_Allreduce") == {"f0.1": {0: 3, 1: 3}, "d0.2": {0: 5, 1: 5}}
    left = [path.name for path in result.profile.parent.iterdir() if "commlens" in path.name]
    assert left == []
