# SPDX-License-Identifier: Apache-2.0
"""Of which commit and date the results of each part are, and whether all are of one."""

from __future__ import annotations

import datetime
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from bench.peers import places
from bench.peers.results import Record, Store, of_one_version
from bench.peers.tools import COMMLENS

NAMED = places.HOME / "commit"
"""In a bundle: the commit and the commit of the library, a line each."""
OF_LIBRARY = (
    *("core", "spec", "gen", "third_party", "cmake", "CMakeLists.txt", "CMakePresets.json", "VERSION"),
    *(f":(exclude)core/{room}" for room in ("recover", "history")),
    *(f":(exclude)gen/{name}.py" for name in ("commands", "completion", "manual")),
)
"""What the measured library is built from. Two rooms are of commlens-arena alone, three generators write documentation."""
UNKNOWN = "unknown"


def git(*words: str) -> subprocess.CompletedProcess[str]:
    """Run git in this tree."""
    return subprocess.run(
        ["git", "-C", str(places.ROOT), *words], capture_output=True, text=True, check=False
    )


def stamp() -> dict[str, str]:
    """Return the commit of this tree, and the newest commit that changed the library.

    Beside docs/, where the page changes, the tree must be as committed, or its commit says "dirty".
    """
    if NAMED.exists() and not (places.ROOT / ".git").exists():
        commit, library = NAMED.read_text(encoding="ascii").split()
        return {"commit": commit, "library": library}
    commit = git("describe", "--always").stdout.strip()
    is_changed = git("diff", "--quiet", "HEAD", "--", ".", ":(exclude)docs").returncode == 1
    library = git("log", "-1", "--format=%h", "--", *OF_LIBRARY).stdout.strip()
    is_other = git("diff", "--quiet", "HEAD", "--", *OF_LIBRARY).returncode == 1
    return {"commit": commit + "-dirty" * is_changed, "library": library + "-dirty" * is_other}


@dataclass(frozen=True)
class State:
    """What is stored of a part.

    Attributes
    ----------
    part : str
    commits : str
        With commas, the one with most results first.
    libraries : frozenset of str
        Commits of the library.
    dates : str
        First and last day.
    results : str
        How many, or rounds of the programs.
    last : int
        When the last one was measured, in seconds since 1970.
    """

    part: str
    commits: str
    libraries: frozenset[str]
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
        frozenset(record.get("library", before) for record in records),
        " to ".join(dict.fromkeys((min(days), max(days)))),
        rounds_of(records),
        max(record["at"] for record in records),
    )


def states(parts: Sequence[str]) -> list[State]:
    """Return what is stored of those parts that have anything."""
    return [state for part in parts if (state := state_of(part)) is not None]


def others(found: Sequence[State], library: str) -> list[str]:
    """Return the parts with results of another commit of the library."""
    return [state.part for state in found if state.libraries != {library}]


def text(parts: Sequence[str]) -> list[str]:
    """Return the states as lines for the terminal, with what to do about parts of other commits."""
    now = stamp()
    found = states(parts)
    lines = [
        f"{state.part:12} {state.commits:20} {state.dates:24} {state.results}"
        + ("" if state.libraries == {now["library"]} else "   of another library")
        for state in found
    ]
    lines += [f"{part:12} not measured" for part in parts if part not in {state.part for state in found}]
    lines.append(f"this tree is {now['commit']}, its library of {now['library']}")
    stale = others(found, now["library"])
    if stale:
        lines.append(f"to measure them with this library: make peers AGAIN={','.join(stale)}")
    return lines


def head(parts: Sequence[str]) -> list[str]:
    """Return the states as a table of the page, with a warning if they are of several commits."""
    found = states(parts)
    if not found:
        return []
    rows = [
        f"| {state.part} | {', '.join(sorted(state.libraries))} | {state.commits} | {state.dates} | {state.results} |"
        for state in found
    ]
    lines = [
        "| part | library of commit | measured at commit | measured | results |",
        "|---|---|---|---|---|",
        *rows,
        "",
    ]
    newest = max(found, key=lambda state: state.last)
    libraries = frozenset().union(*(state.libraries for state in found))
    if len(libraries) > 1:
        stale = [
            state.part for state in found if state.libraries != newest.libraries or len(state.libraries) > 1
        ]
        lines += [
            f"**Not of one commit**: {', '.join(stale)} {'is' if len(stale) == 1 else 'are'} of another commit of the "
            f"library than {newest.part}, which was measured last, or of several.",
            "",
        ]
    return lines
