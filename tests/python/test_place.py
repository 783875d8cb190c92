# SPDX-License-Identifier: Apache-2.0
"""commlens place: the mapper against all placements, the bound, machines, files for launchers."""

from __future__ import annotations

import functools
import itertools
import random
import re
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from build_profile import ProfileBuilder
from conftest import Run
from matrices import grid, star, talking

from commlens.base.errors import CommlensError
from commlens.matrix.hwloc import read_hwloc
from commlens.matrix.patterns import Grid
from commlens.place import formats, recover, sources
from commlens.place.grids import blocks, fits
from commlens.place.machine import Machine, Slot, build, regular, with_table
from commlens.place.mapper import place
from commlens.place.objective import Graph, by_level, cost, lower_bound
from commlens.place.plan import Plan, Reordered
from commlens.place.text import level_text, note_sentences

CASES, FEW_CASES = 1000, 100  # of small instances; the first few run without --every-case


def graph_of(size: int, weights: dict[tuple[int, int], float]) -> Graph:
    ends = np.array([*weights], dtype=np.int64).reshape(-1, 2)
    both = np.concatenate([ends, ends[:, ::-1]])
    value = np.array([*weights.values()] * 2, dtype=np.float64)
    return Graph.of_entries(size, both[:, 0], both[:, 1], value)


def random_case(number: int) -> tuple[dict[tuple[int, int], float], int, Machine]:
    """Return weights, ranks and machine; the machine has holes, and nodes of different sizes."""
    chance = random.Random(number)
    ranks = chance.randint(1, 9)
    slots: list[Slot] = []
    while len(slots) < ranks:
        sockets, cores = chance.choice([(1, 2), (2, 2), (1, 3), (2, 1)])
        node = f"n{len({slot.node for slot in slots})}"
        slots += [
            slot
            for slot in (
                Slot(node, (s * cores + c,), (s * cores + c,), (s, s, -1))
                for s in range(sockets)
                for c in range(cores)
            )
            if chance.random() < 0.9
        ]
        slots = slots[:9]
    weights = {
        pair: float(chance.randint(1, 100))
        for pair in itertools.combinations(range(ranks), 2)
        if chance.random() < 0.6
    }
    return weights, ranks, build(slots)


@pytest.mark.long
@pytest.mark.parametrize("block", range(10))
def test_small_instances_are_placed_optimally_and_the_bound_is_never_above(
    block: int, pytestconfig: pytest.Config
) -> None:
    cases = CASES if pytestconfig.getoption("--every-case") else FEW_CASES
    for number in range(block * cases // 10, (block + 1) * cases // 10):
        weights, ranks, machine = random_case(number)
        graph = graph_of(ranks, weights)
        every = np.arange(len(machine))
        far = machine.distances(np.repeat(every, len(every)), np.tile(every, len(every)))
        least = brute_of(weights, ranks, far.reshape(len(every), -1).tolist())
        found = place(graph, machine)
        assert found.cost == pytest.approx(least), number
        assert found.cost == pytest.approx(cost(graph, machine, found.slots))
        assert len(set(found.slots.tolist())) == ranks
        assert lower_bound(graph, machine) <= least * (1 + 1e-12), number


def brute_of(weights: dict[tuple[int, int], float], ranks: int, far: list[list[float]]) -> float:
    """Return the least cost of all placements, from a table of distances."""
    table, at = np.array(far), every_placement(len(far), ranks)
    total = np.zeros(len(at))
    for (a, b), weight in weights.items():
        total += weight * table[at[:, a], at[:, b]]
    return float(total.min())


@functools.cache
def every_placement(slots: int, ranks: int) -> np.ndarray:
    return np.array(list(itertools.permutations(range(slots), ranks)), dtype=np.int8)


def stencil(dims: tuple[int, ...], seed: int) -> tuple[Graph, np.ndarray]:
    """Return a stencil with its ranks shuffled, and the position of each rank."""
    pairs = grid(dims, "0" * len(dims), star(len(dims), (1,)))
    size = int(np.prod(dims))
    rank_at = np.random.default_rng(seed).permutation(size)
    weights = {(int(rank_at[a]), int(rank_at[b])): 1.0 for a, b in pairs}
    return graph_of(size, weights), np.argsort(rank_at)


@pytest.mark.parametrize("dims", [(7,), (5, 3), (4, 6, 3), (2, 2, 2, 2), (3, 4, 5)])
@pytest.mark.parametrize("around", [False, True])
def test_the_grid_of_shuffled_ranks_is_recovered(dims: tuple[int, ...], around: bool) -> None:
    periods = "1" if around else "0"
    pairs = grid(dims, periods * len(dims), star(len(dims), (1,)))
    size = int(np.prod(dims))
    rank_at = np.random.default_rng(2).permutation(size)
    names = [int(rank) for rank in rank_at]
    edges = {(min(names[a], names[b]), max(names[a], names[b])): 1.0 for a, b in pairs}
    graph = graph_of(size, edges)
    found = recover.grid_of(graph)
    assert found is not None
    shape, positions = found
    assert sorted(positions.tolist()) == list(range(size))
    # A ring of three is three ranks, each with each; one of four is two by two. So compare the pairs.
    at = np.stack(np.unravel_index(positions, shape.dims))
    apart = np.abs(at[:, graph.row] - at[:, graph.column])
    assert np.all((apart > 0).sum(axis=0) == 1)
    if not around:
        assert sorted(shape.dims) == sorted(dims)
        assert fits(graph, shape, positions)


def test_no_grid_is_found_where_there_is_none() -> None:
    pairs = {(a, b): 1.0 for a, b in itertools.combinations(range(12), 2) if (a * b + a) % 5 == 1}
    assert recover.grid_of(graph_of(12, pairs)) is None
    assert recover.grid_of(graph_of(0, {})) is None


@pytest.mark.parametrize(
    ("dims", "machine", "between"),
    # On paper: the planes between the blocks of the nodes (8x8, 8x4, 4x4x4), times their size.
    [
        ((32, 32), (16, 2, 32), 2 * 3 * 32),
        ((8, 8, 8), (8, 1, 64), 3 * 64),
        ((16, 16), (8, 1, 32), 3 * 16 + 16),
    ],
)
def test_large_shuffled_stencils_are_placed_as_blocks(
    dims: tuple[int, ...], machine: tuple[int, int, int], between: int
) -> None:
    graph, _ = stencil(dims, 5)
    where = build(regular(*machine))
    found = place(graph, where)
    assert by_level(graph, where, found.slots)[-1] == between


def test_pins_and_spare_slots_are_respected_while_ranks_move_between_groups() -> None:
    graph, _ = stencil((8, 8), 2)
    machine = build(regular(6, 2, 8))
    found = place(graph, machine, pins={5: 90, 17: 0})
    assert (found.slots[5], found.slots[17]) == (90, 0)
    assert len(set(found.slots.tolist())) == 64


@pytest.mark.parametrize(
    ("dims", "nodes", "cores", "between"),
    # Between nodes: on paper, the planes between blocks times their size.
    [((4, 4), 4, 4, 8), ((8, 8), 4, 16, 16), ((4, 4, 4), 8, 8, 48), ((6, 4), 4, 6, 10)],
)
def test_shuffled_stencils_are_placed_as_blocks(
    dims: tuple[int, ...], nodes: int, cores: int, between: int
) -> None:
    graph, positions = stencil(dims, 3)
    machine = build(regular(nodes, 1, cores))
    optimum = 4.0 * (graph.total - between) + 20.0 * between
    assert place(graph, machine).cost == optimum
    known = blocks(graph, machine, Grid(dims, (False,) * len(dims)), positions)
    assert known is not None
    assert cost(graph, machine, known) == optimum
    bound = lower_bound(graph, machine, [(Grid(dims, (False,) * len(dims)), positions)])
    assert 0.9 * optimum < bound <= optimum


def test_distances_follow_the_innermost_level_that_is_shared() -> None:
    machine = build(regular(2, 2, 4, numa=2))
    there = np.array([0, 1, 2, 4, 8])
    assert machine.distances(np.zeros(5, dtype=np.int64), there).tolist() == [0.0, 2.0, 3.0, 4.0, 20.0]


def test_the_same_seed_gives_the_same_placement() -> None:
    graph, _ = stencil((6, 6), 1)
    machine = build(regular(3, 2, 6))
    assert place(graph, machine, seed=5).slots.tolist() == place(graph, machine, seed=5).slots.tolist()


def test_pinned_ranks_stay() -> None:
    graph, _ = stencil((4, 4), 1)
    machine = build(regular(4, 1, 4))
    found = place(graph, machine, pins={3: 7, 9: 12})
    assert (found.slots[3], found.slots[9]) == (7, 12)
    assert sorted(found.slots.tolist()) == list(range(16))


def test_more_ranks_than_slots_are_refused() -> None:
    with pytest.raises(CommlensError, match="16 ranks, but the machine has only 12 slots"):
        place(stencil((4, 4), 1)[0], build(regular(3, 1, 4)))


def test_a_table_of_distances_decides_which_nodes_are_near(tmp_path: Path) -> None:
    file = tmp_path / "table"
    file.write_text("a 0 9 1 9\nb 9 0 9 1\nc 1 9 0 9\nd 9 1 9 0\n")
    machine = with_table(build([Slot(name, (0,), (0,)) for name in "abcd"]), *sources.read_table(file))
    graph = graph_of(4, {(0, 1): 5.0, (2, 3): 5.0})
    found = place(graph, machine)
    nodes = [machine.slots[at].node for at in found.slots.tolist()]
    assert {frozenset(nodes[:2]), frozenset(nodes[2:])} == {frozenset("ac"), frozenset("bd")}
    assert found.cost == 10.0


def test_switches_of_slurm_are_read(tmp_path: Path) -> None:
    file = tmp_path / "topology.conf"
    file.write_text(
        "# tree\nSwitchName=s0 Nodes=n[0-1]\nSwitchName=s1 Nodes=n[2-3]\nSwitchName=top Switches=s[0-1]\n"
    )
    machine = build([Slot(f"n{i}", (0,), (0,)) for i in range(4)], sources.read_switches(file))
    apart = machine.distances(np.array([0, 0, 2]), np.array([1, 2, 3])).tolist()
    assert apart == [20.0, 30.0, 20.0]


def test_a_topology_of_lstopo_is_read(tmp_path: Path) -> None:
    def thing(kind: str, mask: str, inside: str = "", more: str = "") -> str:
        return f'<object type="{kind}" cpuset="{mask}"{more}>{inside}</object>'

    packages = ""
    for package in range(2):
        cores = ""
        for core in range(2):
            cpus = [package * 2 + core, 4 + package * 2 + core]
            inside = "".join(thing("PU", hex(1 << cpu), "", f' os_index="{cpu}"') for cpu in cpus)
            cores += thing("Core", hex(sum(1 << cpu for cpu in cpus)), inside)
        mask = hex(0x33 << 2 * package)
        packages += thing("Package", mask, thing("NUMANode", mask) + cores)
    file = tmp_path / "node.xml"
    file.write_text(f"<topology>{thing('Machine', '0xff', packages)}</topology>")
    cores_found = read_hwloc(file)
    assert [core.cpus for core in cores_found] == [(0, 4), (1, 5), (2, 6), (3, 7)]
    assert [core.inside[0] for core in cores_found] == [0, 0, 1, 1]
    assert [slot.cores for slot in sources.node_slots("n", cores_found, 2)] == [(0, 1), (2, 3)]


SLOTS = [
    Slot("n1", (4, 5), (4, 5)),
    Slot("n0", (0, 1), (0, 1)),
    Slot("n0", (2, 3), (2, 3)),
    Slot("n1", (0, 1), (0, 1)),
]


def test_rankfiles_name_node_and_cores_of_each_rank() -> None:
    found = {}
    for line in formats.rankfile(SLOTS).splitlines():
        match = re.fullmatch(r"rank (\d+)=(\w+) slot=(\d+)-(\d+)", line)
        assert match
        found[int(match[1])] = (match[2], tuple(range(int(match[3]), int(match[4]) + 1)))
    assert found == {rank: (slot.node, slot.cores) for rank, slot in enumerate(SLOTS)}


def test_machinefiles_and_lists_of_hosts_have_the_node_of_each_rank() -> None:
    nodes = [slot.node for slot in SLOTS]
    assert formats.one_host_a_line(SLOTS).split() == nodes
    expanded = []
    for line in formats.machinefile(SLOTS).split():
        name, number = line.split(":")
        expanded += [name] * int(number)
    assert expanded == nodes
    vector = formats.rankmap(SLOTS).strip()
    numbers = re.fullmatch(r"\(vector,([\d,]+)\)", vector)
    assert numbers
    assert [f"n{number}" for number in numbers[1].split(",")] == nodes


def test_a_rankmap_that_no_command_line_takes_is_refused() -> None:
    assert formats.rankmap([Slot("n0")] * 65000)
    with pytest.raises(CommlensError, match="70,000 ranks do not fit into it: use --launcher mpich"):
        formats.rankmap([Slot("n0")] * 70000)


def nodes_by_rank_order(text: str, nodes: list[str], per_node: int) -> dict[int, str]:
    """Return the node of each rank as Cray MPICH places them: the listed ranks get the slots of node after node."""
    listed = [line for line in text.splitlines() if not line.startswith("#")]
    assert not any(line.endswith(",") for line in listed)
    ranks = [int(rank) for line in listed for rank in line.split(",")]
    assert sorted(ranks) == list(range(len(ranks)))
    return {rank: nodes[at // per_node] for at, rank in enumerate(ranks)}


def test_a_rank_order_of_cray_fills_node_after_node() -> None:
    found = nodes_by_rank_order(formats.rank_order(SLOTS), ["n0", "n1"], 2)
    assert found == {rank: slot.node for rank, slot in enumerate(SLOTS)}
    # The first core of a node gets the rank that comes first.
    assert "1,2\n3,0\n" in formats.rank_order(SLOTS)
    assert "srun -n 4 --ntasks-per-node=2 --distribution=block" in formats.command("cray", "f", SLOTS)


def test_a_rank_order_of_cray_needs_nodes_with_equally_many_ranks() -> None:
    fewer_on_the_last = formats.rank_order(SLOTS[:3])
    assert nodes_by_rank_order(fewer_on_the_last, ["n0", "n1"], 2) == {0: "n1", 1: "n0", 2: "n0"}
    with pytest.raises(CommlensError, match="different numbers of ranks"):
        formats.rank_order([*SLOTS[1:], Slot("n1")][1:])


def test_names_that_no_host_has_are_refused() -> None:
    with pytest.raises(CommlensError, match="not the name of a host"):
        formats.write("slurm", [Slot("n0\nrank 1=evil")], graph_of(1, {}))


def shuffled_profile(path: Path) -> Path:
    order = random.Random(1).sample(range(16), 16)
    pairs = grid((4, 4), "00", star(2))
    build = talking(16, {(order[a], order[b]) for a, b in pairs})
    build.nodes = 4
    return build.write(path)


def test_the_command_advises_and_writes(tmp_path: Path, run: Run) -> None:
    profile = shuffled_profile(tmp_path / "p.db")
    result = run("place", profile, "--to", tmp_path / "hosts", "--launcher", "slurm")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "another placement saves" in result.stdout
    assert "SLURM_HOSTFILE" in result.stdout
    assert len((tmp_path / "hosts").read_text().split()) == 16


def test_a_good_placement_is_left_alone(tmp_path: Path, run: Run) -> None:
    build = ProfileBuilder(ranks=4)
    build.nodes = 2
    build.send(0, 1, 1, 1000)
    build.send(2, 3, 1, 1000)
    profile = build.write(tmp_path / "p.db")
    result = run("place", profile, "--to", tmp_path / "hosts", "--launcher", "slurm")
    assert "your ranks are placed well already" in result.stdout
    assert not (tmp_path / "hosts").exists()


def test_selected_communicators_without_traffic_are_not_the_profile(tmp_path: Path, run: Run) -> None:
    build = ProfileBuilder(ranks=4)
    build.comm("d0.1", [0, 1, 2, 3])
    build.send(0, 1, 1, 1000)
    result = run("place", build.write(tmp_path / "p.db"), "--comm", "d0.1")
    said = "nothing to place: the selected communicators have no traffic between ranks of kind all"
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"commlens: {said}\n")


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (("--sockets", 1), "--sockets describes another machine: it needs --nodes and --cores"),
        (
            ("--numa", 2, "--topology", "a.xml"),
            "--numa describes another machine: it needs --nodes and --cores",
        ),
        (
            ("--cpus-per-rank", 1),
            "--cpus-per-rank divides the cores of --cores or --topology: it needs one of them",
        ),
        (("--launcher", "openmpi4"), "--launcher is the format of --to: it needs --to FILE"),
    ],
)
def test_options_without_effect_are_refused(
    tmp_path: Path, run: Run, options: tuple[object, ...], line: str
) -> None:
    result = run("place", shuffled_profile(tmp_path / "p.db"), *options)
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"commlens: {line}\n")


@pytest.mark.parametrize(
    ("ranks", "arguments", "line"),
    [
        (1, (), "nothing to place: one rank has no partners"),
        (4, (), "nothing to place: this profile has no traffic between ranks of kind all"),
        (4, ("--cores", "4"), "--cores describes another machine: it needs --nodes"),
        (4, ("--nodes", "1", "--cores", "2"), "4 ranks, but the machine has only 2 slots"),
        (
            4,
            ("--topology", "/nonexistent.xml"),
            "/nonexistent.xml: cannot be read: No such file or directory",
        ),
        (4, ("--pin", "0=nowhere"), "--pin 0=nowhere: the machine has no such free slot"),
    ],
)
def test_what_cannot_be_placed_gets_one_line(
    tmp_path: Path, run: Run, ranks: int, arguments: tuple[str, ...], line: str
) -> None:
    result = run("place", ProfileBuilder(ranks=ranks).write(tmp_path / "p.db"), *arguments)
    assert result.exit_code == 2
    assert result.stderr == f"commlens: {line}\n"


PROF = re.compile(r"([EISR])\t(\d+)\t(\d+)\t(\d+) bytes\t(\d+) msgs sent")


def test_traffic_is_written_as_open_mpi_s_monitoring_does(tmp_path: Path, run: Run) -> None:
    build = ProfileBuilder(ranks=4)
    build.send(0, 1, 3, 1000)
    build.send(3, 0, 1, 8)
    file = tmp_path / "t.prof"
    result = run("place", build.write(tmp_path / "p.db"), "--launcher", "monitoring", "--to", file)
    assert (result.exit_code, result.stderr) == (0, "")
    assert f"profile2mat {file}" in result.stdout
    found = [PROF.fullmatch(line) for line in file.read_text().splitlines()]
    assert [match.groups() for match in found if match] == [
        ("E", "0", "1", "3000", "3"),
        ("E", "3", "0", "8", "1"),
    ]
    assert len(found) == 2


def test_a_prof_file_needs_its_ending(tmp_path: Path, run: Run) -> None:
    """profile2mat overwrites a file with another name."""
    build = ProfileBuilder(ranks=2)
    build.send(0, 1, 3, 1000)
    file = tmp_path / "traffic"
    result = run("place", build.write(tmp_path / "p.db"), "--launcher", "monitoring", "--to", file)
    assert (result.exit_code, file.exists()) == (2, False)
    assert "must end in .prof" in result.stderr


def test_a_cube_has_no_other_order_of_its_dimensions() -> None:
    """Neither 2x2x2 instead of 2x2x2, nor that none is better; 2x2x4 has orders that are others."""
    cube, bar = (
        Reordered(name, dims, (0, 1, 2), 4.0) for name, dims in (("c0.1", (2, 2, 2)), ("c0.2", (2, 2, 4)))
    )
    plan = SimpleNamespace(grids=[cube, bar], is_well=False, cost_before=4.0, cost_after=2.0, remarks=[])
    assert list(note_sentences(cast(Plan, plan))) == [
        "c0.2: no other order of its dimensions 2x2x4 is better than the present one.",
        "reorder=1 of MPI_Cart_create changes nothing in Open MPI and MPICH: both keep the order of the ranks.",
    ]


def test_an_order_that_is_a_little_better_is_not_called_no_better() -> None:
    grid = Reordered("c0.1", (2, 4), (1, 0), 98.1)
    plan = SimpleNamespace(grids=[grid], is_well=False, cost_before=100.0, cost_after=90.0, remarks=[])
    first = next(iter(note_sentences(cast(Plan, plan))))
    assert first == "c0.1: no other order of its dimensions 2x4 saves more than 2.0 %."


def test_levels_have_the_names_and_distances_of_what_they_tell_apart() -> None:
    """Traffic through a switch is traffic between nodes, and with a table each pair of nodes has a distance of its own."""
    slots = [Slot(node, (cpu,), (), (-1, -1, -1)) for node in "ABCD" for cpu in (0, 1)]
    machine = build(slots, [("switch", {"A": 0, "B": 0, "C": 1, "D": 1})])
    assert [level_text(machine, number) for number in range(len(machine.levels))] == [
        "in the same core",
        "in the same node",
        "between nodes, in the same switch",
        "between switches",
    ]
    assert level_text(build(slots), 2) == "between nodes"
    table = np.array([[0, 10, 30], [10, 0, 10], [30, 10, 0]], dtype=np.float64)
    chain = with_table(build(slots[:6]), ["A", "B", "C"], table)
    assert [level_text(chain, number) for number in (1, 2)] == ["in the same node", "between nodes"]
    assert [chain.distance_range(number) for number in (1, 2)] == [(4, 4), (10, 30)]
    pairs = np.array([[0, 1, 40, 40], [1, 0, 40, 40], [40, 40, 0, 1], [40, 40, 1, 0]], dtype=np.float64)
    near = with_table(build(slots), ["A", "B", "C", "D"], pairs)
    assert [level_text(near, number) for number in (2, 3)] == [
        "between nodes, in the same group (distance 1)",
        "between groups of nodes",
    ]
    assert [near.distance_range(number) for number in (2, 3)] == [(1, 1), (40, 40)]
