# SPDX-License-Identifier: Apache-2.0
"""Which jobs count: --code and months beside the batch system, jobs that run, and profiles of a wrong clock."""

from __future__ import annotations

import csv
import io
import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from fleet_cases import answers, of_rows

from commlens.fleet.alerts import Rules, alarms
from commlens.fleet.engine import DuckEngine, Scope
from commlens.fleet.questions import NAMES, OF_ALL_CODES, OF_DATE, read_question

pytestmark = pytest.mark.usefixtures("without_fsync")

HOUR = 3600 * 10**9
WHOLE = {"ranks": 4, "ranks_collected": 4, "state": "finalized", "app_ns": HOUR}


@pytest.mark.parametrize("question", OF_ALL_CODES)
def test_a_question_about_jobs_of_unknown_code_refuses_a_code(
    question: str, tmp_path: Path, run: Run
) -> None:
    folder = of_rows(tmp_path / "set", job=[{"job": 1, "code": "a"}])
    done = run("fleet", folder, question, "--code", "a")
    assert (done.exit_code, done.stdout) == (2, "")
    message = f"--code: question {question} is about jobs of unknown code: leave --code out"
    assert message in " ".join(done.stderr.split())


def test_a_date_is_refused_where_it_has_no_effect(tmp_path: Path, run: Run) -> None:
    folder = of_rows(tmp_path / "set", job=[{"job": 1, "code": "a"}])
    for answer in (["share"], ["--alert", tmp_path / "rules.toml"]):
        done = run("fleet", folder, *answer, "--at", "2026-01-01")
        assert (done.exit_code, done.stdout) == (2, "")
        message = f"--at has no effect on {answer[0]}: it is for question regressions"
        assert message in " ".join(done.stderr.split())
    assert run("fleet", folder, "regressions", "--at", "2026-01-01").exit_code == 0


def test_the_questions_about_a_date_are_those_that_read_it() -> None:
    assert [name for name in NAMES if "asked" in read_question(name).sql] == list(OF_DATE)


def test_a_job_of_another_code_or_month_has_its_profile(tmp_path: Path) -> None:
    """The batch system has local time: a job that starts at midnight is of another month than its profile."""
    known = [{"id": i, "job_id": str(i), "state": "COMPLETED", "tasks": 4} for i in (1, 2, 3)]
    jobs = [
        {"job": 1, "job_id": "1", "code": "a", **WHOLE},
        {"job": 2, "job_id": "2", "code": "b", **WHOLE, "month": "2025-12"},
    ]
    refused = [{"id": 9, "profile": "/2.db", "changed": datetime(2026, 1, 1)}]
    jobs[1] |= {"profile": "/2.db", "changed": datetime(2026, 1, 2)}
    folder = of_rows(tmp_path / "set", batch_job=known, job=jobs, refused=refused)
    for scope in ({}, {"since": "2026-01"}, {"until": "2026-01", "cluster": "c"}, {"code": "a"}):
        (row,) = answers(folder, "missing", **scope)
        assert (row["reason"], row["jobs"]) == ("completed without a profile", 1), scope
        assert answers(folder, "refused", **scope) == [], scope
    (row,) = answers(folder, "share", code="a", since="2026-01")[:1]
    assert row["jobs"] == 1, "other questions keep to the jobs that are selected"


def test_jobs_that_have_not_ended_are_not_missing(tmp_path: Path) -> None:
    """Datasets of earlier versions of commlens have rows of them."""
    states = ("COMPLETED", "PENDING", "REQUEUED", "RESIZING", "RUNNING", "SUSPENDED")
    known = [{"id": i, "job_id": str(i), "state": state, "tasks": 4} for i, state in enumerate(states)]
    (row,) = answers(of_rows(tmp_path / "set", batch_job=known), "missing")
    assert (row["reason"], row["jobs"], row["share"]) == ("completed without a profile", 1, 1.0)


def test_a_page_of_one_code_does_not_list_jobs_without_a_profile(tmp_path: Path, run: Run) -> None:
    known = [{"id": 1, "job_id": "1", "state": "COMPLETED", "tasks": 4}]
    folder = of_rows(tmp_path / "set", batch_job=known, job=[{"job": 1, "job_id": "2", "code": "a", **WHOLE}])
    title = read_question("missing").title.replace("?", "")
    for options, is_there in (((), True), (("--code", "a"), False)):
        page = tmp_path / "page.html"
        assert run("fleet", folder, "--html", page, *options).exit_code == 0
        assert (title in page.read_text(encoding="utf-8")) == is_there


def runs(first: int, days: int, begin: datetime, seconds: float) -> list[dict[str, Any]]:
    """Return a run a day of one input."""
    usual = {"code": "a", "input": "x", "elapsed_ns": int(seconds * 1e9), "mpi_ns": HOUR, **WHOLE}
    starts = [begin + timedelta(days=day) for day in range(days)]
    return [
        {"job": first + i, "start": start, "changed": start + timedelta(hours=1), **usual}
        for i, start in enumerate(starts)
    ]


def slow_update() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return jobs of 90 days of which the last 14 are slower, and nodes of which n1 is slow all the time."""
    begin = datetime(2026, 1, 1)
    jobs = [*runs(0, 76, begin, 100.0), *runs(76, 14, begin + timedelta(days=76), 120.0)]
    nodes = [
        {"job": job["job"], "start": job["start"], "node": "n1", "nodes": 2, "slowness": 1.2} for job in jobs
    ]
    return jobs, nodes


@pytest.mark.parametrize("is_late", [False, True])
def test_a_clock_in_the_future_hides_no_alarm_and_no_regression(is_late: bool, tmp_path: Path) -> None:
    jobs, nodes = slow_update()
    last = jobs[-1]["start"]
    # A profile may be as old as a day when its job starts: clocks of machines differ.
    start = datetime(2099, 1, 1) if is_late else last
    (wrong,) = runs(1000, 1, start, 120.0)
    wrong["changed"] = start - timedelta(days=1, seconds=1) if is_late else start - timedelta(days=1)
    nodes.append({"job": 1000, "start": start, "node": "n2", "nodes": 2, "slowness": 1.0})
    engine = DuckEngine(of_rows(tmp_path / "set", job=[*jobs, wrong], node=nodes), Scope())
    found = {(alarm.kind, alarm.name): alarm.jobs for alarm in alarms(engine, Rules())}
    assert found == {("regression", "a"): 14 if is_late else 15, ("slow node", "n1"): 90}
    assert engine.run("SELECT * FROM asked")[1] == [(last - timedelta(days=30),)]
    (row,) = answers(tmp_path / "set", "regressions")
    assert row["code"] == "a" and row["runs_before"] == 59


def test_numbers_that_are_infinite_or_decimal_are_shown(tmp_path: Path, run: Run) -> None:
    folder = of_rows(tmp_path / "set", job=[{"job": 1}])
    values = ("inf", "-inf", "nan")
    titles = ("x", "x_ns", "x_change", "x_share", "x_hours", "job")
    columns = ", ".join(f"CAST('{value}' AS DOUBLE) AS n{i}" for i, value in enumerate(values))
    columns += ", 0.5 AS half"
    done = run("fleet", folder, "--query", f"SELECT {columns}", "--format", "json")
    assert json.loads(done.stdout) == [{"n0": None, "n1": None, "n2": None, "half": 0.5}]
    for value in values:
        columns = ", ".join(f"CAST('{value}' AS DOUBLE) AS {title}" for title in titles)
        query = f"SELECT {columns}, 0.5 AS half"
        done = run("fleet", folder, "--query", query)
        assert (done.exit_code, done.stderr, done.stdout.splitlines()[1].split()) == (0, "", ["0.5"]), value
    done = run("fleet", folder, "--query", "SELECT 0.5 AS half", "--format", "csv")
    assert list(csv.DictReader(io.StringIO(done.stdout))) == [{"half": "0.5"}]
