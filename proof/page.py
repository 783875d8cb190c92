# SPDX-License-Identifier: Apache-2.0
"""docs/evidence/transparency.md, from the results that are there."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from .compare import NOT_REACHED, RUN, Case, Seen, from_record

Record = dict[str, Any]

HEAD = """\
# Transparency: test programs without and with commlens

<!-- Written by `make proof`; edit proof/page.py. -->

Public test programs, run without and with commlens (`commlens-run` in front of the program), in alternation. For each case,
the outcome, the output of each rank, line by line, and the exit code are compared.

    make proof                          # everything: hours
    tools/proof.sh mpi4py --ranks 2     # a part of it

- **different**: a result occurred with commlens but never without. Such a case is run again up to five times each way, and
  then forty times without commlens. This distinguishes a case that rarely varies by itself from one that commlens changes.
  There should be none.
- **not reached**: the launch hung before this case. The hang is compared; the case at which it occurs is random.
- **flaky**: the result varies without commlens, and varies no more with commlens. Listed below.
- Every run with commlens that ended normally must leave exactly one profile, and `commlens report` must open every profile.
  A violation counts as a difference. *Calls* is the number of MPI calls in these profiles, which shows that commlens was
  active.
- Times, process ids, addresses and scratch names are not compared; `proof/suites.py` declares them for each suite. Of a
  launcher's output after a failed job, only the exit code is compared.
"""


def write(results: Path, declared: Iterable[str]) -> str:
    """Return the page; `declared` are the folders in `results` that should be there."""
    launches: dict[tuple[int, bool, int], Record] = {}
    for path in sorted(results.glob("*/*.json")):
        add(launches, json.loads(path.read_text()))
    records = [launches[key] for key in sorted(launches)]
    parts = [HEAD, built(records), table(records)]
    parts += section("Differences", "None.", named(records, "different"))
    parts += section("Flaky without commlens", "None.", named(records, "flaky"))
    parts += section(
        "Fails without commlens, too",
        "None.",
        named(records, "same", lambda seen: seen.outcome not in ("ok", "skip", "fine", NOT_REACHED.outcome)),
    )
    parts += section("Cannot run here", "None.", left_out(records))
    parts += section("Not run yet", "None.", not_yet(results, declared))
    parts += section("Messages of commlens, except the path of the profile", "None.", said(records))
    return "\n".join(parts)


def add(launches: dict[tuple[int, bool, int], Record], one: Record) -> None:
    """Add what was found out about one program to that of its suite, MPI and number of ranks."""
    empty = {"builds": set(), "cases": {}, "left_out": {}, "calls": 0, "said": Counter()}
    record = launches.setdefault((one["order"], one["mpi"] != "openmpi", one["ranks"]), {**one, **empty})
    record["builds"].add(one["commlens"])
    if "not_run" in one:
        record["left_out"][one["program"]] = one["not_run"]
        return
    record["cases"][one["program"]] = one["cases"]
    record["calls"] += one["calls"]
    record["said"].update(one["said"])


def built(records: list[Record]) -> str:
    """Return which commlens and which MPIs this is about."""
    builds = sorted(set[str]().union(*(record["builds"] for record in records)))
    mpis = sorted({record["mpi_version"] for record in records})
    return f"commlens {', '.join(builds)}; {', '.join(mpis)}.\n"


def core_of(build: str) -> str:
    """Return the tree of core/ a library was built from: `git cat-file -p` shows it.

    >>> core_of("0.1.0 (core/ is 7c9661f)")
    '7c9661f'
    """
    return build.partition("core/ is ")[2].rstrip(")")


def cases_of(record: Record) -> Iterable[tuple[str, str, Case]]:
    """Yield program, name and runs of all cases of a record."""
    for program, cases in record["cases"].items():
        for name, case in from_record(cases).items():
            yield program, name, case


def counted(outcomes: Iterable[str]) -> str:
    """Return "3 ok, 1 skip"."""
    count = Counter(outcomes)
    first = [outcome for outcome in ("ok", "skip") if count[outcome]]
    return ", ".join(
        f"{count[outcome]:,} {outcome}" for outcome in [*first, *sorted(count.keys() - set(first))]
    )


def table(records: list[Record]) -> str:
    """Return the table, one line per record."""
    lines = [
        "| suite | MPI | ranks | programs | cases | without | with | flaky | different | calls | core/ |",
        "|---|---|---|--:|--:|---|---|--:|--:|--:|---|",
    ]
    total: Counter[str] = Counter()
    for record in records:
        every = list(cases_of(record))
        # The profile is ours, not a case of the suite.
        cases = [case for _, name, case in every if name != "(profile)"]
        verdicts = Counter(case.verdict for _, _, case in every)
        cells = [
            f"{record['suite']} {record['version']}",
            record["mpi"],
            record["ranks"] or "each its own",
            f"{len(record['cases']):,}",
            f"{len(cases):,}",
            counted(case.without[0].outcome for case in cases),
            counted(case.under[0].outcome for case in cases),
            verdicts["flaky"],
            verdicts["different"],
            f"{record['calls']:,}",
            ", ".join(sorted(core_of(build) for build in record["builds"])),
        ]
        lines.append(f"| {' | '.join(map(str, cells))} |")
        total.update(cases=len(cases), programs=len(record["cases"]), calls=record["calls"], **verdicts)
    lines.append(
        f"| **all** | | | {total['programs']:,} | {total['cases']:,} | | | {total['flaky']} "
        f"| **{total['different']}** | {total['calls']:,} | |"
    )
    return "\n".join(lines) + "\n"


def section(title: str, empty: str, lines: list[str]) -> list[str]:
    """Return a section with a list."""
    return [f"## {title}\n", "\n".join(lines) + "\n" if lines else f"{empty}\n"]


def named(records: list[Record], verdict: str, wanted: Callable[[Seen], bool] | None = None) -> list[str]:
    """Return one line for each case with this verdict, equal ones of several launches together."""
    where: dict[str, list[str]] = {}
    for record in records:
        for program, name, case in cases_of(record):
            if case.verdict != verdict or (wanted and not wanted(case.without[0])):
                continue
            label = program if name == RUN else f"{program} {name}"
            if verdict == "same":
                how = case.without[0].outcome
            else:
                how = f"without: {varied(case.without)}; with: {varied(case.under)}"
            place = f"{record['mpi']} {record['ranks'] or ''}".strip()
            where.setdefault(f"- {record['suite']}: `{label}`: {how}", []).append(place)
    return [f"{line} ({', '.join(places)})" for line, places in where.items()]


def varied(runs: list[Seen]) -> str:
    """Return the outcomes of several runs, or that only the text varies."""
    text = counted(seen.outcome for seen in runs)
    texts = len({seen.text for seen in runs})
    return text if texts == 1 else f"{text}, {texts} texts"


def left_out(records: list[Record]) -> list[str]:
    """Return what was not run, and why."""
    names: dict[str, dict[str, None]] = {}
    for record in records:
        for name, why in record["left_out"].items():
            names.setdefault(f"- {record['suite']}, {record['mpi']}: {why}: ", {})[name] = None
    return [line + ", ".join(f"`{name}`" for name in found) for line, found in names.items()]


def not_yet(results: Path, declared: Iterable[str]) -> list[str]:
    """Return which launches, or how many of their programs, have no results."""
    lines = []
    for name in declared:
        listed = results / name / "programs"
        if not listed.is_file():
            lines.append(f"- {name}")
            continue
        programs = len(set(listed.read_text().splitlines()))  # MPICH's list has some twice
        done = len(list((results / name).glob("*.json")))
        if done < programs:
            lines.append(f"- {name}: {programs - done} of {programs} programs")
    return lines


def said(records: list[Record]) -> list[str]:
    """Return the lines commlens wrote, numbers and paths taken out."""
    count: Counter[str] = Counter()
    for record in records:
        count.update(record["said"])
    del count["commlens: profile of # ranks in #"], count["commlens: profile of # rank in #"]
    unusual = {line: number for line, number in count.items() if " % of the time in MPI" not in line}
    return [f"- {number:,} × `{line}`" for line, number in sorted(unusual.items())]
