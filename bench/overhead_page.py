# SPDX-License-Identifier: Apache-2.0
"""Writes docs/evidence/overhead.md from the numbers that bench/overhead.py measured.

The words are in overhead_page.md.in, whose links are those of the page.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import json
import math
import re
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "python")]

import numpy as np  # noqa: E402
from bench.apps import MINI, PROGRAMS, STRESS, Program  # noqa: E402

from commlens.overhead.estimate import FEWEST, Cost, Estimate, costs, estimate, whole_rounds  # noqa: E402
from commlens.overhead.legs import BASELINE, COMMLENS  # noqa: E402
from commlens.overhead.measure import Run  # noqa: E402
from commlens.overhead.text import interval, percent  # noqa: E402
from commlens.render.units import bytes_text  # noqa: E402
from commlens.reports.run import PHASES  # noqa: E402

MACHINE, MEMORY = "machine.json", "memory.json"
APPS, CALLS, FINALIZE = "apps.csv", "calls.csv", "finalize.csv"
INSTRUCTIONS = ROOT / "bench" / "instructions.csv"
INTRODUCTION = ROOT / "bench" / "overhead_page.md.in"

ALONE, MINIMAL, LOOK = "alone", "minimal", "rdtsc"
ALLREDUCE, SEND, PROBE = "Allreduce 8 B, self", "Send 8 B to MPI_PROC_NULL", "Iprobe, self"
TRIPLE = "Irecv+Isend+Waitall 8 B, self"
BLOCKING = (ALLREDUCE, SEND)
STOPWATCH_WITHOUT, STOPWATCH_WITH = "without", "with"


@dataclass(frozen=True)
class App(Run):
    """One run of a program with its arguments, under an MPI library."""

    mpi: str = ""
    program: str = ""


@dataclass(frozen=True)
class Call:
    """What a call took in one run of calls.c: ns, the fastest block. tool: ALONE, MINIMAL or COMMLENS."""

    mpi: str
    row: str
    communicators: int
    tool: str
    round: int
    ns: float


@dataclass(frozen=True)
class Phase:
    """What a phase of MPI_Finalize took in one run, on the rank where it took longest.

    what: STOPWATCH_WITHOUT and STOPWATCH_WITH, all of MPI_Finalize by the stopwatch; else as in table overhead.
    """

    mpi: str
    program: str
    round: int
    what: str
    ns: int


Row = TypeVar("Row", App, Call, Phase)


class Data(NamedTuple):
    """All that was measured."""

    machine: Mapping[str, str]
    apps: Sequence[App]
    calls: Sequence[Call]
    finalize: Sequence[Phase]
    memory: Mapping[str, Mapping[str, Any]]  # of an MPI library, the fields of bench/memory.py


def write_rows(path: Path, kind: type[Row], rows: Iterable[Row]) -> None:
    """Write a file of rows in place of the one that is there; a reader sees either whole."""
    new = path.with_suffix(".new")
    with new.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(field.name for field in dataclasses.fields(kind))
        writer.writerows(dataclasses.astuple(row) for row in rows)
    new.replace(path)


def read_rows(path: Path, kind: type[Row]) -> list[Row]:
    """Return the rows of a file that `write_rows` made; none where there is no file."""
    if not path.exists():
        return []
    types = {"int": int, "float": float, "str": str}
    of = {field.name: types[str(field.type)] for field in dataclasses.fields(kind)}
    with path.open(newline="", encoding="utf-8") as file:
        return [kind(**{name: of[name](text) for name, text in row.items()}) for row in csv.DictReader(file)]


def read_json(path: Path) -> dict[str, Any]:
    """Return what a file of JSON has; nothing where there is no file."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write_json(path: Path, what: Mapping[str, Any]) -> None:
    """Write a file of JSON."""
    path.write_text(json.dumps(what, indent=1) + "\n", encoding="utf-8")


def read(folder: Path) -> Data:
    """Return the measurements in a folder."""
    return Data(
        read_json(folder / MACHINE),
        read_rows(folder / APPS, App),
        read_rows(folder / CALLS, Call),
        read_rows(folder / FINALIZE, Phase),
        read_json(folder / MEMORY),
    )


# ---- tables ----


def table(titles: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> list[str]:
    """Return a table of Markdown, its first `left` columns aligned to the left."""
    lines = [f"| {' | '.join(titles)} |", "|" + "---|" * left + "--:|" * (len(titles) - left)]
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows), ""]


def number(value: float, digits: int = 1) -> str:
    """Return a number, or nothing where there is none.

    >>> number(1234.56), number(math.nan)
    ('1,234.6', '')
    """
    return "" if math.isnan(value) else f"{value:,.{digits}f}"


def around(found: Estimate | None, unit: float, digits: int = 1) -> str:
    """Return an estimate with its interval, in units."""
    if found is None:
        return ""
    text = number(found.value / unit, digits)
    if math.isnan(found.low):
        return text
    return f"{text} ({number(found.low / unit, digits)} to {number(found.high / unit, digits)})"


def added_bytes(found: Estimate | None) -> str:
    """Return the text of added bytes."""
    if found is None:
        return ""
    return ("-" if found.value < 0 else "+") + bytes_text(round(abs(found.value)))


def resolved(found: Estimate | None, rounds: int) -> str:
    """Return a short text on whether the difference is significant."""
    if found is None or math.isnan(found.p):
        return f"needs at least {FEWEST} runs"
    if found.is_resolved:
        return f"yes, p = {found.p:.1g}"
    runs = "over 100,000" if found.needed is None else f"about {max(found.needed, rounds + 1):,}"
    return f"no: {runs} runs would"


def program_of(app: App) -> Program:
    """Return the program that a run is of."""
    return PROGRAMS[app.program.split()[0]]


@functools.cache
def _costs(runs: tuple[App, ...]) -> list[Cost]:
    return costs(runs)


def costs_of(
    data: Data, mpi: str, programs: Sequence[Program], tool: str = COMMLENS
) -> list[tuple[str, int, Cost, Cost]]:
    """Return command, whole rounds, and both costs, without and with `tool`, of those of `programs` that were run."""
    found: dict[str, list[App]] = {}
    for app in data.apps:
        if app.mpi == mpi and program_of(app) in programs:
            found.setdefault(app.program, []).append(app)
    result = []
    for command, runs in found.items():
        told = {cost.tool: cost for cost in _costs(tuple(runs))}
        if tool in told:
            result.append((command, len(whole_rounds(runs)), told[BASELINE], told[tool]))
    return result


def mpis_of(data: Data) -> list[str]:
    """Return the MPI libraries with measurements."""
    return list(dict.fromkeys(row.mpi for rows in (data.apps, data.calls, data.finalize) for row in rows))


def programs(data: Data, which: Sequence[Program], name: str) -> list[str]:
    """Return the tables and pictures of a set of programs."""
    lines = []
    for mpi in mpis_of(data):
        found = costs_of(data, mpi, which)
        if not found:
            continue
        rows = [
            (
                f"`{command}`", what or PROGRAMS[command.split()[0]].stresses, number(without.net_ns / 1e9, 2),
                "" if cost.ratio is None else percent(cost.ratio.value), interval(cost.ratio),
                resolved(cost.ratio, rounds), around(cost.hook, 1e6), around(cost.wrap, 1e6),
                bytes_text(round(without.memory_bytes)), added_bytes(cost.memory), bytes_text(round(cost.output_bytes)),
            )
            for what, of in (("", found), ("the same under a minimal wrapper", costs_of(data, mpi, which, MINIMAL)))
            for command, rounds, without, cost in of
        ]  # fmt: skip
        titles = ("program", "stresses, or resembles", "net, s", "added", "95 %", "resolved", "hook, ms added",
                  "wrap, ms added", "memory", "added", "profile")  # fmt: skip
        lines += [f"**{mpi}**", "", f"![{mpi}](overhead/{name}-{mpi}.svg)", "", *table(titles, rows, 2)]
    return lines


# ---- what a call takes ----


def added_to_calls(data: Data) -> dict[tuple[str, str, int, str], Estimate]:
    """Return what a tool adds to a call, by MPI, row, communicators and tool; differences are within rounds."""
    ns = {(c.mpi, c.row, c.communicators, c.tool, c.round): c.ns for c in data.calls}
    differences: dict[tuple[str, str, int, str], list[float]] = {}
    for (mpi, row, communicators, tool, round), took in ns.items():
        alone = ns.get((mpi, row, communicators, ALONE, round))
        if tool != ALONE and alone is not None:
            differences.setdefault((mpi, row, communicators, tool), []).append(took - alone)
    generator = np.random.default_rng(1)
    return {key: estimate(values, generator) for key, values in differences.items()}


def alone(data: Data, mpi: str, row: str, communicators: int | None = None) -> float:
    """Return what a row takes without a tool: the median of the rounds."""
    taken = [
        c.ns
        for c in data.calls
        if (c.mpi, c.row, c.tool) == (mpi, row, ALONE) and communicators in (None, c.communicators)
    ]
    return statistics.median(taken) if taken else math.nan


def calls(data: Data) -> list[str]:
    """Return what a call takes, in nanoseconds."""
    found = added_to_calls(data)
    rows = [
        (
            mpi, row, f"{communicators:,}", number(alone(data, mpi, row, communicators)),
            around(found.get((mpi, row, communicators, MINIMAL)), 1), around(added, 1),
        )
        for (mpi, row, communicators, tool), added in found.items()
        if tool == COMMLENS and row != LOOK
    ]  # fmt: skip
    titles = ("MPI", "call", "communicators", "alone, ns", "a minimal wrapper adds", "commlens adds")
    return table(titles, rows, 2) if rows else []


def read_instructions() -> list[dict[str, str]]:
    """Return the rows of bench/instructions.csv."""
    with INSTRUCTIONS.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def instructions() -> list[str]:
    """Return what a call takes, in instructions."""
    found: dict[tuple[str, str], dict[int, dict[str, str]]] = {}
    for row in read_instructions():
        found.setdefault((row["mpi"], row["call"]), {})[int(row["communicators"])] = row
    sizes = sorted({size for of in found.values() for size in of})
    rows = []
    for (mpi, call), of in found.items():
        added = (of[size]["added"] if size in of else "" for size in sizes)
        first = of[min(of)]
        rows.append((mpi, call, first["alone"], *added, first["matrix_off"]))
    titles = (f"commlens adds, {size:,} communicator{'s' if size > 1 else ''}" for size in sizes)
    return table(("MPI", "call", "alone", *titles, f"{sizes[0]}, COMMLENS_MATRIX=off"), rows, 2)


# ---- targets ----


class Target(NamedTuple):
    """A promised limit: the measured value, and the largest allowed one."""

    what: str
    limit: float
    unit: str
    values: dict[str, float]  # by MPI

    def lines(self) -> list[tuple[str, str, str, str, str]]:
        """Return a line for each MPI library."""
        return [
            (
                self.what, mpi, f"{self.limit:,.0f} {self.unit}", f"{number(value)} {self.unit}",
                "met" if value <= self.limit else f"**not met**, {value / self.limit:.1f} times",
            )
            for mpi, value in self.values.items()
        ]  # fmt: skip


def targets(data: Data) -> list[Target]:
    """Return the promised limits for calls, with the largest estimate for each."""
    found = added_to_calls(data)

    def most(rows: Sequence[str], is_asked: Any) -> dict[str, float]:
        values: dict[str, float] = {}
        for (mpi, row, communicators, tool), added in found.items():
            if tool == COMMLENS and row in rows and is_asked(communicators):
                values[mpi] = max(added.value, values.get(mpi, -math.inf))
        return values

    counted: dict[str, dict[str, float]] = {"blocking": {}, "requests": {}}
    for row in read_instructions():
        if int(row["communicators"]) != 1:
            continue
        of = counted["requests" if "Waitall" in row["call"] else "blocking"]
        of[row["mpi"]] = max(float(row["added"]), of.get(row["mpi"], 0.0))
    return [
        Target(
            "blocking call, 1 and 64 communicators", 30, "ns", most(BLOCKING, lambda n: 0 < n <= 64)
        ),
        Target("blocking call, 2,000 and 4,096 in turn", 60, "ns", most(BLOCKING, lambda n: n > 64)),
        Target("Isend + Irecv + Waitall, 1 and 64 communicators", 120, "ns", most((TRIPLE,), lambda n: n <= 64)),
        Target("blocking call, 1 communicator", 120, "instructions", counted["blocking"]),
        Target(
            "Isend + Irecv + Waitall, 1 communicator: three calls, and 250 for each of two requests", 3 * 120 + 2 * 250,
            "instructions", counted["requests"],
        ),
    ]  # fmt: skip


def promised(data: Data) -> list[str]:
    """Return whether the targets are met."""
    lines = table(
        ("target for the added cost", "MPI", "at most", "measured", ""),
        (line for target in targets(data) for line in target.lines()),
        2,
    )
    look = statistics.median([c.ns for c in data.calls if (c.row, c.tool) == (LOOK, ALONE)] or [math.nan])
    found = added_to_calls(data)
    least = [added.value for (_, row, _, tool), added in found.items() if tool == MINIMAL and row in BLOCKING]
    if not data.calls:
        return lines
    return [
        *lines,
        f"The largest of the rows below counts. The targets in nanoseconds are for a processor on which reading the clock "
        f"(`rdtsc`) takes 10 ns. Here it takes {number(look)} ns, and a wrapper that reads it twice and counts adds "
        f"{number(min(least))} to {number(max(least))} ns to a blocking call.",
        "",
    ]


# ---- communicators, memory, MPI_Finalize ----


def churn(data: Data) -> list[str]:
    """Return what a communicator costs that is made and freed again."""
    rows = []
    for mpi in mpis_of(data):
        for command, _, without, cost in costs_of(data, mpi, [PROGRAMS["comm_churn"]]):
            made = 2 * int(command.split()[1])
            rows.append(
                (mpi, f"{made:,}", number(without.net_ns / made / 1e3, 2), around(cost.net, 1e3 * made, 2))
            )
    titles = ("MPI", "created and freed per rank", "alone, µs each", "commlens adds, µs each")
    return table(titles, rows) if rows else []


def memory(data: Data) -> list[str]:
    """Return what memory is added, as bench/memory.py has measured it."""
    if not data.memory:
        return []
    names = {
        "alone_kib": ("a process after MPI_Init, without commlens", 1024),
        "start_kib": ("added at that time", 1024),
        "peak_kib": ("added to its peak, including MPI_Finalize", 1024),
        "live_bytes": ("added per communicator in use", 1),
        "cell_bytes": ("added per cell", 1),
        "request_bytes": ("added per request in flight", 1),
    }
    rows = [
        (what, *(bytes_text(round(unit * told[name])) for told in data.memory.values()))
        for name, (what, unit) in names.items()
    ]
    lines = table(("", *data.memory), rows)
    steps = list(next(iter(next(iter(data.memory.values()))["churn"].values()))["kib"])
    made = [
        (
            mpi, kind, *(bytes_text(1024 * of["kib"][step]) for step in steps), number(of["alone_ns"] / 1e3, 2),
            "{} ({} to {})".format(*(number(ns / 1e3, 2) for ns in of["ns"])),
            "" if of["instructions"] is None else number(of["instructions"], 0),
        )
        for mpi, told in data.memory.items()
        for kind, of in told["churn"].items()
    ]  # fmt: skip
    titles = ("MPI", "created and freed by", *(f"added after {int(step):,}" for step in steps), "alone, µs each",
              "commlens adds, µs each", "instructions")  # fmt: skip
    return [*lines, *table(titles, made, 2)]


def finalize(data: Data) -> list[str]:
    """Return where the time of MPI_Finalize goes."""
    medians: dict[tuple[str, str, str], float] = {}
    rounds: dict[tuple[str, str], set[int]] = {}
    for phase in data.finalize:
        rounds.setdefault((phase.mpi, phase.program), set()).add(phase.round)
    for mpi, program in rounds:
        of = [p for p in data.finalize if (p.mpi, p.program) == (mpi, program)]
        for what in {p.what for p in of}:
            medians[mpi, program, what] = statistics.median(p.ns for p in of if p.what == what)
    rows = []
    for mpi, program in rounds:
        names = (STOPWATCH_WITHOUT, STOPWATCH_WITH, "wait", *PHASES)
        ns = [medians.get((mpi, program, what), math.nan) for what in names]
        rows.append(
            (mpi, f"`{program}`", *(number(x / 1e6, 2) for x in ns), number(sum(ns[3:]) / 1e6, 2))
        )  # fmt: skip
    titles = ("MPI", "program", "without", "with", "wait", *PHASES, "sum from collect on")
    return table(titles, rows, 2) if rows else []


# ---- the page ----

COLOURS = {"net": "#4c78a8", "hook": "#f2a33a", "wrap": "#b8b8c0"}


def picture(found: Sequence[tuple[str, int, Cost, Cost]], title: str) -> str:
    """Return two charts as SVG: what runs are composed of, without and with commlens; and the net time relative to without."""
    row, left, bar, gap, right, top = 34, 190, 300, 70, 250, 46
    height = top + row * len(found) + 46
    width = left + bar + gap + right + 40
    longest = max(c.net_ns + c.hook_ns + c.wrap_ns for _, _, *both in found for c in both)
    reach = 0.005
    for _, _, _, cost in found:
        if cost.ratio is not None:
            ends = (cost.ratio.low, cost.ratio.high)
            reach = max(reach, abs(cost.ratio.value), *(abs(x) for x in ends if not math.isnan(x)))
    # A round number; what is further out is drawn at the edge.
    power = 10.0 ** math.floor(math.log10(reach))
    reach = min(next(power * step for step in (1, 2, 5, 10) if power * step >= reach), 1.0)
    middle = left + bar + gap + right / 2

    def x(ratio: float) -> float:
        return middle + right / 2 * max(-1.0, min(1.0, ratio / reach))

    def text(x: float, y: float, words: str, more: str = "") -> str:
        return f'<text x="{x:.1f}" y="{y:.1f}"{more}>{words}</text>'

    bottom = top + row * len(found)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        text(left, 18, f"{title}: seconds of a run; above without, below with commlens"),
        text(middle, 36, "net, relative to without; bars: 95 %", ' text-anchor="middle"'),
        f'<path d="M{middle:.1f} {top}V{bottom}" stroke="#b8b8c0"/>',
    ]
    for place, (name, colour) in enumerate(COLOURS.items()):
        parts.append(f'<rect x="{left + 70 * place}" y="26" width="10" height="10" fill="{colour}"/>')
        parts.append(text(left + 70 * place + 14, 35, name))
    for i, (command, _, *both) in enumerate(found):
        y = top + row * i
        parts.append(text(left - 8, y + 18, command, ' text-anchor="end"'))
        for j, cost in enumerate(both):
            at = float(left)
            for part, colour in COLOURS.items():
                wide = bar * max(0.0, getattr(cost, f"{part}_ns")) / longest
                parts.append(
                    f'<rect x="{at:.1f}" y="{y + 4 + 12 * j}" width="{wide:.1f}" height="10" fill="{colour}"/>'
                )
                at += wide
        ratio = both[1].ratio
        if ratio is None:
            continue
        if not math.isnan(ratio.low):
            parts.append(
                f'<path d="M{x(ratio.low):.1f} {y + 15}H{x(ratio.high):.1f}" stroke="#202028" stroke-width="2"/>'
            )
        parts.append(f'<circle cx="{x(ratio.value):.1f}" cy="{y + 15}" r="4" fill="#202028"/>')
    parts.append(text(left, bottom + 18, "0"))
    parts.append(text(left + bar, bottom + 18, f"{longest / 1e9:.2f} s", ' text-anchor="end"'))
    for at in (-reach, 0.0, reach):
        parts.append(text(x(at), bottom + 18, percent(at) if at else "0", ' text-anchor="middle"'))
    return "\n".join([*parts, "</svg>"]) + "\n"


SETS = {"mini": MINI, "stress": STRESS}


def pictures(data: Data) -> dict[str, str]:
    """Return all pictures by the name of their file."""
    found = {}
    for name, which in SETS.items():
        for mpi in mpis_of(data):
            rows = costs_of(data, mpi, which)
            if rows:
                found[f"{name}-{mpi}.svg"] = picture(rows, mpi)
    return found


def measured(data: Data) -> list[str]:
    """Return what was measured on, and how often."""
    facts = [(name, str(value)) for name, value in data.machine.items()]
    rounds = {len(whole_rounds(runs)) for runs in _by_program(data).values()}
    if rounds:
        low, high = min(rounds), max(rounds)
        facts.append(("rounds of programs", f"{low}" if low == high else f"{low} to {high}"))
    ranks = {run.processes for run in data.apps}
    facts += [("ranks of programs", ", ".join(map(str, sorted(ranks))))] if ranks else []
    return table(("", ""), facts, 2)


def _by_program(data: Data) -> dict[tuple[str, str], list[App]]:
    found: dict[tuple[str, str], list[App]] = {}
    for app in data.apps:
        found.setdefault((app.mpi, app.program), []).append(app)
    return found


def page(data: Data) -> str:
    """Return the whole page."""
    sections = {
        "machine": measured(data),
        "targets": promised(data),
        "mini": programs(data, MINI, "mini"),
        "stress": programs(data, STRESS, "stress"),
        "calls": calls(data),
        "instructions": instructions(),
        "churn": churn(data),
        "memory": memory(data),
        "finalize": finalize(data),
    }
    text = INTRODUCTION.read_text(encoding="utf-8")
    for name, lines in sections.items():
        mark = f"<!-- {name} -->\n"
        if text.count(mark) != 1:
            raise SystemExit(f"{INTRODUCTION}: {mark.strip()} is not there once")
        text = text.replace(mark, "\n".join([*(lines or ["Not measured."]), ""]) + "\n")
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"


def write(data: Data, folder: Path, target: Path) -> None:
    """Write the page, and its pictures into the folder of the numbers."""
    for name, drawn in pictures(data).items():
        (folder / name).write_text(drawn, encoding="utf-8")
    target.write_text(page(data), encoding="utf-8")
