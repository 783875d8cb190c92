# SPDX-License-Identifier: Apache-2.0
"""Writes a placement as the file that a launcher reads, and returns the command line that uses it."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from commlens.base.errors import CommlensError
from commlens.base.outputs import new
from commlens.matrix.pairs import Pairs
from commlens.matrix.query import KINDS, Matrix
from commlens.place.machine import Slot
from commlens.place.objective import Graph
from commlens.selection.words import ranges_text

# Letters of the lines of Open MPI's monitoring component: two-sided messages of the application (external) and of the
# library (internal), and one-sided ones that a rank sends and receives.
LETTERS = {"sent": "E", "collective": "I", "internal": "I", "modelled": "I", "put": "S", "get": "R"}

HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")
LONGEST_ARGUMENT = 131071  # bytes of one argument of a command, Linux
MOST_MATRIX = 8192  # ranks of a file with all pairs


@dataclass(frozen=True)
class Format:
    """A format of placements.

    Attributes
    ----------
    title : str
        The launcher that reads it.
    write : callable
        Returns the text for the slots of all ranks.
    command : str
        Command line; {file} is the file, {ranks} the number of ranks, {hosts} the nodes, {slots} the nodes with their
        numbers of ranks, {most} the largest of these numbers.
    """

    title: str
    write: Callable[[Sequence[Slot]], str]
    command: str


def check_hosts(slots: Sequence[Slot]) -> None:
    """Refuse names of hosts that would be more than a name in a file of a launcher.

    Raises
    ------
    CommlensError
        A name has other characters than a host may have.
    """
    for name in {slot.node for slot in slots}:
        if not HOST.fullmatch(name):
            raise CommlensError(f"'{name}' is not the name of a host; no launcher could use it")


def numbers_text(numbers: Sequence[int]) -> str:
    """Return numbers as ranges.

    >>> numbers_text((0, 1, 2, 8))
    '0-2,8'
    """
    return ranges_text(numbers, ",")


def rankfile(slots: Sequence[Slot]) -> str:
    """Return a rankfile of Open MPI: node and logical cores of each rank.

    Raises
    ------
    CommlensError
        The cores are unknown.
    """
    if any(not slot.cores for slot in slots):
        raise CommlensError(
            "a rankfile needs the cores of the nodes, which this profile lacks: add --topology FILE.xml, or use "
            "--launcher openmpi-seq"
        )
    return "".join(
        f"rank {rank}={slot.node} slot={numbers_text(slot.cores)}\n" for rank, slot in enumerate(slots)
    )


def one_host_a_line(slots: Sequence[Slot]) -> str:
    """Return the node of each rank, one a line."""
    return "".join(f"{slot.node}\n" for slot in slots)


def machinefile(slots: Sequence[Slot]) -> str:
    """Return a machinefile of MPICH or Intel MPI: node:number for ranks that follow each other on a node."""
    return "".join(
        f"{node}:{sum(1 for _ in run)}\n" for node, run in groupby(slots, key=lambda slot: slot.node)
    )


def node_numbers(slots: Sequence[Slot]) -> list[int]:
    """Return the number of each rank's node; nodes are numbered in the order of their names in the host list."""
    names = {name: at for at, name in enumerate(host_order(slots))}
    return [names[slot.node] for slot in slots]


def host_order(slots: Sequence[Slot]) -> list[str]:
    """Return the nodes in natural order, as resource managers list them: node2 before node10."""

    def key(name: str) -> list[tuple[int, int, str]]:
        return [
            (0, int(word), word) if word.isdigit() else (1, 0, word) for word in re.findall(r"\d+|\D+", name)
        ]

    return sorted({slot.node for slot in slots}, key=key)


def ranks_of_nodes(slots: Sequence[Slot]) -> list[int]:
    """Return the number of ranks of each node, in the order of host_order()."""
    used = Counter(slot.node for slot in slots)
    return [used[name] for name in host_order(slots)]


def rankmap(slots: Sequence[Slot]) -> str:
    """Return a map for MPICH's -rankmap: (vector,numbers of the nodes).

    Raises
    ------
    CommlensError
        The map is longer than an argument of a command may be.
    """
    text = f"(vector,{','.join(map(str, node_numbers(slots)))})\n"
    if len(text) > LONGEST_ARGUMENT:
        raise CommlensError(
            f"-rankmap is one argument, and {len(slots):,} ranks do not fit into it: use --launcher mpich"
        )
    return text


def rank_order(slots: Sequence[Slot]) -> str:
    """Return a file MPICH_RANK_ORDER of Cray MPICH: the ranks in the order of nodes and cores, a line for each node.

    As Cray's grid_order writes it: a line does not end with a comma.

    Raises
    ------
    CommlensError
        The nodes get different numbers of ranks. The file only orders the ranks; how many a node gets is up to srun.
    """
    numbers = node_numbers(slots)
    first, *others = ranks_of_nodes(slots)
    if any(number != first for number in others[:-1]) or (others and others[-1] > first):
        raise CommlensError(
            "MPICH_RANK_ORDER cannot express this placement, whose nodes get different numbers of ranks"
        )
    order = sorted(range(len(slots)), key=lambda rank: (numbers[rank], slots[rank].cpus, rank))
    lines = []
    for _, run in groupby(order, key=lambda rank: numbers[rank]):
        lines.append(",".join(map(str, run)))
    return "# Ranks in the order of nodes and cores.\n" + "\n".join(lines) + "\n"


FORMATS = {
    "openmpi4": Format("Open MPI 4", rankfile, "mpirun -np {ranks} --rankfile {file} ./app"),
    # Open MPI 5 takes the nodes of a rankfile only from an allocation: that of a resource manager, or --host.
    "openmpi5": Format(
        "Open MPI 5", rankfile, "mpirun -np {ranks} --host {slots} --map-by rankfile:FILE={file} ./app"
    ),
    "openmpi-seq": Format(
        "Open MPI, nodes only",
        one_host_a_line,
        "mpirun -np {ranks} --map-by seq --hostfile {file} --bind-to none ./app",
    ),
    "mpich": Format("MPICH", machinefile, "mpiexec -n {ranks} -f {file} ./app"),
    "mpich-rankmap": Format(
        "MPICH from 4.1",
        rankmap,
        'mpiexec -n {ranks} -hosts {hosts} -rankmap "$(cat {file})" ./app',
    ),
    "intel": Format("Intel MPI", machinefile, "mpiexec.hydra -n {ranks} -machinefile {file} ./app"),
    "slurm": Format(
        "Slurm", one_host_a_line, "SLURM_HOSTFILE={file} srun -n {ranks} --distribution=arbitrary ./app"
    ),
    "cray": Format(
        "Cray MPICH",
        rank_order,
        "MPICH_RANK_REORDER_METHOD=3 MPICH_RANK_REORDER_FILE={file} srun -n {ranks} --ntasks-per-node={most} "
        "--distribution=block ./app",
    ),
}
TREEMATCH, MONITORING = "treematch", "monitoring"
TRAFFIC = (TREEMATCH, MONITORING)
"""Formats of the traffic, which place nothing."""

NAMES = (*FORMATS, *TRAFFIC)


def check_name(name: str, path: Path) -> None:
    """Refuse the name of a file that the reader of its format would handle wrongly.

    Raises
    ------
    CommlensError
        profile2mat of Open MPI derives the names of its results from .prof, and else overwrites the file.
    """
    if name == MONITORING and path.suffix != ".prof":
        raise CommlensError(f"{path}: the name of a file of --launcher {MONITORING} must end in .prof")


def write(name: str, slots: Sequence[Slot], graph: Graph, matrix: Matrix | None = None) -> str:
    """Return the text of a format.

    Parameters
    ----------
    matrix : Matrix
        For the format of Open MPI's monitoring component.

    Raises
    ------
    CommlensError
        The format needs something that is unknown, or cannot express the placement.
    """
    if name == TREEMATCH:
        return matrix_text(graph)
    if name == MONITORING:
        assert matrix is not None
        return prof_text(matrix, graph.size)
    check_hosts(slots)
    return FORMATS[name].write(slots)


def command(name: str, file: str, slots: Sequence[Slot]) -> str:
    """Return the command line that uses a file."""
    if name == TREEMATCH:
        return f"mapping -t TOPOLOGY.tgt -c {shlex.quote(file)}"
    if name == MONITORING:
        return f"profile2mat {shlex.quote(file)}"
    order, used = host_order(slots), ranks_of_nodes(slots)
    return FORMATS[name].command.format(
        file=shlex.quote(file),
        ranks=len(slots),
        hosts=",".join(order),
        slots=",".join(f"{host}:{number}" for host, number in zip(order, used)),
        most=max(used),
    )


def save(path: Path, text: str) -> None:
    """Write a file that does not exist yet."""
    with new(path) as temporary:
        temporary.write_text(text, encoding="ascii")


def matrix_text(graph: Graph) -> str:
    """Return the traffic between all pairs as TreeMatch reads it: a line of numbers per rank.

    Raises
    ------
    CommlensError
        There are too many ranks for a file of all pairs.
    """
    if graph.size > MOST_MATRIX:
        raise CommlensError(
            f"a .mat file has all pairs: {graph.size:,} ranks are too many; at most {MOST_MATRIX:,}"
        )
    lines = []
    for rank in range(graph.size):
        row = [0] * graph.size
        for at in range(int(graph.start[rank]), int(graph.start[rank + 1])):
            row[int(graph.column[at])] = int(graph.weight[at])
        lines.append(" ".join(map(str, row)))
    return "\n".join(lines) + "\n"


def prof_text(matrix: Matrix, ranks: int) -> str:
    """Return the traffic as Open MPI's monitoring component writes it: kind, origin, other rank, bytes, messages.

    The origin of a get is the rank that calls it, and so receives the data.
    """
    parts: dict[str, list[Pairs]] = {}
    for (_, flow), traffic in matrix.traffic.items():
        if flow in KINDS[matrix.kind]:
            if flow not in LETTERS:
                raise CommlensError(f"kind {flow} has no place in a .prof file")
            parts.setdefault(LETTERS[flow], []).extend([traffic.pairs, traffic.spread])
    lines = []
    for letter in "EISR":
        pairs = Pairs.joined(parts.get(letter, []))
        pairs = pairs.chosen((pairs.source < ranks) & (pairs.destination < ranks))
        ends = (pairs.destination, pairs.source) if letter == "R" else pairs.ends
        for origin, other, bytes, messages in zip(
            *(end.tolist() for end in ends), pairs.bytes.tolist(), pairs.messages.tolist()
        ):
            lines.append(f"{letter}\t{origin}\t{other}\t{bytes} bytes\t{messages} msgs sent\n")
    return "".join(lines)
