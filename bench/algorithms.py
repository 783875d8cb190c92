# SPDX-License-Identifier: Apache-2.0
"""Compares the messages of Open MPI's algorithms with schedules and profiles; writes docs/evidence/algorithms.md.

Every collective is called with every algorithm that coll_tuned can be told to use, on communicators of 2 to 33 ranks.
What was sent inside is measured twice in the same run, by Open MPI's own monitoring component and by commlens. Both are
compared with the schedule, pair by pair: messages, bytes, and messages of each size. What `commlens algorithms` names in
the profile is compared with what was told.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

from commlens.algorithms import openmpi  # noqa: E402
from commlens.algorithms.calls import collective_of  # noqa: E402
from commlens.algorithms.matching import Candidate  # noqa: E402
from commlens.algorithms.pattern import Pairs  # noqa: E402
from commlens.algorithms.recognise import SENDS_NOTHING, Line, recognise  # noqa: E402
from commlens.algorithms.registry import ALGORITHMS, COLLECTIVES, ROOTED, Algorithm, algorithms  # noqa: E402
from commlens.algorithms.schedule import Call  # noqa: E402
from commlens.profile import open_profile  # noqa: E402

PAGE = ROOT / "docs" / "evidence" / "algorithms.md"
MARK = "<!-- written by bench/algorithms.py; DO NOT EDIT below -->"
BUILD = ROOT / "build" / "algorithms"
RUNNER = ROOT / "build" / "release" / "bin" / "commlens-run"
MOST = 33
SOURCES = ("component", "profile")


@dataclass(frozen=True)
class Library:
    """An Open MPI and how to use it."""

    name: str
    release: str
    compiler: tuple[str, ...]
    launcher: tuple[str, ...]
    environment: dict[str, str]


@dataclass(frozen=True)
class Case:
    """One algorithm with parameters.

    Attributes
    ----------
    collective, number : as coll_tuned calls it; number 0 for collectives that have no choice
    blocks : bytes of a call, as commlens.algorithms.schedule.Call has it; -N for parts of 0, N and 2 N bytes in turns
    parameters : of the algorithm, under the names of Call
    told : numbers of other collectives, of which the algorithm is made
    ranks : of the largest communicator
    """

    collective: str
    number: int
    blocks: tuple[int, ...]
    parameters: dict[str, int] = field(default_factory=dict)
    told: dict[str, int] = field(default_factory=dict)
    ranks: int = MOST

    @property
    def choice(self) -> dict[str, dict[str, int]]:
        """What coll_tuned is told of each collective that takes part."""
        found = {it: {"": 0} for it in openmpi.PARTS.get((self.collective, self.number), ())}
        found |= {it: {"": number} for it, number in self.told.items()}
        found[self.collective] = {"": self.number, **self.parameters}
        return found

    @property
    def roots(self) -> int:
        """How many ranks are root in turns."""
        return 2 if self.collective in ROOTED else 1

    def calls(self) -> Iterator[Where]:
        """Yield the calls that are made."""
        for size in range(2, self.ranks + 1):
            for block in self.blocks:
                for root in (0, size // 2)[: self.roots]:
                    yield self.collective, size, block, root

    def call(self, size: int, block: int, root: int) -> Call:
        """Return a call of it."""
        radix = 4 if self.collective == "bcast" else 2  # the default
        call = Call(size, root=root, radix=radix).but(**self.parameters)
        if block >= 0:
            return call.but(block=block)
        rank = call.ranks
        pairwise = self.collective.startswith("alltoall")
        of = np.add.outer(rank, rank).reshape(-1) if pairwise else rank
        return call.but(block=of % 3 * -block)


Where = tuple[str, int, int, int]
"""Collective, communicator size, block and root."""


class Launch:
    """Cases that one run can do: what coll_tuned is told for them does not contradict."""

    def __init__(self, first: Case) -> None:
        self.cases = [first]
        self.choice = first.choice

    @property
    def ranks(self) -> int:
        """Ranks of the largest communicator."""
        return max(one.ranks for one in self.cases)

    def takes(self, case: Case) -> bool:
        """Add a case if it can be done with the others."""
        if (case.ranks == 2) != (self.ranks == 2):  # what is made for two ranks fails on more
            return False
        if any(self.choice.get(it, told) != told for it, told in case.choice.items()):
            return False
        self.choice = self.choice | case.choice
        self.cases.append(case)
        return True

    def options(self) -> list[str]:
        """Return what coll_tuned is told."""
        said = ["--mca", "coll_tuned_use_dynamic_rules", "1"]
        words = {"": "", "segment": "_segmentsize", "fanout": "_chain_fanout", "radix": "_knomial_radix"}
        for collective, told in self.choice.items():
            for name, value in told.items():
                if value:
                    said += ["--mca", f"coll_tuned_{collective}_algorithm{words[name]}", str(value)]
        return said

    def jobs(self) -> list[str]:
        """Return what collectives.c is to call."""
        return [":".join(map(str, (one.collective, one.roots, one.ranks, *one.blocks))) for one in self.cases]


def launches(cases: Iterable[Case]) -> list[Launch]:
    """Combine cases, beginning with those that set the most options."""
    found: list[Launch] = []
    for case in sorted(cases, key=lambda one: -len(one.choice)):
        if not any(one.takes(case) for one in found):
            found.append(Launch(case))
    return found


@dataclass
class Sent:
    """What was sent in one call.

    Attributes
    ----------
    pairs : messages and bytes of each pair
    sizes : messages by source, destination and bin of their size
    """

    pairs: Pairs
    sizes: dict[tuple[int, int, int], int]

    @classmethod
    def of(cls, size: int, rows: np.ndarray) -> Sent:
        """Add up rows of source, destination, bin, messages and bytes."""
        sizes: Counter[tuple[int, int, int]] = Counter()
        for source, destination, bin, messages, _ in rows.tolist():
            sizes[source, destination, bin] += messages
        return cls(Pairs.of(size, *rows[:, (0, 1, 3, 4)].T), dict(sizes))

    @classmethod
    def by(cls, one: Algorithm | None, call: Call) -> Sent:
        """Return what an algorithm sends."""
        rows = [NONE]
        for step in one.steps(call) if one is not None else ():
            bins = np.frexp(step.bytes.astype(np.float64))[1].astype(np.int64)
            columns = step.source, step.destination, bins, np.ones(len(bins), np.int64), step.bytes
            rows.append(np.stack(columns, axis=1))
        return cls.of(call.size, np.concatenate(rows))


NONE = np.zeros((0, 5), np.int64)


def cases(library: Library) -> Iterator[Case]:
    """Yield all cases to measure."""
    for collective, numbers in _numbers(library).items():
        for number in numbers:
            told = _told(collective, number)
            if (collective, number) in _TWO_RANKS:
                yield Case(collective, number, (0,) if collective == "barrier" else (0, 5, 1000), ranks=2)
            elif collective == "barrier":
                yield Case(collective, number, (0,))
            else:
                yield Case(collective, number, (5, 1000), told=told)
                yield Case(collective, number, (0,), told=told, ranks=9)
    for number in (2, 3, 4, 5, 6, 7):
        yield Case("bcast", number, (5000,), {"segment": 512})
    for number in (2, 3, 4, 5, 6):
        yield Case("reduce", number, (5000,), {"segment": 512})
    yield Case("bcast", 4, (1000,), {"segment": 600}, ranks=9)
    yield Case("bcast", 2, (1000,), {"fanout": 7})
    yield Case("reduce", 2, (1000,), {"fanout": 2})
    yield Case("bcast", 7, (1000,), {"radix": 3})
    yield Case("allreduce", 5, (5, 1000, 20000), {"segment": 100})
    yield Case("gather", 3, (5000,), {"segment": 512})
    for collective, numbers in _numbers(library).items():
        if collective.endswith(("v", "w")) or collective == "reduce_scatter":
            for number in numbers:
                if (collective, number) not in _TWO_RANKS:
                    yield Case(collective, number, (-7,), told=_told(collective, number), ranks=17)


_TWO_RANKS = {("barrier", 5), ("allgather", 6), ("allgatherv", 5), ("alltoall", 5)}


def _numbers(library: Library) -> dict[str, list[int]]:
    """Return the numbers each collective's algorithms have; 0 for those coll_tuned has no choice for."""
    made_of_others = {
        "allreduce": 2,
        "allgather": 1,
        "allgatherv": 1,
        "reduce_scatter": 1,
        "reduce_scatter_block": 1,
    }
    found: dict[str, list[int]] = {}
    for collective in COLLECTIVES:
        numbers = {one.openmpi for one in algorithms(collective) if one.openmpi}
        if collective in made_of_others:
            numbers.add(made_of_others[collective])
        if library.release.startswith("4."):
            numbers -= {
                number for number in numbers if (collective, number) in (("allgather", 7), ("allgatherv", 6))
            }
        found[collective] = sorted(numbers) or [0]
    return found


def _told(collective: str, number: int) -> dict[str, int]:
    """Return trees that differ from each other for the collectives that an algorithm is made of."""
    parts = openmpi.PARTS.get((collective, number), ())
    choice = {"reduce": 5, "bcast": 6, "gather": 2, "scatter": 2}
    return {part: choice[part] for part in parts if part in choice}


def libraries() -> list[Library]:
    """Return the Open MPIs that are here."""
    common = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "OMPI_MCA_hwloc_base_binding_policy": "none",
    }
    found: list[tuple[str, tuple[str, ...], str, dict[str, str]]] = []
    if subprocess.run(["which", "mpirun.openmpi"], capture_output=True).returncode == 0:
        found.append(("openmpi", ("mpicc.openmpi",), "mpirun.openmpi", {"OMPI_MCA_btl": "self,vader"}))
    wheel = ROOT / "build" / "mpis" / "openmpi5"
    if (wheel / "bin" / "mpirun").exists():
        lib = wheel / "lib"
        compiler = ("gcc", f"-I{wheel}/include", f"-L{lib}", f"-Wl,-rpath,{lib}", "-lmpi")
        found.append(("openmpi5", compiler, str(wheel / "bin" / "mpirun"), {"OMPI_MCA_btl": "self,sm", "LD_LIBRARY_PATH": str(lib)}))  # fmt: skip
    result = []
    for name, command, launcher, more in found:
        environment = {**os.environ, **common, **more}
        environment.pop("OMPI_MCA_pml", None)  # naming one would leave the monitoring component out
        said = subprocess.run([launcher, "--version"], capture_output=True, text=True, env=environment).stdout
        result.append(Library(name, said.split("\n")[0].split()[-1], command, (launcher,), environment))
    return result


def program(library: Library) -> Path:
    """Compile the program that calls the collectives."""
    binary = BUILD / library.name / "collectives"
    source = ROOT / "bench" / "collectives.c"
    if not binary.exists() or binary.stat().st_mtime < source.stat().st_mtime:
        binary.parent.mkdir(parents=True, exist_ok=True)
        compiler, *flags = library.compiler
        subprocess.run(
            [compiler, "-O1", "-Wall", "-rdynamic", "-o", binary, source, *flags, "-ldl"], check=True
        )
    return binary


def run(library: Library, launch: Launch, again: bool) -> Path:
    """Return the folder with what a run has measured: of the last time, unless it is to be measured again."""
    told = [*launch.options(), *launch.jobs()]
    kept = BUILD / library.name / hashlib.sha256("\n".join(told).encode()).hexdigest()[:12]
    if kept.exists() and not again:
        return kept
    place = kept.with_suffix(".now")
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    command = [
        *library.launcher,
        *("-n", str(launch.ranks)),
        *("--mca", "coll", "monitoring,tuned,basic,libnbc,self,inter,sync"),
        *("--mca", "pml_monitoring_enable", "2"),
        *("--mca", "pml_monitoring_enable_output", "3"),
        *("--mca", "pml_monitoring_filename", f"{place}/stock"),
        *launch.options(),
        str(RUNNER),
        str(program(library)),
        str(place),
        *launch.jobs(),
    ]
    environment = {k: v for k, v in library.environment.items() if not k.startswith("COMMLENS_")}
    environment |= {"COMMLENS_MATRIX": "all", "COMMLENS_OUTPUT": f"{place}/profile.db"}
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=1200
    )
    (place / "said").write_text(" ".join(command) + "\n" + done.stdout + done.stderr)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout[-500:]}{done.stderr[-1500:]}")
    shutil.rmtree(kept, ignore_errors=True)
    place.rename(kept)
    return kept


def stock(place: Path, ranks: int) -> dict[Where, Sent]:
    """Read what Open MPI's own monitoring component has counted."""
    pairs: dict[Where, list[tuple[int, int, int, int]]] = {}
    sizes: dict[Where, dict[tuple[int, int, int], int]] = {}
    for rank in range(ranks):
        for line in (place / str(rank)).read_text().splitlines():
            collective, *words = line.split()
            size, block, root, peer, messages, nbytes = map(int, words[:6])
            where = (collective, size, block, root)
            pairs.setdefault(where, []).append((rank, peer, messages, nbytes))
            bins = sizes.setdefault(where, {})
            for word in words[6:]:
                bin, _, number = word.partition(":")
                bins[rank, peer, int(bin)] = int(number)
    return {
        where: Sent(Pairs.of(where[1], *np.array(rows, np.int64).T), sizes[where])
        for where, rows in pairs.items()
    }


@dataclass(frozen=True)
class Answer:
    """What `commlens algorithms` says of calls, and which roots they had; those with the same answer are one line."""

    line: Line
    roots: Counter[int]


def profiled(connection: sqlite3.Connection) -> tuple[dict[Where, Sent], dict[Where, Answer]]:
    """Read what commlens has counted, and what `commlens algorithms` makes of it.

    Raises
    ------
    RuntimeError
        Something is in the profile that does not belong to a call of collectives.c.
    """
    told = dict(connection.execute("SELECT key, value FROM meta"))
    if told["inside"] != "measured":
        raise RuntimeError(f"messages inside collectives: {told['inside']}")
    names = {int(id): name for id, name in connection.execute("SELECT id, COALESCE(user_name, '') FROM comm")}
    ops = {int(id): collective_of(name) for id, name in connection.execute("SELECT id, name FROM op")}

    def where(comm: int, collective: str | None) -> Where:
        words = names[comm].split()
        if len(words) != 3 or collective is None:
            raise RuntimeError(f"messages of {collective} on a communicator '{names[comm]}'")
        size, block, root = map(int, words)
        return collective, size, block, root

    rows: dict[Where, list[tuple[int, ...]]] = {}
    for comm, op, peers, *row in connection.execute(
        "SELECT comm, op, peers, rank, peer, bin, SUM(messages), SUM(bytes) FROM peer JOIN flow ON flow.id = flow "
        "WHERE flow.name = 'collective' GROUP BY comm, op, peers, rank, peer, bin"
    ):
        if peers != 1 or row[1] is None:
            raise RuntimeError("a peer is not known")
        rows.setdefault(where(comm, ops[op]), []).append(tuple(row))
    sent = {one: Sent.of(one[1], np.array(found, np.int64)) for one, found in rows.items()}
    answers: dict[Where, Answer] = {}
    for line in recognise(connection).lines:
        calls = [where(comm.id, line.collective) for comm in line.where]
        answers |= dict.fromkeys(calls, Answer(line, Counter(root for *_, root in calls)))
    return sent, answers


@dataclass(frozen=True)
class Difference:
    """A call whose messages are not those of the schedule."""

    where: Where
    messages: tuple[int, int]
    nbytes: tuple[int, int]


@dataclass
class Result:
    """The result of a case.

    Attributes
    ----------
    ran : what runs, and on which communicator sizes with how many bytes
    calls : how many were compared
    different : those that differ from the schedule: by the component, and in the profile
    named : calls that `commlens algorithms` names as what runs: alone; among others that send the same; as another one
        that sends the same; not
    others : communicator sizes of the last two, and what is said there
    """

    case: Case
    ran: dict[str, set[tuple[int, int]]] = field(default_factory=dict)
    calls: int = 0
    different: dict[str, list[Difference]] = field(default_factory=lambda: {"component": [], "profile": []})
    named: Counter[str] = field(default_factory=Counter)
    others: dict[str, set[int]] = field(default_factory=dict)

    @property
    def bad(self) -> int:
        """Calls that differ or are not named."""
        return sum(map(len, self.different.values())) + self.named["not"]


def compare(
    library: Library,
    case: Case,
    component: dict[Where, Sent],
    profile: dict[Where, Sent],
    answers: dict[Where, Answer],
) -> Result:
    """Compare what was measured with the schedules, and what was named with what ran."""
    result = Result(case)
    major = int(library.release.partition(".")[0])
    for where in case.calls():
        _, size, block, root = where
        call = case.call(size, block, root)
        one = openmpi.runs(case.collective, case.number, call, case.told, major)
        expected = Sent.by(one, call)
        result.calls += 1
        result.ran.setdefault(one.name if one is not None else "", set()).add((size, block))
        for source, found in (("component", component), ("profile", profile)):
            got = found.get(where, Sent.of(size, NONE))
            if got != expected:
                messages, nbytes = (
                    (int(getattr(got.pairs, what).sum()), int(getattr(expected.pairs, what).sum()))
                    for what in ("messages", "bytes")
                )
                result.different[source].append(Difference(where, messages, nbytes))
        how, said = _naming(one if expected.sizes else None, call, answers.get(where))
        result.named[how] += 1
        if how in ("other", "not"):
            result.others.setdefault(said, set()).add(size)
    return result


def _naming(one: Algorithm | None, call: Call, answer: Answer | None) -> tuple[str, str]:
    """Return how a call was named, with the verdict."""
    if answer is None:
        return "not", "missing"
    line = answer.line
    if one is None:
        return ("alone" if line.verdict == SENDS_NOTHING else "not"), line.verdict
    if line.collective in ROOTED and line.best is not None and line.roots != answer.roots:
        return "not", f"{line.verdict}, with roots {sorted(line.roots)}"
    names = {candidate.algorithm.name for candidate in line.match.best}
    if any(_is(candidate, one, call) for candidate in line.match.best):
        return ("alone" if len(names) == 1 else "among"), line.verdict
    # Under another name only where that is as true.
    return ("other" if names and line.fit == 1 and one.name not in names else "not"), line.verdict


def _is(candidate: Candidate, one: Algorithm, call: Call) -> bool:
    """Whether it is this algorithm, with its parameters as far as they are told."""
    said = candidate.parameters
    least, most = said.get("segment", (call.segment, call.segment))
    return (
        candidate.algorithm.name == one.name
        and least <= call.segment <= most
        and all(said.get(name, getattr(call, name)) == getattr(call, name) for name in ("fanout", "radix"))
    )


def listed(numbers: Iterable[int]) -> str:
    """Return numbers as ranges: "3, 5–7"."""
    rows: list[list[int]] = []
    for number in sorted(numbers):
        if rows and rows[-1][-1] == number - 1:
            rows[-1].append(number)
        else:
            rows.append([number])
    return ", ".join(f"{row[0]}–{row[-1]}" if len(row) > 1 else str(row[0]) for row in rows)


def _with(case: Case) -> str:
    words = [f"{name} {value}" for name, value in case.parameters.items()]
    words += [f"{collective} {number}" for collective, number in case.told.items()]
    return ", ".join(words) or "–"


def _sizes(case: Case) -> str:
    return ", ".join("–" if case.collective == "barrier" else _bytes(block) for block in case.blocks)


def _bytes(block: int) -> str:
    return f"{block:,}" if block >= 0 else f"0, {-block}, {-2 * block} in turns"


def _outcome(result: Result, source: str) -> str:
    different = result.different[source]
    if not different:
        return f"equal, {result.calls}"
    first = different[0]
    _, size, block, root = first.where
    return (
        f"**{len(different)} of {result.calls} differ**, such as {size} ranks, {block} bytes, root {root}: "
        f"{first.messages[0]} messages and {first.nbytes[0]} bytes, not {first.messages[1]} and {first.nbytes[1]}"
    )


def _ran(result: Result) -> str:
    """Return what ran, with the ranks and bytes if it was not the same everywhere."""
    said = []
    for name, where in result.ran.items():
        blocks = sorted({block for _, block in where})
        bytes_said = (
            f" with {', '.join(map(_bytes, blocks))} bytes" if blocks != sorted(result.case.blocks) else ""
        )
        ranks = f": {listed({size for size, _ in where})} ranks{bytes_said}" if len(result.ran) > 1 else ""
        said.append((name or "nothing is sent") + ranks)
    return "; ".join(said)


def _named(result: Result) -> str:
    words = {"alone": "alone", "among": "with others", "other": "as another", "not": "**not**"}
    said = ", ".join(f"{result.named[how]} {word}" for how, word in words.items() if result.named[how])
    for verdict, sizes in result.others.items():
        said += f"; {listed(sizes)} ranks: {verdict}"
    return said


def page(results: dict[str, list[Result]]) -> list[str]:
    """Return the tables."""
    releases = list(results)
    heads = [f"Open MPI {one}, {source}" for one in releases for source in SOURCES]
    lines = [
        "## Measured",
        "",
        "Calls are counted that were compared, over communicator sizes, bytes and roots.",
        "",
        f"| collective | number | with | ranks | bytes | what runs | {' | '.join(heads)} | named |",
        "|---|" + "---|" * (6 + len(heads)),
    ]
    cells: dict[tuple[str, int, str, str, str], dict[str, Result]] = {}
    for release, all_of in results.items():
        for result in all_of:
            case = result.case
            ranks = f"2–{case.ranks}" if case.ranks > 2 else "2"
            key = (case.collective, case.number, _with(case), ranks, _sizes(case))
            cells.setdefault(key, {})[release] = result
    silent = 0
    for (collective, number, parameters, ranks, nbytes), found in cells.items():
        first = next(iter(found.values()))
        if all(list(one.ran) == [""] and not one.bad for one in found.values()):
            silent += sum(one.calls for one in found.values())
            continue
        outcomes = [
            _outcome(found[one], source) if one in found else "not there"
            for one in releases
            for source in SOURCES
        ]
        named = _named(first)
        for release, other in found.items():
            named += f"; {release}: {_named(other)}" if _named(other) != _named(first) else ""
        ran = _ran(first)
        for release, other in found.items():
            ran += f"; {release}: {_ran(other)}" if other.ran.keys() != first.ran.keys() else ""
        number_said = str(number) if number else "–"
        lines.append(
            f"| {collective} | {number_said} | {parameters} | {ranks} | {nbytes} | {ran} | {' | '.join(outcomes)} | {named} |"
        )
    lines += [
        "",
        f"Not in the table are {silent:,} calls without any bytes, of each algorithm on 2 to 9 ranks: nothing was to be sent, "
        "and nothing was.",
        "",
        "## All algorithms",
        "",
        "| collective | algorithm | Open MPI | MPICH | parameters | described in |",
        "|---|---|---|---|---|---|",
    ]
    for one in ALGORITHMS:
        uses = ", ".join(one.uses) or "–"
        lines.append(
            f"| {one.collective} | {one.name} | {one.openmpi or '–'} | {one.mpich or '–'} | {uses} | {one.source} |"
        )
    return lines


def main() -> None:
    """Measure what has not been, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--again", action="store_true", help="measure also what has been measured")
    parser.add_argument("--only", default="", help="one collective, and no page")
    options = parser.parse_args()
    results: dict[str, list[Result]] = {}
    for library in libraries():
        wanted = [case for case in cases(library) if options.only in ("", case.collective)]
        found: dict[int, Result] = {}
        for launch in launches(wanted):
            place = run(library, launch, options.again)
            component = stock(place, launch.ranks)
            with open_profile(str(place / "profile.db")) as connection:
                profile, answers = profiled(connection)
            for case in launch.cases:
                result = compare(library, case, component, profile, answers)
                print(
                    f"Open MPI {library.release} {case.collective} {case.number} ({_with(case)}; {_sizes(case)} bytes): "
                    + "; ".join(f"{source} {_outcome(result, source)}" for source in SOURCES)
                    + f"; named: {_named(result)}",
                    flush=True,
                )
                found[wanted.index(case)] = result
            called = {where for case in launch.cases for where in case.calls()}
            stray = (component.keys() | profile.keys() | answers.keys()) - called
            if stray:
                raise RuntimeError(f"not called: {sorted(stray)[:3]}")
        results[library.release] = [found[number] for number in sorted(found)]
    bad = sum(result.bad for all_of in results.values() for result in all_of)
    if not options.only:
        kept = PAGE.read_text().split(MARK)[0]
        PAGE.write_text("\n".join([kept + MARK, "", *page(results), ""]))
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
