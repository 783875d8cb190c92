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
from commlens.cli.options import OutputPath, Parsed
from commlens.cli.outputs import DRAWN, check_outputs
from commlens.cli.refusals import print_error
from commlens.overhead import MOST_ROUNDS, legs
from commlens.overhead.legs import Tool, commlens_tool, parse_tool, parse_wrapper, split
from commlens.render.screen import Screen
from commlens.render.table import csv_text, json_text, write_json

if TYPE_CHECKING:
    from commlens.overhead.measure import Run

DEFAULT_RUNS = 20
ENDINGS = (".csv", ".json", *DRAWN)


@click.command(context_settings={"allow_interspersed_args": False})
@click.argument("command", nargs=-1, metavar="[-- LAUNCHER... APPLICATION...]")
@click.option(
    "--tool",
    "tools",
    type=Parsed("name=library[,variable=value]...", parse_tool),
    multiple=True,
    metavar="NAME=LIBRARY[,VARIABLE=VALUE]...",
    help="A tool to preload, with its environment variables; {out} in a value is replaced by a folder for its output. "
    "LIBRARY may be commlens: --tool all=commlens,COMMLENS_MATRIX=all. Repeatable.  [default: commlens]",
)
@click.option(
    "--wrapper",
    "wrappers",
    type=Parsed("name=command", parse_wrapper),
    multiple=True,
    metavar="NAME=COMMAND",
    help="A tool that is started as a command before the application; {out} as above. Repeatable.",
)
@click.option(
    "--runs",
    type=click.IntRange(1, MOST_ROUNDS),
    default=DEFAULT_RUNS,
    show_default=True,
    metavar="N",
    help="Number of runs with each tool and without, 6 to 1,000; fewer than 6 can show no cost. One more of each "
    "warms up and is not counted.",
)
@click.option(
    "--seed",
    type=int,
    default=1,
    show_default=True,
    metavar="N",
    help="Seed of the random order of the runs in each round.",
)
@click.option(
    "--from",
    "source",
    type=click.Path(path_type=Path),
    metavar="FILE.csv",
    help="Run nothing; show the results that an earlier --to FILE.csv stored.",
)
@click.option(
    "--to",
    "outputs",
    type=OutputPath(),
    multiple=True,
    metavar="FILE",
    help="Also write a file. Its extension selects the format: .csv (all runs), .json (as --format json), .html, "
    ".png, .svg. An existing file is never "
    "overwritten. Repeatable.",
)
@click.option(
    "--format",
    "style",
    type=click.Choice(["table", "csv", "json"]),
    default="table",
    show_default=True,
    help="Format of what is printed. table is for reading; csv and json have plain numbers in ns and bytes, and "
    "ratios as fractions of 1.",
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
    """Measure what commlens, or another tool, costs an application.

    'commlens overhead -- mpirun -n 4 ./app input' measures commlens. 'commlens overhead --tool commlens --tool
    mpip=/opt/lib/libmpiP.so -- srun -n 64 ./app' compares two tools. Each round runs the application once without a
    tool and once with each tool, in random order.

    A small library, loaded before all others, measures three times. net: from leaving MPI_Init to entering
    MPI_Finalize. hook: inside these two. wrap: the rest of the command. Differences are computed within rounds and
    reported with a 95 % confidence interval and a significance test, whose p values are corrected for the number of
    tools. If the runs do not resolve the net cost, the output states how many runs would.

    If runs with a tool crash, the measurement continues, and column 'crashed' counts them. A run without a tool that
    fails ends the measurement.

    The application is the first program after the launcher; if that is ambiguous, put {} before it. Its output is
    hidden unless a run fails. Times are kept in a folder below the current directory during the measurement; this must
    be the same directory on all nodes.
    """
    from commlens.overhead import raw

    check_outputs(outputs, ENDINGS)
    if source is not None:
        if command or tools or wrappers:
            raise click.UsageError("--from runs nothing: omit the application and its tools")
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
    """Return the runs, and the error that ended them early; earlier runs are kept."""
    from commlens.base.interrupt import interruptible
    from commlens.overhead.estimate import CONFIDENCE, FEWEST
    from commlens.overhead.measure import rounds

    if number < FEWEST:
        chance = 2 * 0.5**number
        raise CommlensError(
            f"--runs {number} is too few: use at least {FEWEST}. With {number}, all differences have the same sign "
            f"by chance "
            f"in {100 * chance:.3g} % of the measurements, and a test with {100 * CONFIDENCE:.0f} % confidence allows "
            f"{100 * (1 - CONFIDENCE):.0f} %"
        )
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


def _show(runs: list[Run], style: str, outputs: tuple[Path, ...]) -> list[CommlensError]:
    """Write files and print the results; return the errors, after showing everything else."""
    from commlens.compare.statistics import adjusted
    from commlens.overhead import charts, raw, text
    from commlens.overhead.estimate import corrected, costs, whole_rounds

    number, processes = len(whole_rounds(runs)), runs[0].processes
    found = corrected(costs(runs), adjusted)
    failures = []
    for output in outputs:
        if not found and output.suffix != ".csv":
            continue
        try:
            with new(output) as path:
                if output.suffix == ".csv":
                    path.write_text(raw.text(runs), encoding="utf-8")
                elif output.suffix == ".json":
                    write_json(path, text.as_dict(found, number, processes))
                elif output.suffix == ".html":
                    path.write_text(charts.page(found, runs, number, processes), encoding="utf-8")
                else:
                    charts.write(found, runs, output.suffix[1:], path)
        except CommlensError as error:
            failures.append(error)
    if not found:
        return [*failures, CommlensError("nothing to compare: no round has a run with each tool")]
    screen = Screen()
    if style == "json":
        screen.json(json_text(text.as_dict(found, number, processes)))
    elif style == "csv":
        screen.plain(csv_text(*text.csv_rows(found)))
    else:
        text.show(found, number, processes, screen)
    return failures
