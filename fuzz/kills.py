# SPDX-License-Identifier: Apache-2.0
"""Kill jobs at random moments, recover what they counted, and compare it with what the program counted itself.

    .venv/bin/python -m fuzz.kills --kills 500 --jobs 2   # goes on where it was stopped
    .venv/bin/python -m fuzz.kills --only 4711            # one job again; says where its files are

What must hold of every job: a profile that `commlens recover` calls whole is whole; every count is that of the program, up
to the call each rank was in; and what a rank counted is found, recovered or stored.  A seed says what is killed and how
long after which event; when that is, in the life of a job, is chance.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from harness import ROOT, Mpi
from harness import commlens as command
from processes import is_alive
from profile_rows import Profile
from test_survive import Running, check_counts, job

STATE = ROOT / "build" / "kills"
MPIS = ("openmpi", "mpich")
SECONDS = 60
WHOLE, PARTIAL, STORED, NOTHING, LATE = "whole", "partial", "stored", "nothing", "late"
KINDS = {
    WHOLE: "recovered, all ranks",
    PARTIAL: "recovered in part, and said so",
    STORED: "stored whole by the job",
    NOTHING: "nothing was counted yet",
    LATE: "not killed: it had ended",
    "finding": "findings",
}
# The event after which a rank is killed: how the job runs, the most seconds that follow, how often it is chosen.
EVENTS = {
    "init": ("run", 0.3, 3),  # the first arena is there
    "run": ("run", 0.1, 4),  # all ranks count
    "finalize": ("end", 0.03, 5),  # a rank enters MPI_Finalize
    "storing": ("end", 0.01, 4),  # the first file, or folder, of the profile is there
    "stored": ("end", 0.005, 4),  # the first arena is gone again
}


@dataclass(frozen=True)
class Case:
    """The parameters of the job for a seed."""

    seed: int
    mpi: str
    ranks: int
    aggregators: int
    event: str
    delay: float
    victim: int | None  # None: all ranks

    @staticmethod
    def of(seed: int, mpis: Sequence[str] = MPIS) -> Case:
        """Return the case of a seed; the MPIs take turns."""
        chance = random.Random(seed)
        ranks = chance.randint(2, 4)
        event = chance.choices(list(EVENTS), [weight for _, _, weight in EVENTS.values()])[0]
        return Case(
            seed,
            mpis[seed % len(mpis)],
            ranks,
            chance.choice((1, 2, 2)),
            event,
            chance.uniform(0, EVENTS[event][1]),
            chance.randrange(ranks) if chance.random() < 0.4 else None,
        )

    def __str__(self) -> str:
        who = "all ranks" if self.victim is None else f"rank {self.victim}"
        when = f"{self.delay * 1000:.1f} ms after {self.event}"
        return f"{self.mpi}, {self.ranks} ranks, {self.aggregators} aggregators, {who} killed {when}"


@dataclass
class Outcome:
    """The outcome: a key of KINDS, and the files found afterwards."""

    seed: int
    kind: str
    detail: list[str] = field(default_factory=list)


# -- the job and its end ----------------------------------------------------------------------------------------------


def has_happened(event: str, running: Running) -> bool:
    """Return whether a job has reached an event of EVENTS."""
    if event == "init":
        return any(running.arenas.iterdir())
    stages = [one.stage for one in running.counted()]
    if event == "run":
        return all(stages)
    if event == "finalize":
        return 2 in stages
    if event == "storing":
        return any((running.where / "out").iterdir())
    return 2 in stages and len(list(running.arenas.iterdir())) < running.ranks


def pids_of(case: Case, running: Running) -> list[int]:
    """Return the processes to kill: in MPI_Init they have no ranks, and only their arenas name them."""
    pids = [one.pid for one in running.counted()]
    if case.event == "init" and not all(pids):
        pids = sorted(int(path.name.split("-")[2]) for path in running.arenas.iterdir())
    return pids if case.victim is None or not pids else [pids[case.victim % len(pids)]]


def was_killed(case: Case, running: Running) -> bool:
    """Wait for the event, kill, and wait for the end; False when no process was there any more."""
    end = time.monotonic() + SECONDS
    while not has_happened(case.event, running) and running.process.poll() is None:
        if time.monotonic() > end:
            raise TimeoutError(f"not at {case.event} within {SECONDS} s")
        time.sleep(0.0003)
    time.sleep(case.delay)
    hit = 0
    for pid in pids_of(case, running):
        with suppress(ProcessLookupError):
            hit += is_alive(pid)
            os.kill(pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):  # a launcher may not hear of the end of a rank
        running.process.wait(15)
    return hit > 0


def end_all(running: Running) -> None:
    """Kill the remaining processes after one rank was killed, and wait until none runs."""
    if running.process.poll() is None:
        running.process.kill()
    pids = {one.pid for one in running.counted()} | {
        int(path.name.split("-")[2]) for path in running.arenas.iterdir()
    }
    for pid in filter(is_alive, pids):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    end = time.monotonic() + SECONDS
    while any(map(is_alive, pids)):
        if time.monotonic() > end:
            raise TimeoutError("ranks outlive SIGKILL")
        time.sleep(0.01)


# -- what is left -----------------------------------------------------------------------------------------------------


def ranks_in(path: Path) -> list[int]:
    """Return the ranks of a profile."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        return [rank for (rank,) in connection.execute("SELECT rank FROM rank ORDER BY rank")]


def stored(running: Running) -> list[Path]:
    """Return the profiles that the job stored, each as one file."""
    found = sorted((running.where / "out").glob("*.db"))
    for folder in sorted((running.where / "out").glob("*.commlens")):
        merged = running.where / f"{folder.name}.db"
        if command("merge", folder, "-o", merged).returncode in (0, 3) and merged.exists():
            found.append(merged)
    return found


def left(running: Running) -> list[str]:
    """Return all file names after all processes ended."""
    return sorted(
        str(path.relative_to(running.where))
        for name in ("arenas", "out")
        for path in (running.where / name).rglob("*")
    )


def judged(running: Running) -> Outcome:
    """Recover, and compare with the program's own counts; the caller sets the seed."""
    counted = running.counted()
    everybody = list(range(running.ranks))
    wrong = []
    files = left(running)
    kept = stored(running)
    recovered = running.where / "recovered.db"
    done = command("recover", "-o", recovered, running.arenas, running.where / "out")
    ranks = ranks_in(recovered) if recovered.exists() else []
    if done.returncode not in (0, 2, 3) or "Traceback" in done.stderr:
        wrong.append(f"recover ends with {done.returncode}")
    found: set[int] = set()
    is_stored = False
    for path in [*kept, *([recovered] if ranks else [])]:
        try:
            mine = ranks_in(path)
            check_counts(Profile(path), counted, mine)
        except (AssertionError, sqlite3.Error) as error:
            wrong.append(f"{path.name}: {str(error).splitlines()[0]}")
            continue
        found.update(mine)
        is_stored = is_stored or (path != recovered and mine == everybody)
    if done.returncode == 0 and ranks != everybody and (ranks or not is_stored):
        wrong.append(f"recover ends with 0, and the profile has only the ranks {ranks}")
    lost = {rank for rank in everybody if counted[rank].stage} - found
    if lost:
        wrong.append(f"what ranks {sorted(lost)} counted is nowhere")
    if found and not ranks and not is_stored:
        wrong.append("what the job has stored is not whole, and nothing was recovered")
    kind = WHOLE if ranks == everybody else PARTIAL if ranks else STORED if is_stored else NOTHING
    detail = [*wrong, f"recover: {done.returncode}", *done.stdout.splitlines(), *done.stderr.splitlines()]
    return Outcome(0, "finding" if wrong else kind, [*detail, "left: " + " ".join(files)])


def run(case: Case, mpi: Mpi) -> Outcome:
    """Run, kill and judge one job."""
    how = EVENTS[case.event][0]
    env = {"COMMLENS_AGGREGATORS": str(case.aggregators), "COMMLENS_QUIET": "1"}
    try:
        with job(mpi, how, env=env, ranks=case.ranks) as running:
            hit = was_killed(case, running)
            end_all(running)
            outcome = judged(running)
    except TimeoutError as error:
        outcome = Outcome(0, "finding", [str(error)])
        hit = True
    outcome.seed = case.seed
    if not hit and outcome.kind != "finding":
        outcome.kind = LATE
    return outcome


# -- many of them -----------------------------------------------------------------------------------------------------


def run_seed(seed: int, mpis: Sequence[str]) -> Outcome:
    """Run one case in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix=f"kill-{seed}-", dir=STATE) as scratch:
        case = Case.of(seed, mpis)
        return run(case, Mpi(case.mpi, Path(scratch)))


@functools.cache  # as they were when we began
def version() -> str:
    """Return a version string of the cases and the code under test."""
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for path in sorted((ROOT / "python" / "commlens").rglob("*.py")):
        digest.update(path.read_bytes())
    for name in MPIS:
        digest.update(Mpi(name, STATE).library.read_bytes())
    return digest.hexdigest()[:12]


def load(path: Path) -> dict[int, Outcome]:
    """Return the outcomes so far, by seed."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {one.seed: one for one in (Outcome(**json.loads(line)) for line in lines)}


def work(seed: int, kills: int, jobs: int, mpis: Sequence[str]) -> Iterator[Outcome]:
    """Yield the outcomes of seeds from `seed` on, until the given number of jobs was killed; earlier outcomes first."""
    STATE.mkdir(parents=True, exist_ok=True)
    path = STATE / f"{'-'.join(mpis)}-{version()}.jsonl"
    done = load(path)
    with ProcessPoolExecutor(jobs) as pool, path.open("a") as out:
        try:
            while kills > 0:
                seeds = range(seed, seed + kills)
                seed += kills
                futures = {one: pool.submit(run_seed, one, mpis) for one in seeds if one not in done}
                for one in seeds:
                    outcome = done[one] if one in done else futures[one].result()
                    if one not in done:
                        out.write(json.dumps(asdict(outcome)) + "\n")
                        out.flush()
                    kills -= outcome.kind != LATE
                    yield outcome
        finally:
            pool.shutdown(cancel_futures=True)


def summary(outcomes: Sequence[Outcome], mpis: Sequence[str]) -> str:
    """Return one line with all outcomes by kind, and one for each event."""
    lines = []
    groups: dict[str, Callable[[Outcome], bool]] = {"kills": lambda _: True}
    for event in EVENTS:
        groups[event] = lambda outcome, event=event: Case.of(outcome.seed, mpis).event == event  # type: ignore[misc]
    for name, belongs in groups.items():
        kinds = Counter(outcome.kind for outcome in outcomes if belongs(outcome))
        killed = sum(kinds.values()) - kinds[LATE]
        text = "; ".join(f"{kinds[kind]} {title}" for kind, title in KINDS.items() if kinds[kind])
        lines.append(f"{name}: {killed} killed: {text}")
    return "\n".join(lines)


def main() -> None:
    """Parse, run, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=500, help="jobs to kill (default: %(default)s)")
    parser.add_argument("--mpi", default=",".join(MPIS), help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="of the first job; the others follow")
    parser.add_argument("--jobs", type=int, default=1, help="jobs at a time (default: %(default)s)")
    parser.add_argument("--only", type=int, metavar="SEED", help="run this job alone and keep its files")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends what was launched, too
    mpis = options.mpi.split(",")
    STATE.mkdir(parents=True, exist_ok=True)
    if options.only is not None:
        case = Case.of(options.only, mpis)
        scratch = Path(tempfile.mkdtemp(prefix=f"only-{options.only}-", dir=STATE))
        outcome = run(case, Mpi(case.mpi, scratch))
        print(f"{scratch}: {case}: {outcome.kind}", *outcome.detail, sep="\n    ")
        sys.exit(outcome.kind == "finding")
    outcomes = []
    for outcome in work(options.seed, options.kills, options.jobs, mpis):
        outcomes.append(outcome)
        if outcome.kind == "finding":
            print(f"{outcome.seed}: {Case.of(outcome.seed, mpis)}", *outcome.detail, sep="\n    ", flush=True)
    print(summary(outcomes, mpis))
    sys.exit(any(outcome.kind == "finding" for outcome in outcomes))


if __name__ == "__main__":
    main()
