# SPDX-License-Identifier: Apache-2.0
"""Does Open MPI send what the library of algorithms says?  Writes docs/algorithms.md.

Every collective is called with every algorithm that coll_tuned can be told to use, on communicators of 2 to 33 ranks.
What was sent inside is counted by Open MPI's own monitoring component, and compared with the schedule, pair by pair:
messages and bytes.
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

from commlens.algorithms import matching, openmpi  # noqa: E402
from commlens.algorithms.matching import Measured  # noqa: E402
from commlens.algorithms.pattern import Pairs  # noqa: E402
from commlens.algorithms.registry import ALGORITHMS, COLLECTIVES, ROOTED, algorithms  # noqa: E402
from commlens.algorithms.schedule import Call  # noqa: E402

PAGE = ROOT / "docs" / "algorithms.md"
MARK = "<!-- written by bench/algorithms.py; DO NOT EDIT below -->"
BUILD = ROOT / "build" / "algorithms"
MOST = 33


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
    """One algorithm with parameters: one launch.

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

    def options(self) -> list[str]:
        """Return what coll_tuned is told."""
        said = ["--mca", "coll_tuned_use_dynamic_rules", "1"]
        for collective, number in {self.collective: self.number, **self.told}.items():
            if number:
                said += ["--mca", f"coll_tuned_{collective}_algorithm", str(number)]
        words = {"segment": "segmentsize", "fanout": "chain_fanout", "radix": "knomial_radix"}
        for name, value in self.parameters.items():
            said += ["--mca", f"coll_tuned_{self.collective}_algorithm_{words[name]}", str(value)]
        return said

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


Patterns = dict[tuple[int, int, int], Measured]
"""By communicator size, block and root."""
Source = Callable[[Library, Case], Patterns]
"""Runs a case and says what was sent inside."""


def cases(library: Library) -> Iterator[Case]:
    """Yield all there is to measure."""
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
    found = []
    if subprocess.run(["which", "mpirun.openmpi"], capture_output=True).returncode == 0:
        found.append(("openmpi", ("mpicc.openmpi",), "mpirun.openmpi", {"OMPI_MCA_btl": "self,vader"}))
    wheel = ROOT / "build" / "mpis" / "openmpi5"
    if (wheel / "bin" / "mpirun").exists():
        lib = wheel / "lib"
        compiler = ("gcc", f"-I{wheel}/include", f"-L{lib}", f"-Wl,-rpath,{lib}", "-lmpi")
        found.append(("openmpi5", compiler, str(wheel / "bin" / "mpirun"), {"OMPI_MCA_btl": "self,sm", "LD_LIBRARY_PATH": str(lib)}))  # fmt: skip
    result = []
    for name, compiler, launcher, more in found:
        environment = {**os.environ, **common, **more}
        environment.pop("OMPI_MCA_pml", None)  # naming one would leave the monitoring component out
        said = subprocess.run([launcher, "--version"], capture_output=True, text=True, env=environment).stdout
        result.append(Library(name, said.split("\n")[0].split()[-1], compiler, (launcher,), environment))
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


def stock(library: Library, case: Case) -> Patterns:
    """Measure with Open MPI's own monitoring component."""
    with tempfile.TemporaryDirectory(prefix="commlens-algorithms-") as place:
        command = [
            *library.launcher,
            *("-n", str(case.ranks)),
            *("--mca", "coll", "monitoring,tuned,basic,libnbc,self,inter,sync"),
            *("--mca", "pml_monitoring_enable", "2"),
            *("--mca", "pml_monitoring_enable_output", "3"),
            *("--mca", "pml_monitoring_filename", f"{place}/stock"),
            *case.options(),
            str(program(library)),
            case.collective,
            "2" if case.collective in ROOTED else "1",
            place,
            *map(str, case.blocks),
        ]
        done = subprocess.run(
            command,
            env=library.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stdout[-500:]}{done.stderr[-1500:]}")
        rows: dict[tuple[int, int, int], list[tuple[int, int, int, int]]] = {}
        sizes: dict[tuple[int, int, int], np.ndarray] = {}
        for rank in range(case.ranks):
            for line in (Path(place) / str(rank)).read_text().splitlines():
                words = line.split()
                size, block, root, peer, messages, nbytes = map(int, words[:6])
                key = (size, block, root)
                rows.setdefault(key, []).append((rank, peer, messages, nbytes))
                bins = sizes.setdefault(key, np.zeros(66, np.int64))
                for word in words[6:]:
                    place_in, _, number = word.partition(":")
                    bins[int(place_in)] += int(number)
        return {
            key: Measured(
                case.collective,
                1,
                Pairs.of(key[0], *np.array(found, np.int64).T),
                block=key[1] if key[1] >= 0 else None,
                sizes=sizes[key],
            )
            for key, found in rows.items()
        }


@dataclass(frozen=True)
class Difference:
    """A call whose messages are not those of the schedule."""

    size: int
    block: int
    root: int
    messages: tuple[int, int]
    nbytes: tuple[int, int]


@dataclass
class Result:
    """What came of a case: what ran where, what was equal, what it was recognised as."""

    case: Case
    ran: dict[str, set[tuple[int, int]]] = field(default_factory=dict)
    calls: int = 0
    different: list[Difference] = field(default_factory=list)
    recognised: int = 0
    alone: int = 0
    not_recognised: list[tuple[int, int, int, str]] = field(default_factory=list)


_seen: dict[tuple[object, ...], matching.Match] = {}


def _recognised(measured: Measured) -> matching.Match:
    """Return what a pattern is recognised as; the libraries mostly send the same."""
    pairs = measured.pairs
    key = (measured.collective, pairs.size, measured.block, *(one.tobytes() for one in (pairs.pair, pairs.messages, pairs.bytes)))  # fmt: skip
    if key not in _seen:
        _seen[key] = matching.match(measured)
    return _seen[key]


def compare(library: Library, case: Case, patterns: Patterns) -> Result:
    """Compare what was measured with the schedules, and let it be recognised."""
    result = Result(case)
    major = int(library.release.partition(".")[0])
    for size in range(2, case.ranks + 1):
        roots = sorted({0, size // 2}) if case.collective in ROOTED else [0]
        for block in case.blocks:
            for root in roots:
                call = case.call(size, block, root)
                one = openmpi.runs(case.collective, case.number, call, case.told, major)
                expected = Pairs.of_steps(size, one.steps(call) if one is not None else ())
                empty = np.zeros(0, np.int64)
                nothing = Measured(
                    case.collective, 1, Pairs.of(size, empty, empty, empty, empty), block=block
                )
                measured = patterns.get((size, block, root), nothing)
                result.calls += 1
                result.ran.setdefault(one.name if one is not None else "", set()).add((size, block))
                if measured.pairs != expected:
                    got, wanted = measured.pairs, expected
                    result.different.append(
                        Difference(
                            size,
                            block,
                            root,
                            (int(got.messages.sum()), int(wanted.messages.sum())),
                            (int(got.bytes.sum()), int(wanted.bytes.sum())),
                        )
                    )
                if one is not None and block == case.blocks[-1]:
                    found = _recognised(measured)
                    if any(candidate.algorithm.name == one.name for candidate in found.best):
                        result.recognised += 1
                        result.alone += len({candidate.algorithm.name for candidate in found.best}) == 1
                    else:
                        result.not_recognised.append((size, block, root, found.verdict))
    return result


def load(library: Library, case: Case, measure: Source, again: bool) -> Patterns:
    """Return what a case sent; from the last time, unless it is to be measured again."""
    words = [
        case.collective,
        str(case.number),
        str(case.ranks),
        *map(str, case.blocks),
        *map(str, case.parameters.items()),
    ]
    kept = BUILD / library.name / ("-".join(words).translate(str.maketrans("(), '", "_____")) + ".pickle")
    if again or not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(pickle.dumps(measure(library, case)))
    found: Patterns = pickle.loads(kept.read_bytes())
    return found


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


def _outcome(result: Result) -> str:
    if not result.different:
        return f"equal, {result.calls}"
    first = result.different[0]
    return (
        f"**{len(result.different)} of {result.calls} differ**, such as {first.size} ranks, {first.block} bytes, "
        f"root {first.root}: {first.messages[0]} messages and {first.nbytes[0]} bytes, not {first.messages[1]} and "
        f"{first.nbytes[1]}"
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
    if not result.recognised and not result.not_recognised:
        return "–"
    total = result.recognised + len(result.not_recognised)
    said = f"{result.recognised} of {total}, {result.alone} as this alone"
    if result.not_recognised:
        sizes = {size for size, *_ in result.not_recognised}
        said += f"; {listed(sizes)} ranks: {result.not_recognised[0][3]}"
    return said


def page(results: dict[str, list[Result]]) -> list[str]:
    """Return the tables."""
    releases = list(results)
    lines = [
        "## Measured",
        "",
        "Calls are counted that were compared, over communicator sizes, bytes and roots.",
        "",
        f"| collective | number | with | ranks | bytes | what runs | {' | '.join(f'Open MPI {one}' for one in releases)} | named |",
        "|---|" + "---|" * (6 + len(releases)),
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
        if all(list(one.ran) == [""] and not one.different for one in found.values()):
            silent += sum(one.calls for one in found.values())
            continue
        outcomes = [_outcome(found[one]) if one in found else "not there" for one in releases]
        ran = _ran(first)
        for release, other in found.items():
            ran += f"; {release}: {_ran(other)}" if other.ran.keys() != first.ran.keys() else ""
        number_said = str(number) if number else "–"
        lines.append(
            f"| {collective} | {number_said} | {parameters} | {ranks} | {nbytes} | {ran} | {' | '.join(outcomes)} | {_named(first)} |"
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
    bad = 0
    for library in libraries():
        for case in cases(library):
            if options.only not in ("", case.collective):
                continue
            result = compare(library, case, load(library, case, stock, options.again))
            bad += len(result.different)
            print(
                f"Open MPI {library.release} {case.collective} {case.number} ({_with(case)}; {_sizes(case)} bytes): "
                f"{_outcome(result)}; named: {_named(result)}",
                flush=True,
            )
            results.setdefault(library.release, []).append(result)
    if not options.only:
        kept = PAGE.read_text().split(MARK)[0]
        PAGE.write_text("\n".join([kept + MARK, "", *page(results), ""]))
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
