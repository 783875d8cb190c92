# SPDX-License-Identifier: Apache-2.0
"""Damage and forge what the reader reads, and see that it answers: soon, in bounds, and never with a traceback.

    python -m fuzz.reader --profiles 10000 --seed 1 --jobs 2    # goes on where it was stopped
    python -m fuzz.reader --arenas 10000 --seed 1               # the same for what killed processes leave
    python -m fuzz.reader --seed 1 --only 4711                  # one case again; says where its files are

A case is a profile or an arena damaged in one way, and some commands on it. Each runs in a process of its own, with a limit of
processor time and memory. Expected are an exit code of 0, 2 or 3 (1 where a comparison was asked for and differs), no
traceback, at most 10 s and 1 GiB, no file but the one that was asked for, and no character that a terminal obeys.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # a process with one thread is forked in a millisecond

import argparse
import importlib
import json
import re
import resource
import shutil
import signal
import sqlite3
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from random import Random

from commlens import cli
from fuzz import arenas, commands, damage, sound
from fuzz.paths import ROOT

STATE = ROOT / "build" / "fuzz"
MOST_S, MOST_BYTES = 10, 1 << 30
HARD_S, HARD_BYTES = 20, 4 << 30
PER_CASE = 2
OBEYED = re.compile(
    "[\\0-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ufeff]"
)
GOOD = (0, 2, 3)
LOADED = (
    "commlens.algorithms.text",
    "commlens.matrix.files",
    "commlens.matrix.text",
    "commlens.matrix.model",
    "pyarrow.parquet",
)


@dataclass
class Found:
    """What went wrong with one command."""

    command: str
    what: str
    detail: str = ""


@dataclass
class Outcome:
    """How one case went.

    Attributes
    ----------
    kind : str
        What was done to the profile or arena.
    seconds, mib : float
        The most of its commands: processor time and memory.
    """

    case: int
    kind: str
    commands: int = 0
    codes: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    mib: float = 0.0
    findings: list[Found] = field(default_factory=list)


Maker = Callable[[Random, Path, Sequence[Path]], tuple[str, Path]]


def damaged_profile(chance: Random, folder: Path, whole: Sequence[Path]) -> tuple[str, Path]:
    """Make the profile of a case; return what was done to it, and where it is."""
    origin = chance.choice(whole)
    path = folder / origin.name
    kind = "shards"
    how: damage.Damage = damage.directory
    if origin.is_dir():
        shutil.copytree(origin, path)
    else:
        kind = chance.choice(list(damage.FILES))
        how = damage.FILES[kind]
        shutil.copy(origin, path)
    with suppress(sqlite3.Error, UnicodeDecodeError):  # what is left of it is as good a case
        how(chance, path)
    return kind, path


def forged_arena(chance: Random, folder: Path, _: Sequence[Path]) -> tuple[str, Path]:
    """Make the arena of a case; return what was done to it, and the folder it is in."""
    arena, path = arenas.mutation(chance.randrange(1 << 30), 0), folder / "arenas"
    path.mkdir()
    arena.write(path / f"commlens-{os.geteuid()}-1-1-1.arena")
    return arena.kind, path


# What cases there are -> how to make one, and the commands for it. Each has its own option, such as --profiles.
MAKERS: dict[str, Maker] = {"profiles": damaged_profile, "arenas": forged_arena}
CHOICES = {"profiles": commands.chosen, "arenas": commands.chosen_for_arenas}


def listing(folder: Path) -> dict[str, tuple[int, int]]:
    """Return what is in a folder, with size and time of each."""
    found = {}
    for path in folder.rglob("*"):
        facts = path.lstat()
        found[str(path.relative_to(folder))] = (facts.st_size, facts.st_mtime_ns)
    return found


def child(command: Sequence[str], profile: Path, out: Path, said: Path) -> None:
    """Run a command in this process, which ends with its exit code."""
    code = 70
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (HARD_S, HARD_S + 1))
        if profile.suffix == ".db":  # who reads an arena reserves addresses for its holes, and no memory
            resource.setrlimit(resource.RLIMIT_AS, (HARD_BYTES, HARD_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.alarm(30 * HARD_S)
        for number, name in ((0, "/dev/null"), (1, said / "out"), (2, said / "err")):
            os.dup2(os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), number)
        sys.stdout = open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
        os.chdir(out.parent)
        warnings.resetwarnings()
        commands.run(command, profile, out)
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)


def tried(
    command: Sequence[str], profile: Path, folder: Path, *, text: bool
) -> tuple[list[Found], int, float, float]:
    """Run a command in a process of its own; return what went wrong, exit code, seconds and MiB."""
    work, said = folder / "work", folder / "said"
    for place in (work, said):
        place.mkdir(exist_ok=True)
    out, before = work / "out", listing(profile.parent)
    pid = os.fork()
    if pid == 0:
        child(command, profile, out, said)
    _, status, used = os.wait4(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    seconds, mib = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
    words = " ".join(command)
    output, errors = ((said / name).read_bytes().decode("utf-8", "replace") for name in ("out", "err"))
    found = []
    is_compared = "--check" in command and code == 1
    if "Traceback" in errors:
        found.append(Found(words, "traceback", last_lines(errors)))
    elif code not in GOOD and not is_compared:
        found.append(Found(words, f"exit code {code}", last_lines(errors)))
    if seconds > MOST_S:
        found.append(Found(words, f"more than {MOST_S} s", f"{seconds:.1f} s"))
    if mib * (1 << 20) > MOST_BYTES:
        found.append(Found(words, "more than 1 GiB", f"{mib:.0f} MiB"))
    if listing(profile.parent) != before:
        found.append(Found(words, "changed what it reads", str(set(listing(profile.parent)) ^ set(before))))
    strange = [name for name in os.listdir(work) if not name.startswith("out")]  # noqa: PTH208
    if strange:
        found.append(Found(words, "wrote what was not asked for", str(strange)))
    for name, stream in (("stdout", output), ("stderr", errors)):
        obeyed = OBEYED.search(stream) if text else None
        if obeyed:
            found.append(
                Found(words, f"control character on {name}", repr(stream[obeyed.start() - 20 :][:60]))
            )
    shutil.rmtree(work)
    return found, code, seconds, mib


def last_lines(errors: str) -> str:
    """Return the end of what was said: of a traceback the place in our sources and the error."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    places = [
        line
        for line in lines
        if line.startswith("File ") and "/commlens/" in line and "/site-packages/" not in line
    ]
    return " | ".join([*places[-1:], *lines[-1:]])[-500:]


def outcome(
    case: int, seed: int, kind: str, whole: Sequence[Path], *, text: bool, keep: bool = False
) -> Outcome:
    """Make a case and try some commands on it."""
    chance = Random(f"{seed}.{kind}.{case}")
    folder = Path(tempfile.mkdtemp(prefix=f"reader-{case}-"))
    try:
        place = folder / "profile"
        place.mkdir()
        done, profile = MAKERS[kind](chance, place, whole)
        result = Outcome(case, done)
        codes: Counter[str] = Counter()
        for command in CHOICES[kind](case, PER_CASE):
            found, code, seconds, mib = tried(command, profile, folder, text=text)
            result.commands += 1
            codes[str(code)] += 1
            result.seconds, result.mib = max(result.seconds, seconds), max(result.mib, mib)
            result.findings += found
        result.codes = dict(codes)
    finally:
        if keep:
            print(f"case {case}: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return result


def outcomes(
    cases: Iterable[int], seed: int, kind: str, jobs: int, *, text: bool, keep: bool = False
) -> Iterator[Outcome]:
    """Yield how cases went."""
    cli.commands()  # all modules are loaded once, before processes are forked
    for module in LOADED:
        importlib.import_module(module)
    with tempfile.TemporaryDirectory(prefix="reader-sound-") as place:
        one = partial(outcome, seed=seed, kind=kind, whole=sound.make(Path(place)), text=text, keep=keep)
        if jobs == 1:
            yield from map(one, cases)
            return
        with ProcessPoolExecutor(jobs) as pool:
            yield from pool.map(one, cases, chunksize=10)


def known(state: Path) -> dict[int, Outcome]:
    """Return what earlier runs have found."""
    found = {}
    if state.exists():
        for line in state.read_text(encoding="utf-8").splitlines():
            values = json.loads(line)
            values["findings"] = [Found(**finding) for finding in values["findings"]]
            found[values["case"]] = Outcome(**values)
    return found


def summary(kind: str, seed: int, done: Sequence[Outcome]) -> str:
    """Return one line on all cases."""
    kinds = Counter(one.kind for one in done)
    codes: Counter[str] = Counter()
    for one in done:
        codes.update(one.codes)
    wrong = Counter(finding.what for one in done for finding in one.findings)
    cases = ", ".join(f"{name} {count}" for name, count in sorted(kinds.items()))
    said = ", ".join(f"{what} {count}" for what, count in wrong.most_common()) or "none"
    return (
        f"{kind}, seed {seed}: {len(done):,} cases ({cases}), {sum(one.commands for one in done):,} commands, exit codes "
        f"{dict(sorted(codes.items()))}, at most {max((one.seconds for one in done), default=0):.1f} s and "
        f"{max((one.mib for one in done), default=0):.0f} MiB; findings: {said}"
    )


def main() -> int:
    """Run the cases that are asked for; return 1 if one of them has a finding."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for kind in MAKERS:
        parser.add_argument(f"--{kind}", type=int, metavar="N", help=f"so many {kind}")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", type=int, metavar="CASE", help="one case again; its files stay")
    parser.add_argument("--again", action="store_true", help="forget what earlier runs have done")
    parser.add_argument("--no-text", action="store_true", help="do not look for control characters")
    options = parser.parse_args()
    wanted = {kind: number for kind in MAKERS if (number := getattr(options, kind)) is not None}
    failed = False
    for kind, number in (wanted or {"profiles": 1}).items():
        state = STATE / f"reader-{kind}-{options.seed}.jsonl"
        if options.again:
            state.unlink(missing_ok=True)
        done = {} if options.only is not None else known(state)
        cases = [options.only] if options.only is not None else [i for i in range(number) if i not in done]
        state.parent.mkdir(parents=True, exist_ok=True)
        is_one = options.only is not None
        for one in outcomes(cases, options.seed, kind, options.jobs, text=not options.no_text, keep=is_one):
            done[one.case] = one
            for finding in one.findings:
                print(
                    f"case {one.case} ({one.kind}): {finding.command}: {finding.what}: {finding.detail}",
                    flush=True,
                )
            if not is_one:
                with state.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(one)) + "\n")
        some = (
            [one for case, one in sorted(done.items()) if case < number]
            if not is_one
            else list(done.values())
        )
        print(summary(kind, options.seed, some))
        print(f"one case again: python -m fuzz.reader --seed {options.seed} --only CASE")
        failed = failed or any(one.findings for one in some)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
