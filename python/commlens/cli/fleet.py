# SPDX-License-Identifier: Apache-2.0
"""`commlens fleet`."""

from __future__ import annotations

import re
import sys
import tempfile
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from rich.text import Text

from commlens.base.errors import CommlensError
from commlens.cli.exit_codes import FAILED, SUCCESS
from commlens.cli.options import OutputPath, Parsed, format_option, sql_option, top_option
from commlens.fleet.questions import NAMES, OF_ALL_CODES, OF_DATE, read_question
from commlens.render.screen import Screen
from commlens.render.table import csv_text, fold, json_text

if TYPE_CHECKING:
    from commlens.fleet.engine import Answer, Engine

# Most of commlens.fleet is imported where it is used: it needs numpy.

ANSWERS = ("a question", "--query", "--alert", "--html", "--files")
MONTH = re.compile(r"\d{4}-\d\d", re.ASCII)


def parse_month(text: str) -> str:
    """Return a month.

    >>> parse_month("2026-03")
    '2026-03'
    """
    if not MONTH.fullmatch(text):
        raise ValueError(f"'{text}' is not a month such as 2026-03")
    return text


def parse_date(text: str) -> datetime:
    """Return a date, or a date and a time.

    >>> parse_date("2026-03-01"), parse_date("2026-03-01T12:30")
    (datetime.datetime(2026, 3, 1, 0, 0), datetime.datetime(2026, 3, 1, 12, 30))
    """
    for form in ("%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"):
        try:
            return datetime.strptime(text, form)
        except ValueError:
            continue
    raise ValueError(f"'{text}' is not a date such as 2026-03-01")


MONTHS = Parsed("month", parse_month)
DATE = Parsed("date", parse_date)


@click.command()
@click.argument("dataset", type=click.Path(path_type=Path), metavar="DATASET")
@click.argument("question", type=click.Choice(NAMES), required=False, metavar="[QUESTION]")
@click.option(
    "--query",
    metavar="SQL",
    help="Your own query on the tables, instead of a question; - reads it from standard input.",
)
@click.option("--code", default="", metavar="NAME", help="Only jobs of this code.")
@click.option("--cluster", default="", metavar="NAME", help="Only jobs on this machine.")
@click.option(
    "--since",
    type=MONTHS,
    default=None,
    metavar="MONTH",
    help="Only jobs that started in this month or later.",
)
@click.option(
    "--until",
    type=MONTHS,
    default=None,
    metavar="MONTH",
    help="Only jobs that started in this month or earlier.",
)
@click.option(
    "--at", type=DATE, metavar="DATE",
    help="For question regressions: when something changed.  [default: 30 days before the newest job]",
)  # fmt: skip
@click.option(
    "--alert", "rules", type=click.Path(path_type=Path), metavar="RULES",
    help="Instead of a question: alarms by the rules of a TOML file, as a mail or with --format json. Exit code 1: "
    "there are some.",
)  # fmt: skip
@click.option(
    "--html", "output", type=OutputPath(), metavar="FILE",
    help="Instead of a question: write one static page about all jobs. It names no user and no path unless "
    "--personal is given.",
)  # fmt: skip
@click.option(
    "--job-page", default="", metavar="ADDRESS",
    help="With --html: the address of the page of a job, with {job}, {job_id}, {cluster} or {month} in it, as in "
    "/jobs/{cluster}/{job_id}.html. Lines of the page become links to it.",
)  # fmt: skip
@click.option("--personal", is_flag=True, help="With --html: name users, too.")
@click.option(
    "--engine", "name", type=click.Choice(["duckdb", "spark"]), default="duckdb", show_default=True,
    help="What runs the queries: DuckDB in this process, or Spark, which needs the package pyspark and Java.",
)  # fmt: skip
@click.option(
    "--master", default="", metavar="URL",
    help="With --engine spark: the cluster, as in spark-submit --master: spark://HOST:PORT, yarn, local[4].  [default: local[*]]",
)  # fmt: skip
@click.option("--memory", default="", metavar="SIZE", help="Most memory that DuckDB uses, such as 4GB.")
@click.option(
    "--threads", type=click.IntRange(min=1), default=None, metavar="N", help="Most threads that DuckDB uses."
)
@click.option(
    "--files",
    "of_table",
    metavar="TABLE",
    help="Instead of a question: print the Parquet files of a table, for other programs.",
)
@top_option(20, "Limit a table to N rows; 0 means all.")
@format_option
@sql_option
@click.pass_context
def fleet(
    context: click.Context,
    /,
    dataset: Path,
    question: str | None,
    query: str | None,
    rules: Path | None,
    output: Path | None,
    job_page: str,
    personal: bool,
    of_table: str | None,
    top: int,
    style: str,
    show_sql: bool,
    **of_engine: Any,
) -> None:
    """Ask about all jobs in DATASET, which commlens ingest wrote.

    QUESTION is one of these; without one, commlens lists them:

    \b
    share          How much of the machine is spent in MPI, and how much of that is waiting?
    communicators  What do our communicators look like, and how much time is in sub-communicators?
    procedures     Which procedures take the time, by message size and size of the communicator?
    candidates     Which codes would gain from tuning collectives or from another placement?
    regressions    Which codes are slower or faster since a date, with the same input?
    slow-nodes     Which nodes are slow, in job after job?
    imbalance      Which codes lose time because some processes have more to do than others?
    misuse         Which codes use MPI in a way that costs them time?
    missing        Which jobs have no profile, or only a part of one, and why?
    cost           What does commlens itself cost?
    refused        Which profiles could not be read?

    Each is one SQL view, which --sql prints; --query runs your own SQL. The tables are those of
    docs/reference/dataset.md, view asked has the date of --at, view unreadable the refused profiles that were
    not read since, and view every_job the jobs of all codes and months. Needs the package duckdb.

    Hours are hours of processes: a job of 64 processes that runs for an hour counts 64.
    """  # noqa: D301 - click's mark for lines that it must not join
    screen = Screen()
    asked = (question, query, rules, output, of_table)
    refuse_contradictions(*asked, of_page=job_page or personal, show_sql=show_sql, **of_engine)
    if of_table is not None:
        print_files(screen, dataset, of_table, context)
        return
    if show_sql and question is not None:
        screen.plain(f"{read_question(question).sql};\n")
        return
    engine = opened(dataset, **of_engine)
    if rules is not None:
        context.exit(FAILED if alert(screen, engine, dataset, rules, style) else SUCCESS)
    elif output is not None:
        write_page(engine, output, dataset, job_page, of_engine["code"], is_personal=personal)
        screen.line(output)
    elif query is not None:
        show(screen, run_query(engine, query), top, style)
    elif question is not None:
        answer_question(screen, engine, question, top, style)
    else:
        list_questions(screen, dataset, engine)


def refuse_contradictions(
    *values: object, of_page: str | bool, show_sql: bool, code: str, at: datetime | None, **_: object
) -> None:
    """Refuse several answers at once, and options that are not of the answer; values are those of ANSWERS."""
    asked = [name for name, value in zip(ANSWERS, values) if value is not None]
    if len(asked) > 1:
        raise click.UsageError(f"{' and '.join(asked)} are different answers: use one of them")
    if of_page and asked != ["--html"]:
        raise click.UsageError("--job-page and --personal are of --html")
    if show_sql and asked != ["a question"]:
        raise click.UsageError("--sql prints the view of a question: name one")
    if code and values[0] in OF_ALL_CODES:
        raise click.UsageError(
            f"--code: question {values[0]} is about jobs of unknown code: leave --code out"
        )
    if at and (asked == ["--alert"] or (values[0] is not None and values[0] not in OF_DATE)):
        raise click.UsageError(
            f"--at has no effect on {values[0] or '--alert'}: it is for question {OF_DATE[0]}"
        )


def refuse_unused(context: click.Context) -> None:
    """Refuse options that select jobs or shape an answer: --files prints the files of all jobs."""
    for option in context.command.params:
        is_used = option.name in ("dataset", "of_table")
        if not is_used and context.get_parameter_source(str(option.name)) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{option.opts[0]} has no effect on --files: leave it out")


def opened(
    dataset: Path, *, name: str, master: str, memory: str, threads: int | None, **of_scope: Any
) -> Engine:
    """Return DuckDB or Spark with the tables of a dataset."""
    from commlens.fleet.engine import DuckEngine, Scope

    scope = Scope(**{name: value for name, value in of_scope.items() if value})
    if name == "spark":
        if memory or threads:
            raise click.UsageError("--memory and --threads are of DuckDB; Spark has spark-defaults.conf")
        from commlens.fleet.spark import LOCAL, SparkEngine

        return SparkEngine(dataset, scope, master=master or LOCAL)
    if master:
        raise click.UsageError("--master is of --engine spark")
    return DuckEngine(dataset, scope, memory=memory, threads=threads or 0)


def print_files(screen: Screen, dataset: Path, table: str, context: click.Context) -> None:
    """Print the paths of the files of a table."""
    refuse_unused(context)
    from commlens.fleet._dataset import TABLES
    from commlens.fleet.log import Log

    if table not in TABLES:
        raise CommlensError(f"no table {table}; there are {', '.join(TABLES)}")
    for file in Log(dataset).read().of(table):
        screen.line(dataset / file.path)


def run_query(engine: Engine, query: str) -> Answer:
    """Run a query of the user; - reads it from standard input."""
    try:
        if query == "-":
            query = sys.stdin.read()
        query.encode()
    except UnicodeError:
        raise CommlensError("SQL: the query is not UTF-8") from None
    return engine.query(query)


def answer_question(screen: Screen, engine: Engine, name: str, top: int, style: str) -> None:
    """Print the answer to a question; in a table, with what the columns are."""
    from commlens.fleet.answer import ask

    question = read_question(name)
    answer = ask(engine, question)
    if style == "table":
        screen.lines([*fold("", question.title, screen.width, "bold"), Text("")])
    show(screen, answer, top, style)
    if style == "table":
        screen.lines([Text(""), *fold("", question.about, screen.width, "dim")])


def show(screen: Screen, answer: Answer, top: int, style: str) -> None:
    """Print titles and rows in the format that the user chose."""
    from commlens.fleet.answer import drawn

    titles, rows = answer
    if style == "json":
        plain = [
            [value.isoformat() if isinstance(value, datetime) else value for value in row] for row in rows
        ]
        screen.json(json_text([dict(zip(titles, row)) for row in plain]))
    elif style == "csv":
        screen.plain(csv_text(titles, rows))
    elif rows:
        screen.lines(drawn(titles, rows, top).lines(screen.width))
    else:
        screen.line("no rows")


def write_page(
    engine: Engine, output: Path, dataset: Path, job_page: str, code: str, *, is_personal: bool
) -> None:
    """Write the page; it takes the place of an older one, which a web server may be sending."""
    from commlens.fleet.html import Links, page

    text = page(
        engine,
        f"All jobs of {dataset.resolve().name}",
        Links(job_page),
        is_personal=is_personal,
        is_of_one_code=bool(code),
    )
    try:
        with tempfile.TemporaryDirectory(prefix=".commlens-", dir=output.parent) as folder:
            temporary = Path(folder, output.name)
            temporary.write_text(text, encoding="utf-8", errors="backslashreplace")
            temporary.replace(output)
    except OSError as error:
        raise CommlensError(f"{output}: cannot be written: {error.strerror or error}") from None


def alert(screen: Screen, engine: Engine, dataset: Path, rules: Path, style: str) -> bool:
    """Print the alarms; return whether there are some."""
    from commlens.fleet.alerts import Alarm, alarms, mail, read_rules

    found = alarms(engine, read_rules(rules))
    if style == "json":
        screen.json(json_text([alarm.as_dict() for alarm in found]))
    elif style == "csv":
        titles = [*Alarm.__dataclass_fields__, "text"]
        screen.plain(csv_text(titles, [list(alarm.as_dict().values()) for alarm in found]))
    else:
        for line in mail(found, dataset.name):
            screen.line(line)
    return bool(found)


def list_questions(screen: Screen, dataset: Path, engine: Engine) -> None:
    """Print what a dataset contains, and the questions."""
    from commlens.fleet.answer import summary

    for line in summary(dataset, engine):
        screen.line(line)
    screen.line("")
    width = max(map(len, NAMES)) + 2
    for name in NAMES:
        screen.lines(fold(name.ljust(width), read_question(name).title, screen.width))
