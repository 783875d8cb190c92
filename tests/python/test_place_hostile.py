# SPDX-License-Identifier: Apache-2.0
"""commlens place: matrices and machines that are empty, uneven or damaged get right answers or one clear line."""

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from build_profile import ProfileBuilder
from conftest import Run
from test_place import graph_of

from commlens.base.errors import CommlensError
from commlens.matrix.hwloc import read_hwloc
from commlens.place.machine import build, regular
from commlens.place.mapper import place
from commlens.place.objective import lower_bound


def four(path: Path, nodes: int = 2) -> Path:
    """Write a profile in which 0 sends to 3 only, and 1 to 2: with two ranks a node in turns, all of it crosses."""
    build_ = ProfileBuilder(ranks=4)
    build_.nodes = nodes
    build_.send(0, 3, 1, 1000)
    build_.send(1, 2, 1, 500)
    return build_.write(path)


def line_of(run: Run, *arguments: object) -> str:
    """Return the one line on stderr of a command that is refused."""
    result = run("place", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("commlens: ")
    assert result.stderr.count("\n") == 1
    return str(result.stderr[len("commlens: ") : -1])


def test_one_direction_counts_as_much_as_both(tmp_path: Path, run: Run) -> None:
    result = run("place", four(tmp_path / "p.db"), "--format", "json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    node = [row["node"] for row in found["placement"]]
    assert node[0] == node[3] != node[1] == node[2]
    assert found["cost_after"] == 1500 * 4


def test_no_traffic_costs_nothing_anywhere() -> None:
    machine, graph = build(regular(2, 2, 2)), graph_of(5, {})
    found = place(graph, machine)
    assert (found.cost, lower_bound(graph, machine)) == (0.0, 0.0)
    assert len(set(found.slots.tolist())) == 5


def test_messages_without_bytes_are_traffic_only_if_they_count(tmp_path: Path, run: Run) -> None:
    build_ = ProfileBuilder(ranks=2)
    build_.nodes = 2
    build_.send(0, 1, 7, 0)
    profile = build_.write(tmp_path / "p.db")
    assert line_of(run, profile) == "nothing to place: this profile has no traffic between ranks of kind all"
    result = run("place", profile, "--per-message", "10", "--format", "json")
    assert json.loads(result.stdout)["cost_before"] == 7 * 10 * 20


def test_messages_to_oneself_are_no_traffic(tmp_path: Path, run: Run) -> None:
    build_ = ProfileBuilder(ranks=4)
    build_.send(2, 2, 9, 1000)
    assert "no traffic between ranks" in line_of(run, build_.write(tmp_path / "p.db"))


def test_one_rank_has_a_slot() -> None:
    found = place(graph_of(1, {}), build(regular(1, 1, 3)))
    assert (found.cost, len(found.slots)) == (0.0, 1)


def test_a_profile_without_the_nodes_of_its_ranks(tmp_path: Path, run: Run) -> None:
    profile = four(tmp_path / "p.db")
    with closing(sqlite3.connect(profile)) as connection, connection:
        connection.execute("UPDATE rank SET node = ''")
    assert "this profile has no node for rank 0; describe the machine with --nodes" in line_of(run, profile)
    result = run("place", profile, "--nodes", "2", "--cores", "2", "--format", "json")
    assert (result.exit_code, json.loads(result.stdout)["cost_after"]) == (0, 1500 * 4)


@pytest.mark.parametrize("room", [1, 2, 3])
def test_more_ranks_than_cores_are_refused(tmp_path: Path, run: Run, room: int) -> None:
    said = line_of(run, four(tmp_path / "p.db"), "--nodes", "1", "--cores", room)
    assert said == f"4 ranks, but the machine has only {room} slots"


XML = '<topology><object type="Machine" cpuset="0x3">{}</object></topology>'
PU = '<object type="PU" os_index="{0}" cpuset="{1}"/>'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not XML at all",
        "<topology>",
        "<topology></topology>",
        XML.format(""),
        XML.format(PU.format(0, "")),
        XML.format(PU.format(0, "0xzz")),
        XML.format(PU.format(0, "-0x1")),
        XML.format(PU.format(0, "0x1"))[:-20],
        '<!DOCTYPE a [<!ENTITY b "c">]><topology>&d;</topology>',
        '<?xml version="1.0" encoding="nonsense"?><topology/>',
        "\x00\x01\x02",
        XML.format('<object type="Core" cpuset="0x1"/>'),
    ],
)
def test_a_damaged_topology_gets_one_line(tmp_path: Path, run: Run, text: str) -> None:
    file = tmp_path / "node.xml"
    file.write_text(text)
    with pytest.raises(CommlensError, match="not a topology written by lstopo"):
        read_hwloc(file)
    assert str(file) in line_of(run, four(tmp_path / "p.db"), "--topology", file)


def test_a_cpu_mask_beyond_all_machines_is_no_cpu(tmp_path: Path) -> None:
    file = tmp_path / "node.xml"
    file.write_text(XML.format(PU.format(0, ",".join(["0xffffffff"] * 100_000))))
    with pytest.raises(CommlensError, match="it has no CPUs"):
        read_hwloc(file)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "not a topology.conf"),
        ("# SwitchName=s0 Nodes=n0\n", "not a topology.conf"),
        ("SwitchName=a Switches=a Nodes=n0\n", "switch a is its own ancestor"),
        ("SwitchName=a Nodes=n0 Switches=b\nSwitchName=b Switches=a\n", "is its own ancestor"),
        (
            "SwitchName=a Nodes=n0\nSwitchName=b Switches=a,c\nSwitchName=c Switches=b\n",
            "is its own ancestor",
        ),
        ("SwitchName=a Nodes=n[1-x]\n", "not a range of hosts"),
        ("SwitchName=a Nodes=n[0-999999999]\n", "too many hosts"),
        ("SwitchName=a Nodes=n[1-999][1-999][1-999]\n", "too many hosts"),
    ],
)
def test_switches_that_are_no_tree_get_one_line(tmp_path: Path, run: Run, text: str, line: str) -> None:
    file = tmp_path / "topology.conf"
    file.write_text(text)
    assert line in line_of(run, four(tmp_path / "p.db"), "--switches", file)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "not a table of distances"),
        ("n0 0 1\nn1 1\n", "one distance for each of 2 nodes"),
        ("n0 0 1\n", "one distance for each of 1 nodes"),
        ("n0 0 nan\nn1 nan 0\n", "negative or not finite"),
        ("n0 0 inf\nn1 inf 0\n", "negative or not finite"),
        ("n0 0 -1\nn1 -1 0\n", "negative or not finite"),
        ("n0 0 1\nn1 2 0\n", "differ between the two directions"),
        ("n0 0 1\nn0 1 0\n", "a node has two lines"),
        ("n0 0 far\nn1 far 0\n", "not a table of distances"),
        ("x0 0 1\nx1 1 0\n", "has no row for node"),
    ],
)
def test_a_damaged_table_of_distances_gets_one_line(tmp_path: Path, run: Run, text: str, line: str) -> None:
    file = tmp_path / "distances"
    file.write_text(text)
    assert line in line_of(run, four(tmp_path / "p.db"), "--distances", file)


@pytest.mark.parametrize("option", ["--topology", "--switches", "--distances"])
def test_files_of_random_bytes_get_one_line(tmp_path: Path, run: Run, option: str) -> None:
    profile, chance = four(tmp_path / "p.db"), random.Random(5)
    for number in range(8):
        file = tmp_path / f"f{number}"
        file.write_bytes(chance.randbytes(chance.randint(1, 300)))
        assert line_of(run, profile, option, file)


def test_distances_of_zero_leave_the_ranks_alone(tmp_path: Path, run: Run) -> None:
    levels = [word for name in ("node", "network") for word in ("--distance", f"{name}=0")]
    result = run("place", four(tmp_path / "p.db"), *levels)
    assert result.exit_code == 0
    assert "placed well already" in result.stdout


def test_traffic_of_all_sizes_stays_finite() -> None:
    weights = {(0, 1): 1e300, (1, 2): 1e-300, (2, 3): 1.0}
    machine = build(regular(2, 1, 2))
    found = place(graph_of(4, weights), machine)
    assert np.isfinite(found.cost)
    assert int(machine.node[found.slots[0]]) == int(machine.node[found.slots[1]])
