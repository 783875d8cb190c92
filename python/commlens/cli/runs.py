# SPDX-License-Identifier: Apache-2.0
"""Options of commands that read several runs, and the reading of their profiles."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

import click

from commlens.base.errors import CommlensError
from commlens.base.progress import tracked
from commlens.cli.options import SIZES
from commlens.cli.refusals import print_error

if TYPE_CHECKING:
    from commlens.compare.correlate import Source, Wanted

Item = TypeVar("Item")
Read = TypeVar("Read")

size_option = click.option(
    "--size",
    type=SIZES,
    metavar="LOW:HIGH",
    help="Only messages of at least LOW and less than HIGH bytes, as in report.",
)

region_option = click.option(
    "--region", metavar="GLOB", help="Only calls whose innermost code region has a path that matches."
)

keep_going_option = click.option(
    "--keep-going", is_flag=True, help="Leave out profiles that cannot be read; the exit code is then 3."
)


def read_each(items: Sequence[Item], read: Callable[[Item], Read], *, keep_going: bool) -> list[Read | None]:
    """Return what `read` returns for each profile, None for those that cannot be read; one line per different error.

    Threads read several profiles at a time: SQLite runs queries without Python's lock.

    Raises
    ------
    CommlensError
        A profile cannot be read, and `keep_going` is not set.
    """
    found: list[Read | None] = []
    errors = {}  # by message: an unknown operation is an error of every profile
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        waiting = [pool.submit(read, item) for item in items]
        try:
            for each in tracked(waiting, "profiles"):
                try:
                    found.append(each.result())
                except CommlensError as error:
                    errors[error.message] = error
                    found.append(None)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    refused = list(errors.values())
    for one in refused if keep_going else refused[:-1]:
        print_error(one)
    if refused and not keep_going:
        raise refused[-1]
    return found


def read_sources(paths: Sequence[str], wanted: Wanted, *, keep_going: bool) -> tuple[list[Source], bool]:
    """Return the readable runs with the wanted times, and whether some are left out.

    Raises
    ------
    CommlensError
        A profile cannot be read, or none has one of the operations or communicators.
    """
    from commlens.compare.correlate import choose, read_head_of, read_source, refuse_missing

    if wanted.comms:
        heads = [head for head in read_each(paths, read_head_of, keep_going=keep_going) if head]
        pairs = list(zip(heads, choose(heads, wanted.comms) if heads else []))
        found = read_each(pairs, lambda pair: read_source(pair[0].path, wanted, *pair), keep_going=keep_going)
    else:
        found = read_each(paths, lambda path: read_source(path, wanted), keep_going=keep_going)
    sources = [source for source in found if source]
    if sources:
        refuse_missing(sources, wanted.selection.operations)
    return sources, len(sources) < len(paths)
