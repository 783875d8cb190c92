# SPDX-License-Identifier: Apache-2.0
"""The files of a replay: the plan that the program in C reads, and the times that it writes."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote

from commlens.base.errors import CommlensError
from commlens.tune.candidates import candidates_of, excluded, settings_of, way_of
from commlens.tune.cases import Blocks, Cases, Layout
from commlens.tune.model import Candidate, Case

PLAN = "replay.plan"
FAILED = ".failed"
"""Ending of the file beside a plan in which a job says why it ended."""
TIMES = "measurements.csv"
HEADER = "round,case,candidate,repetition,is_late,time_ns,operation_ns,collective,algorithm"
FIRST = "commlens-replay-2"


class Time(NamedTuple):
    """One repetition: the case and the candidate by their places in the plan.

    Round 0 has the first call of each candidate in a job, which makes connections; it does not count. A process that is
    late for the window makes the repetition late: its time contains that of the process. operation_ns is what
    `commlens waits` calls operation, mean of the processes: the time without waiting for those that are late.
    """

    round: int
    case: int
    candidate: int
    repetition: int
    is_late: int
    time_ns: int
    operation_ns: int = 0


@dataclass(frozen=True)
class Measurements:
    """What a replay measured, of one call or of several that went on.

    Attributes
    ----------
    cases : list of Case
    candidates : list of list of Candidate
        Of each case; the first is the library's own choice.
    times : list of Time
        All repetitions, none left out.
    notes : list of str
        What could not be tried, one sentence each.
    module : str
        File of the MPI library that the job loaded; empty if unknown.
    """

    cases: list[Case]
    candidates: list[list[Candidate]]
    times: list[Time]
    notes: list[str] = field(default_factory=list)
    module: str = ""


def plan_text(cases: Cases, seed: int) -> str:
    """Return the plan: words that the program reads with scanf."""
    numbers = {layout: i for i, layout in enumerate(dict.fromkeys(cases.layouts))}
    lines = [FIRST, f"processes {cases.processes}", f"seed {seed}", f"set {way_of(cases.library)}"]
    lines += [f"exclude {excluded(cases.library)}", f"layouts {len(numbers)}"]
    for layout in numbers:
        lines.append(f"layout {len(layout)}")
        lines += [f"comm {len(ranks)} {' '.join(map(str, ranks))}" for ranks in layout]
    lines.append(f"cases {len(cases.cases)}")
    for i, (case, layout, blocks) in enumerate(zip(cases.cases, cases.layouts, cases.blocks)):
        size = case.message_bytes if blocks is None else -1
        name = f"n{quote(case.communicator, safe='')}"
        computing = cases.computing_ns[i] if cases.computing_ns else 0
        lines.append(
            f"case {case.collective} {numbers[layout]} {size} {computing} {case.family} {case.bin} {case.message_bytes} {name}"
        )
        if blocks is not None:
            lines.append(_blocks_text(layout, blocks))
        tried = candidates_of(cases.library, case)
        lines.append(str(len(tried)))
        for one in tried:
            settings = settings_of(cases.library, case, one)
            words = " ".join(f"{variable} {value}" for variable, value in settings)
            label = f"{one.number}:{one.segment_bytes}:{quote(one.name, safe='')}"
            lines.append(f"candidate {label} {len(settings)} {words}".rstrip())
    return "\n".join(lines) + "\n"


def _blocks_text(layout: Layout, blocks: Blocks) -> str:
    parts = [f"blocks {len(layout)}"]
    for ranks, values in zip(layout, blocks):
        words = " ".join(f"{rank} {sent} {received}" for rank, (sent, received) in zip(ranks, values))
        parts.append(f"{len(ranks)} {words}")
    return "\n".join(parts)


def read_plan_file(path: Path) -> tuple[list[Case], list[list[Candidate]]]:
    """Return the cases and candidates of a plan.

    Raises
    ------
    CommlensError
        It cannot be read, or is damaged.
    """
    cases: list[Case] = []
    candidates: list[list[Candidate]] = []
    sizes: list[int] = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        if not lines or lines[0] != FIRST:
            raise ValueError
        layout: list[int] = []
        for line in lines:
            kind, *words = line.split()
            if kind == "layout":
                layout.append(0)
            elif kind == "comm":
                layout[-1] = int(words[0])
            elif kind == "case":
                collective, at, _, _, family, bin, size, name = words
                communicator = unquote(name[1:])
                sizes.append(int(size))
                cases.append(
                    Case(int(family), communicator, collective, layout[int(at)], int(bin), int(size))
                )
                candidates.append([])
            elif kind == "candidate":
                number, segment, label = words[0].split(":", 2)
                candidates[-1].append(Candidate(int(number), unquote(label), int(segment)))
    except OSError as error:
        raise CommlensError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, IndexError):
        raise CommlensError(f"{path}: damaged; remove it to measure anew") from None
    return cases, candidates


def read_measurements(folder: Path) -> Measurements:
    """Return what was measured in a folder; a line that an end of the run has cut short does not count.

    Raises
    ------
    CommlensError
        There is no replay, or its plan is damaged.
    """
    cases, candidates = read_plan_file(folder / PLAN)
    times = []
    try:
        with (folder / TIMES).open(encoding="utf-8", errors="replace", newline="") as file:
            for row in csv.reader(line.replace("\0", "") for line in file):
                time = _time(row, candidates)
                if time is not None:
                    times.append(time)
    except FileNotFoundError:
        pass
    except (OSError, csv.Error) as error:
        raise CommlensError(f"{folder / TIMES}: cannot be read: {error}") from None
    return Measurements(cases, candidates, times)


def _time(row: Sequence[str], candidates: Sequence[Sequence[Candidate]]) -> Time | None:
    """Return a row as a time; None if it is none."""
    if len(row) != 9 or not all(word.isascii() and word.isdigit() and len(word) < 19 for word in row[:7]):
        return None
    time = Time(*map(int, row[:7]))
    is_known = time.case < len(candidates) and time.candidate < len(candidates[time.case])
    return time if is_known and time.time_ns > 0 else None
