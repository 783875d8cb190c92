# SPDX-License-Identifier: Apache-2.0
"""Run random programs under commlens and compare every counter with the model's.

    .venv/bin/python -m fuzz.run --programs 10000 --jobs 2      # goes on where it was stopped
    .venv/bin/python -m fuzz.run --mpi mpich --only 4711        # one program again; says where its files are
    .venv/bin/python -m fuzz.run --mpi mpich --shrink 4711      # the fewest steps that still go wrong

A program that goes wrong is run without commlens, too.  What fails there as well is a fault of the MPI library; those
are counted and named, and compared with nothing.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import re
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from pathlib import Path

from harness import ROOT, Mpi
from launches import Result

from fuzz.files import FILE_SIZE
from fuzz.program import Program, source

HERE = Path(__file__).resolve().parent
STATE = ROOT / "build" / "fuzz"
BATCH = 20
"""Programs compiled into one executable."""
SECONDS = 300
MPIS = {"openmpi": "Open MPI", "mpich": "MPICH"}


@dataclass
class Outcome:
    """How one program went.

    `kind`: equal; differs (counters); broken (does not end well, only under commlens); once (did not end well once,
    and well ever after); library (does not end well without commlens either).
    """

    seed: int
    kind: str
    detail: list[str] = field(default_factory=list)
    ranks: int = 0
    threads: int = 0
    comms: int = 0
    cells: int = 0
    calls: int = 0


class Runner:
    """Runs programs of one MPI in a folder of its own."""

    def __init__(self, mpi: Mpi) -> None:
        self.mpi = mpi

    def program(self, seed: int, steps: Iterable[int] | None = None) -> Program:
        mpich = self.mpi.family != "openmpi"
        # From MPICH 4.2 on MPI_Request_get_status ends the request.
        return Program(seed, mpich, steps, get_status=not mpich or self.mpi.release.startswith("4.0."))

    def compile(self, programs: Sequence[Program]) -> Path:
        folder = self.mpi.fresh("source")
        path = folder / "program.c"
        path.write_text(source(programs))
        return self.mpi.compile(path, None, flags=["-O0", "-g0", "-w", f"-I{HERE}"])

    def launch(
        self, executable: Path, number: int, program: Program, mode: str = "run"
    ) -> tuple[Result, Path]:
        """Run program `number` of an executable once; return how it went, and its folder."""
        folder = self.mpi.fresh(f"p{program.seed}")
        (folder / "in").write_bytes(bytes(FILE_SIZE))
        # Open MPI 4.1's default way of writing collectively, "vulcan", corrupts its heap.
        env = {"OMPI_MCA_fcoll": "individual", "COMMLENS_QUIET": "1"}
        if mode != "off":
            env["COMMLENS_CALLSITES"] = program.callsites
        argv: list[str | Path] = [executable, folder, str(number)]
        result = self.mpi.run(program.ranks, argv, env=env, timeout=SECONDS, mode=mode, cwd=folder, once=True)
        return result, folder

    def outcome(self, executable: Path, number: int, program: Program) -> Outcome:
        """Run one program, and run it again as often as it takes to know whose fault it is."""
        result, folder = self.launch(executable, number, program)
        if result.rc == 0:
            done = self.compared(program, result, folder)
            if done.kind == "equal":
                shutil.rmtree(folder)
            return done
        reason = why(result)
        kind, detail = "once", [reason]
        modes = ["off", "off", "run", "run"] + ["off"] * 38
        while modes:
            mode = modes.pop(0)
            again, _ = self.launch(executable, number, program, mode)
            if again.rc != 0 and mode == "off":
                return Outcome(program.seed, "library", [reason, why(again)], program.ranks, program.threads)
            if again.rc != 0 and kind == "once":
                kind, detail = "broken", [reason, why(again)]
                # A program that hangs in one run of six with commlens may hang in one of thirty without.
                modes += ["off"] * 160
        return Outcome(program.seed, kind, detail, program.ranks, program.threads)

    def compared(self, program: Program, result: Result, folder: Path) -> Outcome:
        expected = [program.expected(me, folder) for me in range(program.ranks)]
        wrong = program.differences(result.open(), expected)
        wrong += result.said
        counted = [counts for cells in expected for counts in cells.values()]
        return Outcome(
            program.seed,
            "differs" if wrong else "equal",
            wrong[:20],
            program.ranks,
            program.threads,
            sum(len(script.made_comms) for script in program.scripts),
            len(counted),
            sum(c.calls for c in counted),
        )


def why(result: Result) -> str:
    """Return one line that says how a run ended: the MPI library's complaint if there is one."""
    complaints = (
        "stuck",
        "Fatal error",
        "MPI_ERR",
        "Segmentation",
        "signal",
        "ssertion",
        "rror",
        "corrupt",
        "killed",
    )
    lines = [line.strip() for line in result.stderr.splitlines()]
    for word in complaints:
        for line in lines:
            if word in line:
                return f"exit code {result.rc}: {line[:160]}"
    return f"exit code {result.rc}"


def batch(name: str, seeds: Sequence[int]) -> list[Outcome]:
    """Compile and run the programs of `seeds`."""
    with tempfile.TemporaryDirectory(prefix=f"fuzz-{name}-", dir=STATE) as scratch:
        runner = Runner(Mpi(name, Path(scratch)))
        programs = [runner.program(seed) for seed in seeds]
        executable = runner.compile(programs)
        return [runner.outcome(executable, number, program) for number, program in enumerate(programs)]


# -- what was done already --------------------------------------------------------------------------------------------


@functools.cache  # as they were when we began
def version(name: str) -> str:
    """Return a word for the programs that would be made now and the library they would meet."""
    digest = hashlib.sha256()
    scratch = Path(tempfile.gettempdir())
    for path in [*sorted(HERE.glob("*.[ph]*")), Mpi(name, scratch).library]:
        if path.name not in ("run.py", "identity.py", "soak.py", "kills.py"):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def state(name: str) -> Path:
    return STATE / f"{name}-{version(name)}.jsonl"


def load(path: Path) -> dict[int, Outcome]:
    """Return the outcomes so far, by seed."""
    if not path.exists():
        return {}
    outcomes = [Outcome(**json.loads(line)) for line in path.read_text().splitlines()]
    return {outcome.seed: outcome for outcome in outcomes}


def work(names: Sequence[str], seeds: range, jobs: int) -> Iterator[tuple[str, Outcome]]:
    """Run what has not been run yet, in parallel, and keep what came out."""
    STATE.mkdir(parents=True, exist_ok=True)
    paths = {name: state(name) for name in names}
    done = {name: load(path) for name, path in paths.items()}
    with ProcessPoolExecutor(jobs) as pool:
        running = {}
        for first in range(0, len(seeds), BATCH):  # the MPIs in turn
            for name in names:
                left = [seed for seed in seeds[first : first + BATCH] if seed not in done[name]]
                if left:
                    running[pool.submit(batch, name, left)] = name
        try:
            for future in as_completed(running):
                name = running[future]
                with paths[name].open("a") as out:
                    for outcome in future.result():
                        out.write(json.dumps(asdict(outcome)) + "\n")
                        yield name, outcome
        finally:
            pool.shutdown(cancel_futures=True)  # who is stopped does not want the thousands that wait


# -- what is said -----------------------------------------------------------------------------------------------------


def way(end: str) -> str:
    """Return how a program ends, without what is another one's each time.

    >>> way("exit code 3: stuck: rank 1, lines 5 8 0"), way("exit code 139: [vm:18:0:7] Signal: Segmentation fault (11)")
    ('exit code 3: stuck', 'exit code 139: Signal: Segmentation fault (11)')
    """
    end = re.sub(r"(stuck): rank .*", r"\1", end)
    return re.sub(r"0x[0-9a-f]+", "0x#", re.sub(r"\[[\w. -]+:\d[^]]*\] *", "", end))


def table(names: Sequence[str], seeds: range) -> str:
    """Return the summary of all outcomes, in Markdown."""
    found = {name: [o for seed, o in sorted(load(state(name)).items()) if seed in seeds] for name in names}
    rows: dict[str, Callable[[list[Outcome]], int]] = {
        "programs run": lambda os: len(os),
        "of them with several threads": lambda os: sum(o.threads > 0 for o in os),
        "**all counters equal to the model's**": lambda os: sum(o.kind == "equal" for o in os),
        "**a counter differs**": lambda os: sum(o.kind == "differs" for o in os),
        "**fails only under commlens**": lambda os: sum(o.kind == "broken" for o in os),
        "failed once, then never again with or without": lambda os: sum(o.kind == "once" for o in os),
        "fails without commlens, too": lambda os: sum(o.kind == "library" for o in os),
        "communicators": lambda os: sum(o.comms for o in os),
        "MPI calls counted": lambda os: sum(o.calls for o in os),
        "cells compared": lambda os: sum(o.cells for o in os),
    }
    lines = ["| | " + " | ".join(MPIS[name] for name in names) + " |", "|---|" + "---:|" * len(names)]
    for title, count in rows.items():
        lines.append(f"| {title} | " + " | ".join(f"{count(found[name]):,}" for name in names) + " |")
    for kind, title in {
        "library": "What fails in the MPI library, without commlens",
        "once": "What failed once",
    }.items():
        ends = [(name, outcome) for name in names for outcome in found[name] if outcome.kind == kind]
        reasons = Counter((name, way(outcome.detail[-1])) for name, outcome in ends)
        first = {(name, way(outcome.detail[-1])): outcome.seed for name, outcome in reversed(ends)}
        if reasons:
            lines += [
                "",
                title + ":",
                "",
                "| MPI | programs | how they end | the first seed |",
                "|---|---:|---|---:|",
            ]
            for (name, reason), n in reasons.most_common(25):
                lines.append(f"| {MPIS[name]} | {n} | `{reason}` | {first[name, reason]} |")
    return "\n".join(lines) + "\n"


def repeat(name: str, seed: int, steps: Sequence[int] | None) -> bool:
    """Run one program, say what came out and where its files are; tell whether it was as it must be."""
    STATE.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f"only-{seed}-", dir=STATE))
    runner = Runner(Mpi(name, scratch))
    program = runner.program(seed, steps)
    outcome = runner.outcome(runner.compile([program]), 0, program)
    print(f"{scratch}: seed {seed}, {program.ranks} ranks, {program.threads} threads: {outcome.kind}")
    print("\n".join(outcome.detail))
    return outcome.kind == "equal"


def shrink(name: str, seed: int) -> None:
    """Leave out steps as long as the program goes wrong in the same way."""
    with tempfile.TemporaryDirectory() as scratch:
        runner = Runner(Mpi(name, Path(scratch)))

        def kind(steps: Sequence[int]) -> str:
            program = runner.program(seed, steps)
            return runner.outcome(runner.compile([program]), 0, program).kind

        steps = list(range(runner.program(seed).length))
        first = kind(steps)
        size = len(steps) // 2
        while size and first != "equal":
            for i in range(0, len(steps), size):
                fewer = steps[:i] + steps[i + size :]
                if len(fewer) < len(steps) and kind(fewer) == first:
                    steps = fewer
                    print(f"{len(steps)} steps: {first}")
                    break
            else:
                size //= 2
        print(f"{first}: --only {seed} --steps {','.join(map(str, steps))}")


def main() -> None:
    """Parse, run, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--programs", type=int, default=10_000, help="on each MPI (default: %(default)s)")
    parser.add_argument("--mpi", default="openmpi,mpich", help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="of the first program; the others follow")
    parser.add_argument("--jobs", type=int, default=2, help="programs at a time (default: %(default)s)")
    parser.add_argument("--table", type=Path, help="write the summary into this file, too, below its mark")
    parser.add_argument("--only", type=int, metavar="SEED", help="run this program alone and keep its files")
    parser.add_argument("--steps", help="of --only, leave out all other steps")
    parser.add_argument("--shrink", type=int, metavar="SEED", help="look for fewer steps that go wrong")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends what was launched, too
    names = options.mpi.split(",")
    if options.only is not None:
        steps = None if options.steps is None else [int(step) for step in options.steps.split(",")]
        went_well = [repeat(name, options.only, steps) for name in names]
        sys.exit(not all(went_well))
    if options.shrink is not None:
        for name in names:
            shrink(name, options.shrink)
        return

    seeds = range(options.seed, options.seed + options.programs)
    for done, (name, outcome) in enumerate(work(names, seeds, options.jobs), 1):
        if outcome.kind != "equal":
            print(f"{name} {outcome.seed}: {outcome.kind}: {'; '.join(outcome.detail[:2])}", flush=True)
            print(f"    repeat with --mpi {name} --only {outcome.seed}", flush=True)
        if done % 500 == 0:
            print(f"{done} programs", flush=True)
    text = table(names, seeds)
    print(text, end="")
    if options.table:
        before = options.table.read_text().split(MARK)[0] if options.table.exists() else ""
        options.table.write_text(before + MARK + "\n\n" + text)
    bad = [
        o
        for name in names
        for o in load(state(name)).values()
        if o.seed in seeds and o.kind in ("differs", "broken")
    ]
    sys.exit(bool(bad))


MARK = "<!-- written by make fuzz; DO NOT EDIT below -->"


if __name__ == "__main__":
    main()
