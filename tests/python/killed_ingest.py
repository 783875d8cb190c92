# SPDX-License-Identifier: Apache-2.0
"""Kills writers of a dataset, and checks that the dataset then has all rows of a batch or none, and none twice.

    python tests/python/killed_ingest.py PROFILES FOLDER points FIRST STEP
    python tests/python/killed_ingest.py PROFILES FOLDER full FIRST STEP
    python tests/python/killed_ingest.py PROFILES FOLDER random TIMES SEED

points: a writer is killed at its FIRST change of a file, the next at STEP later ones, and so on, until one ends by itself.
full: instead of that, the disk of the writer is full from this change on.
random: two writers at once are killed at random moments, until TIMES were. Prints a line for each writer, or pair of writers.

Writers are forked children of this process, which imports pyarrow once.
"""

from __future__ import annotations

import errno
import itertools
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any

from fleet_cases import content, doubled

from commlens.base.errors import CommlensError
from commlens.fleet import dataset as dataset_module
from commlens.fleet import files as files_module
from commlens.fleet import log as log_module
from commlens.fleet._dataset import TABLES
from commlens.fleet.dataset import Dataset
from commlens.fleet.ingest import Ingest, profiles_in
from commlens.fleet.log import HEAD, Log

CALLS: tuple[tuple[Any, str], ...] = (
    *((os, "fsync"), (os, "link"), (Path, "rename"), (Path, "unlink"), (Path, "mkdir")),
    *((log_module, "sync_folder"), (files_module, "sync_folder")),
)
FEW_TABLES = ("job", "refused", "operation")
FAILED, WENT_ON = 5, 6
"""Exit codes of a writer whose disk is full: it complained, or did without what failed."""

Jobs = list[dict[str, list[Any]]]


def die_at(point: int) -> None:
    """Let this process die at its change number `point`: before it in the first call, after it in the next."""
    left = [point]

    def around(call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            result = call(*arguments, **named)
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return counted

    setattr(os, "fsync", lambda _: None)  # noqa: B010 - a killed process needs none, and it takes most of the time
    for owner, name in CALLS:
        setattr(owner, name, around(getattr(owner, name)))


def fill_at(point: int) -> list[int]:
    """Let the disk of this process be full from its change number `point` on; return a list that then has a number."""
    left, failed = [point], []

    def around(call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            left[0] -= 1
            if left[0] <= 0:
                failed.append(left[0])
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return call(*arguments, **named)

        return counted

    setattr(os, "fsync", lambda _: None)  # noqa: B010 - as above
    for owner, name in CALLS:
        if name != "unlink":
            setattr(owner, name, around(getattr(owner, name)))
    return failed


def write_to_full_disk(jobs: Jobs, target: Path, point: int) -> None:
    """Add rows to a dataset on a disk that becomes full."""
    failed = fill_at(point)
    try:
        write(jobs, target)
    except CommlensError as error:
        assert "cannot be written: No space left on device" in error.message, error.message
        os._exit(FAILED)
    os._exit(WENT_ON if failed else 0)


def read(profiles: Path, tables: Collection[str]) -> Jobs:
    """Return the rows of each profile in some tables."""

    class Rows:
        def __init__(self) -> None:
            self.jobs: Jobs = []

        def known(self, *_: str) -> set[int]:
            return set()

        def add(self, rows: dict[str, list[Any]]) -> dict[str, int]:
            self.jobs.append({table: rows[table] for table in tables})
            return {}

        def compact(self) -> None:
            pass

    found: Any = Rows()
    work = Ingest(found, "demo")
    for path in profiles_in(profiles):
        work.read(path)
        work.flush()
    jobs: Jobs = found.jobs
    return jobs


def write(jobs: Jobs, target: Path) -> None:
    """Add the rows to a dataset, each job in a batch of its own."""
    dataset = Dataset(target)
    for rows in jobs:
        dataset.add(rows)
        dataset.compact()


def child(action: Callable[[], None]) -> int:
    """Start a process; return its number."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        action()
        code = 0
    finally:
        os._exit(code)


def ended(pid: int) -> int:
    """Return the exit code of a process, or -9 if it was killed."""
    status = os.waitpid(pid, 0)[1]
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def check(target: Path, jobs: Jobs, expected: dict[str, list[Any]]) -> None:
    """Check what killed writers left; then add the rest."""
    if (target / HEAD).exists():
        found = content(target)
        assert doubled(target) == [], doubled(target)
        there = {row.split(",")[0] for row in found.get("job", ())}
        for table, rows in expected.items():
            if table != "refused":
                assert found.get(table, []) == [row for row in rows if row.split(",")[0] in there], table
    write(jobs, target)
    assert content(target) == expected
    assert all((target / path).exists() for path in Log(target).read().files)
    shutil.rmtree(target)


def at_points(
    jobs: Jobs, folder: Path, expected: dict[str, list[Any]], first: int, step: int, *, is_full: bool = False
) -> None:
    """Kill a writer at every `step`-th of its changes, beginning with `first`, or let its disk be full from there on."""
    for point in itertools.count(first, step):
        target = folder / f"point{point}"

        def action(point: int = point, target: Path = target) -> None:
            if is_full:
                write_to_full_disk(jobs, target, point)
            die_at(point)
            write(jobs, target)

        code = ended(child(action))
        assert code in ((0, FAILED, WENT_ON) if is_full else (0, -signal.SIGKILL)), code
        if is_full and (target / HEAD).exists():
            state = Log(target).read()
            there = {str(path.relative_to(target)) for path in target.glob("*/*/*/*.parquet")}
            assert there == {*state.files, *state.removed}, "what was written in vain needs the space"
        check(target, jobs, expected)
        if code == 0:
            return
        print(f"{'full' if is_full else 'killed'} at change {point}")


def at_random(jobs: Jobs, folder: Path, expected: dict[str, list[Any]], times: int, seed: int) -> None:
    """Kill two writers at random moments, `times` in all."""
    chance = random.Random(seed)
    begin = time.monotonic()
    assert ended(child(lambda: write(jobs, folder / "timed"))) == 0
    whole = time.monotonic() - begin
    killed = 0
    while killed < times:
        target = folder / f"random{killed}"

        def action(target: Path = target) -> None:
            write(jobs, target)

        pids = [child(action) for _ in range(2)]
        for pid in pids:
            time.sleep(chance.random() * whole)
            os.kill(pid, signal.SIGKILL)
        killed += sum(ended(pid) < 0 for pid in pids)
        check(target, jobs, expected)
        print(f"killed {killed}", flush=True)


def main(profiles: Path, folder: Path, how: str, *numbers: int) -> None:
    """Kill writers as the arguments say."""
    jobs = read(profiles, tuple(TABLES) if how == "random" else FEW_TABLES)
    dataset_module.TOGETHER = 3  # so that files are put together, too
    write(jobs, folder / "reference")
    ways: dict[str, Callable[..., None]] = {
        "points": at_points,
        "full": partial(at_points, is_full=True),
        "random": at_random,
    }
    ways[how](jobs, folder, content(folder / "reference"), *numbers)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], *map(int, sys.argv[4:]))
