# SPDX-License-Identifier: Apache-2.0
"""commlens place: what fewer nodes, or nodes below one switch, would save."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from build_profile import ProfileBuilder
from conftest import Run

CORES = """<?xml version="1.0"?><topology version="2.0"><object type="Machine" cpuset="0x0000000f">
<object type="Package" cpuset="0x0000000f">{}</object></object></topology>""".format(
    "".join(
        f'<object type="Core" cpuset="0x{1 << cpu:08x}"><object type="PU" os_index="{cpu}" cpuset="0x{1 << cpu:08x}"/></object>'
        for cpu in range(4)
    )
)


def profile(path: Path, nodes: int) -> Path:
    """Write one of 4 ranks on some nodes, in a ring of messages of 1,000 bytes."""
    build = ProfileBuilder(ranks=4)
    build.nodes = nodes
    for rank in range(4):
        build.send(rank, (rank + 1) % 4, 1, 1000)
    return build.write(path)


def bind(profile: Path, cpus: str) -> None:
    """Bind each rank to these CPUs."""
    with closing(sqlite3.connect(profile)) as connection, connection:
        connection.execute("UPDATE rank SET cpus = ?", (cpus,))


def words(run: Run, *arguments: object) -> str:
    result = run("place", *arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    return " ".join(result.stdout.split())


def test_fewer_nodes_that_do_are_named(tmp_path: Path, run: Run) -> None:
    """Four nodes with a rank each: 4 x 1,000 x 20. One with its four cores: 4 x 1,000 x 4."""
    (tmp_path / "cores.xml").write_text(CORES)
    here = profile(tmp_path / "p.db", 4)
    bind(here, "0")
    said = words(run, here, "--topology", tmp_path / "cores.xml")
    assert "all ranks have room on 1 node instead of 4, with 1 core each (--cpus-per-rank)" in said
    assert f"there bytes x distance is {100 * (1 - 4 / 20):.1f} % less than in the run" in said


def test_ranks_that_were_bound_to_several_cores_are_left_their_cores(tmp_path: Path, run: Run) -> None:
    """Each of them may have had a thread on each core."""
    (tmp_path / "cores.xml").write_text(CORES)
    here = profile(tmp_path / "p.db", 4)
    bind(here, "0-3")
    assert "all ranks have room" not in words(run, here, "--topology", tmp_path / "cores.xml")


def test_few_ranks_on_a_large_machine_have_a_placement(tmp_path: Path, run: Run) -> None:
    here = profile(tmp_path / "p.db", 4)
    assert "bytes x distance" in words(run, here, "--nodes", 1000, "--sockets", 2, "--cores", 64)


def test_nothing_is_said_where_no_node_can_be_spared(tmp_path: Path, run: Run) -> None:
    here = profile(tmp_path / "p.db", 2)
    assert "all ranks have room" not in words(run, here)
    (tmp_path / "cores.xml").write_text(CORES)
    one = profile(tmp_path / "one.db", 1)
    assert "all ranks have room" not in words(run, one, "--topology", tmp_path / "cores.xml")


def hosts_of(run: Run, here: Path) -> list[str]:
    lines = words_of_rows(run, here)
    return list(dict.fromkeys(line.split(",")[1] for line in lines))


def words_of_rows(run: Run, here: Path) -> list[str]:
    return str(run("place", here, "--format", "csv").stdout).splitlines()[1:]


@pytest.mark.parametrize(
    ("leaves", "said"),
    [
        # Each node below another leaf, 30 away; sw9 has four nodes, 20 away: a third less.
        (
            "SwitchName=sw9 Nodes=x[1-4]\n{}",
            "the cluster has one switch with at least 4 nodes: on 4 nodes below it, the best placement found costs 33.3 % less",
        ),
        # No leaf has four.
        ("SwitchName=sw9 Nodes=x[1-3]\n{}", ""),
    ],
)
def test_nodes_below_one_switch_are_closer(tmp_path: Path, run: Run, leaves: str, said: str) -> None:
    here = profile(tmp_path / "p.db", 4)
    hosts = hosts_of(run, here)
    assert len(hosts) == 4
    own = "".join(f"SwitchName=s{at} Nodes={host}\n" for at, host in enumerate(hosts))
    switches = ",".join([*(f"s{at}" for at in range(4)), "sw9"])
    file = tmp_path / "topology.conf"
    file.write_text(leaves.format(own) + f"SwitchName=root Switches={switches}\n")
    found = words(run, here, "--switches", file)
    assert said in found if said else "the cluster has" not in found
    # One's own distances of the network leave no scale for other nodes.
    assert "the cluster has" not in words(run, here, "--switches", file, "--distance", "network=25")


def test_nodes_that_are_below_one_switch_are_close_enough(tmp_path: Path, run: Run) -> None:
    here = profile(tmp_path / "p.db", 4)
    file = tmp_path / "topology.conf"
    file.write_text(
        f"SwitchName=s0 Nodes={','.join(hosts_of(run, here))},x[1-9]\nSwitchName=s1 Nodes=y[1-9]\n"
    )
    assert "the cluster has" not in words(run, here, "--switches", file)
