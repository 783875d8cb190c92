# SPDX-License-Identifier: Apache-2.0
"""Of which library, commit and date the results of each part are, and whether all are of one library."""

from __future__ import annotations

import datetime
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from bench.peers import places, runs
from bench.peers.results import Record, Store, digest, of_one_version
from bench.peers.tools import COMMLENS, MPIS

NAMED = places.HOME / "commit"
"""In a bundle: the commit."""
UNKNOWN = "unknown"


def git(*words: str) -> subprocess.CompletedProcess[str]:
    """Run git in this tree."""
    return subprocess.run(
        ["git", "-C", str(places.ROOT), *words], capture_output=True, text=True, check=False
    )


def commit() -> str:
    """Return the commit of this tree.

    Beside docs/, where the page changes, the tree must be as committed, or its commit says "dirty".
    """
    if NAMED.exists() and not (places.ROOT / ".git").exists():
        return NAMED.read_text(encoding="ascii").strip()
    described = git("describe", "--always").stdout.strip()
    is_changed = git("diff", "--quiet", "HEAD", "--", ".", ":(exclude)docs").returncode == 1
    return described + "-dirty" * is_changed


Libraries = frozenset[tuple[str, str]]
"""MPI libraries and the checksums of the commlens libraries that were measured with them."""


def built() -> Libraries:
    """Return the libraries that this tree has built."""
    return frozenset((mpi, digest(runs.library(mpi))) for mpi in MPIS)


def checksum(version: str) -> str:
    """Return the checksum of the commlens library in the version of a result, which begins with it."""
    return version.partition(" ")[0]


def is_one(libraries: Libraries) -> bool:
    """Return whether there is one library for each MPI library.

    >>> is_one(frozenset({("mpich", "1"), ("openmpi", "2")})), is_one(frozenset({("mpich", "1"), ("mpich", "2")}))
    (True, False)
    """
    return len({mpi for mpi, _ in libraries}) == len(libraries)


@dataclass(frozen=True)
class State:
    """What is stored of a part.

    Attributes
    ----------
    part : str
    commits : str
        With commas, the one with most results first.
    libraries : frozenset of pairs of str
        MPI library, and the checksum of the commlens library.
    dates : str
        First and last day.
    results : str
        How many, or rounds of the programs.
    last : int
        When the last one was measured, in seconds since 1970.
    """

    part: str
    commits: str
    libraries: Libraries
    dates: str
    results: str
    last: int


def concerned(part: str) -> list[Record]:
    """Return the results that depend on the commit: of commlens, or whole rounds, as the page shows them."""
    records = list(Store(part))
    if not any("runs" in record for record in records):
        return [record for record in records if record["key"][1:2] == [COMMLENS]]
    cells: dict[tuple[str, ...], list[Record]] = {}
    for record in records:
        cells.setdefault(tuple(record["key"][:-1]), []).append(record)
    return [record for of in cells.values() for record in of_one_version(of)]


def rounds_of(records: Sequence[Record]) -> str:
    """Return the fewest and most rounds of a program, or the number of results.

    >>> rounds_of([{"key": ["a", "1"], "runs": []}, {"key": ["a", "2"], "runs": []}, {"key": ["b", "1"], "runs": []}])
    '1 to 2 rounds of 2 programs'
    """
    if not any("runs" in record for record in records):
        return f"{len(records)} of commlens"
    rounds = Counter(tuple(record["key"][:-1]) for record in records).values()
    fewest, most = min(rounds), max(rounds)
    between = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    return f"{between} round{'s' * (most > 1)} of {len(rounds)} program{'s' * (len(rounds) > 1)}"


def state_of(part: str) -> State | None:
    """Return what is stored of a part, or None for nothing."""
    records = concerned(part)
    if not records:
        return None
    before = Store(part).facts().get("commit", UNKNOWN)  # of results that do not say it themselves
    commits = Counter(record.get("commit", before) for record in records)
    days = [
        datetime.datetime.fromtimestamp(record["at"], datetime.timezone.utc).strftime("%Y-%m-%d")
        for record in records
    ]
    return State(
        part,
        ", ".join(name for name, _ in commits.most_common()),
        frozenset((record["key"][0], checksum(record["version"])) for record in records),
        " to ".join(dict.fromkeys((min(days), max(days)))),
        rounds_of(records),
        max(record["at"] for record in records),
    )


def states(parts: Sequence[str]) -> list[State]:
    """Return what is stored of those parts that have anything."""
    return [state for part in parts if (state := state_of(part)) is not None]


def others(found: Sequence[State], libraries: Libraries) -> list[str]:
    """Return the parts with results of other libraries than these."""
    return [state.part for state in found if not state.libraries <= libraries]


def named(libraries: Libraries) -> str:
    """Return MPI libraries and checksums as the page shows them.

    >>> named(frozenset({("openmpi", "2"), ("mpich", "1")}))
    'MPICH `1`, Open MPI `2`'
    """
    return ", ".join(f"{MPIS[mpi]} `{digits}`" for mpi, digits in sorted(libraries))


def text(parts: Sequence[str]) -> list[str]:
    """Return the states as lines for the terminal, with what to do about parts of other libraries."""
    now = built()
    found = states(parts)
    stale = others(found, now)
    lines = [
        f"{state.part:12} {state.commits:20} {state.dates:24} {state.results}"
        + ("   of another library" if state.part in stale else "")
        for state in found
    ]
    lines += [f"{part:12} not measured" for part in parts if part not in {state.part for state in found}]
    lines.append(f"this tree is {commit()}")
    if stale:
        lines.append(f"to measure them with this library: make peers AGAIN={','.join(stale)}")
    return lines


def head(parts: Sequence[str]) -> list[str]:
    """Return the states as a table of the page, with a warning if they are of several libraries."""
    found = states(parts)
    if not found:
        return []
    rows = [
        f"| {state.part} | {named(state.libraries)} | {state.commits} | {state.dates} | {state.results} |"
        for state in found
    ]
    lines = [
        "| part | sha256 of libcommlens.so begins with | measured at commit | measured | results |",
        "|---|---|---|---|---|",
        *rows,
        "",
    ]
    newest = max(found, key=lambda state: state.last)
    stale = [state.part for state in found if not is_one(state.libraries | newest.libraries)]
    if stale:
        lines += [
            f"**Not of one library**: {', '.join(stale)} {'is' if len(stale) == 1 else 'are'} of another commlens library "
            f"than {newest.part}, which was measured last, or of several.",
            "",
        ]
    return lines
