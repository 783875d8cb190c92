# SPDX-License-Identifier: Apache-2.0
"""Kill all ranks of a large job and its recorder at a random moment, and check the last snapshot.

    tools/snapshots.sh                               # 20 jobs of 512 ranks of Intel MPI, a minute each: three quarters of an hour
    tools/snapshots.sh --rounds 2 --seconds 10       # a few minutes

The job takes a snapshot every two seconds.  After the kill its arenas are removed, as if the nodes were lost, and
`commlens recover` makes a profile of what is left.  The oracle is the program, tests/mpi/programs/survive.c: each rank
counts its calls in a file that commlens does not know.  These files are read all the time.  So for a snapshot there are
counts that are older, and counts that are newer: each number of the profile must lie between both.  The ranks pause
while a snapshot is taken, so that most of these are the same.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness import BUILD, Mpi
from harness import commlens as command
from processes import is_alive
from profile_rows import Profile
from recorders import recorders
from test_survive import COUNTS, KINDS, Running, job

EVERY = 2
PATIENCE = 600
SENDRECV_BYTES = 4
FILE_HEAD, RECORD_HEAD = struct.Struct("=8sIIQ"), struct.Struct("=QQ")  # core/history/file.cpp


@dataclass(frozen=True)
class Entry:
    """What the ranks had counted, and how long the file of snapshots was before."""

    begin_ns: int
    end_ns: int
    file_bytes: int
    counts: list[bytes]


@dataclass(frozen=True)
class Outcome:
    """The last snapshot of a killed job."""

    ran_s: float
    snapshots: int
    file_bytes: int
    cut_bytes: int  # of a snapshot that the kill has cut off
    age_s: float  # of the last whole snapshot at the kill
    recover_s: float
    counts: int
    exact: int  # of these with the same number before and after the snapshot
    calls: int
    wrong: list[str]


def history_of(running: Running) -> Path | None:
    """Return the file with the snapshots, when it is there."""
    return next((running.where / "out").glob("commlens-arenas-*/*.history"), None)


def records(path: Path, ranks: int) -> list[tuple[int, int]]:
    """Return the planned time of each whole snapshot of all ranks, and where it ends."""
    done = subprocess.run(
        [BUILD / "bin" / "commlens-arena", "snapshots", path],
        capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    data = path.read_bytes()
    at, found = FILE_HEAD.size, []
    for line in done.stdout.splitlines()[1:]:
        _, planned, processes, *_ = line.split("\t")
        at += RECORD_HEAD.size + RECORD_HEAD.unpack_from(data, at)[0]
        if int(processes) == ranks:
            found.append((int(planned), at))
    return found


def has_all(running: Running, entry: Entry) -> bool:
    """Return whether there is a snapshot of all ranks."""
    path = history_of(running)
    return path is not None and any(end <= entry.file_bytes for _, end in records(path, running.ranks))


def size_of(path: Path | None) -> int:
    """Return the size of a file; 0 if there is none."""
    return 0 if path is None else path.stat().st_size


def note(running: Running) -> Entry:
    """Return what the ranks have counted by now."""
    size = size_of(history_of(running))
    begin = time.time_ns()
    folder = running.where / "counts"
    counts = [
        path.read_bytes() if path.exists() else b""
        for path in (folder / str(rank) for rank in range(running.ranks))
    ]
    return Entry(begin, time.time_ns(), size, counts)


def numbers_of(data: bytes) -> tuple[int, ...]:
    """Return what a rank has counted; zeros before its file is there."""
    return COUNTS.unpack(data.ljust(COUNTS.size, b"\0"))


def pids_of(entry: Entry) -> list[int]:
    """Return the process of each rank; empty if one does not count yet."""
    heads = [numbers_of(data)[:2] for data in entry.counts]
    return [pid for pid, _ in heads] if all(stage for _, stage in heads) else []


def wait_until_ready(running: Running) -> list[Entry]:
    """Wait until all ranks count; return what they had counted until then."""
    end = time.monotonic() + PATIENCE
    entries = [note(running)]
    while not pids_of(entries[-1]):
        if time.monotonic() > end or running.process.poll() is not None:
            sys.exit(f"the job does not run:\n{(running.where / 'stdout').read_text()[-2000:]}")
        time.sleep(0.2)
        entries.append(note(running))
    return entries


def kill_all(running: Running, pids: Sequence[int], chance: random.Random) -> None:
    """Kill the ranks and their recorder, in any order; wait for their end."""
    parents = {int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) for pid in pids}
    all_of_them = [*pids, *recorders(running.where)]
    chance.shuffle(all_of_them)
    for parent in parents:
        os.kill(parent, signal.SIGSTOP)  # it would end the others in its own way
    for pid in all_of_them:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for parent in parents:
        os.kill(parent, signal.SIGCONT)
    running.process.wait(PATIENCE)
    end = time.monotonic() + PATIENCE
    while any(map(is_alive, all_of_them)):
        if time.monotonic() > end:
            sys.exit("processes outlive SIGKILL")
        time.sleep(0.05)


def check(profile: Profile, before: Entry, after: Entry) -> tuple[int, int, int, list[str]]:
    """Compare with the counts before and after a snapshot; return counts, exact ones, calls, and what is wrong."""
    rows = profile.rows(
        "SELECT op.name, rank, SUM(calls) AS calls, SUM(bytes_sent) AS sent FROM cell JOIN key ON key.id = cell.key "
        "JOIN op ON op.id = key.op GROUP BY op.name, rank"
    )
    found = {(row["name"], row["rank"]): (row["calls"], row["sent"]) for row in rows}
    number = exact = calls = 0
    wrong = []
    for rank in range(len(before.counts)):
        older, newer = (numbers_of(entry.counts[rank])[2:] for entry in (before, after))
        for i, kind in enumerate(KINDS):
            low, high = older[2 * i + 1], newer[2 * i]
            mine, sent = found.get((kind, rank), (0, 0))
            number += 1
            exact += low == mine == newer[2 * i + 1]
            calls += mine
            if not low <= mine <= high:
                wrong.append(f"rank {rank}, {kind}: {mine} calls, and the program {low} to {high}")
            if kind == "MPI_Sendrecv" and not SENDRECV_BYTES * low <= sent <= SENDRECV_BYTES * high:
                wrong.append(f"rank {rank}, {kind}: {sent} bytes, and the program {low} to {high} calls")
    return number, exact, calls, wrong


def judged(running: Running, entries: Sequence[Entry], killed_ns: int, ran_s: float) -> Outcome:
    """Recover from the snapshots alone, and compare."""
    entries = [*entries, note(running)]
    for path in running.arenas.iterdir():
        path.unlink()
    history = history_of(running)
    assert history is not None
    whole = records(history, running.ranks)
    planned, end = whole[-1]
    recovered = running.where / "recovered.db"
    begin = time.monotonic()
    done = command("recover", "-o", recovered, running.where / "out", cwd=running.where)
    recover_s = time.monotonic() - begin
    wrong = [] if done.returncode == 0 else [f"recover ends with {done.returncode}: {done.stderr}"]
    number = exact = calls = 0
    if not wrong:
        profile = Profile(recovered)
        if profile.column("SELECT rank FROM rank ORDER BY rank") != list(range(running.ranks)):
            wrong.append("ranks are missing")
        before = [entry for entry in entries if entry.end_ns <= planned][-1]
        after = next(entry for entry in entries if entry.file_bytes >= end)
        number, exact, calls, bad = check(profile, before, after)
        wrong += bad
    size = history.stat().st_size
    return Outcome(
        ran_s,
        len(whole),
        size,
        size - end,
        (killed_ns - planned) / 1e9,
        recover_s,
        number,
        exact,
        calls,
        wrong,
    )


def run(mpi: Mpi, ranks: int, seconds: float, seed: int) -> Outcome:
    """Run one job and kill it.  With an odd seed, that is when a snapshot is due, or shortly after."""
    chance = random.Random(seed)
    environment = {"COMMLENS_FLUSH_EVERY": str(EVERY), "COMMLENS_QUIET": "1"}
    if mpi.name.startswith("intel"):
        environment["I_MPI_THREAD_YIELD"] = "3"  # a rank that waits sleeps
    with job(mpi, "paced", env=environment, ranks=ranks) as running:
        entries = wait_until_ready(running)
        pids = pids_of(entries[-1])
        ready = time.monotonic()
        end = ready + chance.uniform(seconds / 4, seconds)
        while time.monotonic() < end or not has_all(running, entries[-1]):
            if time.monotonic() > ready + PATIENCE:
                sys.exit("no snapshot of all ranks")
            time.sleep(0.1)
            entries.append(note(running))
        if seed % 2 == 1:
            time.sleep(EVERY - time.time() % EVERY + chance.uniform(0, 0.2))
        killed = time.time_ns()
        kill_all(running, pids, chance)
        return judged(running, entries, killed, time.monotonic() - ready)


def print_one(seed: int, one: Outcome) -> None:
    """Print a row of the table, and what is wrong."""
    print(
        f"| {seed} | {one.ran_s:.1f} s | {one.snapshots} | {one.file_bytes:,} | {one.cut_bytes:,} | {one.age_s:.2f} s "
        f"| {one.recover_s:.1f} s | {one.calls:,} | {one.counts:,} | {one.exact:,} |",
        flush=True,
    )
    for text in one.wrong[:5]:
        print(f"{seed}: {text}", flush=True)


def summary(outcomes: Sequence[Outcome], ranks: int) -> str:
    """Return one line about all jobs."""
    bad = sum(1 for one in outcomes if one.wrong)
    counts, exact = sum(one.counts for one in outcomes), sum(one.exact for one in outcomes)
    return (
        f"\n{len(outcomes)} jobs of {ranks} ranks, {bad} with a wrong snapshot; {counts:,} counts, of which {exact:,} the "
        f"same before and after"
    )


def main() -> None:
    """Parse, run, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=20, help="jobs to kill (default: %(default)s)")
    parser.add_argument("--ranks", type=int, default=512, help="of each job (default: %(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=60, help="the longest time until the kill (default: %(default)s)"
    )
    parser.add_argument(
        "--mpi", default="intel", help="which MPI library, as tests/mpi names it (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the first job; the others follow")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends what was launched, too
    outcomes: list[Outcome] = []
    print(
        "| seed | killed after | snapshots | bytes | cut off | age of the last one | recover | calls in it | counts | exact |"
    )
    print("|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    try:
        for seed in range(options.seed, options.seed + options.rounds):
            with tempfile.TemporaryDirectory(prefix="commlens-snapshots-") as place:
                outcomes.append(run(Mpi(options.mpi, Path(place)), options.ranks, options.seconds, seed))
            print_one(seed, outcomes[-1])
    finally:
        print(summary(outcomes, options.ranks))
    sys.exit(any(one.wrong for one in outcomes))


if __name__ == "__main__":
    main()
