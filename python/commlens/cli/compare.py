# SPDX-License-Identifier: Apache-2.0
"""`commlens compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from commlens.base.errors import CommlensError
from commlens.cli.options import (
    SIZES,
    Parsed,
    class_option,
    comm_option,
    format_option,
    op_option,
    top_option,
)
from commlens.cli.refusals import INCOMPLETE, print_error
from commlens.compare.read import RunData, read_run
from commlens.profile import open_profile
from commlens.render.screen import Screen
from commlens.render.table import csv_text, fold, json_text
from commlens.reports.query import Selection
from commlens.selection.sizes import BinRange

if TYPE_CHECKING:
    from commlens.compare.gate import Condition
    from commlens.compare.model import Comparison

# The other modules of commlens.compare need numpy, which takes longer to load than other commands take.

FAILED = 1
UNTESTED = 4
"""Exit code if no condition is met, but the runs are too few to test one."""
SIDES = "\0"  # stands for --, which click would drop; no file has this name


class SidesCommand(click.Command):
    """A command that sees -- among its arguments."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments."""
        return super().parse_args(ctx, [SIDES if arg == "--" else arg for arg in args])


def split(profiles: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Return the profiles of both sides."""
    if SIDES in profiles:
        at = profiles.index(SIDES)
        before, after = list(profiles[:at]), list(profiles[at + 1 :])
    else:
        before, after = list(profiles[:1]), list(profiles[1:])
        if len(profiles) != 2:
            raise click.UsageError("compare needs two profiles, or several on each side of --")
    if not before or not after or SIDES in after:
        raise click.UsageError("put profiles on both sides of one --")
    return before, after


def parse_condition(text: str) -> Condition:
    """Return the condition of --fail-if."""
    from commlens.compare import gate

    return gate.parse_condition(text)


@click.command("compare", cls=SidesCommand)
@click.argument("profiles", nargs=-1, required=True, metavar="A... [--] B...")
@comm_option
@op_option("these operations")
@class_option
@click.option(
    "--size",
    type=SIZES,
    metavar="LOW:HIGH",
    help="Only messages of at least LOW and less than HIGH bytes, as in report.",
)
@click.option(
    "--region", metavar="GLOB", help="Only calls whose innermost code region has a path that matches."
)
@click.option(
    "--fail-if",
    "conditions",
    multiple=True,
    type=Parsed("condition", parse_condition),
    metavar="CONDITION",
    help="Exit with code 1 if a row or the whole run meets the condition: 'time > 5%', 'calls > 0%', 'bytes < -10%'. "
    "Measures: calls, bytes, messages, time, slowest, elapsed. Repeatable.",
)
@click.option(
    "--untested",
    is_flag=True,
    help="With too few runs for a test, let medians decide about times in --fail-if. Without it the exit code is 4.",
)
@click.option(
    "--keep-going", is_flag=True, help="Leave out profiles that cannot be read; the exit code is then 3."
)
@top_option(10, "Limit to N families, and N rows per family, in a table; 0 means all.")
@format_option
@click.pass_context
def compare_command(
    context: click.Context,
    profiles: tuple[str, ...],
    comms: tuple[str, ...],
    operations: tuple[str, ...],
    classes: tuple[str, ...],
    size: BinRange | None,
    region: str | None,
    conditions: tuple[Condition, ...],
    untested: bool,
    keep_going: bool,
    top: int,
    style: str,
) -> None:
    """Compare runs: what changed from profiles A to profiles B.

    Give two profiles, or several runs of each side with -- between them. Communicators are matched by lineage: the
    creating procedure, its call site, the parent's family and the size. --comm names communicators of the first
    profile; if they are a part of a family, the others contribute those at the same places of the matching family.
    Unmatched families are listed with their share of the MPI time.

    Each row is a family, an operation, a message size and a code region. Times are sums over all ranks, medians over the
    runs. A row is slower or faster only if the rank test, corrected for all tested rows, and the interval agree; ? means
    that there are too few runs for any claim.

    Columns: calls, bytes/call, time each: relative changes of the factors of the time; time each is per byte, or per call
    without bytes. change: of the time. 95 % interval: of the change, shown with at least four runs on each side. slowest:
    change of the time of the slowest rank. claim: slower, faster, ?, or the only side that has the family.

    Exit code 1: a condition of --fail-if is met. 2: a profile cannot be read. 3: --keep-going left out profiles. 4: no
    condition is met, but the runs are too few to test one on times. Of several codes the first of 2, 1, 4, 3 counts.
    """
    from commlens.compare.gate import failing, needs_test
    from commlens.compare.model import compare
    from commlens.compare.text import failure_text, untested_text

    sides = split(profiles)
    selection = Selection(operations=operations, classes=classes, size=size)
    runs, is_partial = read_sides(sides, selection, keep_going=keep_going)
    chosen = select_communicators(runs, comms, selection) if comms else None
    result = compare(*runs, region=region, comms=chosen)
    failures = [
        failure_text(row, condition)
        for condition in conditions
        for row in failing(result, condition, untested=untested)
    ]
    skipped = [] if untested else [condition for condition in conditions if needs_test(result, condition)]
    show(result, failures, [condition.text for condition in skipped], top, style)
    if skipped:
        print_error(CommlensError(untested_text(result, skipped)))
    context.exit(FAILED if failures else UNTESTED if skipped else INCOMPLETE if is_partial else 0)


def show(result: Comparison, failures: list[str], skipped: list[str], top: int, style: str) -> None:
    """Print the comparison in the format that the user chose."""
    from commlens.compare.text import draw, headline, outlier_lines, setup_lines

    screen = Screen()
    if style == "json":
        screen.json(json_text(document(result, failures, skipped)))
    elif style == "csv":
        all_rows = row_dicts(result)
        screen.plain(csv_text(list(all_rows[0]), [list(row.values()) for row in all_rows]))
    else:
        screen.lines(fold("", headline(result), screen.width, "bold"))
        screen.lines(fold("", result.statement(), screen.width))
        for line in setup_lines(result):
            screen.lines(fold("", line, screen.width))
        for line in outlier_lines(result):
            screen.lines(fold("", line, screen.width, "yellow"))
        screen.lines([Text("")])
        screen.lines(draw(result, top or None).lines(screen.width))
        for line in failures:
            screen.lines([Text("")])
            screen.line(line, "bold red")


def row_dicts(result: Comparison) -> list[dict[str, Any]]:
    """Return all rows for csv and json, those of the whole run first."""
    from commlens.compare.model import as_dict

    return [as_dict(row) for row in (result.elapsed, result.whole, *result.rows)]


def document(result: Comparison, failures: list[str], skipped: list[str]) -> dict[str, Any]:
    """Return the comparison for json."""
    from commlens.compare.model import rule_of
    from commlens.compare.text import headline, outlier_lines, setup_differences

    return {
        "a": [run.path for run in result.sides[0]],
        "b": [run.path for run in result.sides[1]],
        "difference": headline(result),
        "statistics": result.statement(),
        "matched": [
            {"family": node.first.label, "origin": node.first.origin, "rule": rule_of(node)}
            for node in result.nodes
            if node not in [only for _, only, _ in result.only]
        ],
        "unmatched": [
            {"side": side, "family": node.first.label, "origin": node.first.origin, "share": share}
            for side, node, share in result.only
        ],
        "settings": {
            name: {"a": before, "b": after} for name, (before, after) in setup_differences(result).items()
        },
        "outliers": outlier_lines(result),
        "failures": failures,
        "untested": skipped,
        "rows": row_dicts(result),
    }


def read_sides(
    sides: tuple[list[str], list[str]], selection: Selection, *, keep_going: bool
) -> tuple[tuple[list[RunData], list[RunData]], bool]:
    """Return the readable profiles of both sides, and whether some are left out; one line for each different error."""
    runs: tuple[list[RunData], list[RunData]] = ([], [])
    found_errors = {}  # by message: an unknown operation is an error of every profile
    for paths, found in zip(sides, runs):
        for path in paths:
            try:
                found.append(read_run(path, selection))
            except CommlensError as error:
                found_errors[error.message] = error
    errors = list(found_errors.values())
    for refused in errors if keep_going else errors[:-1]:
        print_error(refused)
    if errors and not keep_going:
        raise errors[-1]
    if not all(runs):
        raise CommlensError("no readable profile on one side: nothing to compare")
    return runs, bool(errors)


def select_communicators(
    runs: tuple[list[RunData], list[RunData]], comms: tuple[str, ...], selection: Selection
) -> frozenset[int]:
    """Limit the runs to the communicators that the user selects; return their families in the first profile."""
    from commlens.compare.parts import limit_to_parts, selected_parts

    everything = [*runs[0], *runs[1]]
    with open_profile(everything[0].path) as connection:
        parts = selected_parts(connection, comms)
    limit_to_parts(everything, parts, selection)
    return frozenset(parts)
