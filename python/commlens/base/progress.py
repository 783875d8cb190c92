# SPDX-License-Identifier: Apache-2.0
"""A progress bar for work that takes longer than a second."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sized
from typing import TYPE_CHECKING, TypeVar

from commlens.base.escape import Target, escape
from commlens.base.messages import print_message

if TYPE_CHECKING:
    from rich.progress import Progress

Item = TypeVar("Item")

PATIENCE = 1.0
"""Seconds without output."""


def tracked(items: Iterable[Item], what: str) -> Iterator[Item]:
    """Yield the items; on a terminal show how many are done, after a second.

    If the total is unknown, the bar only shows activity.
    """
    begin = time.monotonic()
    is_late = False
    bar = None
    try:
        for done, item in enumerate(items):
            if not is_late and time.monotonic() - begin > PATIENCE:
                is_late = True
                made = _bar()
                if not made.disable:
                    bar = made
                    bar.start()
                    task = bar.add_task(
                        escape(f"reading {what}", Target.LINE),
                        total=len(items) if isinstance(items, Sized) else None,
                    )
            if bar is not None:
                bar.update(task, completed=done)
            yield item
    finally:
        if bar is not None:
            bar.stop()


def announced(items: Iterable[Item], number: int, first: int, what: str) -> Iterator[Item]:
    """Yield `number` items, and show an estimate of the remaining time.

    On a terminal shows a bar; else prints one line after the `first` ones.
    """
    begin = time.monotonic()
    with _bar() as bar:
        task = bar.add_task(escape(what, Target.LINE), total=number)
        for done, item in enumerate(items, 1):
            bar.update(task, completed=done)
            if done == first and bar.disable:
                rest = (time.monotonic() - begin) / done * (number - done)
                until = time.strftime("%H:%M:%S", time.localtime(time.time() + rest))
                print_message(f"{number - done} {what} of {number} to go, until about {until}")
            yield item


def _bar() -> Progress:
    """Return a bar, disabled without a terminal; a file name in its description is not interpreted as markup."""
    # Here: few commands work for so long, and to load these takes longer than most commands do.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
