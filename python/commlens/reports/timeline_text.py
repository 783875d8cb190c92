# SPDX-License-Identifier: Apache-2.0
"""Draws a timeline: a table with a row for each piece of the run, and a heat map of ranks over time."""

from __future__ import annotations

from typing import NamedTuple

from rich.cells import cell_len
from rich.text import Text

from commlens.base.counts import count_text
from commlens.render.shades import coloured, level_count, scale, shaded
from commlens.render.table import Column, Table, fold
from commlens.render.units import TIME_UNITS, bytes_text, name_text, share_text, time_text
from commlens.reports.timeline import Extent, Heat, Row, Timeline

PARTS = "█▓▒"
OTHERS = "░"
STYLES = {"█": "blue", "▓": "cyan", "▒": "magenta", OTHERS: "bright_black"}
"""The parts of a bar: the communicators with the most time in the run, and all others."""

WIDEST_BAR, PLAIN_BAR, NARROWEST_BAR = 60, 24, 4
WIDEST_HEAT = 128
TICK = 10  # characters from one time of the heat map to the next


class Layout(NamedTuple):
    """What a row shows beside its bar."""

    communicators: int
    procedures: int
    bytes: bool
    narrowest_bar: int


LAYOUTS = (
    Layout(3, 2, True, 32),
    Layout(2, 2, True, 24),
    Layout(2, 1, True, 20),
    Layout(2, 1, False, 16),
    Layout(2, 0, False, 16),
    Layout(1, 0, False, NARROWEST_BAR),
)
"""From wide to narrow; the first one that fits is used."""


def start_texts(step_ns: int, count: int) -> list[str]:
    """Return the beginnings of `count` rows, in one unit.

    >>> start_texts(200_000_000, 3), start_texts(13_400_000, 3)
    (['0 ms', '200 ms', '400 ms'], ['0 ms', '13 ms', '27 ms'])
    >>> start_texts(134_000_000, 100)[:3]
    ['0.00 s', '0.13 s', '0.27 s']
    """
    last = step_ns * max(count - 1, 0)
    scale_ns, unit = next((item for item in reversed(TIME_UNITS) if last >= item[0]), TIME_UNITS[0])
    decimals = 0
    while decimals < 3 and step_ns * 10**decimals < 10 * scale_ns and scale_ns > 1 and last:
        decimals += 1
    return [f"{i * step_ns / scale_ns:.{decimals}f} {unit}" for i in range(count)]


def line_name(row: Row) -> str:
    """Return the name of a communicator, or of a family with its number of communicators."""
    count = row["communicators"]
    name = name_text(row["communicator"]) + (f" x{count}" if count > 1 else "")
    return f'{name} "{name_text(row["user_name"])}"' if row["user_name"] else name


def communicators_text(rows: list[Row], most: int) -> str:
    """Return the first communicators of a row with their shares."""
    return ", ".join(
        f"{line_name({**row, 'user_name': None})} {share_text(row['share'])}"
        for row in rows[:most]
        if row["time_ns"]
    )


def procedures_text(rows: list[Row], most: int) -> str:
    """Return the first procedures of a row with their shares."""
    return ", ".join(
        f"{row['operation']} {share_text(row['share'])}" for row in rows[:most] if row["time_ns"]
    )


def rank_text(row: Row, which: str) -> str:
    """Return a rank of a row with its share; nothing if no rank was in MPI.

    >>> rank_text({"least_rank": 3, "least_share": 0.125, "most_share": 0.25}, "least")
    '12.5 % rank 3'
    """
    return f"{share_text(row[which + '_share'])} rank {row[which + '_rank']}" if row["most_share"] else ""


class Bars:
    """The bars of a timeline: each part is a communicator, with the same character in all rows."""

    def __init__(self, timeline: Timeline):
        self.timeline = timeline
        self.key = "family" if timeline.lines and "family" in timeline.lines[0] else "comm"
        self.shown = timeline.lines[: len(PARTS)]
        self.parts = {line[self.key]: part for line, part in zip(self.shown, PARTS)}

    def bar(self, row: int, cells: int) -> str:
        """Return the bar of a row, of at most `cells` characters: a full one is all of the ranks' time."""
        spent = dict.fromkeys([*PARTS, OTHERS], 0.0)
        for line in self.timeline.communicators[row]:
            spent[self.parts.get(line[self.key], OTHERS)] += line["share"] or 0
        text, until = "", 0.0
        for part, share in spent.items():
            until = min(until + share, 1.0)
            text += part * (round(until * cells) - len(text))
        return text

    def legend(self) -> list[tuple[str, str]]:
        """Return the characters of the bars with their names."""
        found = [(part, line_name(line)) for part, line in zip(PARTS, self.shown)]
        if len(self.timeline.lines) > len(PARTS):
            found.append((OTHERS, "others"))
        return found


def ruler(cells: int) -> str:
    """Return the heading of a bar; nothing if it is short.

    >>> ruler(7), ruler(8), ruler(12)
    ('', '0  100 %', '0      100 %')
    """
    return "0" + "100 %".rjust(cells - 1) if cells >= 8 else ""


def table_of(timeline: Timeline, bars: Bars, layout: Layout, cells: int) -> Table:
    """Return the rows of a timeline in one layout; without a bar if it has no cells."""
    columns = [
        Column("start", right=True),
        Column("in MPI"),
        *([Column(ruler(cells), right=False)] if cells else []),
        Column("busiest", right=False),
        *([Column("procedures", right=False)] if layout.procedures else []),
        Column("least", right=False),
        Column("most", right=False),
        *([Column("sent")] if layout.bytes else []),
    ]
    table = Table(columns)
    starts = start_texts(timeline.pieces.length_ns, len(timeline.rows))
    for start, row in zip(starts, timeline.rows):
        number = row["row"]
        table.add(
            [
                start,
                share_text(row["share"]),
                *([bars.bar(number, cells)] if cells else []),
                communicators_text(timeline.communicators[number], layout.communicators),
                *(
                    [procedures_text(timeline.procedures[number], layout.procedures)]
                    if layout.procedures
                    else []
                ),
                rank_text(row, "least"),
                rank_text(row, "most"),
                *([bytes_text(row["bytes_sent"])] if layout.bytes else []),
            ]
        )
    return table


def draw(timeline: Timeline, width: int | None) -> list[Text]:
    """Return the table of a timeline, as rich as fits into `width`."""
    bars = Bars(timeline)
    if width is None:
        return table_of(timeline, bars, LAYOUTS[0], PLAIN_BAR).lines(None)
    for layout in LAYOUTS:
        others = table_of(timeline, bars, layout, 0).lines(None)
        left = width - max(cell_len(line.plain) for line in others) - 2
        if left >= layout.narrowest_bar:
            break
    lines = table_of(timeline, bars, layout, min(max(left, NARROWEST_BAR), WIDEST_BAR)).lines(width)
    for line in lines[1:]:
        for part, style in STYLES.items():
            line.highlight_regex(f"{part}+", style)
    return lines


def title(extent: Extent, timeline: Timeline) -> str:
    """Return the heading: how many ranks, for how long, and what a row is."""
    pieces = timeline.pieces
    text = f"{count_text(extent.ranks, 'rank')}, {time_text(timeline.rows[-1]['end_ns'])} in {count_text(pieces.slices, 'slice')}"
    text += f" of {time_text(pieces.slice_ns)}" if pieces.slices > 1 else ""
    return text + (
        f"; a row is {pieces.fold} slices, {time_text(pieces.length_ns)}" if pieces.fold > 1 else ""
    )


def legend(extent: Extent, timeline: Timeline, width: int | None) -> list[Text]:
    """Return the explanation of the columns and of the bar."""
    names = [
        Text.assemble((part, STYLES[part] if width is not None else ""), (f" {name}", "dim"))
        for part, name in Bars(timeline).legend()
    ]
    in_one = Text("   ").join(names)
    if width is None or cell_len(in_one.plain) <= width:
        names = [in_one]
    threads = "; the times of threads are summed" if extent.has_threads else ""
    words = (
        "shares of the ranks' time in the row; in MPI: inside MPI calls; least, most: the ranks with the smallest and "
        f"the largest share in MPI{threads}"
    )
    return [*names, *fold("", words, width, "dim")]


def heat_lines(heat: Heat, kind: str, width: int | None, *, is_dense: bool) -> list[Text]:
    """Return the heat map with its axes and scale; a line shows one block of ranks, or two if `is_dense`."""
    labels = [str(first) for first in heat.first_ranks]
    margin = margin_of(max(heat.first_ranks))
    times = max(1, heat_space(max(heat.first_ranks), width) // heat.pieces.count)
    # A time in MPI that is estimated may be longer than the slice.
    highest = min(max((share for row in heat.shares for share in row if share is not None), default=0.0), 1.0)
    count = level_count(kind)
    levels = [
        [
            0 if not share or not highest else 1 + min(int(min(share / highest, 1) * count), count - 1)
            for share in row
        ]
        for row in heat.shares
    ]
    if kind == "colours":
        down = 1 if is_dense else 2
        lines = coloured(
            [[level for level in row for _ in range(times)] for row in levels for _ in range(down)]
        )
        labels = labels[::2] if is_dense else labels
    else:
        lines = shaded(levels, kind, times)
    drawn = [Text(f"{'rank':>{margin - 1}}  {ticks(heat, times)}", "dim")]
    drawn += [
        Text.assemble((f"{label:>{margin - 1}} │", "dim"), line, ("│", "dim"))
        for label, line in zip(labels, lines)
    ]
    ranks = f"{heat.size:,} ranks" if heat.size > 1 else "one rank"
    drawn.append(
        Text.assemble(
            ("in MPI: 0 % ", "dim"),
            scale(kind),
            (f" {share_text(highest)}; a cell is {ranks} for {time_text(heat.pieces.length_ns)}", "dim"),
        )
    )
    return drawn


def margin_of(highest: int) -> int:
    """Return the number of characters before the frame of a heat map with ranks up to `highest`."""
    return max(len("rank"), len(str(highest))) + 1


def heat_space(highest: int, width: int | None) -> int:
    """Return the number of characters that a line of the heat map has for its cells."""
    return WIDEST_HEAT if width is None else max(1, min(WIDEST_HEAT, width - margin_of(highest) - 2))


def ticks(heat: Heat, times: int) -> str:
    """Return the line of times above the heat map."""
    every = max(1, -(-TICK // times))
    starts = start_texts(heat.pieces.length_ns, heat.pieces.count)
    line = ""
    for at in range(0, heat.pieces.count, every):
        if len(line) <= at * times and at * times + len(starts[at]) <= heat.pieces.count * times:
            line = line.ljust(at * times) + starts[at] + " "
    return line.rstrip()
