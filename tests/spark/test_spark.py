# SPDX-License-Identifier: Apache-2.0
"""Spark on a master and three workers answers each question as DuckDB does."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from cluster import EXECUTOR_MB, MEMORY_MB, cluster, use_workers

from commlens.fleet.alerts import NODES_SQL, RUNS_SQL
from commlens.fleet.answer import ask
from commlens.fleet.dataset import Dataset
from commlens.fleet.engine import DuckEngine, Engine, Scope
from commlens.fleet.html import Links, page
from commlens.fleet.made_up import Truth, batches
from commlens.fleet.questions import NAMES, read_question
from commlens.fleet.spark import SparkEngine

PROFILES = Path(__file__).resolve().parents[1] / "profiles"
WORKERS = 3
JOBS = 300
SUMMER = Scope(at=datetime(2026, 7, 1))
COMMLENS = (sys.executable, "-m", "commlens")
BATCH_JOBS = """\
JobID|JobName|User|Partition|Cluster|State|Start|AllocCPUS|CPUTimeRAW
100001|md|alice|large|made-up|COMPLETED|2026-01-01T00:00:00|64|40
7|lost|alice|large|made-up|TIMEOUT|2026-01-01T00:00:00|64|4000
"""


@pytest.fixture(scope="session")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a cluster; return its address."""
    with cluster(tmp_path_factory.mktemp("cluster"), WORKERS) as address:
        yield address


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return made-up jobs and recorded profiles, one of them damaged, in files of two versions of the dataset."""
    folder = tmp_path_factory.mktemp("dataset")
    for rows in batches(JOBS, Truth()):
        Dataset(folder / "set").add(rows)
    (folder / "damaged.db").write_bytes(b"")
    (folder / "jobs.txt").write_text(BATCH_JOBS, encoding="utf-8")
    sources = (PROFILES, folder / "damaged.db", "--accounting", folder / "jobs.txt", "--cluster", "made-up")
    command = [*COMMLENS, "ingest", *map(str, sources), "--into", str(folder / "set")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 3, done.stderr
    return folder / "set"


@pytest.fixture(scope="session")
def spark(master: str, dataset: Path) -> Iterator[Engine]:
    """Return Spark with the dataset."""
    use_workers(WORKERS)
    engine = SparkEngine(dataset, SUMMER, master=master)
    yield engine
    engine.stop()


@pytest.fixture(scope="session")
def duck(dataset: Path) -> Engine:
    """Return DuckDB with the dataset."""
    return DuckEngine(dataset, SUMMER)


def is_same(one: Any, other: Any) -> bool:
    """Return whether two values are equal, but for the rounding of sums in another order."""
    if isinstance(one, float) or isinstance(other, float):
        return one is not None and other is not None and math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    return bool(one == other)


def check_same(found: tuple[Any, Any], expected: tuple[Any, Any]) -> None:
    """Compare two answers, in the order of their rows."""
    assert (found[0], len(found[1])) == (expected[0], len(expected[1]))
    for row, other in zip(found[1], expected[1]):
        assert all(map(is_same, row, other)), (row, other)


@pytest.mark.parametrize("name", NAMES)
def test_spark_answers_as_duckdb_does(name: str, spark: Engine, duck: Engine) -> None:
    found = ask(spark, read_question(name))
    assert found[1], "an answer without a row compares nothing"
    check_same(found, ask(duck, read_question(name)))


def test_alarms_and_the_page_get_the_same_rows(spark: Engine, duck: Engine) -> None:
    for sql in (RUNS_SQL, NODES_SQL):
        check_same(spark.run(sql), duck.run(sql))
    links = Links("/jobs/{cluster}/{job_id}.html")
    assert page(spark, "x", links, is_personal=True) == page(duck, "x", links, is_personal=True)


def test_the_work_is_done_by_all_workers(spark: Any) -> None:
    status = spark._session.sparkContext._jsc.sc().statusTracker()
    assert len(status.getExecutorInfos()) == WORKERS + 1, "with the driver"


def test_the_command_asks_spark(dataset: Path) -> None:
    of_spark = ("--engine", "spark", "--master")
    command = [*COMMLENS, "fleet", str(dataset), "cost", *of_spark, "local[2]", "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {row["code"] for row in json.loads(done.stdout)} >= {"LAMMPS", "CP2K", "record"}
    wrong = [*COMMLENS, "fleet", str(dataset), *of_spark, "local[1]", "--query", "SELECT nothing"]
    done = subprocess.run(wrong, capture_output=True, text=True, check=False)
    assert (done.returncode, "commlens: SQL: " in done.stderr) == (2, True)


def test_a_cluster_without_room_is_named(master: str, dataset: Path) -> None:
    """Spark itself would wait for ever without a word."""
    assert EXECUTOR_MB < MEMORY_MB
    program = (
        "import os, sys; from commlens.fleet import spark; spark.IDLE_S = 1;"
        f"os.environ['PYSPARK_SUBMIT_ARGS'] = '--conf spark.executor.memory={2 * MEMORY_MB}m"
        " --conf spark.driver.host=127.0.0.1 pyspark-shell';"
        "from commlens.__main__ import main; main()"
    )
    command = [
        sys.executable,
        "-c",
        program,
        "fleet",
        str(dataset),
        "cost",
        "--engine",
        "spark",
        "--master",
        master,
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as waiting:
        assert waiting.stderr is not None
        try:
            lines = iter(waiting.stderr.readline, "")
            assert any(
                line.startswith(f"commlens: no worker of {master} has taken the work") for line in lines
            )
        finally:
            waiting.kill()
