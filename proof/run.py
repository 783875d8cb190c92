# SPDX-License-Identifier: Apache-2.0
"""Run the programs of a suite without and with commlens, in turns, and keep what was seen."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import re
import shutil
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness import ROOT, Mpi
from launches import launch_once

from commlens.cli import commlens

from .compare import HANG, RUN, Cases, Seen, add_pair, add_without, as_record, different, from_record
from .summary import Summary

BELOW = ROOT / "build" / "proof"
RESULTS = BELOW / "results"
CAPTURE = ROOT / "proof" / "capture.sh"

# Spawned processes are reached by TCP, not through shared memory.
ENVIRONMENT = {"openmpi": {"OMPI_MCA_btl": "self,vader,tcp"}}

LOOK_FURTHER = 600  # seconds
EDITED = ", edited"  # core/ is not what was committed

Scrub = tuple[str, str]
"""A pattern and what takes its place, for what differs from run to run without commlens, too."""

ADDRESS: Scrub = (r"\b0x[0-9a-f]{6,}", "0x#")
OPEN_MPI_JOB: Scrub = (r"\[\[\d+,", "[[#,")
OPEN_MPI_PROCESS: Scrub = (r"\[[\w.-]+:\d+\]", "[host:#]")
OPEN_MPI_STACK: Scrub = (r"^\[host:#\] \[ ?\d+\] .*\n?", "")
FORTRAN_STACK: Scrub = (r"^#\d+ +0x[0-9a-f#]+ in .*\n?(\tat .*\n?)?", "")
"""The stack of a process that a signal ends has our frames in it, as a debugger would see them."""
EVERYWHERE = (ADDRESS, OPEN_MPI_JOB, OPEN_MPI_PROCESS, OPEN_MPI_STACK, FORTRAN_STACK)


@dataclass(frozen=True)
class Program:
    """One launch, which has one case or many."""

    name: str
    argv: tuple[str | Path, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    inputs: tuple[Path, ...] = ()  # copied into the directory it runs in
    prepare: tuple[str, ...] = ()  # a command that runs there first, without MPI
    results: tuple[str, ...] = ()  # files it writes that must come out the same
    ranks: int = 0  # when it is not the suite's
    seconds: int = 300  # what takes longer counts as a hang
    profiles: int = 1  # how many a good run leaves; 0 for what never reaches MPI_Finalize
    not_run: str = ""  # why it cannot run here


@dataclass(frozen=True)
class Ended:
    """One finished launch, as the program left it; a hang has no exit code."""

    code: int | None
    launcher: str
    ranks: list[str]  # what each rank printed, errors last
    files: dict[str, str]


@dataclass(frozen=True)
class Suite:
    """A declaration: where the programs come from, and what in their output depends on time."""

    name: str
    version: str  # or the Debian package that says it
    source: str  # for the page: where others get it
    programs: Callable[[Mpi], Iterable[Program]]
    ranks: tuple[int, ...]  # 0: each program has its own
    cases: Callable[[Ended], dict[str, Seen]] | None = None  # by default the program is the case
    scrub: tuple[Scrub, ...] = ()
    sort: bool = False  # lines of a rank come in any order
    mpis: tuple[str, ...] = ("openmpi", "mpich")


def launch_name(suite: Suite, mpi: str, ranks: int) -> str:
    """Return the name of the folder for the results of a suite with one MPI and number of ranks."""
    return f"{suite.name}-{mpi}-{ranks}"


def prove(
    suite: Suite,
    name: str,
    ranks: int,
    *,
    only: str = "",
    again: int = 5,
    keep: bool = False,
    kept: Summary | None = None,
) -> int:
    """Run a suite; return the number of cases that differ.

    Parameters
    ----------
    only : run only programs whose name matches this expression, and keep the results of the others
    again : how often at most a program is run again while something differs
    keep : what another core/ has been through without a difference is not run again either
    kept : what is known of the launch, perhaps from another machine

    Without `only`, a proof that was stopped goes on where it was: what did not differ is not run again for the same core/.
    """
    if name not in suite.mpis:
        return 0
    # Several of these may run at a time.
    place = BELOW / "run" / f"{suite.name}-{name}-{ranks}-{os.getpid()}"
    place.mkdir(parents=True)
    results = RESULTS / launch_name(suite, name, ranks)
    mpi = Mpi(name, place)
    launch = facts(suite, mpi, ranks)
    if kept is not None and not only and is_known(kept, launch, keep=keep):
        print(f"proof   {suite.name} {name} {ranks or ''} has been run without a difference", flush=True)
        place.rmdir()
        return 0
    begin = time.monotonic()
    bad = 0
    listed = list_programs(suite, mpi, results)
    programs = [program for program in listed if program.not_run or re.search(only, program.name)]
    for number, program in enumerate(programs, 1):
        about: dict[str, object] = {**launch, "program": program.name}
        label = label_of(program)
        if not only and is_done(results / f"{label}.json", about, keep=keep):
            continue
        if program.not_run:
            about["not_run"] = program.not_run
        else:
            pairs = Pairs(suite, mpi, program, program.ranks or ranks, place / label)
            cases = pairs.compare(again)
            differ = different(cases)
            bad += len(differ)
            line = f"proof   {suite.name} {name} {ranks or ''} {number}/{len(programs)} {program.name}: "
            print(f"{line}{summary(cases)} ({time.monotonic() - begin:.0f} s)", flush=True)
            for case in differ:
                print(f"        DIFFERENT {case}: {show(cases, case)}", flush=True)
            if not differ:
                shutil.rmtree(pairs.place, ignore_errors=True)
            about.update(cases=as_record(cases), calls=pairs.calls, said=pairs.said)
        (results / f"{label}.json").write_text(json.dumps(about, indent=1))
    if not bad:
        shutil.rmtree(place)
    return bad


def list_programs(suite: Suite, mpi: Mpi, results: Path) -> list[Program]:
    """Return the programs of a suite; leave their names in `results`, and no result of another."""
    listed = list(suite.programs(mpi))
    results.mkdir(parents=True, exist_ok=True)
    for path in set(results.glob("*.json")) - {results / f"{label_of(program)}.json" for program in listed}:
        path.unlink()
    (results / "programs").write_text("".join(f"{program.name}\n" for program in listed))
    return listed


def summary(cases: Cases) -> str:
    """Return how many cases ended how."""
    count = Counter(case.under[0].outcome for name, case in cases.items() if name != "(profile)")
    verdicts = Counter(case.verdict for case in cases.values())
    text = ", ".join(f"{number} {outcome}" for outcome, number in sorted(count.items()))
    return text + "".join(f", {verdicts[what]} {what}" for what in ("flaky", "different") if verdicts[what])


def show(cases: Cases, name: str) -> str:
    """Return one line about a case that differs."""
    case = cases[name]
    outcomes = [sorted({seen.outcome for seen in runs}) for runs in (case.without, case.under)]
    if outcomes[0] != outcomes[1]:
        return f"without {outcomes[0]}, with {outcomes[1]}"
    old = set("\n".join(seen.text for seen in case.without).splitlines())
    lines = [line for seen in sorted(case.new) for line in seen.text.splitlines() if line not in old]
    return f"{outcomes[0]}, output: {lines[:3]}"


class Pairs:
    """Runs of one program without and with commlens."""

    def __init__(self, suite: Suite, mpi: Mpi, program: Program, ranks: int, place: Path) -> None:
        self.suite = suite
        self.mpi = mpi
        self.program = program
        self.ranks = ranks
        self.place = place
        self.said: Counter[str] = Counter()
        self.calls = 0

    def compare(self, again: int) -> Cases:
        """Run one pair, and more while something is there that never came without commlens.

        What differs after `again` more pairs may come seldom without commlens, too: it is looked for there eight times
        as often, for ten minutes at most.
        """
        cases: Cases = {}
        for number in range(1 + again):
            without = self.once(number, "off")
            under = self.once(number, "run")
            add_pair(cases, without, under)
            if not different(cases):
                return cases
        end = time.monotonic() + LOOK_FURTHER
        for number in range(1 + again, 1 + again + 8 * again):
            if time.monotonic() > end or not different(cases):
                break
            add_without(cases, self.once(number, "off"))
        return cases

    def once(self, number: int, mode: str) -> dict[str, Seen]:
        """Run the program once; return its cases."""
        program = self.program
        # The same path for all, as it gets into the output.
        where = self.place / "at"
        shutil.rmtree(where, ignore_errors=True)
        where.mkdir(parents=True)
        for path in program.inputs:
            shutil.copy(path, where)
        if program.prepare:
            subprocess.run(
                program.prepare, cwd=where, check=True, capture_output=True, stdin=subprocess.DEVNULL
            )
        kept = self.place / f"{number}-{mode}"
        kept.mkdir()
        profile = kept / "profile.db"
        environment = {**ENVIRONMENT.get(self.mpi.name, {}), **program.env}
        command, env = self.mpi.prepare(
            self.ranks, program.argv, environment, profile, mode, capture=[CAPTURE]
        )
        result = launch_once(command, env, program.seconds, where, profile)
        ranks = []
        for rank in range(self.ranks):
            out, err = (read(where / f"rank.{rank}.{end}") for end in ("out", "err"))
            mine = [line for line in err.splitlines() if line.startswith("commlens")]
            self.said.update(re.sub(r"\S*/\S+|\d+", "#", line) for line in mine)
            others = [line for line in err.splitlines() if not line.startswith("commlens")]
            ranks.append(self.clean("\n".join([*out.splitlines(), *others])))
        launcher = read(where / ".stdout") + read(where / ".stderr")
        files = {name: self.clean(read(where / name)) for name in program.results}
        ended = Ended(None if result is None else result.rc, self.clean(launcher), ranks, files)
        for path in where.glob("rank.*"):
            shutil.move(path, kept)
        for name in (".stdout", ".stderr"):
            shutil.move(where / name, kept / name[1:])
        shutil.rmtree(where, ignore_errors=True)

        cases = (self.suite.cases or whole)(ended)
        good = ended.code == 0
        if mode == "run":
            expected = program.profiles if good else None
            problem = self.look(sorted(kept.glob("*.db*")), expected)
            cases["(profile)"] = Seen(problem or "fine")
        else:
            cases["(profile)"] = Seen("fine")
        return cases

    def look(self, profiles: list[Path], expected: int | None) -> str:
        """Return what is wrong with the profiles of a run, or nothing."""
        if expected is not None and len(profiles) != expected:
            return f"{len(profiles)} profiles"
        for path in profiles:
            problem = report(path)
            if problem:
                return f"report: {problem}"
            with contextlib.closing(sqlite3.connect(path)) as profile:
                self.calls += profile.execute("SELECT COALESCE(SUM(calls), 0) FROM cell").fetchone()[0]
        return ""

    def clean(self, text: str) -> str:
        """Return the text without what differs from run to run."""
        for pattern, instead in (*EVERYWHERE, *self.suite.scrub):
            text = re.sub(pattern, instead, text, flags=re.MULTILINE)
        lines = text.splitlines()
        return "\n".join(sorted(lines) if self.suite.sort else lines)


def report(profile: Path) -> str:
    """Run `commlens report`, in this process, as it is done thousands of times; return what is wrong, or nothing."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    code: object = 1
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            commlens(["report", str(profile)], prog_name="commlens")
        except SystemExit as end:
            code = end.code
    printed, errors = (stream.buffer.getvalue().decode() for stream in (out, err))
    return "" if code in (None, 0) and printed else errors.strip() or f"exit code {code}"


def read(path: Path) -> str:
    """Return the text of a file, nothing when it is not there."""
    return path.read_text(errors="replace") if path.is_file() else ""


def ending(ended: Ended) -> str:
    """Return in a word how a launch ended."""
    return HANG if ended.code is None else "ok" if ended.code == 0 else f"exit {ended.code}"


def whole(ended: Ended) -> dict[str, Seen]:
    """Return the launch as one case: everything it printed and wrote."""
    if ended.code is None:
        return {RUN: Seen(HANG)}  # how far it got when it was killed is chance
    # What a launcher says about a failure is neither the program's nor the same twice.
    texts = [*(f"rank {rank}:\n{text}" for rank, text in enumerate(ended.ranks))]
    texts += [f"{name}:\n{text}" for name, text in ended.files.items()]
    return {RUN: Seen(ending(ended), "\n".join(texts))}


@functools.cache
def built() -> str:
    """Return which commlens this is: the version, and which core/ it was built from."""
    git = ["git", "-C", str(ROOT)]
    tree = subprocess.run(
        [*git, "rev-parse", "--short=8", "HEAD:core"], capture_output=True, text=True, check=True
    )
    edited = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", "core", "generated"]).returncode
    return f"{read(ROOT / 'VERSION').strip()} (core/ is {tree.stdout.strip()}{EDITED if edited else ''})"


@functools.cache
def debian_version(package: str) -> str:
    """Return the version of an installed package."""
    query = ["dpkg-query", "--show", "--showformat=${Version}", package]
    return subprocess.run(query, capture_output=True, text=True, check=True).stdout


@functools.cache
def version(mpi: Mpi) -> str:
    """Return the name and number of an MPI."""
    done = subprocess.run([mpi.launcher, "--version"], capture_output=True, text=True, check=True)
    found = re.search(r"(?:\) |Version: +)(\S+)", done.stdout)
    return f"{ {'openmpi': 'Open MPI', 'mpich': 'MPICH'}[mpi.name] } {found[1] if found else '?'}"


def label_of(program: Program) -> str:
    """Return the program's name as part of a path."""
    return re.sub(r"\W+", "-", program.name)


def facts(suite: Suite, mpi: Mpi, ranks: int) -> dict[str, object]:
    """Return what the records of all programs of a launch begin with."""
    return {
        "suite": suite.name,
        "version": debian_version(suite.version) if suite.source == "Debian" else suite.version,
        "source": suite.source,
        "commlens": built(),
        "mpi": mpi.name,
        "mpi_version": version(mpi),
        "ranks": ranks,
    }


def is_known(kept: Summary, about: Mapping[str, object], *, keep: bool = False) -> bool:
    """Return whether a summary is of all programs with the same versions, and nothing differs; keep: of whichever core/."""
    if kept.missing or kept.different or (EDITED in str(about["commlens"]) and not keep):
        return False
    same_core = keep or kept.commlens == [about["commlens"]]
    return same_core and (kept.version, kept.mpi_version) == (about["version"], about["mpi_version"])


def is_done(path: Path, about: Mapping[str, object], *, keep: bool = False) -> bool:
    """Return whether a record is there of the same program with the same versions, in which nothing differs.

    keep: of whichever core/.
    """
    if not path.exists() or (EDITED in str(about["commlens"]) and not keep):
        return False
    record = json.loads(path.read_text())
    same = all(record.get(name) == value for name, value in about.items() if not keep or name != "commlens")
    return same and "cases" in record and not different(from_record(record["cases"]))
