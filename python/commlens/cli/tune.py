# SPDX-License-Identifier: Apache-2.0
"""`commlens tune`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from commlens.cli.options import (
    OutputPath,
    comm_family_option,
    format_option,
    op_option,
    profile_argument,
    sql_option,
    top_option,
)
from commlens.cli.outputs import show_data
from commlens.profile import open_profile
from commlens.render.screen import Screen
from commlens.render.table import fold
from commlens.selection import names

if TYPE_CHECKING:
    from commlens.tune.plan import Plan
    from commlens.tune.switches import Trial

DEFAULT_TOP = 10
DEFAULT_BUDGET, BUDGET_OF_JOBS = 60, 300  # the second where each algorithm needs a job of its own
DEFAULT_RUNS = 20
STEPS = ("plan", "replay", "rules", "proof")


@click.command()
@profile_argument
@click.argument("command", nargs=-1, metavar="[-- LAUNCHER... APPLICATION...]")
@click.option(
    "--until",
    type=click.Choice(STEPS),
    metavar="STEP",
    help="Stop after this step: plan, replay, rules or proof.  [default: proof with an application, else plan]",
)
@click.option(
    "--to",
    "folder",
    type=OutputPath(),
    metavar="DIR",
    help="Folder for the measurements, the rules and the proof. A second command goes on with what it contains.  "
    "[default: "
    "the name of PROFILE with .tune]",
)
@click.option(
    "--budget",
    type=click.IntRange(5, 86400),
    metavar="SECONDS",
    help=f"Time for the replay.  [default: {DEFAULT_BUDGET}; {BUDGET_OF_JOBS} with Intel MPI, which needs a job "
    f"for each algorithm]",
)
@click.option(
    "--runs",
    type=click.IntRange(6, 1000),
    default=DEFAULT_RUNS,
    show_default=True,
    metavar="N",
    help="Number of rounds of the proof. Each runs the application three times, and once for each other variable.",
)
@click.option(
    "--switches/--no-switches",
    "with_switches",
    default=True,
    help="Also try other variables that the run gives a reason to try, or leave them out.  [default: try them]",
)
@comm_family_option
@op_option("these collectives")
@top_option(
    DEFAULT_TOP,
    "Show the N rows with the largest possible gain; 0 means all. csv and json always contain all places.",
)
@format_option
@sql_option
def tune(
    profile: str,
    command: tuple[str, ...],
    until: str | None,
    folder: Path | None,
    budget: int | None,
    runs: int,
    with_switches: bool,
    comms: tuple[str, ...],
    operations: tuple[str, ...],
    top: int,
    style: str,
    show_sql: bool,
) -> None:
    """Find faster algorithms for the collectives in PROFILE, and prove them.

    Without an application, shows for which collectives another algorithm could pay. 'commlens tune profile.db -- mpirun
    -n 8 ./app input' goes on:

    \b
    replay  A small MPI program, compiled with mpicc (or $MPICC), makes the
            communicators of the profile and measures these collectives with
            each algorithm of the library, in random order.
    rules   Writes settings of the MPI library for the algorithms that are
            significantly faster.
    proof   The application runs with and without them, and with each other
            variable that is worth trying, in random order. Removes each rule
            that makes a call slower, and all rules if nothing is significantly
            faster. The file settings contains the remaining ones.

    Another algorithm shortens the operation, not the waiting for late ranks. For each family of communicators, blocking
    collective and message size, the table shows how much time another algorithm could save at most. Rows below 1 % of
    the run time, or 1 ms per rank, are left out, as are those with fewer than 10 calls per member of a communicator, or
    with calls that had not returned, and collectives for which the MPI library has only one algorithm.

    Columns: calls/rank: calls of a member of a communicator, on average. time: of all ranks. waiting, interval: as in
    commlens waits; unknown if no call was sampled. operation: time without waiting; <= where the waiting is unknown.
    saves at most: time that another algorithm could save, sum over the ranks; of run: its share of the run time.
    algorithm: which one ran, as commlens algorithms names it; if the run did not measure it, the library that chose one.

    The gain is an upper bound, not a prediction. It is the operation time, at the lower end of the interval of the
    waiting, without what remains with any algorithm: in a barrier, an allreduce, an allgather or an alltoall, every
    call takes at least as long as the fastest MPI_Recv of the run with no more bytes. Without such a receive, and in
    other collectives, nothing is taken off.

    Without --comm, --op and --no-switches, sentences below the table name other variables to try, such as limits from
    which on a message waits for its receive. The proof keeps each that makes the run significantly faster by itself.

    csv and json: fastest_ns is the fastest call of a rank; least_ns what each call takes at least; variable and
    offered say how to choose, and from what. json has the other variables as switches.
    """  # noqa: D301 click reads \b
    until = last_step(until, command, is_table=style == "table" and not show_sql)
    plan, trials = read(profile, comms, operations, with_switches=with_switches)
    show_plan(plan, trials, top, style, show_sql=show_sql)
    if until == "plan" or not (plan.worth or (trials and until == "proof")):
        return
    from commlens.cli.tune_steps import Steps
    from commlens.overhead.legs import split

    Steps(profile, plan, trials, split(command), folder or beside(profile), until, budget, runs).take()


def beside(profile: str) -> Path:
    """Return the folder of the results of a profile, unless the user names one."""
    return Path(profile).absolute().with_suffix(".tune")


def read(
    profile: str, comms: tuple[str, ...], operations: tuple[str, ...], *, with_switches: bool
) -> tuple[Plan, list[Trial]]:
    """Return where another algorithm could pay, and which other variables to try."""
    from commlens.tune.plan import read_plan
    from commlens.tune.switches import read_switches

    with open_profile(profile) as connection:
        names.check_communicators(connection, comms)
        plan = read_plan(connection, comms, names.matching_operations(connection, operations))
        is_asked = with_switches and not (comms or operations)
        return plan, read_switches(connection, plan.library) if is_asked else []


def last_step(until: str | None, command: tuple[str, ...], *, is_table: bool) -> str:
    """Return the step after which to stop; refuse options that contradict each other."""
    until = until or ("proof" if command else "plan")
    if until != "plan" and not command:
        raise click.UsageError("no application: commlens tune PROFILE -- mpirun -n 8 ./app")
    if command and not is_table:
        raise click.UsageError("--format and --sql are for the plan: omit the application")
    return until


def rows_of(plan: Plan) -> list[dict[str, Any]]:
    """Return a row for each place."""
    return [place.numbers() for place in plan.places]


def as_dict(plan: Plan, trials: list[Trial]) -> dict[str, object]:
    """Return everything, for json."""
    switches = [vars(trial) for trial in trials]
    return {"library": plan.library, "run_ns": plan.run_ns, "places": rows_of(plan), "switches": switches}


def show_plan(plan: Plan, trials: list[Trial], top: int, style: str, *, show_sql: bool) -> None:
    """Print where another algorithm could pay, and which other variables to try."""
    from commlens.tune.text import draw, head_text, note_sentences, open_sentence, trial_text

    screen = Screen()
    statements = plan.statements
    if show_data(
        screen, style, statements, lambda: rows_of(plan), lambda: as_dict(plan, trials), show_sql=show_sql
    ):
        return
    hang = open_sentence(plan)
    if hang:
        screen.lines([*fold("", hang, screen.width), Text("")])
    screen.lines(fold("", head_text(plan), screen.width, "bold" if plan.worth else ""))
    if plan.worth:
        screen.lines([Text(""), *draw(plan, top or None).lines(screen.width)])
        for sentence in note_sentences(plan, plan.worth[: top or None]):
            screen.lines([Text(""), *fold("", sentence, screen.width, "dim")])
    for trial in trials:
        screen.lines([Text(""), *fold("", trial_text(trial), screen.width)])
