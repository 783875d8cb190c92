# SPDX-License-Identifier: Apache-2.0
"""Part "correct": calls, bytes and communicators of each tool, compared with the model."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.apps import PROGRAMS
from bench.apps import build as build_app
from bench.peers import model, outputs, places, runs
from bench.peers.model import Truth
from bench.peers.outputs import OutputError, Row
from bench.peers.results import Budget, Store
from bench.peers.tools import Configuration
from fuzz.files import FILE_SIZE
from fuzz.program import Program, source

PART = "correct"
RANKS = 4
LISTING1 = "Listing 1"
RANDOM = "random"
SAID = 8
"""Differences that are kept of a run."""
ONLY_LOOKS = re.compile(
    r"MPI_(Group|Type|Info|Op|Errhandler|Attr|Keyval|Status|Get|Pack|Unpack|Address|Alloc_mem|Free_mem|Wtick|Dims|Topo|"
    r"Graph_(get|map|neigh|dims)|Graphdims|Cart_(coords|shift|rank|get|map)|Cartdim|Dist_graph_neighbors|Is_|Query|Init|"
    r"Comm_(group|remote|test|compare|set|get|call|create_keyval|free_keyval|create_err|delete)|"
    r"Win_(get|set|call|create_keyval|free_keyval|create_err|delete|sync)|File_(get|set|call|create_err|delete)|"
    r"Session|Add_error|Error|Register|Grequest|Request_get)"
)
"""Procedures that neither communicate, wait, nor make or free a communicator, window or file."""


def communicates(op: str) -> bool:
    """Return whether a procedure communicates, waits, or makes or frees a communicator, window or file."""
    return not ONLY_LOOKS.match(op) and op not in model.IGNORED


@dataclass(frozen=True)
class Case:
    """A program: its name, and how it is run."""

    name: str
    executable: Path
    ranks: int
    arguments: tuple[str, ...] = ()
    program: Program | None = None


def compare(truth: Truth, rows: Sequence[Row]) -> dict[str, Any]:
    """Return how many procedures have the calls and bytes of the model, how many communicators, and what differs."""
    calls: dict[str, int] = defaultdict(int)
    moved: dict[str, list[int]] = {}
    comms: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    is_local = any(row.is_local for row in rows)
    for row in rows:
        op = row.op.removesuffix(outputs.ON_COMM)
        if row.comm is not None:
            comms[row.comm][op] += row.calls
        if op != row.op:
            continue
        calls[row.op] += row.calls
        if row.moved is not None:
            before = moved.get(row.op, [0] * len(row.moved))
            moved[row.op] = [a + b for a, b in zip(before, row.moved)]
    expected = {op: volume for op, volume in model.mapping(truth).items() if communicates(op)}
    call_kinds = {op: kind(calls.get(op, 0), [volume.calls]) for op, volume in expected.items()}
    # A tool that knows the plain form only has the right number of those.
    plain_only = {
        op
        for op in expected
        if truth.large.get(op) and calls.get(op, 0) == expected[op].calls - truth.large[op]
    }
    call_kinds |= dict.fromkeys(plain_only, ABSENT)
    sized = [op for op, volume in expected.items() if truth.knows_bytes and any(volume.readings().values())]
    byte_kinds = {
        op: ABSENT if op in plain_only else kind_of_bytes(expected[op], moved.get(op)) for op in sized
    }
    said = [
        f"{op}: {calls.get(op, 0):,} calls of {expected[op].calls:,}"
        for op, found in sorted(call_kinds.items())
        if found != RIGHT
    ]
    said += [
        f"{op}: {' and '.join(f'{n:,}' for n in moved[op])} bytes, {numbers(expected[op])}"
        for op, found in sorted(byte_kinds.items())
        if found == WRONG and call_kinds[op] == RIGHT
    ]
    # A procedure for which the tool tells no communicator at all is not held against each communicator.
    attributed = {op for of in comms.values() for op in of}
    looked_at = {op for op, found in call_kinds.items() if found == RIGHT} & attributed
    told, all_comms = matching(truth.local if is_local else truth.comms, comms, looked_at)
    return {
        "calls": shares(call_kinds.values()),
        "missed": sum(max(0, volume.calls - calls.get(op, 0)) for op, volume in expected.items()),
        "all_calls": sum(volume.calls for volume in expected.values()),
        "bytes": shares(byte_kinds.values()),
        "comms": [told, all_comms - told] if comms else None,
        "n_comms": all_comms,
        "wrong_calls": sorted(op for op, found in call_kinds.items() if found == WRONG),
        "wrong_bytes": sorted(op for op, found in byte_kinds.items() if found == WRONG),
        "missing": sorted(
            f"{op}_c" if calls.get(op) else op for op, found in call_kinds.items() if found == ABSENT
        ),
        "said": said[:SAID],
        "more": max(0, len(said) - SAID),
    }


RIGHT, WRONG, ABSENT = "right", "wrong", "absent"


def kind(found: int, expected: Sequence[int]) -> str:
    """Return whether a number is right, wrong, or absent, which is 0."""
    return RIGHT if found in expected else WRONG if found else ABSENT


def shares(kinds: Iterable[str]) -> list[int]:
    """Return how many are right, wrong and absent."""
    count = Counter(kinds)
    return [count[RIGHT], count[WRONG], count[ABSENT]]


def kind_of_bytes(volume: model.Volume, moved: Sequence[int] | None) -> str:
    """Return whether a tool's bytes are right: two numbers must be sent and received, one may have any of the readings."""
    if moved is None:
        return ABSENT
    if len(moved) == 2:
        return RIGHT if list(moved) == [volume.sent, volume.received] else WRONG
    return kind(moved[0], list(volume.readings().values()))


def numbers(volume: model.Volume) -> str:
    """Return the bytes of the model as text."""
    return ", ".join(f"{n:,} {name}" for name, n in volume.readings().items())


def matching(
    expected: Mapping[str, Mapping[str, int]], found: Mapping[str, Mapping[str, int]], ops: set[str]
) -> tuple[int, int]:
    """Return how many communicators have in the tool's output exactly the calls of the model, and how many there are.

    Names differ from tool to tool, so communicators are equal if their calls by procedure are. Only procedures whose
    total is right count: a procedure that the tool does not know is not also held against its communicators.
    """

    def signatures(comms: Mapping[str, Mapping[str, int]]) -> Counter[frozenset[tuple[str, int]]]:
        each = (
            frozenset((op, n) for op, n in calls.items() if op in ops and op in model.ATTRIBUTED)
            for calls in comms.values()
        )
        return Counter(signature for signature in each if signature)

    truth = signatures(expected)
    return sum((truth & signatures(found)).values()), sum(truth.values())


def cases(mpi: str, seeds: Sequence[int]) -> Iterator[Case]:
    """Return the programs for one MPI library, compiled."""
    listing1 = places.ROOT / "tests" / "mpi" / "programs" / "listing1.c"
    yield Case(LISTING1, runs.compiled(listing1, mpi), RANKS)
    for app in PROGRAMS.values():
        yield Case(app.name, build_app(app, mpi), RANKS, tuple(map(str, app.small)))
    mpich = mpi == "mpich"
    programs = [Program(seed, mpich) for seed in seeds]
    folder = places.PROGRAMS / mpi
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"random-{seeds[0]}-{len(seeds)}.c"
    text = source(programs)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
    executable = runs.compiled(path, mpi, "-O0", "-g0", f"-I{places.ROOT / 'fuzz'}", "-pthread", "-ldl")
    for number, program in enumerate(programs):
        yield Case(f"{RANDOM} {program.seed}", executable, program.ranks, (str(number),), program)


def truth_of(case: Case, mpi: str, folder: Path) -> Truth:
    """Return what a run must have; `folder` has the files of the run, where the program is a random one.

    Raises
    ------
    WitnessError
        The witness and the paper differ.
    """
    if case.program is not None:
        # Its requests remember how they ended, so each run has a fresh one.
        return model.of_random(Program(case.program.seed, mpi == "mpich"), folder)
    if case.name == LISTING1:
        return model.of_listing1(case.ranks)
    return witnessed(case, mpi, folder)


TRIES = 3
"""How often a case is run before its failure counts.

With Open MPI 4.1 on a busy machine, a run under the witness crashed once; why is not known.
"""


def witnessed(case: Case, mpi: str, folder: Path) -> Truth:
    """Run a program of bench/apps under the witness, and return what a run must have.

    Raises
    ------
    WitnessError
        The program failed again and again, or the witness and the paper differ.
    """
    witness = runs.compiled(Path(__file__).parent / "witness.c", mpi, "-pthread", shared=True)
    extra = {"LD_PRELOAD": str(witness), "WITNESS": str(folder / "witness")}
    argv: list[str | Path] = [case.executable, *case.arguments]
    failure = ""
    for _ in range(TRIES):
        with runs.run(None, mpi, case.ranks, argv, extra=extra) as ran:
            failure = ran.failure
        if not failure:
            return model.of_app(case.name, case.ranks, map(int, case.arguments), folder.glob("witness.*"))
    raise model.WitnessError(f"{case.name} under the witness: {failure}")


def judge(case: Case, mpi: str, configuration: Configuration | None, scratch: Path) -> dict[str, Any]:
    """Run a program under a tool, or without one, and return what came out.

    A run that fails is repeated: only a failure of all tries is the result.
    """
    result: dict[str, Any] = {}
    for number in range(TRIES):
        folder = scratch / f"work{number}"
        folder.mkdir(parents=True)
        (folder / "in").write_bytes(bytes(FILE_SIZE))
        arguments = [folder, *case.arguments] if case.program else case.arguments
        with runs.run(configuration, mpi, case.ranks, [case.executable, *arguments], 90) as ran:
            result = {"command": ran.command.replace(str(folder), "WORK"), "failure": ran.failure}
            if configuration is None and not ran.failure:
                return result
            if configuration is not None and not ran.failure:
                try:
                    rows = list(outputs.READERS[configuration.peer](ran.out, mpi))
                    return {**result, **compare(truth_of(case, mpi, folder), rows)}
                except OutputError as error:
                    result["failure"] = f"no output: {error}"
        if result["failure"].startswith(runs.HUNG):
            break
    return result


def measure(store: Store, mpis: Sequence[str], seeds: Sequence[int], budget: Budget, scratch: Path) -> None:
    """Run what has not been run yet."""
    count = 0
    for mpi in mpis:
        tools = [c for c in runs.present(mpi, counts=True) if c.peer in outputs.READERS]
        for case in cases(mpi, seeds):
            # A random program that fails without a tool has met a fault of the MPI library: it says nothing of a tool.
            legs: list[Configuration | None] = [None, *tools]
            for configuration in legs:
                name = "none" if configuration is None else configuration.name
                key = (mpi, name, case.name)
                version = "" if configuration is None else runs.version(configuration, mpi)
                if store.has(key, version) or not budget.allows(30):
                    continue
                alone = store.get(mpi, "none", case.name)
                if configuration is not None and alone is not None and alone["failure"]:
                    continue
                count += 1
                try:
                    result = judge(case, mpi, configuration, scratch / f"{count}")
                except model.WitnessError as error:
                    print(f"correct  {mpi:8} {case.name:14} no model: {error}", flush=True)
                    break
                store.put(key, version, **result)
                verdict = result["failure"] or ", ".join(
                    f"{what} {result[what][0]} of {sum(result[what])}"
                    for what in ("calls", "bytes", "comms")
                    if result.get(what)
                )
                print(f"correct  {mpi:8} {case.name:14} {name:18} {verdict}", flush=True)
