# SPDX-License-Identifier: Apache-2.0
"""Alarms: a code that takes longer than its own history, and a node that is slower than the others of its jobs.

A run is compared with earlier runs of the same input, so that other inputs are no alarm. All statistics are medians: some
failed or disturbed runs do not change them. Days of the week have medians of their own, since a machine is quieter at
weekends. A single day counts once, however many jobs it has, since what disturbs one job disturbs its neighbours.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import date, datetime, timedelta
from math import exp, log, sqrt
from pathlib import Path
from statistics import median
from typing import Any

from commlens.base.errors import CommlensError
from commlens.fleet.engine import IS_PLAUSIBLE, Engine
from commlens.fleet.toml import read_toml

NORMAL = 1.4826  # standard deviation of a normal distribution over its median absolute deviation
OF_MEDIAN = 1.2533  # standard error of a median over that of a mean
LEAST_SCALE = 0.004  # a history without any spread is too short to know it
BEFORE_FEWEST_DAYS = 14
AFTER_FEWEST_DAYS = 3
FEWEST_OF_INPUT = 3
FEWEST_OF_WEEKDAY = 5
FOUR_WEEKS = 28

RUNS_SQL = f"""
SELECT cluster, code, input, start, elapsed_ns / 1e9 AS seconds, app_ns / 3.6e12 AS hours
  FROM job WHERE start IS NOT NULL AND elapsed_ns > 0 AND state IN ('finalized', '') AND {IS_PLAUSIBLE}
 ORDER BY cluster, code, start, job
"""
NODES_SQL = f"""
SELECT cluster, node, start, slowness FROM node
 WHERE slowness IS NOT NULL AND start IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM job WHERE job.job = node.job AND NOT {IS_PLAUSIBLE})
 ORDER BY cluster, node, start, job
"""


@dataclass(frozen=True)
class Regression:
    """The rule for codes.

    Attributes
    ----------
    change : float
        Smallest change of the run time, as a part of it.
    deviations : float
        By how many standard errors it must differ.
    history_days, window_days : int
        Days before and from a date on that are compared.
    jobs : int
        Fewest runs in the window.
    """

    change: float = 0.03
    deviations: float = 5.0
    history_days: int = 60
    window_days: int = 14
    jobs: int = 10


@dataclass(frozen=True)
class SlowNode:
    """The rule for nodes.

    Attributes
    ----------
    slowness : float
        Smallest median over the jobs, compared with the other nodes of each job.
    jobs : int
        Fewest jobs in the window.
    window_days : int
        The last days that must be slow.
    """

    slowness: float = 1.05
    jobs: int = 8
    window_days: int = 28


@dataclass(frozen=True)
class Rules:
    """What is an alarm.

    Attributes
    ----------
    last_days : int
        Only changes of the last days, counted from the newest job; 0: of all days.
    """

    last_days: int = 14
    regression: Regression = field(default_factory=Regression)
    slow_node: SlowNode = field(default_factory=SlowNode)


@dataclass(frozen=True)
class Alarm:
    """One alarm.

    Attributes
    ----------
    kind : str
        regression or slow node.
    since : date
        First day.
    change : float
        By which part the run time, or the time of the node, is longer.
    """

    kind: str
    cluster: str
    name: str
    since: date
    change: float
    jobs: int
    deviations: float
    lost_hours: float

    def text(self) -> str:
        """Return the alarm in a sentence."""
        if self.kind == "regression":
            return (
                f"{self.name} on {self.cluster} takes {100 * self.change:.1f} % longer since {self.since:%Y-%m-%d}: "
                f"{self.jobs:,} runs after that date against runs with the same input before it; "
                f"these took {self.lost_hours:,.0f} hours more"
            )
        return (
            f"node {self.name} of {self.cluster} computes {100 * self.change:.1f} % slower than the other nodes of its jobs "
            f"since {self.since:%Y-%m-%d}: median of {self.jobs:,} jobs"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the alarm for JSON."""
        return {**asdict(self), "since": self.since.isoformat(), "text": self.text()}


def read_rules(path: Path) -> Rules:
    """Return the rules of a file; what it does not name has the default.

    Raises
    ------
    CommlensError
        It cannot be read, or has an unknown name or a value that is no positive number.
    """
    content = read_toml(path)
    parts: dict[str, Any] = {}
    for name, kind in (("regression", Regression), ("slow_node", SlowNode)):
        table = content.pop(name, {})
        if not isinstance(table, dict):
            raise CommlensError(f"{path}: {name} is no table")
        parts[name] = kind(**_numbers(path, f"{name}.", table, kind()))
    return Rules(**{**_numbers(path, "", content, Rules()), **parts})


def _numbers(path: Path, where: str, table: dict[str, Any], defaults: Any) -> dict[str, Any]:
    known = {f.name: getattr(defaults, f.name) for f in fields(defaults)}
    known = {name: value for name, value in known.items() if isinstance(value, (int, float))}
    for name, value in table.items():
        if name not in known:
            raise CommlensError(f"{path}: no rule {where}{name}; there are {', '.join(known)}")
        kinds = (int, float) if isinstance(known[name], float) else (int,)
        if not isinstance(value, kinds) or isinstance(value, bool) or not 0 <= value < 1e9:
            what = "a number" if float in kinds else "a whole number"
            raise CommlensError(f"{path}: {where}{name} is not {what} of at least 0")
    return {name: type(known[name])(value) for name, value in table.items()}


@dataclass(frozen=True)
class Run:
    """One run of a code: day since 1970, its input, logarithm of its seconds, hours of all processes."""

    day: int
    case: str
    log_s: float
    hours: float


@dataclass(frozen=True)
class Step:
    """The difference between the days before and from a day on."""

    day: int
    change: float
    deviations: float
    jobs: int
    lost_hours: float

    def holds(self, rule: Regression) -> bool:
        """Return whether it is large and clear enough for an alarm."""
        return self.change >= rule.change and self.deviations >= rule.deviations


def day_of(time: datetime) -> int:
    """Return the number of a day."""
    return (time.date() - date(1970, 1, 1)).days


def date_of(day: int) -> date:
    """Return the date of a day's number."""
    return date(1970, 1, 1) + timedelta(days=day)


def weekday_of(day: int) -> int:
    """Return the day of the week, Monday being 0."""
    return (day + 3) % 7


def by_day(values: Iterable[tuple[int, float]]) -> list[float]:
    """Return the median of each day."""
    days: dict[int, list[float]] = defaultdict(list)
    for day, value in values:
        days[day].append(value)
    return [median(some) for some in days.values()]


def usual_of_inputs(runs: Iterable[Run]) -> dict[str, float]:
    """Return the median log time of each input that enough runs have.

    >>> usual_of_inputs([Run(day, "a", 1.0 + day, 1.0) for day in range(FEWEST_OF_INPUT)]) == {"a": (1 + FEWEST_OF_INPUT) / 2}
    True
    >>> usual_of_inputs([])
    {}
    """
    of_input: dict[str, list[float]] = defaultdict(list)
    for run in runs:
        of_input[run.case].append(run.log_s)
    return {name: median(some) for name, some in of_input.items() if len(some) >= FEWEST_OF_INPUT}


def step_at(day: int, before: Sequence[Run], after: Sequence[Run], rule: Regression) -> Step | None:
    """Return how runs from a day on differ from those before it; None if there are too few to know.

    >>> usual = [Run(day, "a", 1.0 + 0.001 * (day % 3), 1.0) for day in range(60)]
    >>> later = [Run(day, "a", 1.1, 1.0) for day in range(60, 74)]
    >>> round(step_at(60, usual, later, Regression()).change, 3), step_at(60, [], later, Regression())
    (0.104, None)
    """
    usual = usual_of_inputs(before)
    known = [(run.day, run.log_s - usual[run.case]) for run in before if run.case in usual]
    new = [run for run in after if run.case in usual]
    if len(new) < rule.jobs or not known:
        return None
    season = weekly(known)
    rest = by_day((day, value - season[weekday_of(day)]) for day, value in known)
    now = by_day((run.day, run.log_s - usual[run.case] - season[weekday_of(run.day)]) for run in new)
    if len(rest) < BEFORE_FEWEST_DAYS or len(now) < AFTER_FEWEST_DAYS:
        return None
    middle = median(rest)
    scale = max(LEAST_SCALE, NORMAL * median(abs(value - middle) for value in rest))
    difference = median(now) - middle
    error = OF_MEDIAN * scale * sqrt(1 / len(rest) + 1 / len(now))
    change = exp(difference) - 1
    lost = sum(run.hours for run in new) * change / (1 + change)
    return Step(day, change, difference / error, len(new), lost)


def exact_day(day: int, runs: Sequence[Run], rule: Regression) -> int:
    """Return the day near `day` that parts the runs best: the sum of their distances to the medians of both sides is least."""
    near = rule.window_days // 2
    usual = usual_of_inputs(run for run in runs if day - rule.history_days <= run.day < day - near)
    known = [run for run in runs if run.case in usual and day - rule.history_days <= run.day]
    values = [(run.day, run.log_s - usual[run.case]) for run in known]
    before = [value for value in values if value[0] < day - near]
    if not before:
        return day
    season = weekly(before)
    close = [
        (at, value - season[weekday_of(at)]) for at, value in values if abs(at - day) <= rule.window_days
    ]

    def cost(split: int) -> float:
        total = 0.0
        for side in ([v for at, v in close if at < split], [v for at, v in close if at >= split]):
            middle = median(side) if side else 0.0
            total += sum(abs(value - middle) for value in side)
        return total

    return min(range(day - near, day + near + 1), key=lambda split: (cost(split), split))


def parted(runs: Sequence[Run], day: int, rule: Regression) -> Step | None:
    """Return how the runs from a day on differ from those before it, as far as the rule looks."""
    before = [run for run in runs if day - rule.history_days <= run.day < day]
    after = [run for run in runs if day <= run.day < day + rule.window_days]
    return step_at(day, before, after, rule)


def weekly(known: Sequence[tuple[int, float]]) -> list[float]:
    """Return the usual deviation of each day of the week; 0 for all if there are less than four weeks."""
    days = [day for day, _ in known]
    if max(days) - min(days) + 1 < FOUR_WEEKS:
        return [0.0] * 7
    found = []
    for weekday in range(7):
        some = [value for day, value in known if weekday_of(day) == weekday]
        found.append(median(some) if len(some) >= FEWEST_OF_WEEKDAY else 0.0)
    return found


def steps(runs: Sequence[Run], rule: Regression, first: int) -> Iterator[Step]:
    """Yield the changes of one code from day `first` on: of each row of days that tell of one, the clearest."""
    clearest: Step | None = None
    for day in sorted({run.day for run in runs}):
        if day < first:
            continue
        if clearest is not None and day - clearest.day >= rule.window_days:
            yield from exactly(clearest, runs, rule)
            # What follows is compared with the new state.
            runs = [run for run in runs if run.day >= clearest.day]
            clearest = None
        step = parted(runs, day, rule)
        if step is not None and step.holds(rule) and (not clearest or step.deviations > clearest.deviations):
            clearest = step
    if clearest is not None:
        yield from exactly(clearest, runs, rule)


def exactly(step: Step, runs: Sequence[Run], rule: Regression) -> Iterator[Step]:
    """Yield a step at the day on which it happened, if it holds there, too."""
    exact = parted(runs, exact_day(step.day, runs, rule), rule)
    if exact is not None and exact.holds(rule):
        yield exact


def onset(values: Sequence[tuple[int, float]], slowness: float) -> int:
    """Return the day from which on a node is slow: where the sum of what exceeds half of the limit is smallest before it.

    >>> onset([(day, 1.0 if day < 7 else 1.2) for day in range(20)], 1.05)
    7
    """
    total, least, found = 0.0, 0.0, values[0][0]
    for place, (_, value) in enumerate(values):
        total += value - (1 + slowness) / 2
        if total < least and place + 1 < len(values):
            least, found = total, values[place + 1][0]
    return found


def slow_nodes(rows: Sequence[tuple[Any, ...]], rule: SlowNode, newest: int) -> Iterator[Alarm]:
    """Yield the nodes that are slow now."""
    of_node: dict[tuple[str, str], list[tuple[int, float]]] = defaultdict(list)
    for cluster, node, start, slowness in rows:
        of_node[cluster, node].append((day_of(start), slowness))
    for (cluster, node), values in of_node.items():
        last = [value for day, value in values if day > newest - rule.window_days]
        if len(last) >= max(1, rule.jobs) and median(last) >= rule.slowness:
            since = onset(values, rule.slowness)
            slow = [value for day, value in values if day >= since]
            yield Alarm("slow node", cluster, node, date_of(since), median(slow) - 1, len(slow), 0.0, 0.0)


def alarms(engine: Engine, rules: Rules) -> list[Alarm]:
    """Return the alarms of a dataset, those that cost most first, then slow nodes."""
    rows = engine.run(RUNS_SQL)[1]
    newest = max((day_of(row[3]) for row in rows), default=0)
    first = newest - rules.last_days + 1 if rules.last_days else 0
    of_code: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for cluster, code, name, start, seconds, hours in rows:
        of_code[cluster, code].append(Run(day_of(start), name, log(seconds), hours))
    found = [
        Alarm("regression", cluster, code, date_of(s.day), s.change, s.jobs, s.deviations, s.lost_hours)
        for (cluster, code), runs in of_code.items()
        # A change some days before is the clearest at its own day.
        for s in steps(runs, rules.regression, first - rules.regression.window_days)
        if s.day >= first
    ]
    found.sort(key=lambda alarm: (-alarm.lost_hours, alarm.cluster, alarm.name))
    nodes = slow_nodes(engine.run(NODES_SQL)[1], rules.slow_node, newest)
    return found + sorted(nodes, key=lambda alarm: -alarm.change)


def mail(found: Sequence[Alarm], of: str) -> Iterator[str]:
    """Yield the lines of a mail, its subject first."""
    number = f"{len(found)} alarm{'' if len(found) == 1 else 's'}" if found else "no alarm"
    yield f"Subject: commlens: {number} in {of}"
    yield ""
    for alarm in found:
        yield f"* {alarm.text()}"
    if not found:
        yield "No code takes longer than its history, and no node is slower than others."
