# SPDX-License-Identifier: Apache-2.0
"""What is kept of a launch, a suite with one MPI and number of ranks, from one machine to the next.

docs/evidence/transparency.json has one summary for each launch. A proof takes hours: parts of it may run at different times.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .compare import NOT_REACHED, RUN, Case, Seen, from_record

Record = dict[str, Any]
"""What was seen of one program, as proof/run.py writes it."""


@dataclass
class Summary:
    """How the cases of a launch ended."""

    suite: str
    version: str
    mpi: str
    mpi_version: str
    ranks: int
    commlens: list[str]
    programs: int
    missing: int  # programs without results
    calls: int
    without: dict[str, int]  # cases by outcome of their first run
    under: dict[str, int]
    different: dict[str, str] = field(default_factory=dict)  # what was seen of each case
    flaky: dict[str, str] = field(default_factory=dict)
    fails: dict[str, str] = field(default_factory=dict)  # outcome of what fails without commlens, too
    left_out: dict[str, str] = field(default_factory=dict)  # why each program cannot run
    said: dict[str, int] = field(default_factory=dict)  # lines of commlens


def of_folder(place: Path) -> Summary | None:
    """Return the summary of the results in a folder; None if there are none."""
    records = [json.loads(path.read_text()) for path in sorted(place.glob("*.json"))]
    if not records:
        return None
    listed = set((place / "programs").read_text().splitlines())  # MPICH's list has some twice
    run = [record for record in records if "not_run" not in record]
    every = [found for record in run for found in cases_of(record)]
    # The profile is ours, not a case of the suite.
    cases = [case for _, name, case in every if name != "(profile)"]
    first = records[0]
    return Summary(
        **{name: first[name] for name in ("suite", "version", "mpi", "mpi_version", "ranks")},
        commlens=sorted({record["commlens"] for record in records}),
        programs=len(run),
        missing=len(listed) - len(records),
        calls=sum(record["calls"] for record in run),
        without=dict(Counter(case.without[0].outcome for case in cases)),
        under=dict(Counter(case.under[0].outcome for case in cases)),
        different=named(every, "different"),
        flaky=named(every, "flaky"),
        fails=failing(every),
        left_out={record["program"]: record["not_run"] for record in records if "not_run" in record},
        said=dict(sum((Counter(record["said"]) for record in run), Counter[str]())),
    )


def cases_of(record: Record) -> Iterable[tuple[str, str, Case]]:
    """Yield label, name and runs of all cases of a record."""
    for name, case in from_record(record["cases"]).items():
        yield (record["program"] if name == RUN else f"{record['program']} {name}"), name, case


def named(cases: Iterable[tuple[str, str, Case]], verdict: str) -> dict[str, str]:
    """Return what was seen of each case with this verdict."""
    return {
        label: f"without: {varied(case.without)}; with: {varied(case.under)}"
        for label, _, case in cases
        if case.verdict == verdict
    }


def failing(cases: Iterable[tuple[str, str, Case]]) -> dict[str, str]:
    """Return the outcome of each case that fails in the same way without and with commlens."""
    good = ("ok", "skip", "fine", NOT_REACHED.outcome)
    ends = {label: case.without[0].outcome for label, _, case in cases if case.verdict == "same"}
    return {label: outcome for label, outcome in ends.items() if outcome not in good}


def varied(runs: list[Seen]) -> str:
    """Return the outcomes of several runs, or that only the text varies."""
    text = counted(Counter(seen.outcome for seen in runs))
    texts = len({seen.text for seen in runs})
    return text if texts == 1 else f"{text}, {texts} texts"


def counted(outcomes: dict[str, int]) -> str:
    """Return "3 ok, 1 skip".

    >>> counted({"exit 1": 1, "skip": 1, "ok": 1200})
    '1,200 ok, 1 skip, 1 exit 1'
    """
    first = [outcome for outcome in ("ok", "skip") if outcome in outcomes]
    return ", ".join(
        f"{outcomes[outcome]:,} {outcome}" for outcome in [*first, *sorted(outcomes.keys() - set(first))]
    )


def load(path: Path) -> dict[str, Summary]:
    """Return the summaries in a file by launch; none if there is no file."""
    kept = json.loads(path.read_text()) if path.is_file() else {}
    return {launch: Summary(**summary) for launch, summary in kept.items()}


def save(path: Path, summaries: dict[str, Summary]) -> None:
    """Write the summaries by launch."""
    kept = {launch: asdict(summary) for launch, summary in summaries.items()}
    path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")


def renew(kept: dict[str, Summary], results: Path, launches: Iterable[str]) -> dict[str, Summary]:
    """Return the summaries of the launches, from the results of this machine where these are there.

    Results of some of the programs do not replace a summary of all of them.
    """
    summaries = {}
    for launch in launches:
        old = kept.get(launch)
        new = of_folder(results / launch)
        if new is not None and (old is None or not new.missing or old.missing):
            summaries[launch] = new
        elif old is not None:
            summaries[launch] = old
    return summaries
