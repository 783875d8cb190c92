# SPDX-License-Identifier: Apache-2.0
"""`commlens matrix`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commlens.base.errors import CommlensError
from commlens.cli.exit_codes import FAILED
from commlens.cli.options import (
    OutputPath,
    Parsed,
    comm_option,
    format_option,
    op_option,
    parse_ranks,
    profile_argument,
    sql_option,
    top_option,
)
from commlens.cli.outputs import print_statements
from commlens.profile import open_profile
from commlens.render.screen import Screen
from commlens.render.table import csv_text, json_text
from commlens.selection.words import range_text

if TYPE_CHECKING:
    from commlens.matrix.facts import Facts
    from commlens.matrix.sizes import Sizes

# Those of commlens.matrix.KINDS: that module needs numpy, which takes longer to load than other commands take.
KINDS = ("p2p", "put", "get", "one-sided", "collective", "internal", "share", "modelled", "all")
DEFAULT_TOP = 10

Ranges = tuple[tuple[int, int], ...]

SLICES = Parsed("slices", parse_ranks)


@click.command()
@profile_argument
@click.option(
    "--kind",
    type=click.Choice(KINDS),
    help="Kind of traffic. p2p: two-sided messages, counted by the sender. put (with accumulate), get, one-sided "
    "(both): counted by the origin. "
    "collective, internal: messages inside collectives and inside other calls, if the MPI library exposes them. share: "
    "the part of a collective for each process, if the parts differ. modelled: messages that algorithms of collectives "
    "would send; a model, not a measurement. all: the sum of all kinds except share and modelled.  "
    "[default: p2p, with --op collective]",
)
@comm_option
@op_option("messages inside these procedures")
@click.option(
    "--region",
    "regions",
    multiple=True,
    metavar="PATH",
    help="Only messages in these code regions and the regions nested in them: a path or glob (solve, '*/norm'). Needs "
    "COMMLENS_MATRIX_BY in the run. Repeatable.",
)
@click.option(
    "--slice",
    "slices",
    type=SLICES,
    metavar="SLICES",
    help="Only messages in these time slices, numbered from 0: 0,12-15. Needs COMMLENS_MATRIX_BY in the run.",
)
@click.option(
    "--algorithm",
    "algorithms",
    multiple=True,
    metavar="COLLECTIVE=NAME",
    help="With --kind modelled: the algorithm of a collective, such as bcast=binomial. By default the algorithm "
    "that the MPI "
    "library would choose, if that is known. Repeatable.",
)
@click.option(
    "--what",
    type=click.Choice(["bytes", "messages"]),
    default="bytes",
    show_default=True,
    help="What the matrix, the largest pairs and the shares count.",
)
@click.option(
    "--by",
    type=click.Choice(["rank", "node", "socket"]),
    default="rank",
    show_default=True,
    help="What a row or column stands for.",
)
@click.option(
    "--topology",
    "topologies",
    multiple=True,
    metavar="[NODE=]FILE.xml",
    help="Topology of a node, as written there by 'lstopo FILE.xml'; without NODE, of all nodes. Repeatable.",
)
@top_option(
    DEFAULT_TOP,
    "List the N pairs with the most traffic; 0 means all. csv and json always contain all pairs.",
)
@click.option(
    "--to",
    "output",
    type=OutputPath(),
    metavar="FILE",
    help="Write a file instead. Its extension selects the format: .png, .svg, .csv, .json, .npz (NumPy, also read "
    "by SciPy as a "
    "sparse matrix), .mtx (Matrix Market), .graphml. An existing file is never overwritten.",
)
@click.option(
    "--sizes",
    is_flag=True,
    help="Instead of the matrix, list the message sizes of the pairs with the most traffic: a line for each size "
    "bin, with "
    "messages and bytes.",
)
@click.option(
    "--check",
    is_flag=True,
    help="Exit with code 1 if sent and received messages differ. Only for two-sided messages of the whole run.",
)
@format_option
@sql_option
def matrix(
    profile: str,
    kind: str | None,
    comms: tuple[str, ...],
    operations: tuple[str, ...],
    regions: tuple[str, ...],
    slices: Ranges | None,
    algorithms: tuple[str, ...],
    what: str,
    by: str,
    topologies: tuple[str, ...],
    top: int,
    output: Path | None,
    sizes: bool,
    check: bool,
    style: str,
    show_sql: bool,
) -> None:
    """Draw the communication matrix of PROFILE: messages or bytes from each rank to each other rank.

    The text below it shows: the known pattern, if there is one (nearest neighbours in a grid, ring, transpose,
    all-to-all and others); the shares that stay in a core complex, else in a socket, else in a node; the symmetry;
    the number of partners per rank; whether sent and received messages match, and if not, the likely reason; the
    totals per kind of traffic; the communicators with the most traffic and their patterns; the pairs with the most
    traffic.

    Kinds of traffic are kept apart: the matrix shows two-sided messages unless --kind selects another kind. A large
    matrix is folded to the width of the terminal, or to at most 1,024 x 1,024 cells in a picture.
    """
    from commlens.matrix import files, selected
    from commlens.matrix.facts import read_facts
    from commlens.matrix.query import read_matrix
    from commlens.matrix.sizes import read_sizes
    from commlens.matrix.topology import read_topology

    if output is not None:
        files.check_ending(output, style)
    heading = _heading(comms, operations, regions, slices)
    with open_profile(profile) as connection:
        selection = selected(connection, kind or "", comms, operations, regions, slices or (), algorithms)
        if sizes:
            _refuse_with_sizes(
                output=output is not None, by=by != "rank", check=check, topology=bool(topologies)
            )
            _show_sizes(read_sizes(connection, selection), what, top, style, heading, show_sql=show_sql)
            return
        found = read_matrix(connection, selection)
        known = read_topology(topologies, found.nodes.values())
        facts = read_facts(connection, found, what, by, known, top, whole=not (regions or slices))
    if check and facts.ends is None:
        raise CommlensError(
            "--check compares both ends of two-sided messages: for --kind p2p or all, without --region and --slice"
        )
    _show(facts, output, style, heading, show_sql=show_sql)
    if check and facts.ends is not None and facts.ends.differences:
        click.get_current_context().exit(FAILED)


def _show(facts: Facts, output: Path | None, style: str, heading: str, *, show_sql: bool) -> None:
    """Print the matrix, or write it to a file."""
    from commlens.matrix import files
    from commlens.matrix.text import show

    screen = Screen()
    if show_sql:
        print_statements(screen, facts.matrix.statements)
    elif output is not None:
        files.write(facts, output, heading)
        screen.line(output)
    elif style == "json":
        screen.json(json_text(facts.as_dict()))
    elif style == "csv":
        screen.plain(csv_text(*files.csv_rows(facts)))
    else:
        show(facts, screen, heading)


def _refuse_with_sizes(**options: bool) -> None:
    """Refuse options that the list of sizes has no use for."""
    names = {"output": "to"}
    used = [f"--{names.get(name, name)}" for name, is_used in options.items() if is_used]
    if used:
        raise CommlensError(f"--sizes lists pairs of ranks: it cannot be used with {', '.join(used)}")


def _show_sizes(found: Sizes, what: str, top: int, style: str, heading: str, *, show_sql: bool) -> None:
    """Print the sizes of the pairs."""
    from commlens.matrix.sizes import COLUMNS, lines

    screen = Screen()
    if show_sql:
        print_statements(screen, found.statements)
    elif style == "json":
        screen.json(json_text([row._asdict() for row in found.rows]))
    elif style == "csv":
        screen.plain(csv_text(COLUMNS, found.rows))
    else:
        screen.lines(lines(found, what, top, screen.width, heading))


def _heading(
    comms: Sequence[str], operations: Sequence[str], regions: Sequence[str], slices: Ranges | None
) -> str:
    """Return the text for the selection of the options.

    >>> _heading(["W0.0"], [], ["solve"], ((0, 2),))
    ' on W0.0 in region solve in slices 0-2'
    """
    chosen = [
        *(["on " + ", ".join(comms)] if comms else []),
        *(["in " + ", ".join(operations)] if operations else []),
        *(["in region " + ", ".join(regions)] if regions else []),
        *(["in slices " + ", ".join(map(range_text, slices))] if slices else []),
    ]
    return "".join(f" {words}" for words in chosen)
