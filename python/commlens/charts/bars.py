# SPDX-License-Identifier: Apache-2.0
"""The numbers of stacked bars: the MPI time of one run by communicator, or by message size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from commlens.base.counts import count_text
from commlens.base.errors import CommlensError
from commlens.charts.names import shortened
from commlens.charts.palette import MOST
from commlens.compare.correlate import Source
from commlens.compare.read import Family
from commlens.compare.text import bin_text
from commlens.compare.times import GroupKey
from commlens.profile import meta
from commlens.render.units import share_text, time_text

LONGEST_COMMAND = 50  # columns
VISIBLE = 0.002  # of the longest bar: about a pixel, an eighth of a column in a terminal
Name = Callable[[GroupKey], "str | int"]


class Bar(NamedTuple):
    """One bar: its name, and a time in ns for each part."""

    name: str
    times: list[int]

    @property
    def total(self) -> int:
        """The length of the bar."""
        return sum(self.times)


@dataclass
class Bars:
    """Stacked bars.

    Attributes
    ----------
    parts : list of str
        Names of the parts, the largest first; a last one may stand for all others.
    has_other : bool
        Whether the last part stands for all others.
    whole_ns : int
        Time of all bars, the base of the shares.
    """

    title: str
    about: str
    axis: str
    parts: list[str]
    has_other: bool
    bars: list[Bar]
    whole_ns: int

    def place(self, part: int) -> int:
        """Return the place of a part in the palette."""
        return MOST if self.has_other and part == len(self.parts) - 1 else part

    def note(self, bar: Bar) -> str:
        """Return the text at the end of a bar."""
        return f"{time_text(bar.total)}  {share_text(bar.total / self.whole_ns)}"

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return titles and rows of the numbers."""
        rows = [
            [
                bar.name,
                *(time_text(time) if time else "" for time in bar.times),
                time_text(bar.total),
                share_text(bar.total / self.whole_ns),
            ]
            for bar in self.bars
        ]
        return [self.axis, *self.parts, "total", "share"], rows


def about_text(source: Source) -> str:
    """Return the line about a run."""
    facts = source.head.facts
    ranks = meta.number(facts, "ranks")
    command = " ".join((facts.get("command_line") or facts.get("program") or source.head.path).split())
    command = shortened(command, LONGEST_COMMAND)
    return f"{command}; {count_text(ranks, 'rank')}, {time_text(source.head.elapsed_ns)}; times are summed over the ranks"


def family_name(family: Family) -> str:
    """Return a family with the name that the application or MPI gave it."""
    if family.kind == "none":
        return f"{family.label} without communicator"
    return f"{family.label} {family.user_name}".rstrip()


def sums(source: Source, bar: Name, part: Name) -> dict[str | int, dict[str | int, int]]:
    """Return the times by bar and part."""
    found: dict[str | int, dict[str | int, int]] = {}
    for key, time in source.groups.items():
        parts = found.setdefault(bar(key), {})
        parts[part(key)] = parts.get(part(key), 0) + time.sum_ns
    if not any(sum(parts.values()) for parts in found.values()):
        raise CommlensError(f"{source.head.path}: has no MPI time in this selection: nothing to draw")
    return found


def largest(times: dict[str | int, int], most: int) -> list[str | int]:
    """Return the keys with the most time."""
    return sorted(times, key=lambda key: (-times[key], str(key)))[:most]


def stacked(
    title: str,
    axis: str,
    source: Source,
    table: dict[str | int, dict[str | int, int]],
    bars: Sequence[tuple[str, Sequence[str | int]]],
    part_name: Callable[[str | int], str],
    noun: str,
) -> Bars:
    """Return the bars; each is given by its name and the rows of the table that it adds up.

    Parts that no bar shows are one with those for which there is no colour.
    """
    summed: list[tuple[str, dict[str | int, int]]] = []
    all_parts: dict[str | int, int] = {}
    for name, rows in bars:
        times: dict[str | int, int] = {}
        for part, time in (item for row in rows if row in table for item in table[row].items()):
            times[part] = times.get(part, 0) + time
            all_parts[part] = all_parts.get(part, 0) + time
        summed.append((name, times))
    least = VISIBLE * max(sum(times.values()) for _, times in summed)
    seen = [part for part in all_parts if max(times.get(part, 0) for _, times in summed) >= least]
    named = largest({part: all_parts[part] for part in seen}, MOST)
    others = len(all_parts) - len(named)
    if others == 1 and len(named) < MOST:
        named, others = largest(all_parts, MOST), 0
    found = []
    for name, times in summed:
        rest = sum(times.values()) - sum(times.get(part, 0) for part in named)
        found.append(Bar(name, [*(times.get(part, 0) for part in named), *([rest] if others else [])]))
    parts = [part_name(part) for part in named]
    parts += (
        [f"{others} other {noun}" if others > 1 else f"1 other {noun.removesuffix('s')}"] if others else []
    )
    whole = sum(all_parts.values())
    return Bars(title, about_text(source), axis, parts, others > 0, found, whole)


def operations(source: Source, top: int | None) -> Bars:
    """Return a bar for each family with the most time, by operation; `source` is grouped by family and operation."""
    table = sums(source, lambda key: key.family or 0, lambda key: key.operation or "")
    order = largest({family: sum(row.values()) for family, row in table.items()}, len(table))
    shown = order if top is None or len(order) <= top + 1 else order[:top]
    bars: list[tuple[str, Sequence[str | int]]] = [
        (family_name(source.head.families[int(family)]), [family]) for family in shown
    ]
    rest = order[len(shown) :]
    bars += [(f"{len(rest)} other families", rest)] if rest else []
    return stacked(
        "MPI time by communicator and operation", "communicator", source, table, bars, str, "operations"
    )


def sizes(source: Source, by: str) -> Bars:
    """Return a bar for each message size, by operation or family; `source` is grouped by both.

    Sizes between the smallest and the largest have a bar although they are empty.
    """
    is_family = by == "family"
    table = sums(
        source, lambda key: key.bin or 0, lambda key: (key.family or 0) if is_family else key.operation or ""
    )
    bins = sorted(int(bin) for bin in table)
    known = [bin for bin in bins if bin >= 0]
    order = [*(range(known[0], known[-1] + 1) if known else ()), *(bin for bin in reversed(bins) if bin < 0)]
    bars = [(bin_text(bin), [bin]) for bin in order]

    def name(part: str | int) -> str:
        return family_name(source.head.families[int(part)]) if is_family else str(part)

    what, noun = ("communicator", "families") if is_family else ("operation", "operations")
    return stacked(f"MPI time by message size and {what}", "message size", source, table, bars, name, noun)
