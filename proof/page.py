# SPDX-License-Identifier: Apache-2.0
"""docs/evidence/transparency.md, from the summaries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from .summary import Summary, counted

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


def write(summaries: dict[str, Summary], declared: Iterable[str]) -> str:
    """Return the page; `declared` are the launches that should be there."""
    launches = list(summaries.values())
    parts = [HEAD, built(launches), table(launches)]
    parts += section("Differences", "None.", named(launches, lambda launch: launch.different))
    parts += section("Flaky without commlens", "None.", named(launches, lambda launch: launch.flaky))
    parts += section("Fails without commlens, too", "None.", named(launches, lambda launch: launch.fails))
    parts += section("Cannot run here", "None.", left_out(launches))
    parts += section("Not run yet", "None.", not_yet(summaries, declared))
    parts += section("Messages of commlens, except the path of the profile", "None.", said(launches))
    return "\n".join(parts)


def built(launches: list[Summary]) -> str:
    """Return which commlens and which MPIs this is about."""
    builds = sorted({build for launch in launches for build in launch.commlens})
    mpis = sorted({launch.mpi_version for launch in launches})
    return f"commlens {', '.join(builds)}; {', '.join(mpis)}.\n"


def core_of(build: str) -> str:
    """Return the tree of core/ a library was built from: `git cat-file -p` shows it.

    >>> core_of("0.1.0 (core/ is 7c9661f)")
    '7c9661f'
    """
    return build.partition("core/ is ")[2].rstrip(")")


def table(launches: list[Summary]) -> str:
    """Return the table, one line per launch."""
    lines = [
        "| suite | MPI | ranks | programs | cases | without | with | flaky | different | calls | core/ |",
        "|---|---|---|--:|--:|---|---|--:|--:|--:|---|",
    ]
    total: Counter[str] = Counter()
    for launch in launches:
        numbers = {
            "programs": launch.programs,
            "cases": sum(launch.without.values()),
            "flaky": len(launch.flaky),
            "different": len(launch.different),
            "calls": launch.calls,
        }
        cells = [
            f"{launch.suite} {launch.version}",
            launch.mpi,
            launch.ranks or "each its own",
            f"{numbers['programs']:,}",
            f"{numbers['cases']:,}",
            counted(launch.without),
            counted(launch.under),
            numbers["flaky"],
            numbers["different"],
            f"{numbers['calls']:,}",
            ", ".join(sorted(core_of(build) for build in launch.commlens)),
        ]
        lines.append(f"| {' | '.join(map(str, cells))} |")
        total.update(numbers)
    lines.append(
        f"| **all** | | | {total['programs']:,} | {total['cases']:,} | | | {total['flaky']} "
        f"| **{total['different']}** | {total['calls']:,} | |"
    )
    return "\n".join(lines) + "\n"


def section(title: str, empty: str, lines: list[str]) -> list[str]:
    """Return a section with a list."""
    return [f"## {title}\n", "\n".join(lines) + "\n" if lines else f"{empty}\n"]


def named(launches: list[Summary], of: Callable[[Summary], dict[str, str]]) -> list[str]:
    """Return one line for each case that `of` returns, equal ones of several launches together."""
    where: dict[str, list[str]] = {}
    for launch in launches:
        place = f"{launch.mpi} {launch.ranks or ''}".strip()
        for label, how in of(launch).items():
            where.setdefault(f"- {launch.suite}: `{label}`: {how}", []).append(place)
    return [f"{line} ({', '.join(places)})" for line, places in where.items()]


def left_out(launches: list[Summary]) -> list[str]:
    """Return what was not run, and why."""
    names: dict[str, dict[str, None]] = {}
    for launch in launches:
        for name, why in launch.left_out.items():
            names.setdefault(f"- {launch.suite}, {launch.mpi}: {why}: ", {})[name] = None
    return [line + ", ".join(f"`{name}`" for name in found) for line, found in names.items()]


def not_yet(summaries: dict[str, Summary], declared: Iterable[str]) -> list[str]:
    """Return which launches, or how many of their programs, have no results."""
    lines = [f"- {name}" for name in declared if name not in summaries]
    for name, launch in summaries.items():
        if launch.missing:
            programs = launch.programs + len(launch.left_out) + launch.missing
            lines.append(f"- {name}: {launch.missing} of {programs} programs")
    return lines


def said(launches: list[Summary]) -> list[str]:
    """Return the lines commlens wrote, numbers and paths taken out."""
    count: Counter[str] = Counter()
    for launch in launches:
        count.update(launch.said)
    del count["commlens: profile of # ranks in #"], count["commlens: profile of # rank in #"]
    unusual = {line: number for line, number in count.items() if " % of the time in MPI" not in line}
    return [f"- {number:,} × `{line}`" for line, number in sorted(unusual.items())]
