# SPDX-License-Identifier: Apache-2.0
"""The page and the picture of bench/shaped_reorder.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from commlens.overhead.estimate import Estimate

PICTURE = "reorder.svg"
Middle = Callable[[Sequence[float]], Estimate]
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd")


@dataclass
class Run:
    """Seconds of each step, and of each call by the step before it: outcome, seconds of the call and of moving the data."""

    steps: list[float] = field(default_factory=list)
    calls: dict[int, tuple[int, float, float]] = field(default_factory=dict)

    @property
    def total(self) -> float:
        """All seconds."""
        return sum(self.steps) + sum(called + moving for _, called, moving in self.calls.values())

    @property
    def reordered(self) -> list[int]:
        """The steps after which the order became another one."""
        return [after for after, (outcome, _, _) in self.calls.items() if outcome == 1]

    def elapsed(self) -> np.ndarray:
        """Return the seconds from the start to the end of each step; a call belongs to the step after it."""
        steps = np.array(self.steps)
        for after, (_, called, moving) in self.calls.items():
            steps[after] += called + moving
        return np.asarray(np.cumsum(steps))


@dataclass
class Case:
    """A program with its arguments, and its runs without and with calls, one of each a round."""

    name: str
    numbers: int
    steps: int
    every: int
    alone: list[Run] = field(default_factory=list)
    calling: list[Run] = field(default_factory=list)

    @property
    def half(self) -> int:
        """The last step before the flow turns."""
        return self.steps // 2

    def saved(self) -> np.ndarray:
        """Return the seconds saved up to the end of each step: middle over the rounds."""
        both = zip(self.alone, self.calling, strict=True)
        return np.asarray(np.median([alone.elapsed() - calling.elapsed() for alone, calling in both], axis=0))


def milliseconds(found: Estimate) -> str:
    """Return a time with its interval."""
    digits = 0 if found.value >= 0.02 else 1
    return f"{1e3 * found.value:.{digits}f} ({1e3 * found.low:.{digits}f} to {1e3 * found.high:.{digits}f})"


def mean_of(runs: Sequence[Run], first: int, last: int) -> list[float]:
    """Return the mean time of the steps `first` to `last` of each run."""
    return [float(np.mean(run.steps[first - 1 : last])) for run in runs]


def step_rows(case: Case, middle: Middle) -> list[str]:
    """Return the lines of the table of steps."""
    parts = []
    for begin, what in ((0, "first half"), (case.half, "second half")):
        parts.append((f"{what}, before a call", begin + 1, begin + case.every))
        parts.append((f"{what}, after it", begin + case.every + 1, begin + case.half))
    lines = []
    for what, first, last in parts:
        alone, calling = mean_of(case.alone, first, last), mean_of(case.calling, first, last)
        ratio = middle([b / a for a, b in zip(alone, calling, strict=True)])
        both = f"{milliseconds(middle(alone))} | {milliseconds(middle(calling))}"
        lines.append(
            f"| {case.name} | {what} | {both} | {ratio.value:.2f} ({ratio.low:.2f} to {ratio.high:.2f}) |"
        )
    return lines


def call_row(case: Case, middle: Middle) -> str:
    """Return the line of the table of calls."""
    changing, staying, moving, counts = [], [], [], []
    for run in case.calling:
        counts.append(len(run.reordered))
        changing += [called for outcome, called, _ in run.calls.values() if outcome == 1]
        staying += [called for outcome, called, _ in run.calls.values() if outcome == 0]
        moving += [moved for outcome, _, moved in run.calls.values() if outcome == 1]
    of = len(case.calling[0].calls)
    changed = f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    times = [milliseconds(middle(found)) if len(found) > 5 else "" for found in (changing, moving, staying)]
    return f"| {case.name} | {changed} of {of} | {' | '.join(times)} |"


def earned_back(case: Case, after: int) -> int | None:
    """Return how many steps after a call its cost is earned back: the run without calls has taken longer since."""
    saved = case.saved()
    for step in range(after, case.steps):
        if saved[step] > saved[after - 1]:
            return step - after + 1
    return None


def total_row(case: Case, middle: Middle) -> str:
    """Return the line of the table of whole runs."""
    alone, calling = [run.total for run in case.alone], [run.total for run in case.calling]
    ratio = middle([b / a for a, b in zip(alone, calling, strict=True)])
    saved = middle([a - b for a, b in zip(alone, calling, strict=True)])
    back = [earned_back(case, after) for after in case.calling[0].reordered]
    words = " and ".join("never" if steps is None else str(steps) for steps in back) or "no new order"
    return (
        f"| {case.name} | {middle(alone).value:.2f} | {middle(calling).value:.2f} | "
        f"{saved.value:.2f} ({saved.low:.2f} to {saved.high:.2f}) | "
        f"{ratio.value:.2f} ({ratio.low:.2f} to {ratio.high:.2f}) | {words} |"
    )


TEXT = """\
# Another order of the ranks while a program runs

`commlens_reorder()` ([guide](../guide/place.md#while-the-program-runs)) gives the ranks of a running program another order
when this pays. Here a stencil changes its pattern half-way, on four simulated hosts with slow links.

    {command}

{machine}.
Open MPI 4.1.4 and MPICH 5.0.2; {rounds} rounds, without and with calls in random order; other users shared the processors.
The times of all runs are in [reorder.csv](reorder.csv).

- A host is a network namespace. `tbf` limits its link to {rate:g} Mbit/s in each direction. Ranks of one host use shared
  memory. No latency is added. (`bench/shaped_hosts.py` can add it, by `bench/delay.c` on TUN devices: with 1, 5 and 20 ms, a
  round trip of one byte takes at least 2.2, 10.3 and 40.4 ms.)
- `bench/turning.c`, and the same in Fortran and with mpi4py: 16 ranks on a torus of 4 x 4, four ranks a host, the first
  ranks on the first host. In each step a rank sends 16 KiB to each of two neighbours along the flow, and 1 KiB to each of
  its four neighbours on the torus. The flow is along the columns for 20 steps, and along the diagonals for 20 steps. In the
  launcher's order all messages along the flow leave the host.
- *With calls*: the program calls `commlens_reorder()` after every fifth step, without knowing when the flow turns. After a
  new order it moves its data. *Without*: it never calls. Both run under commlens with its default options. The program
  checks every number that it receives.
- Middle over the rounds (Hodges-Lehmann estimate) and its 95 % interval. A ratio is that of two runs of one round.

![Seconds saved since the start, by step](reorder.svg)

The curve falls where a call costs time, and rises after it. So the cost of a call is earned back where the curve reaches
the height that it had before the call. The flow turns at the dashed line.

| program | steps | ms a step without calls | ms a step with calls | ratio |
|---|---|---|---|---|
{steps}

| program | s without calls | s with calls | s saved | ratio | steps until a call is earned back |
|---|---|---|---|---|---|
{totals}

A whole run contains the calls and the moving of the data.

| program | calls that changed the order | ms of such a call | ms of moving the data | ms of another call |
|---|---|---|---|---|
{calls}

A call changes the order after step 5 and after step 25, when five steps with a pattern have been counted. The other calls
find an order that is good already.

**The cost is part of the decision.** With *short messages* a rank sends 128 bytes along the flow and 8 bytes to each
neighbour, and the program calls after every step. The call takes longer than a step; another order cannot save that, so the order
{verdict}. It changes all the same if a step before the call has waited long, as
the first step does, which connects the processes: then the time of communication looks large beside the cost. With calls
the run is slower by what the calls take: such a program calls less often.
"""


def page(cases: Sequence[Case], rate: float, facts: str, middle: Middle) -> str:
    """Return the page."""
    long, short = cases[:-1], cases[-1]
    changes = sum(len(run.reordered) for run in short.calling)
    asked = sum(len(run.calls) for run in short.calling)
    return TEXT.format(
        command=".venv/bin/python bench/shaped_reorder.py --page",
        machine=facts,
        rounds=len(short.alone),
        rate=rate,
        steps="\n".join(line for case in long for line in step_rows(case, middle)),
        totals="\n".join(total_row(case, middle) for case in cases),
        calls="\n".join(call_row(case, middle) for case in cases),
        verdict=f"remained in {asked - changes:,} of {asked:,} calls",
    )


def picture(cases: Sequence[Case]) -> str:
    """Return the seconds saved since the start, by step, as SVG."""
    long = cases[:-1]
    width, height, left, bottom, top, right = 720, 360, 60, 40, 20, 170
    curves = [np.concatenate([[0], case.saved()]) for case in long]
    high, low = max(float(c.max()) for c in curves), min(float(c.min()) for c in curves)
    steps, half = long[0].steps, long[0].half

    def x(step: float) -> float:
        return left + (width - left - right) * step / steps

    def y(seconds: float) -> float:
        return height - bottom - (height - bottom - top) * (seconds - low) / (high - low)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="{x(steps / 2):.0f}" y="{height - 6}" text-anchor="middle">step</text>',
        f'<text x="{left}" y="{top - 6}">seconds saved since the start</text>',
        f'<line x1="{x(half):.1f}" x2="{x(half):.1f}" y1="{top}" y2="{height - bottom}" stroke="#888" stroke-dasharray="4"/>',
        f'<line x1="{x(0)}" x2="{x(steps)}" y1="{y(0):.1f}" y2="{y(0):.1f}" stroke="#888"/>',
    ]
    for step in range(0, steps + 1, 5):
        parts.append(f'<text x="{x(step):.1f}" y="{height - 24}" text-anchor="middle">{step}</text>')
    for seconds in range(int(high) + 1):
        parts.append(f'<text x="{left - 8}" y="{y(seconds) + 4:.1f}" text-anchor="end">{seconds}</text>')
    for number, (case, curve, colour) in enumerate(zip(long, curves, COLOURS, strict=True)):
        points = " ".join(f"{x(step):.1f},{y(float(value)):.1f}" for step, value in enumerate(curve))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        place = f'x="{width - right + 12}" y="{top + 20 + 18 * number}" fill="{colour}"'
        parts.append(f"<text {place}>{case.name}</text>")
    return "\n".join([*parts, "</svg>"]) + "\n"
