# SPDX-License-Identifier: Apache-2.0
"""`commlens overhead`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commlens.base.errors import CommlensError
from commlens.base.outputs import new
from commlens.base.progress import announced
from commlens.cli.options import Parsed
from commlens.cli.refusals import print_error
from commlens.overhead import MOST_ROUNDS, legs
from commlens.overhead.legs import Tool, commlens_tool, parse_tool, parse_wrapper, split
from commlens.render.screen import Screen
from commlens.render.table import csv_text, json_text

if TYPE_CHECKING:
    from commlens.overhead.measure import Run

DEFAULT_RUNS = 20
ENDINGS = (".csv", ".html", ".png", ".svg")


@click.command(context_settings={"allow_interspersed_args": False})
@click.argument("command", nargs=-1, metavar="[-- LAUNCHER... APPLICATION...]")
@click.option(
    "--tool",
    "tools",
    type=Parsed("name=library[,variable=value]...", parse_tool),
    multiple=True,
    metavar="NAME=LIBRARY[,VARIABLE=VALUE]...",
    help="A tool that is preloaded, and what it wants in its environment; {out} in a value is a folder for what it writes. "
    "LIBRARY may be commlens: --tool all=commlens,COMMLENS_MATRIX=all. Repeatable.  [default: commlens]",
)
@click.option(
    "--wrapper",
    "wrappers",
    type=Parsed("name=command", parse_wrapper),
    multiple=True,
    metavar="NAME=COMMAND",
    help="A tool whose command stands before the application; {out} as above. Repeatable.",
)
@click.option(
    "--runs",
    type=click.IntRange(1, MOST_ROUNDS),
    default=DEFAULT_RUNS,
    show_default=True,
    metavar="N",
    help="Runs with each tool and without, at most 1,000, beside one of each that warms up and does not count.",
)
@click.option(
    "--seed", type=int, default=1, show_default=True, metavar="N", help="Of the order in each round."
)
@click.option(
    "--from",
    "source",
    type=click.Path(path_type=Path),
    metavar="FILE.csv",
    help="Run nothing; show what an earlier --to FILE.csv has kept.",
)
@click.option(
    "--to",
    "outputs",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="FILE",
    help="Write a file as well, by its ending: .csv (all runs), .html, .png, .svg. What exists is never overwritten. "
    "Repeatable.",
)
@click.option(
    "--format",
    "style",
    type=click.Choice(["table", "csv", "json"]),
    default="table",
    show_default=True,
    help="How to print: for people, or with plain numbers in ns, bytes and parts of 1.",
)
def overhead(
    command: tuple[str, ...],
    tools: tuple[Tool, ...],
    wrappers: tuple[Tool, ...],
    runs: int,
    seed: int,
    source: Path | None,
    outputs: tuple[Path, ...],
    style: str,
) -> None:
    """Measure what commlens, or any other tool, costs an application.

    As in 'commlens overhead -- mpirun -n 4 ./app input', with commlens, or 'commlens overhead --tool commlens --tool
    mpip=/opt/lib/libmpiP.so -- srun -n 64 ./app'. The application is run without a tool and with each, in rounds whose
    order is drawn at random.

    A small library that is loaded before all others takes three times: net, from leaving MPI_Init to entering MPI_Finalize;
    hook, inside those two; wrap, the rest of the command. Differences are taken within rounds and have an interval of 95 %
    and a test; where the runs do not resolve the net cost, the number that would is said.

    The application is the first program behind the launcher; where that is not clear, put {} before it. Nothing of its
    output is shown, unless a run fails. Times are kept in a folder here meanwhile, which has to be the same on all nodes.
    """
    from commlens.overhead import raw

    _check_outputs(outputs)
    if source is not None:
        if command or tools or wrappers:
            raise click.UsageError("--from runs nothing: leave the application and its tools out")
        found = raw.read(source)
        failures: list[CommlensError] = []
    else:
        found, failures = _measure(command, tools + wrappers, runs, seed)
    if not failures or any(run.round > 0 for run in found):
        failures += _show(found, style, outputs)
    for failure in failures[:-1]:
        print_error(failure)
    if failures:
        raise failures[-1]


def _measure(
    command: tuple[str, ...], tools: tuple[Tool, ...], number: int, seed: int
) -> tuple[list[Run], list[CommlensError]]:
    """Return the runs, and what ended them early; those before it stay."""
    from commlens.overhead.measure import interruptible, rounds

    if not command:
        raise click.UsageError("no application: commlens overhead -- mpirun -n 4 ./app")
    chosen = tools or (commlens_tool(),)
    names = [tool.name for tool in chosen]
    if len(set(names)) < len(names):
        raise click.UsageError(f"two tools have the same name: {', '.join(names)}")
    launch = split(command)
    stopwatch = legs.find_stopwatch()
    found: list[Run] = []
    begin = time.monotonic()
    try:
        with interruptible():
            for run in announced(
                rounds(chosen, launch, stopwatch, number, seed),
                (number + 1) * (len(chosen) + 1),
                len(chosen) + 1,
                "runs",
            ):
                found.append(run)
    except CommlensError as error:
        return found, [error]
    except KeyboardInterrupt:
        return found, [CommlensError(f"stopped after {len(found)} runs and {time.monotonic() - begin:.0f} s")]
    return found, []


def _check_outputs(outputs: tuple[Path, ...]) -> None:
    """Refuse what cannot be written, before anything is measured."""
    from commlens.overhead import charts
    from commlens.overhead.measure import free_name

    for output in outputs:
        if output.suffix not in ENDINGS:
            raise click.UsageError(f"{output}: --to writes {', '.join(ENDINGS)}")
        if outputs.count(output) > 1:
            raise click.UsageError(f"{output}: is to be written twice")
        free_name(output)
        if output.suffix != ".csv":
            charts.figure_class()


def _show(runs: list[Run], style: str, outputs: tuple[Path, ...]) -> list[CommlensError]:
    """Write files and print; return what went wrong, which keeps nothing else from being shown."""
    from commlens.overhead import charts, raw, text
    from commlens.overhead.estimate import costs, whole_rounds

    number, processes = len(whole_rounds(runs)), runs[0].processes
    found = costs(runs)
    failures = []
    for output in outputs:
        if not found and output.suffix != ".csv":
            continue
        try:
            with new(output) as path:
                if output.suffix == ".csv":
                    path.write_text(raw.text(runs), encoding="utf-8")
                elif output.suffix == ".html":
                    path.write_text(charts.page(found, runs, number, processes), encoding="utf-8")
                else:
                    charts.write(found, runs, output.suffix[1:], path)
        except CommlensError as error:
            failures.append(error)
    if not found:
        return [*failures, CommlensError("no round has a run with each tool: there is nothing to compare")]
    screen = Screen()
    if style == "json":
        screen.json(json_text(text.as_dict(found, number, processes)))
    elif style == "csv":
        screen.plain(csv_text(*text.csv_rows(found)))
    else:
        text.show(found, number, processes, screen)
    return failures
