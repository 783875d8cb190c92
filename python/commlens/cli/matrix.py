# SPDX-License-Identifier: Apache-2.0
"""`commlens matrix`."""

from __future__ import annotations

from pathlib import Path

import click

from commlens.base.errors import CommlensError
from commlens.cli.options import (
    Parsed,
    comm_option,
    format_option,
    op_option,
    parse_ranks,
    profile_argument,
    sql_option,
    top_option,
)
from commlens.profile import open_profile
from commlens.render.screen import Screen
from commlens.render.table import csv_text, json_text

# Those of commlens.matrix.KINDS: that module needs numpy, which takes longer to load than other commands take.
KINDS = ("p2p", "written", "read", "one-sided", "collective", "internal", "share", "modelled", "all")
DEFAULT_TOP = 10

SLICES = Parsed("slices", parse_ranks)


@click.command()
@profile_argument
@click.option(
    "--kind",
    type=click.Choice(KINDS),
    help="p2p: two-sided messages, as the sender tells them; written, read, one-sided (both); collective, internal: "
    "messages inside collectives and inside other calls, where the MPI library lets them be seen; share: what a "
    "collective has for each process, where that differs; modelled: what algorithms of collectives would send, measured by "
    "nobody; all: these but share and modelled, added up.  [default: p2p, with --op collective]",
)
@comm_option
@op_option("messages inside these procedures")
@click.option(
    "--region",
    "regions",
    multiple=True,
    metavar="PATH",
    help="Only messages in these code regions, and in regions within them: a path or glob (solve, '*/norm'); needs "
    "COMMLENS_MATRIX_BY in the run. Repeatable.",
)
@click.option(
    "--slice",
    "slices",
    type=SLICES,
    metavar="SLICES",
    help="Only messages of these slices of time, from 0: 0,12-15; needs COMMLENS_MATRIX_BY in the run.",
)
@click.option(
    "--algorithm",
    "algorithms",
    multiple=True,
    metavar="COLLECTIVE=NAME",
    help="With --kind modelled: what does a collective, as in bcast=binomial. Without it what the MPI library would choose, "
    "where that is known. Repeatable.",
)
@click.option(
    "--what",
    type=click.Choice(["bytes", "messages"]),
    default="bytes",
    show_default=True,
    help="What is drawn, and what the largest pairs and shares are of.",
)
@click.option(
    "--by",
    type=click.Choice(["rank", "node", "socket"]),
    default="rank",
    show_default=True,
    help="What rows and columns are.",
)
@click.option(
    "--topology",
    "topologies",
    multiple=True,
    metavar="[NODE=]FILE.xml",
    help="What 'lstopo FILE.xml' has written on a node: its sockets and caches; without NODE it is for all nodes. Repeatable.",
)
@top_option(
    DEFAULT_TOP,
    "The N pairs with most; 0 means all. csv and json always have all pairs.",
)
@click.option(
    "--to",
    "output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write a file instead, by its ending: .png, .svg, .csv, .npz (NumPy, and a sparse matrix of SciPy), .mtx (Matrix "
    "Market), .graphml. What exists is never overwritten.",
)
@click.option(
    "--check",
    is_flag=True,
    help="Exit code 1 if what was sent and what was received differ; for two-sided messages of the whole run.",
)
@format_option
@sql_option
def matrix(
    profile: str,
    kind: str | None,
    comms: tuple[str, ...],
    operations: tuple[str, ...],
    regions: tuple[str, ...],
    slices: tuple[tuple[int, int], ...] | None,
    algorithms: tuple[str, ...],
    what: str,
    by: str,
    topologies: tuple[str, ...],
    top: int,
    output: Path | None,
    check: bool,
    style: str,
    show_sql: bool,
) -> None:
    """Draw who talks to whom in PROFILE: a matrix of messages or bytes from each rank to each other.

    Below it: which known pattern it is (nearest neighbours in a grid, ring, transpose, all-to-all and others, or none);
    how much stays in a core complex, a socket, a node; how symmetric it is; how many partners the ranks have; whether
    what was sent and what was received are the same, and where not, the likely reason; the totals of all kinds of
    traffic, the communicators with most and their patterns, and the pairs with most.

    Kinds of traffic are kept apart: two-sided messages are drawn unless --kind asks for another. A large matrix is folded
    to the width of the terminal, to at most 1,024 cells in a file.
    """
    from commlens.matrix import files, selected
    from commlens.matrix.facts import read_facts
    from commlens.matrix.query import read_matrix
    from commlens.matrix.text import show
    from commlens.matrix.topology import read_topology

    if output is not None:
        files.check_ending(output)
    with open_profile(profile) as connection:
        selection = selected(connection, kind or "", comms, operations, regions, slices or (), algorithms)
        found = read_matrix(connection, selection)
        known = read_topology(topologies, found.nodes.values())
        whole = not regions and not slices
        facts = read_facts(connection, found, what, by, known, top, whole=whole)
    if check and facts.ends is None:
        raise CommlensError(
            "--check compares both ends of two-sided messages: for --kind p2p or all, without --region and --slice"
        )
    chosen = [
        *(["on " + ", ".join(comms)] if comms else []),
        *(["in " + ", ".join(operations)] if operations else []),
        *(["in region " + ", ".join(regions)] if regions else []),
        *(["in slices " + ", ".join(map(range_text, slices))] if slices else []),
    ]
    heading = "".join(f" {words}" for words in chosen)
    screen = Screen()
    if show_sql:
        for title, statement in found.statements:
            screen.plain(f"-- {title}\n{statement};\n\n")
    elif output is not None:
        files.write(facts, output, heading)
        screen.line(output)
    elif style == "json":
        screen.json(json_text(facts.as_dict()))
    elif style == "csv":
        screen.plain(csv_text(*files.csv_rows(facts)))
    else:
        show(facts, screen, heading)
    if check and facts.ends is not None and facts.ends.differences:
        click.get_current_context().exit(1)


def range_text(bounds: tuple[int, int]) -> str:
    """Return a range as it is typed.

    >>> range_text((1, 1)), range_text((1, 3))
    ('1', '1-3')
    """
    low, high = bounds
    return str(low) if low == high else f"{low}-{high}"
