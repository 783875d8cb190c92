# SPDX-License-Identifier: Apache-2.0
"""One static page about a dataset, in the style of the page of a job: for the web server of a centre. It has no script."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import resources
from typing import Any
from urllib.parse import quote

from commlens.base.counts import count_text
from commlens.base.errors import CommlensError
from commlens.base.escape import Target, escape
from commlens.fleet.answer import ask, cell_text, heading
from commlens.fleet.engine import Engine
from commlens.fleet.questions import OF_ALL_CODES, read_question

MOST_ROWS = 15
MOST_CODES = 8
ONE_LINE = 32
WIDEST_BAR = 110
COLOURS = ("#3d6fa5", "#c9742b", "#4f8f4f", "#a24d7d", "#7a6bb0", "#9a8a2f", "#4a9a9a", "#b35050")
OTHERS = "#8a929c"
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
FIELDS = ("job", "job_id", "cluster", "month")
SAFE_BEGINS = ("https://", "http://", "/", "./", "../")

PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>{style}
main.fleet{{display:block}}
.fleet .panel{{margin-bottom:1.1rem;overflow-x:auto}}
.fleet table{{border-collapse:collapse;font-variant-numeric:tabular-nums}}
.fleet th,.fleet td{{padding:.2rem .8rem .2rem 0;text-align:right;white-space:nowrap}}
.fleet th{{color:var(--soft);font-weight:600}}
.fleet th,.fleet td{{overflow-wrap:normal}}
.fleet .text,.fleet .date{{text-align:left}}
.fleet td.text{{white-space:normal;overflow-wrap:break-word;max-width:22rem}}
.fleet td.text.one{{white-space:nowrap}}
.fleet svg{{display:block;width:100%;height:auto;min-width:42rem}}
.fleet svg text{{fill:var(--ink);font:13px system-ui,sans-serif}}
.fleet svg .soft{{fill:var(--soft)}}
.fleet .item{{display:inline-block;margin-right:1em}}
.fleet .key{{display:inline-block;width:.8em;height:.8em;margin-right:.35em}}
</style>
<body>
<main class="fleet">
<div class="top"><div class="title"><h1>{title}</h1><p>{about}</p></div></div>
{panels}
</main>
</body>
</html>
"""

ABOUT_SQL = """
SELECT COUNT(*), COUNT(DISTINCT code), COUNT(DISTINCT cluster), SUM(app_ns / 3.6e12),
       SUM(mpi_ns / 3.6e12) / NULLIF(SUM(app_ns / 3.6e12), 0), MIN(start), MAX(start) FROM job
"""
MONTHS_SQL = """
SELECT month, code, SUM(app_ns / 3.6e12) AS hours, SUM(mpi_ns / 3.6e12) AS mpi_hours
  FROM job WHERE month <> '' GROUP BY month, code ORDER BY month, code
"""
GROUPS_SQL = """
SELECT {by}, COUNT(*) AS jobs, SUM(app_ns / 3.6e12) AS hours,
       SUM(mpi_ns / 3.6e12) / NULLIF(SUM(app_ns / 3.6e12), 0) AS mpi_share,
       SUM(waiting_ns / 3.6e12) / NULLIF(SUM(waiting_of_ns / 3.6e12), 0) AS waiting_share
  FROM job GROUP BY {by} ORDER BY hours DESC, {by}
"""
LARGEST_SQL = """
SELECT code, job, job_id, cluster, month FROM (
       SELECT code, job, job_id, cluster, month, ROW_NUMBER() OVER (PARTITION BY code ORDER BY mpi_ns DESC, job) AS place
         FROM job) AS ordered WHERE place = 1
"""
JOBS_SQL = """
SELECT job_id, code, cluster, start, ranks, app_ns / 3.6e12 AS hours, mpi_ns / 3.6e12 AS mpi_hours,
       mpi_ns / 1e0 / NULLIF(app_ns, 0) AS mpi_share, load_balance, job, month
  FROM job WHERE {where} ORDER BY {order}, job LIMIT 15
"""
TOP_JOBS = (
    ("Jobs with the most time in MPI", "1 = 1", "mpi_ns DESC"),
    (
        "Jobs that lose the most to load imbalance",
        "load_balance IS NOT NULL",
        "app_ns * (1 - load_balance) DESC",
    ),
)
HIDDEN = ("job", "month", "profile", "owner", "example")
QUESTIONS = (
    "share",
    "procedures",
    "communicators",
    "candidates",
    "regressions",
    "imbalance",
    "misuse",
    "slow-nodes",
    "missing",
    "cost",
)


@dataclass(frozen=True)
class Links:
    """Addresses of the pages of jobs.

    Attributes
    ----------
    template : str
        With {job}, {job_id}, {cluster} and {month} in it; empty: no links.
    """

    template: str = ""

    def __post_init__(self) -> None:
        if self.template and not self.template.startswith(SAFE_BEGINS):
            raise CommlensError(f"--job-page: an address begins with one of {' '.join(SAFE_BEGINS)}")
        rest = self.template
        for name in FIELDS:
            rest = rest.replace(f"{{{name}}}", "")
        if "{" in rest or "}" in rest:
            raise CommlensError(f"--job-page: knows {', '.join(f'{{{name}}}' for name in FIELDS)}")

    def to(self, row: Mapping[str, Any]) -> str:
        """Return the address of a job's page; empty without a template or without a job id that it needs."""
        address = self.template
        for name in FIELDS:
            mark = f"{{{name}}}"
            if mark in address:
                value = str(row.get(name) or "")
                if not value or value in (".", ".."):
                    return ""
                address = address.replace(mark, quote(value, safe=""))
        return address


def safe(text: object) -> str:
    """Return a text for HTML."""
    return escape(str(text), Target.HTML)


def linked(text: str, address: str) -> str:
    """Return a text as a link, or as it is without an address."""
    return f'<a href="{safe(address)}">{safe(text)}</a>' if address else safe(text)


def table(titles: Sequence[str], rows: Sequence[Sequence[Any]], links: Sequence[str]) -> str:
    """Return a table; the cell of row i that names its job or code is a link to links[i]. Empty columns are left out."""
    shown = [
        i
        for i, title in enumerate(titles)
        if title not in HIDDEN and any(row[i] not in (None, "") for row in rows)
    ]
    names = [titles.index(title) for title in ("job_id", "code", "name") if title in titles]
    classes = [class_of([row[i] for row in rows]) for i in range(len(titles))]

    def cell(i: int, row: Sequence[Any], address: str) -> str:
        text = cell_text(titles[i], row[i])
        is_link = i == next((name for name in names if name in shown and row[name]), -1)
        return f"<td{classes[i]}>{linked(text, address) if is_link else safe(text)}</td>"

    head = "".join(f"<th scope=col{classes[i]}>{safe(heading(titles[i]))}</th>" for i in shown)
    body = "\n".join(
        f"<tr>{''.join(cell(i, row, address) for i in shown)}</tr>" for row, address in zip(rows, links)
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>"


def class_of(values: Sequence[Any]) -> str:
    """Return the attribute of the cells of a column: dates and texts are on the left, and short ones on one line.

    >>> class_of([1, None]), class_of(["short", None]), class_of(["x" * 99])
    ('', ' class="text one"', ' class="text"')
    """
    if any(isinstance(value, datetime) for value in values):
        return ' class="date"'
    lengths = [len(value) for value in values if isinstance(value, str)]
    if not lengths:
        return ""
    return ' class="text one"' if max(lengths) <= ONE_LINE else ' class="text"'


def panel(title: str, about: str, content: str) -> str:
    """Return a part of the page."""
    return f'<section class="panel"><h2>{safe(title)}</h2><p class="about">{safe(about)}</p>\n{content}\n</section>'


def month_chart(rows: Sequence[tuple[Any, ...]]) -> str:
    """Return hours by month as stacked bars, by code, with the share of MPI above each bar."""
    of_code: dict[str, float] = defaultdict(float)
    of_month: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    in_mpi: dict[str, float] = defaultdict(float)
    for month, code, hours, mpi_hours in rows:
        of_code[code] += hours
        of_month[month][code] += hours
        in_mpi[month] += mpi_hours
    named = sorted(of_code, key=lambda code: (-of_code[code], code))[:MOST_CODES]
    colours = dict(zip(named, COLOURS))
    most = max((sum(codes.values()) for codes in of_month.values()), default=0) or 1
    width, height, low = 960, 270, 215
    step = min(WIDEST_BAR, (width - 20) / max(1, len(of_month)))
    parts = []
    for place, (month, codes) in enumerate(of_month.items()):
        x, y, whole = 10 + place * step, float(low), sum(codes.values())
        rest = whole - sum(codes.get(code, 0) for code in named)
        for code, hours in [*((code, codes.get(code, 0.0)) for code in named), ("others", rest)]:
            tall = 185 * hours / most
            y -= tall
            title = f"<title>{safe(code)}, {safe(month)}: {hours:,.0f} hours</title>"
            fill = colours.get(code, OTHERS)
            parts.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{0.8 * step:.1f}" height="{tall:.1f}" fill="{fill}">{title}</rect>'
            )
        middle = x + 0.4 * step
        share = 100 * in_mpi[month] / whole if whole else 0
        parts.append(f'<text x="{middle:.1f}" y="{y - 6:.1f}" text-anchor="middle">{share:.0f} %</text>')
        parts.append(f'<text x="{middle:.1f}" y="{low + 18}" text-anchor="middle">{safe(month)}</text>')
        parts.append(
            f'<text class="soft" x="{middle:.1f}" y="{low + 37}" text-anchor="middle">{cell_text("hours", whole)} h</text>'
        )
    keys = "".join(
        f'<span class="item"><span class="key" style="background:{colours.get(code, OTHERS)}"></span>{safe(code)}</span>'
        for code in [*named, *(["others"] if len(of_code) > len(named) else [])]
    )
    label = "Hours of all processes by month and code"
    return f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{label}">{"".join(parts)}</svg><p>{keys}</p>'


def panels(engine: Engine, links: Links, names: Iterable[str], *, is_personal: bool) -> Iterator[str]:
    """Yield the sections of the page. names: the questions that it answers."""
    rows = engine.run(MONTHS_SQL)[1]
    about = "Hours of all processes by month and code; above a bar the share of MPI, below it the hours."
    yield panel("The machine over time", about, month_chart(rows))
    of_code = largest(engine, links)
    for by, title in (("owner_group", "By user group"), *((("owner", "By user"),) if is_personal else ())):
        titles, some = engine.run(GROUPS_SQL.format(by=by))
        titles = [title.replace("owner", "user") for title in titles]
        yield panel(
            title,
            "Hours of all processes, shares of MPI and of waiting.",
            table(titles, some[:MOST_ROWS], [""] * len(some)),
        )
    for title, where, order in TOP_JOBS:
        titles, some = engine.run(JOBS_SQL.format(where=where, order=order))
        to = [links.to(dict(zip(titles, row))) for row in some]
        yield panel(
            title, "Each line leads to the page of the job." if any(to) else "", table(titles, some, to)
        )
    for name in names:
        question = read_question(name)
        titles, some = ask(engine, question)
        # Of share, what the chart does not show: codes and queues.
        some = [row for row in some if name != "share" or row[0] != "month"][:MOST_ROWS]
        if some:
            at = titles.index("code") if "code" in titles else 1
            to = [of_code.get(str(row[at]), "") for row in some]
            yield panel(question.title, question.about, table(titles, some, to))


def largest(engine: Engine, links: Links) -> dict[str, str]:
    """Return the address of the page of the job with the most time in MPI of each code."""
    titles, rows = engine.run(LARGEST_SQL)
    return {row[0]: links.to(dict(zip(titles, row))) for row in rows}


def page(
    engine: Engine, title: str, links: Links, *, is_personal: bool = False, is_of_one_code: bool = False
) -> str:
    """Return the page of a dataset. Without is_personal it names no user and no path."""
    names = [name for name in QUESTIONS if not (is_of_one_code and name in OF_ALL_CODES)]
    ((jobs, codes, clusters, hours, share, first, last),) = engine.run(ABOUT_SQL)[1]
    about = f"{count_text(jobs, 'job')} of {count_text(codes, 'code')} on {count_text(clusters, 'machine')}"
    if first is not None:
        about += f", {first:%Y-%m-%d} to {last:%Y-%m-%d}: {hours:,.0f} hours of processes, {100 * (share or 0):.1f} % in MPI"
    style = resources.files("commlens.page").joinpath("_page.css").read_text(encoding="utf-8")
    return PAGE.format(
        policy=POLICY,
        title=safe(title),
        about=safe(about),
        style=style,
        panels="\n".join(panels(engine, links, names, is_personal=is_personal)),
    )
