# SPDX-License-Identifier: Apache-2.0
"""`commlens compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from commlens.base.errors import CommlensError
from commlens.cli.exit_codes import FAILED, INCOMPLETE, SUCCESS, UNTESTED
from commlens.cli.options import (
    Parsed,
    class_option,
    comm_option,
    op_option,
    top_option,
)
from commlens.cli.refusals import print_error
from commlens.cli.runs import keep_going_option, read_each, region_option, size_option
from commlens.compare.read import RunData, read_run
from commlens.profile import open_profile
from commlens.reports.query import Selection
from commlens.selection.sizes import BinRange

if TYPE_CHECKING:
    from commlens.compare.gate import Condition
    from commlens.compare.groups import Group

# The other modules of commlens.compare need numpy, which takes longer to load than other commands take.

SIDES = "\0"  # stands for --, which click would drop; no file has this name


class SidesCommand(click.Command):
    """A command that sees -- among its arguments."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments."""
        return super().parse_args(ctx, [SIDES if arg == "--" else arg for arg in args])


def split(profiles: tuple[str, ...], by: str | None) -> tuple[list[str], list[str]]:
    """Return the profiles of both sides; those of --by are all on the first side."""
    if by is not None:
        if SIDES in profiles or len(profiles) < 2:
            raise click.UsageError("--by makes the sides: give two or more profiles, without --")
        return list(profiles), []
    if SIDES in profiles:
        at = profiles.index(SIDES)
        before, after = list(profiles[:at]), list(profiles[at + 1 :])
    else:
        before, after = list(profiles[:1]), list(profiles[1:])
        if len(profiles) != 2:
            raise click.UsageError("to compare, give two profiles, or several on each side of --")
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
@size_option
@region_option
@click.option(
    "--by",
    metavar="NAME",
    help="Compare configurations: group the profiles by a label of COMMLENS_LABEL, or by any recorded setting. Two "
    "values "
    "are the sides A and B; more have a column each.",
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
@keep_going_option
@top_option(10, "Limit to N families, and N rows per family, in a table; 0 means all.")
@click.option(
    "--format",
    "style",
    type=click.Choice(["table", "csv", "json", "junit"]),
    default="table",
    show_default=True,
    help="Output format. table is for reading; csv and json have all columns, with plain numbers in ns and bytes; "
    "junit has a "
    "test case for each condition of --fail-if.",
)
@click.pass_context
def compare_command(
    context: click.Context,
    profiles: tuple[str, ...],
    comms: tuple[str, ...],
    operations: tuple[str, ...],
    classes: tuple[str, ...],
    size: BinRange | None,
    region: str | None,
    by: str | None,
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

    Each row is a family, an operation, a message size and a code region. Times are sums over all ranks, medians over
    the runs. A row is slower or faster only if the rank test, corrected for all tested rows, and the interval agree;
    ? means that there are too few runs for any claim. A line below a row splits sampled calls into waiting and operation.

    With --by, each value has a column of medians; fastest and slower need the test, corrected for all pairs of values.

    Columns: calls, bytes/call, time each: relative changes of the factors of the time; time each is per byte, or per
    call without bytes. change: of the time. 95 % interval: of the change, shown with at least four runs on each side.
    slowest: change of the time of the slowest rank. claim: slower, faster, ?, or the only side that has the family.

    Exit code 1: a condition of --fail-if is met. 2: a profile cannot be read. 3: --keep-going left out profiles. 4: no
    condition is met, but the runs are too few to test one on times. Of several codes the first of 2, 1, 4, 3 counts.
    """
    from commlens.cli.compare_output import failed, show, show_groups
    from commlens.compare.gate import needs_test
    from commlens.compare.groups import compare_groups, group_runs
    from commlens.compare.model import compare
    from commlens.compare.text import untested_text

    sides = split(profiles, by)
    check_style(style, conditions)
    selection = Selection(operations=operations, classes=classes, size=size)
    runs, is_partial = read_sides(sides, selection, keep_going=keep_going)
    groups = group_runs([*runs[0], *runs[1]], by) if by is not None else []
    chosen = select_communicators([*runs[0], *runs[1]], comms, selection) if comms else None
    runs, named = in_groups(runs, groups)
    if len(groups) > 2:
        check_sides(by or "", len(groups), conditions)
        show_groups(compare_groups(by or "", groups, region, chosen, named), top, style)
        context.exit(INCOMPLETE if is_partial else SUCCESS)
    result = compare(*runs, region=region, comms=chosen, named=named)
    failures = {one: failed(result, one, untested=untested) for one in conditions}
    skipped = [] if untested else [condition for condition in conditions if needs_test(result, condition)]
    show(result, [group.label(by) for group in groups], failures, skipped, top, style)
    if skipped:
        print_error(CommlensError(untested_text(result, skipped)))
    is_failed = any(failures.values())
    context.exit(FAILED if is_failed else UNTESTED if skipped else INCOMPLETE if is_partial else SUCCESS)


def in_groups(
    runs: tuple[list[RunData], list[RunData]], groups: list[Group]
) -> tuple[tuple[list[RunData], list[RunData]], int]:
    """Return the runs in the order of the groups, if there are any, and the index of the first profile in them."""
    first = runs[0][0]
    if groups:
        runs = groups[0].runs, [run for group in groups[1:] for run in group.runs]
    return runs, next(i for i, run in enumerate([*runs[0], *runs[1]]) if run is first)


def check_sides(by: str, values: int, conditions: tuple[Condition, ...]) -> None:
    """Refuse conditions, which are about two sides, if --by makes more."""
    if conditions:
        raise click.UsageError(f"--fail-if needs two sides, but {by} has {values} values")


def check_style(style: str, conditions: tuple[Condition, ...]) -> None:
    """Refuse JUnit without test cases."""
    if style == "junit" and not conditions:
        raise click.UsageError("--format junit needs --fail-if: each condition is a test case")


def read_sides(
    sides: tuple[list[str], list[str]], selection: Selection, *, keep_going: bool
) -> tuple[tuple[list[RunData], list[RunData]], bool]:
    """Return the readable profiles of both sides, and whether some are left out."""
    found = read_each([*sides[0], *sides[1]], lambda path: read_run(path, selection), keep_going=keep_going)
    split = len(sides[0])
    runs = [run for run in found[:split] if run], [run for run in found[split:] if run]
    if not all(found for paths, found in zip(sides, runs) if paths):
        raise CommlensError("no readable profile on one side: nothing to compare")
    return runs, None in found


def select_communicators(runs: list[RunData], comms: tuple[str, ...], selection: Selection) -> frozenset[int]:
    """Limit the runs to the communicators that the user selects; return their families in the first profile."""
    from commlens.compare.parts import limit_to_parts, selected_parts

    with open_profile(runs[0].path) as connection:
        parts = selected_parts(connection, comms)
    limit_to_parts(runs, parts, selection)
    return frozenset(parts)
