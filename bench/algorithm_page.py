# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/evidence/algorithms.md, and the words for a case and its result."""

from __future__ import annotations

from collections.abc import Iterable

from bench.algorithm_cases import Case
from bench.algorithm_results import Result

from commlens.algorithms.registry import ALGORITHMS

SOURCES = ("component", "profile")


def listed(numbers: Iterable[int]) -> str:
    """Return numbers as ranges: "3, 5–7"."""
    rows: list[list[int]] = []
    for number in sorted(numbers):
        if rows and rows[-1][-1] == number - 1:
            rows[-1].append(number)
        else:
            rows.append([number])
    return ", ".join(f"{row[0]}–{row[-1]}" if len(row) > 1 else str(row[0]) for row in rows)


def parameters_of(case: Case) -> str:
    """Return the parameters of a case, and what it tells the collectives it is made of."""
    words = [f"{name} {value}" for name, value in case.parameters.items()]
    words += [f"{collective} {number}" for collective, number in case.told.items()]
    return ", ".join(words) or "–"


def sizes_of(case: Case) -> str:
    """Return the bytes of the calls of a case."""
    return ", ".join("–" if case.collective == "barrier" else _bytes(block) for block in case.blocks)


def _bytes(block: int) -> str:
    return f"{block:,}" if block >= 0 else f"0, {-block}, {-2 * block} in turns"


def outcome(result: Result, source: str) -> str:
    """Return how many calls equal the schedule, or the first difference."""
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


def naming_of(result: Result) -> str:
    """Return how many calls `commlens algorithms` names as what ran, and how."""
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
            key = (case.collective, case.number, parameters_of(case), ranks, sizes_of(case))
            cells.setdefault(key, {})[release] = result
    silent = 0
    for (collective, number, parameters, ranks, nbytes), found in cells.items():
        first = next(iter(found.values()))
        if all(list(one.ran) == [""] and not one.bad for one in found.values()):
            silent += sum(one.calls for one in found.values())
            continue
        outcomes = [
            outcome(found[one], source) if one in found else "not there"
            for one in releases
            for source in SOURCES
        ]
        named = naming_of(first)
        for release, other in found.items():
            named += f"; {release}: {naming_of(other)}" if naming_of(other) != naming_of(first) else ""
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
