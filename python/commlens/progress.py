# SPDX-License-Identifier: Apache-2.0
"""A bar for what takes longer than a second."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sized
from typing import TypeVar

from rich.console import Console
from rich.progress import Progress

Item = TypeVar("Item")

PATIENCE = 1.0
"""Seconds without a word."""


def tracked(items: Iterable[Item], what: str) -> Iterator[Item]:
    """Return the items one by one; on a terminal say how many are done, once it takes longer than a second.

    Where nobody knows how many there are the bar only shows that something happens.
    """
    console = Console(stderr=True)
    begin = time.monotonic()
    bar = None
    try:
        for done, item in enumerate(items):
            if bar is None and console.is_terminal and time.monotonic() - begin > PATIENCE:
                bar = Progress(console=console, transient=True)
                bar.start()
                task = bar.add_task(f"reading {what}", total=len(items) if isinstance(items, Sized) else None)
            if bar is not None:
                bar.update(task, completed=done)
            yield item
    finally:
        if bar is not None:
            bar.stop()
