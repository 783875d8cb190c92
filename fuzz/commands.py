# SPDX-License-Identifier: Apache-2.0
"""All ways to read a profile or an arena: the commands with their options, and the Python functions."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from itertools import count, product
from pathlib import Path

import click

from commlens.cli import commlens
from commlens.profile import _schema
from fuzz.paths import ROOT

OUT = "{out}"
"""Stands for the file that a command is asked to write."""

STYLES = ("table", "csv", "json")
KINDS = ("p2p", "one-sided", "collective", "internal", "share", "modelled", "all")
ENDINGS = (".png", ".svg", ".csv", ".npz", ".mtx", ".graphml")
FORMATS = ("hatchet", "thicket", "caliper", "chrome", "speedscope", "csv", "parquet", "tinyprof")

REPORTS = (
    (), ("--all-ranks",), ("--callsites",), ("--unfold", "--callsites", "--all-ranks"), ("--by", "region"),
    ("--by", "region", "--all-ranks", "--unfold"), ("--buckets", "mpisee"), ("--sort", "name", "--top", "0"),
    ("--time", "0:1"), ("--rank", "0", "--size", "0:1M"), ("--comm", "*", "--op", "*"), ("--sql",),
)  # fmt: skip
REGIONS = (
    (),
    ("--iterations",),
    ("--executions",),
    ("--executions", "--iterations", "--unfold"),
    ("--depth", "1"),
)
SELECTIONS = (
    ("--region", "*"),
    ("--slice", "0-9"),
    ("--comm", "*"),
    ("--by", "node"),
    ("--by", "socket"),
    ("--check",),
    ("--sizes",),
)

CHARTS = (
    ("operations", ()),
    ("sizes", ("--by", "family")),
    ("distribution", ("--by", "comm-size", "--by", "ranks")),
    ("operations", ("--to", OUT + ".html")),
)
RECORDED = tuple(str(ROOT / "tests" / "profiles" / f"version{version}.db") for version in (8, 7, 6))
"""Sound profiles, for commands that read several."""


def commands() -> list[tuple[str, ...]]:
    """Return all commands on one profile; {profile} and {out} stand for the files."""
    found: list[tuple[str, ...]] = []
    for name, variants in (
        ("report", REPORTS),
        ("regions", REGIONS),
        ("comms", ((), ("--unfold",))),
        ("coverage", ((),)),
    ):
        found += [
            (name, "{profile}", *options, "--format", style) for options, style in product(variants, STYLES)
        ]
    found += [
        ("matrix", "{profile}", "--kind", kind, "--format", style) for kind, style in product(KINDS, STYLES)
    ]
    found += [("matrix", "{profile}", "--kind", "all", "--to", OUT + ending) for ending in ENDINGS]
    found += [("matrix", "{profile}", "--what", "messages", *options) for options in SELECTIONS]
    found += [
        ("metrics", "{profile}", *options, "--format", style)
        for options, style in product(((), ("--series",)), STYLES)
    ]
    found += [
        ("threads", "{profile}", *options, "--format", style)
        for options, style in product(((), ("--each",), ("--by", "regions")), STYLES)
    ]
    found += [
        ("datatypes", "{profile}", *options, "--format", style)
        for options, style in product(((), ("--uses",)), STYLES)
    ]
    found += [("algorithms", "{profile}", "--format", style) for style in STYLES]
    found += [("algorithms", "{profile}", "--tree", "1")]
    found += [("tune", "{profile}", "--format", style) for style in STYLES]
    found += [("timeline", "{profile}", "--format", style) for style in STYLES]
    found += [
        ("timeline", "{profile}", *options)
        for options in (("--rows", "3"), ("--unfold", "--sql"), ("--rank", "0-3"))
    ]
    found += [("chart", kind, "{profile}", *options) for kind, options in CHARTS]
    several = ("{profile}", *RECORDED, "--keep-going")
    found += [
        ("correlate", *several, "--by", by) for by in ("family,op", "family", "comm-size", "op,size,region")
    ]
    found += [("compare", "{profile}", RECORDED[0]), ("chart", "correlation", *several)]
    found += [("export", "{profile}", "--to", to, "-o", OUT) for to in FORMATS]
    found += [("export", "{profile}", "--to", to, "-o", OUT, "--unfold") for to in FORMATS[:5]]
    found += [
        ("export", "{profile}", "--to", to, "-o", OUT, "--no-mpi", "--rank", "0-3") for to in FORMATS[:5]
    ]
    found += [("sql", "{profile}", f"SELECT * FROM {name}", "--format", "csv") for name in _schema.RELATIONS]
    found += [("sql", "{profile}", "SELECT * FROM sqlite_master"), ("merge", "{profile}", "-o", OUT)]
    return found


def _frames(package: str) -> Callable[[Path], None]:
    def read(profile: Path) -> None:
        import commlens

        job = commlens.open(profile)
        for name in ("comm", "region_time", "counter", "metric_value"):
            getattr(job, package)(name)

    return read


def _objects(kind: str) -> Callable[[Path], None]:
    def read(profile: Path) -> None:
        from commlens import export

        getattr(export, kind)(profile)

    return read


def _pairs(profile: Path) -> None:
    from commlens import matrix

    matrix.read(profile, kind="all")


CALLS: dict[str, Callable[[Path], None]] = {
    "frames.pandas": _frames("pandas"),
    "frames.polars": _frames("polars"),
    "export.hatchet": _objects("hatchet"),
    "export.thicket": _objects("thicket"),
    "matrix.read": _pairs,
}
COMMANDS = commands()
THEN = "then"
"""Stands between two commands of which the second one reads what the first one has written."""
ON_ARENAS: list[tuple[str, ...]] = [
    ("recover", "-o", OUT, "{profile}", THEN, "report", OUT),
    ("recover", "-o", OUT, "{profile}", THEN, "comms", OUT),
    ("hang", "{profile}"),
    ("recover", "-o", OUT, "{profile}", THEN, "regions", OUT),
    ("clean", "{profile}"),
    ("recover", "-o", OUT, "{profile}", THEN, "report", OUT, "--format", "csv"),
    ("top", "-n", "1", "{profile}"),
]
SELDOM = 50
"""One of so many cases also gets a call of Python, which has large packages to load."""


def chosen(case: int, number: int) -> list[tuple[str, ...]]:
    """Return the commands for a case, so that each occurs equally often over all cases."""
    # Neighbours in the list do not come together.
    step = next(step for step in count(59) if math.gcd(step, len(COMMANDS)) == 1)
    found = [COMMANDS[(case * number + i) * step % len(COMMANDS)] for i in range(number)]
    if case % SELDOM == 0:
        found.append(("call", list(CALLS)[case // SELDOM % len(CALLS)]))
    return found


def chosen_for_arenas(case: int, number: int) -> list[tuple[str, ...]]:
    """Return the commands for a case of an arena."""
    return [ON_ARENAS[(case * number + i) % len(ON_ARENAS)] for i in range(number)]


def run(command: Sequence[str], profile: Path, out: Path) -> None:
    """Do a command in this process; it ends with SystemExit."""
    if command[0] == "call":
        from commlens.base.errors import CommlensError
        from commlens.cli.exit_codes import REFUSED
        from commlens.cli.refusals import print_error

        try:
            CALLS[command[1]](profile)
        except CommlensError as error:
            print_error(error)
            raise SystemExit(REFUSED) from None
        raise SystemExit(0)
    names = {"{profile}": str(profile)}
    arguments = [names.get(word, word.replace(OUT, str(out))) for word in command]
    os.environ.pop("COLUMNS", None)
    if THEN in arguments:
        at = arguments.index(THEN)
        first, arguments = arguments[:at], arguments[at + 1 :]
        try:
            commlens.main(first, prog_name="commlens", standalone_mode=False)
        except click.ClickException as error:
            error.show()
            raise SystemExit(error.exit_code) from None
    commlens(arguments, prog_name="commlens")
