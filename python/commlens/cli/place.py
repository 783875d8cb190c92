# SPDX-License-Identifier: Apache-2.0
"""`commlens place`."""

from __future__ import annotations

from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click
from click.core import ParameterSource

from commlens.base.errors import CommlensError
from commlens.cli.options import (
    Command,
    OutputPath,
    Parsed,
    comm_option,
    format_option,
    profile_argument,
    sql_option,
    top_option,
)
from commlens.cli.outputs import print_statements
from commlens.profile import open_profile
from commlens.render.screen import Screen
from commlens.render.table import csv_text, json_text

if TYPE_CHECKING:
    from commlens.place.choose import Wanted
    from commlens.place.plan import Plan

KINDS = ("p2p", "put", "get", "one-sided", "collective", "internal", "modelled", "all")
# Those of commlens.place.formats.NAMES: that module needs numpy, which takes longer to load than other commands take.
LAUNCHERS = (
    *("openmpi4", "openmpi5", "openmpi-seq", "mpich", "mpich-rankmap", "intel", "slurm", "cray"),
    *("treematch", "monitoring"),
)
MAPPERS = ("commlens", "kahip", "scotch")
DEFAULT_TOP = 10
FARTHEST = 1e9


def parse_distance(text: str) -> tuple[str, float, float | None]:
    """Return a level, its distance, and the bytes that a message counts there beside its own.

    >>> parse_distance("node=4"), parse_distance("network=20:4096")
    (('node', 4.0, None), ('network', 20.0, 4096.0))
    """
    name, equals, rest = text.rpartition("=")
    number, colon, more = rest.partition(":")
    try:
        value, bytes = float(number), float(more) if colon else 0.0
    except ValueError:
        value = bytes = -1.0
    if not equals or not (0 <= value <= FARTHEST and 0 <= bytes <= FARTHEST):
        raise ValueError(f"'{text}' is not LEVEL=NUMBER or LEVEL=NUMBER:BYTES")
    return name, value, bytes if colon else None


MACHINE_OPTIONS = (
    click.option(
        "--nodes",
        type=click.IntRange(1, 1 << 20),
        metavar="N",
        help="What if: another machine with N equal nodes.",
    ),
    click.option(
        "--sockets",
        type=click.IntRange(1, 1024),
        metavar="N",
        help="Sockets of such a node.  [default: 1]",
    ),
    click.option("--cores", type=click.IntRange(1, 65536), metavar="N", help="Cores of such a socket."),
    click.option(
        "--numa",
        type=click.IntRange(1, 1024),
        metavar="N",
        help="NUMA domains of such a socket.  [default: 1]",
    ),
    click.option(
        "--cpus-per-rank",
        "per_rank",
        type=click.IntRange(1, 65536),
        metavar="N",
        help="Cores of a rank, for its threads, with --cores or --topology.  [default: 1]",
    ),
    click.option(
        "--topology",
        "topologies",
        multiple=True,
        metavar="[NODE=]FILE.xml",
        help="Topology of a node, as written there by 'lstopo FILE.xml'; without NODE, of all nodes. All its cores "
        "may be used. "
        "Repeatable.",
    ),
    click.option(
        "--switches",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Switches between the nodes: Slurm's topology.conf.",
    ),
    click.option(
        "--distances",
        "table",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Distances between nodes: for each node a line with its name and its distance to each node, in the "
        "same order.",
    ),
    click.option(
        "--distance",
        "changed",
        multiple=True,
        type=Parsed("level=number", parse_distance),
        metavar="LEVEL=NUMBER[:BYTES]",
        help="Distance of two ranks that share this level and none nearer: 'core complex' 1, 'NUMA domain' 2, "
        "socket 3, node 4, "
        "network 20, and 10 more for each further level of switches. BYTES: what each message there counts beside "
        "its own bytes, "
        "instead of --per-message. Repeatable.",
    ),
)


def machine_options(command: Command) -> Command:
    """Add the options that describe the machine; all of them are in the argument `wanted`."""

    @wraps(command)
    def with_machine(
        *arguments: Any,
        nodes: int | None,
        sockets: int | None,
        cores: int | None,
        numa: int | None,
        per_rank: int | None,
        topologies: tuple[str, ...],
        switches: Path | None,
        table: Path | None,
        changed: tuple[tuple[str, float, float | None], ...],
        per_message: float,
        **more: Any,
    ) -> Any:
        from commlens.place.choose import Wanted

        if cores and not nodes:
            raise CommlensError("--cores describes another machine: it needs --nodes")
        for option, value in (("--sockets", sockets), ("--numa", numa)):
            if value and not cores:
                raise CommlensError(f"{option} describes another machine: it needs --nodes and --cores")
        if per_rank and not cores and not topologies:
            raise CommlensError(
                "--cpus-per-rank divides the cores of --cores or --topology: it needs one of them"
            )
        distances = {name: distance for name, distance, _ in changed}
        messages = {name: bytes for name, _, bytes in changed if bytes is not None}
        wanted = Wanted(
            nodes=nodes or 0,
            sockets=sockets or 1,
            cores=cores or 0,
            numa=numa or 1,
            per_rank=per_rank or 1,
            topologies=topologies,
            switches=switches,
            table=table,
            distances=distances,
            messages=messages,
            per_message=per_message,
        )
        return command(*arguments, wanted=wanted, **more)

    for option in reversed(MACHINE_OPTIONS):
        with_machine = option(with_machine)
    return cast(Command, with_machine)


def _is_given(parameter: str) -> bool:
    """Return whether the command line has an option, also with its default value."""
    source = click.get_current_context().get_parameter_source(parameter)
    return source is ParameterSource.COMMANDLINE


@click.command()
@profile_argument
@click.option(
    "--kind",
    type=click.Choice(KINDS),
    default="all",
    show_default=True,
    help="Kind of traffic, as in commlens matrix. all: measured two-sided and one-sided messages, and those inside "
    "calls if "
    "the MPI library exposes them. modelled: messages that algorithms of collectives would send.",
)
@comm_option
@click.option(
    "--per-message",
    type=click.FloatRange(0, FARTHEST),
    default=0.0,
    metavar="BYTES",
    help="Add so many bytes to the size of each message, for its latency (latency times bandwidth). By default only bytes count.",
)
@machine_options
@click.option(
    "--pin",
    "pins",
    multiple=True,
    metavar="RANK=NODE[:CPU]",
    help="This rank stays there; without CPU, on the first free slot of the node. Repeatable.",
)
@click.option(
    "--mapper",
    type=click.Choice(MAPPERS),
    default="commlens",
    show_default=True,
    help="What searches. kahip: the package kahip of this Python. scotch: the program scotch_gmap or gmap on the "
    "path. Both "
    "need a machine whose groups are all alike; moves and swaps improve what they find. Up to 9 ranks get the best "
    "placement from commlens in any case.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 1 << 31),
    default=1,
    show_default=True,
    metavar="N",
    help="Start of the random numbers.",
)
@click.option(
    "--to",
    "output",
    type=OutputPath(),
    metavar="FILE",
    help="Write the placement for --launcher, and print the command line that uses it. An existing file is never "
    "overwritten. A placement that is good already is not written.",
)
@click.option(
    "--launcher",
    type=click.Choice(LAUNCHERS),
    default="openmpi4",
    show_default=True,
    help="Format of --to. treematch: the traffic as TreeMatch's .mat file. monitoring: as the .prof file of Open MPI's "
    "monitoring component.",
)
@top_option(DEFAULT_TOP, "Show N communicators; 0 means all. csv and json always contain all.")
@format_option
@sql_option
def place(
    profile: str,
    kind: str,
    comms: tuple[str, ...],
    wanted: Wanted,
    pins: tuple[str, ...],
    mapper: str,
    seed: int,
    output: Path | None,
    launcher: str,
    top: int,
    style: str,
    show_sql: bool,
) -> None:
    """Find a better placement of the ranks of PROFILE: ranks that exchange much get close to each other.

    The cost of a placement is the sum over all pairs of ranks of bytes times distance. The first lines show the cost of
    the run, that of the recommended placement, and a lower bound that no placement can beat. Then: the traffic at each
    level before and after; the communicators that gain and those that pay; whether MPI_Cart_create with another order
    of dimensions would do as well.

    The placement uses the slots of the run: the same nodes, and the same cores if the ranks were bound. With --topology it
    may use all cores of these nodes, with --nodes and --cores another machine. If the run is within 3 % of the bound,
    or the recommended one saves less than 1 %, one sentence says so.

    csv and json: placement has node and CPUs of each rank.
    """
    if output is None and _is_given("launcher"):
        raise CommlensError("--launcher is the format of --to: it needs --to FILE")
    from commlens.matrix import selected
    from commlens.matrix.query import read_matrix
    from commlens.place import choose, formats, plan, text

    with open_profile(profile) as connection:
        matrix = read_matrix(connection, selected(connection, kind, comms, (), (), ()))
        ranks = plan.profile_ranks(connection)
    screen = Screen()
    if show_sql:
        print_statements(screen, matrix.statements)
        return
    machine, before, before_is, remarks = choose.choose(matrix, ranks, wanted)
    fixed = choose.pinned(machine, pins)
    advice = plan.make(
        matrix, machine, before, before_is, seed=seed, pins=fixed, by=mapper, is_selected=bool(comms)
    )
    advice.remarks += [*remarks, *choose.requests(advice, matrix, wanted, seed, fixed)]
    slots = [machine.slots[at] for at in advice.after.tolist()]
    written = not advice.is_well or launcher in formats.TRAFFIC
    if output is not None and written:
        formats.check_name(launcher, output)
        formats.save(output, formats.write(launcher, slots, advice.graph, matrix))
    if style != "table":
        _show_data(screen, advice, style)
    else:
        text.show(advice, screen, top)
        if output is not None and written:
            text.show_file(screen, output, formats.command(launcher, str(output), slots))
        elif output is not None:
            screen.line(f"{output} not written: there is no better placement")


def _show_data(screen: Screen, advice: Plan, style: str) -> None:
    """Print the placement as json or csv."""
    from commlens.place.formats import numbers_text

    if style == "json":
        screen.json(json_text(advice.as_dict()))
        return
    rows = advice.as_dict()["placement"]
    cells = [[row["rank"], row["node"], numbers_text(row["cpus"])] for row in rows]
    screen.plain(csv_text(["rank", "node", "cpus"], cells))
