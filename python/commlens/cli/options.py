# SPDX-License-Identifier: Apache-2.0
"""Arguments and options that several commands use, and the types of their values."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from commlens.base.errors import CommlensError
from commlens.selection.conditions import parse_comm_size
from commlens.selection.sizes import parse_buckets, parse_range

LARGEST = (1 << 63) - 1  # that SQLite has
CLASSES = ("p2p", "collective", "neighbor", "rma", "io", "completion", "comm", "other")

Command = TypeVar("Command", bound=Callable[..., Any])


class Parsed(click.ParamType):
    """A value that a function parses from its text, or refuses with ValueError."""

    def __init__(self, name: str, parse: Callable[[str], Any]):
        self.name = name
        self.parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value; a value that is not a text has already been parsed."""
        if not isinstance(value, str):
            return value
        try:
            return self.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class OutputPath(click.Path):
    """A path to write. It refuses '-': nobody who types it wants a file of this name."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path."""
        if value == "-":
            option = param.opts[0] if param is not None else "-o"
            raise CommlensError(
                f"{option} -: cannot write to the standard output; give the path of a file or folder"
            )
        return super().convert(value, param, ctx)


# Not click's own file type: open_profile() reports errors of a file in one line.
profile_argument = click.argument("profile", metavar="PROFILE")

format_option = click.option(
    "--format",
    "style",
    type=click.Choice(["table", "csv", "json"]),
    default="table",
    show_default=True,
    help="Output format. table is for reading; csv and json have all columns, with plain numbers in ns and bytes.",
)


def _comm_options(these: str, some: str) -> Callable[[Command], Command]:
    """Return the options that select communicators by name and by size; their help begins with these words."""
    by_name = click.option(
        "--comm",
        "comms",
        multiple=True,
        metavar="NAME",
        help=f"Only {these}: a name or glob (s0.1, 's*.1', MPI_COMM_WORLD), the name of a family as the report shows "
        "it, the name that the application gave, or an id. Repeatable.",
    )
    by_size = click.option(
        "--comm-size",
        "comm_sizes",
        multiple=True,
        type=Parsed("ranks", parse_comm_size),
        metavar="RANKS",
        help=f"Only {some} of this number of ranks, or of a range with both bounds: 16, 2:64, 8:. Repeatable.",
    )

    def add(command: Command) -> Command:
        @wraps(command)
        def with_sizes(
            *arguments: Any, comms: tuple[str, ...], comm_sizes: tuple[str, ...], **more: Any
        ) -> Any:
            return command(*arguments, comms=(*comms, *comm_sizes), **more)

        return cast(Command, by_name(by_size(with_sizes)))

    return add


comm_option = _comm_options("these communicators", "communicators")
"""Adds the options that select communicators by name and by size; both are in the argument `comms`."""

comm_family_option = _comm_options("families with these communicators", "families with communicators")
"""The same for commands that show families: they take each family with a selected communicator as a whole."""


def op_option(what: str) -> Callable[[Command], Command]:
    """Return the option that selects MPI procedures; `what` completes its help."""
    return click.option(
        "--op",
        "operations",
        multiple=True,
        metavar="NAME",
        help=f"Only {what}: a name or glob, with or without MPI_, upper or lower case. Repeatable.",
    )


class_option = click.option(
    "--class",
    "classes",
    multiple=True,
    type=click.Choice(CLASSES),
    help="Only operations of this class. Repeatable.",
)


def top_option(default: int, what: str) -> Callable[[Command], Command]:
    """Return the option that limits the number of rows; `what` is its help."""
    return click.option(
        "--top", type=click.IntRange(min=0), default=default, show_default=True, metavar="N", help=what
    )


reverse_option = click.option(
    "--reverse",
    is_flag=True,
    help="Invert the order of --sort: the smallest values first; names from Z to A.",
)

sql_option = click.option(
    "--sql", "show_sql", is_flag=True, help="Print the SQL queries instead of the rows."
)


def parse_ranks(text: str) -> tuple[tuple[int, int], ...]:
    """Return ranges of ranks.

    >>> parse_ranks("0,12-15")
    ((0, 0), (12, 15))
    """
    ranges = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,18})\s*(?:-\s*([0-9]{1,18})\s*)?", part)
        if not match:
            raise ValueError(f"'{part}' is neither a number nor a range of numbers")
        first, last = int(match[1]), int(match[2] or match[1])
        if last > LARGEST:
            raise ValueError(f"'{part}' is too large")
        if last < first:
            raise ValueError(f"'{part}' is an empty range")
        ranges.append((first, last))
    return tuple(ranges)


def parse_seconds(text: str) -> tuple[int, int | None]:
    """Return a range of nanoseconds.

    >>> parse_seconds("0.02:0.8"), parse_seconds("1:")
    ((20000000, 800000000), (1000000000, None))
    """
    number = r"\s*([0-9]{1,18}(?:\.[0-9]{0,18})?|\.[0-9]{1,18}|)\s*"
    match = re.fullmatch(f"{number}:{number}", text)
    if not match:
        raise ValueError(f"'{text}' is not a range of seconds LOW:HIGH")
    low = int(Decimal(match[1] or "0") * 10**9)
    high = int(Decimal(match[2]) * 10**9) if match[2] else None
    if max(low, high or 0) > LARGEST:
        raise ValueError(f"'{text}' is longer than any run")
    if high is not None and high < low:
        raise ValueError(f"'{text}' is an empty range")
    return low, high


RANKS = Parsed("ranks", parse_ranks)


def parse_moment(text: str) -> float:
    """Return a time in seconds.

    >>> parse_moment("12.5"), parse_moment("90s")
    (12.5, 90.0)
    """
    match = re.fullmatch(r"\s*([0-9]{1,18}(?:\.[0-9]{0,9})?)\s*s?\s*", text)
    if not match:
        raise ValueError(f"'{text}' is no number of seconds")
    return float(match[1])


MOMENT = Parsed("seconds", parse_moment)


def snapshot_options(command: Command) -> Command:
    """Add the options that choose a snapshot, or two."""
    at = click.option(
        "--at",
        type=MOMENT,
        metavar="T",
        help="The state T seconds after MPI_Init: that of the last snapshot until then (COMMLENS_FLUSH_EVERY).",
    )
    between = click.option(
        "--between",
        type=MOMENT,
        nargs=2,
        metavar="T1 T2",
        help="Only what was counted between two snapshots, the last ones until T1 and T2 seconds after MPI_Init. "
        "Minima, "
        "maxima and last values are those of the run until T2.",
    )
    return at(between(command))


rank_option = click.option(
    "--rank", "ranks", type=RANKS, metavar="RANKS", help="Only these world ranks: 0,12-15."
)
SECONDS = Parsed("low:high", parse_seconds)
SIZES = Parsed("low:high", parse_range)
BUCKETS = Parsed("bounds", parse_buckets)
