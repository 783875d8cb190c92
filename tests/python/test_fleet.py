# SPDX-License-Identifier: Apache-2.0
"""`commlens fleet`: answers that can be computed by hand, and a made-up year whose truth is known."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from fleet_cases import answers, of_rows, write_jobs

from commlens.fleet import questions
from commlens.fleet._dataset import TABLES
from commlens.fleet.answer import ask, drawn
from commlens.fleet.dataset import Dataset
from commlens.fleet.engine import DuckEngine, Scope
from commlens.fleet.files import parquet
from commlens.fleet.log import Log
from commlens.fleet.made_up import KINDS, QUIET, Truth, batches
from commlens.fleet.questions import NAMES, read_question

HOUR = 3600 * 10**9
JOBS = 3000


def make_year(folder: Path, truth: Truth) -> Path:
    """Write a made-up year."""
    dataset = Dataset(folder)
    for rows in batches(JOBS, truth):
        dataset.add(rows)
    return folder


@pytest.fixture(scope="module")
def years(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """Return a year with a slow node and an update, and a quiet one."""
    folder = tmp_path_factory.mktemp("years")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield {name: make_year(folder / name, truth) for name, truth in (("year", Truth()), ("quiet", QUIET))}


def test_the_command_lists_the_questions_that_there_are(years: dict[str, Path], run: Run) -> None:
    files = {path.stem.replace("_", "-") for path in Path(str(questions.__file__)).parent.glob("*.sql")}
    assert files == set(NAMES)
    helped = dict(re.findall(r"^  ([a-z-]+)  +(.*[?])$", run("fleet", "--help").stdout, re.MULTILINE))
    assert helped == {name: read_question(name).title for name in NAMES}
    done = run("fleet", years["year"])
    assert done.exit_code == 0
    assert done.stdout.startswith(
        f"{sum(len(b['job']) for b in batches(JOBS, Truth())):,} jobs of 5 codes on 1 machine,"
    )
    for name in NAMES:
        assert f"{name}  " in done.stdout and read_question(name).title in " ".join(done.stdout.split())
        assert read_question(name).sql.startswith("CREATE OR REPLACE TEMPORARY VIEW ")


def test_the_title_of_a_time_has_no_unit() -> None:
    lines = [
        line.plain.split() for line in drawn(("op", "call_ns"), [("MPI_Bcast", 57_000_000)], 20).lines(80)
    ]
    assert lines == [["op", "call"], ["MPI_Bcast", "57.0", "ms"]]


@pytest.mark.parametrize("name", NAMES)
def test_each_question_has_an_answer_that_fits_80_columns_and_an_empty_one(
    name: str, years: dict[str, Path], tmp_path: Path, run: Run
) -> None:
    engine = DuckEngine(years["year"], Scope())
    titles, rows = ask(engine, read_question(name))
    assert rows or name in ("missing", "refused")
    for width in (80, 120):
        assert max((len(line.plain) for line in drawn(titles, rows, 20).lines(width)), default=0) <= width
    assert answers(of_rows(tmp_path / "empty"), name) == []
    done = run("fleet", years["year"], name, "--sql")
    assert f"CREATE OR REPLACE TEMPORARY VIEW {read_question(name).view} AS\n" in done.stdout


def test_shares_are_those_of_the_jobs(years: dict[str, Path]) -> None:
    rows = {(row["kind"], row["name"]): row for row in answers(years["year"], "share")}
    jobs = [job for batch in batches(JOBS, Truth()) for job in batch["job"]]
    at = {column.name: i for i, column in enumerate(TABLES["job"].columns)}
    for kind in KINDS:
        of_kind = [job for job in jobs if job[at["code"]] == kind.name]
        row = rows["code", kind.name]
        assert row["jobs"] == len(of_kind)
        assert row["hours"] == pytest.approx(sum(job[at["app_ns"]] for job in of_kind) / HOUR)
        assert row["mpi_share"] == pytest.approx(kind.in_mpi, rel=1e-6)
        assert row["waiting_share"] == pytest.approx(kind.waiting, rel=1e-6)
    assert (
        rows["all", ""]["jobs"]
        == len(jobs)
        == sum(row["jobs"] for (kind, _), row in rows.items() if kind == "month")
    )
    of_code = answers(years["year"], "share", code="CP2K", since="2026-03", until="2026-04")
    assert {row["name"] for row in of_code} == {"", "CP2K", "large", "small", "2026-03", "2026-04"}


def test_communicators_and_procedures_have_the_time_of_the_jobs(years: dict[str, Path]) -> None:
    total = answers(years["year"], "share")[0]["mpi_hours"]
    assert sum(row["mpi_hours"] for row in answers(years["year"], "procedures")) == pytest.approx(
        total, rel=1e-6
    )
    rows = answers(years["year"], "communicators")
    assert sum(row["mpi_hours"] for row in rows) == pytest.approx(total, rel=1e-6)
    lammps = {row["creator"]: row for row in rows if row["code"] == "LAMMPS"}
    assert lammps["MPI_Comm_split"]["mpi_share"] == pytest.approx(0.7, rel=1e-6)
    assert lammps["predefined"]["sub_share"] == 0


def operation(job: int, code: str, **values: Any) -> dict[str, Any]:
    usual = {"op": "MPI_Allreduce", "class": "collective", "bin": 4, "size": 64, "family": 1}
    return {"job": job, "code": code, **usual, **values}


def test_candidates_are_compared_with_the_fastest_code(tmp_path: Path) -> None:
    fast = [operation(i, "fast", calls=1000, time_ns=HOUR) for i in range(5)]
    slow = [operation(10 + i, "slow", calls=1000, time_ns=4 * HOUR, waiting_ns=HOUR) for i in range(5)]
    halo = {"op": "MPI_Isend", "class": "p2p", "bin": 12}
    sends = [operation(20, "grid", time_ns=10 * HOUR, waiting_ns=2 * HOUR, **halo)]
    jobs = [
        {"job": row["job"], "code": row["code"], "app_ns": 100 * HOUR, "nodes": 2}
        for row in (*fast, *slow, *sends)
    ]
    grid = [{"job": 20, "code": "grid", "pattern": "nearest neighbour", "locality": 0.75}]
    folder = of_rows(tmp_path / "set", job=jobs, operation=[*fast, *slow, *sends], matrix=grid)
    found = [
        (row["code"], row["kind"], row["what"], row["hours"], row["saved_hours"])
        for row in answers(folder, "candidates")
    ]
    assert found == [
        ("slow", "tuning", "MPI_Allreduce", 15.0, pytest.approx(10.0)),
        ("grid", "placement", "nearest neighbour", 8.0, 2.0),
    ]


def test_the_update_is_a_regression_and_other_codes_are_not(years: dict[str, Path]) -> None:
    rows = {row["code"]: row for row in answers(years["year"], "regressions", at=Truth().update_date())}
    assert rows["LAMMPS"]["change"] == pytest.approx(0.08, abs=0.02)
    assert all(abs(row["change"]) < 0.03 for code, row in rows.items() if code != "LAMMPS")
    assert max(rows, key=lambda code: rows[code]["lost_hours"]) == "LAMMPS"


def test_regressions_compare_equal_inputs_only(tmp_path: Path) -> None:
    def runs(first: int, days: range, name: str, seconds: int) -> list[dict[str, Any]]:
        usual = {
            "code": "a",
            "input": name,
            "elapsed_ns": seconds * 10**9,
            "app_ns": HOUR,
            "mpi_ns": HOUR,
            "ranks": 1,
        }
        return [
            {"job": first + i, "start": datetime(2026, 1, day), "state": "finalized", **usual}
            for i, day in enumerate(days)
        ]

    large = runs(0, range(1, 5), "small", 10) + runs(10, range(11, 15), "large", 1000)
    assert answers(of_rows(tmp_path / "one", job=large), "regressions", at=datetime(2026, 1, 10)) == []
    same = [*large, *runs(20, range(11, 15), "small", 11)]
    (row,) = answers(of_rows(tmp_path / "two", job=same), "regressions", at=datetime(2026, 1, 10))
    assert (row["inputs"], row["runs_before"], row["runs_after"]) == (1, 4, 4)
    assert row["change"] == pytest.approx(0.1)
    assert row["lost_hours"] == pytest.approx(4 * 0.1 / 1.1)


def test_the_slow_node_is_the_first(years: dict[str, Path]) -> None:
    rows = answers(years["year"], "slow-nodes", since="2026-08")
    assert (rows[0]["node"], rows[0]["cluster"]) == ("n017", "made-up")
    assert rows[0]["slowness"] == pytest.approx(1.15, abs=0.03)
    assert rows[0]["slowest_share"] > 0.9 > 0.5 > rows[0]["by_chance"]
    assert rows[1]["slowness"] < 1.03


def test_imbalance_misuse_and_cost_are_those_of_the_codes(years: dict[str, Path]) -> None:
    hours = {row["name"]: row["hours"] for row in answers(years["year"], "share") if row["kind"] == "code"}
    for row in answers(years["year"], "imbalance"):
        kind = next(kind for kind in KINDS if kind.name == row["code"])
        assert row["load_balance"] == pytest.approx(kind.balance)
        assert row["lost_hours"] == pytest.approx((1 - kind.balance) * hours[kind.name])
    seen = {(row["code"], row["misuse"]): row for row in answers(years["year"], "misuse")}
    assert {misuse for code, misuse in seen if code == "own_cfd"} == {"barriers", "tiny_messages"}
    assert seen["own_cfd", "barriers"]["jobs_share"] == 1.0
    assert all(row["own_share"] == pytest.approx(0.002, rel=1e-3) for row in answers(years["year"], "cost"))


def test_jobs_without_a_profile_have_a_reason(tmp_path: Path) -> None:
    known = [
        {"id": i, "job_id": str(i), "state": state, "tasks": tasks, "cpu_ns": HOUR}
        for i, (state, tasks) in enumerate(
            [("COMPLETED", 64), ("COMPLETED", 64), ("TIMEOUT", 64), ("COMPLETED", 1), ("BOOT_FAIL", 64)]
        )
    ]
    jobs = [
        {"job": 1, "job_id": "0", "ranks": 4, "ranks_collected": 4, "state": "finalized"},
        {"job": 2, "job_id": "9", "ranks": 4, "ranks_collected": 3, "state": "SIGKILL", "app_ns": HOUR},
    ]
    refused = [{"id": 1, "reason": "truncated"}]
    rows = answers(of_rows(tmp_path / "set", batch_job=known, job=jobs, refused=refused), "missing")
    assert {(row["reason"], row["jobs"], row["hours"], row["share"]) for row in rows} == {
        ("completed without a profile", 1, 1.0, 0.2),
        ("ended as TIMEOUT", 1, 1.0, 0.2),
        ("ended as BOOT_FAIL", 1, 1.0, 0.2),
        ("one task", 1, 1.0, 0.2),
        ("profile lacks processes", 1, 1.0, 0.2),
        ("refused: truncated", 1, None, 0.2),
    }


def test_answers_come_as_table_csv_and_json(years: dict[str, Path], run: Run) -> None:
    table = run("fleet", years["year"], "cost", "--top", 2)
    assert table.stdout.startswith("What does commlens itself cost?\n\ncode ")
    assert "0.2 %" in table.stdout and "and 3 more rows: --top 0" in table.stdout
    rows = json.loads(run("fleet", years["year"], "cost", "--format", "json").stdout)
    assert {row["code"] for row in rows} == {kind.name for kind in KINDS}
    lines = list(csv.DictReader(io.StringIO(run("fleet", years["year"], "cost", "--format", "csv").stdout)))
    assert [(line["code"], int(line["jobs"])) for line in lines] == [
        (row["code"], row["jobs"]) for row in rows
    ]


def test_own_queries_read_the_dataset_and_nothing_else(
    years: dict[str, Path], tmp_path: Path, run: Run
) -> None:
    done = run(
        "fleet",
        years["year"],
        "--query",
        "SELECT COUNT(*) AS jobs FROM job WHERE code = 'CP2K'",
        "--format",
        "json",
    )
    assert json.loads(done.stdout)[0]["jobs"] > 100
    secret = tmp_path / "secret.csv"
    secret.write_text("secret\n1\n", encoding="utf-8")
    for query in (
        f"SELECT * FROM read_csv('{secret}')",
        f"COPY job TO '{tmp_path}/out.csv'",
        f"COPY (SELECT 1) TO '{years['year']}/commlens-dataset.json'",
        "SELECT 1; SELECT 2",
        f"ATTACH '{tmp_path}/new.db' AS new",
        "SET enable_external_access = true",
        "INSTALL sqlite",
        "SELECT * FROM nothing",
        "not SQL",
    ):
        done = run("fleet", years["year"], "--query", query)
        assert (done.exit_code, done.stderr.startswith("commlens: SQL: ")) == (2, True), query
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]


def test_other_programs_get_the_files_that_count(years: dict[str, Path], run: Run) -> None:
    paths = run("fleet", years["year"], "--files", "job").stdout.split()
    assert sum(parquet().ParquetFile(path).metadata.num_rows for path in paths) == sum(
        row["jobs"] for row in answers(years["year"], "share") if row["kind"] == "month"
    )
    done = run("fleet", years["year"], "--files", "jobs")
    assert (done.exit_code, "no table jobs; there are job, node," in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("share",), "a question"),
        (("--query", "SELECT 1"), "--query"),
        (("--alert", "rules.toml"), "--alert"),
        (("--html", "fleet.html"), "--html"),
    ],
)
def test_files_and_another_answer_are_refused(
    years: dict[str, Path], run: Run, arguments: tuple[str, ...], name: str
) -> None:
    done = run("fleet", years["year"], "--files", "job", *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"{name} and --files are different answers: use one of them" in done.stderr


@pytest.mark.parametrize("option", [("--code", "gromacs"), ("--since", "2026-01"), ("--format", "json")])
def test_the_files_are_those_of_all_jobs(years: dict[str, Path], run: Run, option: tuple[str, str]) -> None:
    done = run("fleet", years["year"], "--files", "job", *option)
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"{option[0]} has no effect on --files: leave it out" in done.stderr


@pytest.mark.parametrize("arguments", [(), ("--query", "SELECT 1"), ("--files", "job")])
def test_sql_without_a_question_is_refused(
    years: dict[str, Path], run: Run, arguments: tuple[str, ...]
) -> None:
    done = run("fleet", years["year"], "--sql", *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--sql prints the view of a question: name one" in done.stderr


def test_a_year_whose_last_batch_is_full_is_made_up(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("commlens.fleet.made_up.AT_ONCE", 1)
    done = run("ingest", "--make-up", 3, "--into", tmp_path / "set")
    assert re.match(r"[1-9] new jobs? that nobody ran\n", done.stdout)


def test_a_dataset_of_the_version_before_is_read(tmp_path: Path, run: Run) -> None:
    """Its files lack columns, which are NULL; files of both versions are read and put together."""
    run("ingest", *write_jobs(tmp_path / "jobs", range(2)), "--into", tmp_path / "set")
    for file in Log(tmp_path / "set").read().of("job"):
        path = tmp_path / "set" / file.path
        table = parquet().read_table(path).drop_columns(["own_ns", "queue"])
        parquet().write_table(table, path)
    run("ingest", *write_jobs(tmp_path / "more", range(3, 5)), "--into", tmp_path / "set")
    query = "SELECT job_id, own_ns IS NULL AS is_old FROM job ORDER BY job_id"
    for _ in range(2):
        rows = json.loads(run("fleet", tmp_path / "set", "--query", query, "--format", "json").stdout)
        assert [(row["job_id"], row["is_old"]) for row in rows] == [
            ("1000", True), ("1001", True), ("1003", False), ("1004", False),
        ]  # fmt: skip
        assert run("ingest", "--into", tmp_path / "set", "--compact").exit_code == 0


def test_hostile_names_are_shown_with_escapes(tmp_path: Path, run: Run) -> None:
    folder = of_rows(tmp_path / "set", job=[{"job": 1, "code": "\x1b[31m" + "x" * 5000, "app_ns": HOUR}])
    done = run("fleet", folder, "cost")
    assert "\x1b" not in done.stdout and "\\x1b[31mxxx" in done.stdout
    assert max(map(len, done.stdout.splitlines())) < 500


def test_what_is_missing_is_named(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run("fleet", tmp_path, "share")
    assert (
        done.stderr
        == f"commlens: {tmp_path}: not a dataset of commlens ingest: there is no commlens-dataset.json\n"
    )
    folder = of_rows(tmp_path / "set", job=[{"job": 1}])
    (file,) = Log(folder).read().of("job")
    (folder / file.path).write_bytes(b"PAR1 and no more")
    assert run("fleet", folder, "share").exit_code == 2
    monkeypatch.setitem(sys.modules, "duckdb", None)
    done = run("fleet", folder, "share")
    assert (done.exit_code, done.stderr) == (
        2,
        "commlens: the package duckdb is missing; try: pip install duckdb\n",
    )


def rules(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_the_slow_node_and_the_update_are_found_with_their_dates(
    years: dict[str, Path], tmp_path: Path, run: Run
) -> None:
    every_day = rules(tmp_path / "rules.toml", "last_days = 0\n[regression]\nchange = 0.03\n")
    done = run("fleet", years["year"], "--alert", every_day, "--format", "json")
    assert done.exit_code == 1
    update, node = json.loads(done.stdout)
    assert (update["kind"], update["name"], node["kind"], node["name"]) == (
        "regression",
        "LAMMPS",
        "slow node",
        "n017",
    )
    assert abs((datetime.fromisoformat(update["since"]) - Truth().update_date()).days) <= 2
    # The first job on the node may be some days after the node became slow.
    assert 0 <= (datetime.fromisoformat(node["since"]) - Truth().slow_date()).days <= 5
    assert update["change"] == pytest.approx(0.08, abs=0.015)
    mail = run("fleet", years["year"], "--alert", every_day)
    assert mail.stdout.startswith("Subject: commlens: 2 alarms in year\n\n* LAMMPS on made-up takes ")


def test_a_quiet_year_raises_no_alarm(years: dict[str, Path], tmp_path: Path, run: Run) -> None:
    done = run("fleet", years["quiet"], "--alert", rules(tmp_path / "rules.toml", "last_days = 0"))
    assert (done.exit_code, done.stdout.splitlines()[0]) == (0, "Subject: commlens: no alarm in quiet")


def test_a_quiet_year_has_no_slow_node_and_no_regression(years: dict[str, Path]) -> None:
    rows = answers(years["quiet"], "slow-nodes")
    assert len(rows) == 64 and rows[0]["slowness"] < 1.03
    rows = answers(years["quiet"], "regressions", at=Truth().update_date())
    assert len(rows) == len(KINDS) and all(abs(row["change"]) < 0.03 for row in rows)


def test_an_old_change_is_no_alarm_any_more(years: dict[str, Path], tmp_path: Path, run: Run) -> None:
    done = run("fleet", years["year"], "--alert", rules(tmp_path / "rules.toml", ""), "--until", "2026-07")
    assert "LAMMPS" not in done.stdout
    done = run(
        "fleet",
        years["year"],
        "--alert",
        rules(tmp_path / "rules.toml", "last_days = 31"),
        "--until",
        "2026-05",
    )
    assert "LAMMPS on made-up takes " in done.stdout


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("last_day = 1", "no rule last_day; there are last_days"),
        ("[regression]\nchange = 'x'", "regression.change is not a number of at least 0"),
        ("[slow_node]\njobs = 2.5", "slow_node.jobs is not a whole number of at least 0"),
        ("regression = 1", "regression is no table"),
        ("[", "Invalid"),
    ],
)
def test_a_wrong_rule_is_named(
    text: str, complaint: str, years: dict[str, Path], tmp_path: Path, run: Run
) -> None:
    done = run("fleet", years["quiet"], "--alert", rules(tmp_path / "rules.toml", text))
    assert (done.exit_code, complaint in done.stderr or "rules.toml: " in done.stderr) == (2, True)


@pytest.mark.long
def test_years_of_other_seeds_raise_the_same_alarms(
    request: pytest.FixtureRequest, tmp_path: Path, run: Run
) -> None:
    if not request.config.getoption("--every-case"):
        pytest.skip("takes minutes: --every-case")
    every_day = rules(tmp_path / "rules.toml", "last_days = 0")
    false = 0
    for seed in range(1, 11):
        for truth in (Truth(), QUIET):
            folder = tmp_path / f"{seed}{bool(truth.slow_node)}"
            for batch in batches(JOBS, truth, seed):
                Dataset(folder).add(batch)
            found = json.loads(run("fleet", folder, "--alert", every_day, "--format", "json").stdout)
            names = {alarm["name"] for alarm in found}
            true = {truth.slow_node, truth.slower_code} - {""}
            assert names >= true
            false += len(found) - len(true)
    assert false <= 20, "at most one a year"
