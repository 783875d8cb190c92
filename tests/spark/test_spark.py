# SPDX-License-Identifier: Apache-2.0
"""Spark on a master and two workers answers each question as DuckDB does."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest

from commlens.fleet.answer import ask
from commlens.fleet.dataset import Dataset
from commlens.fleet.engine import DuckEngine, Engine, Scope
from commlens.fleet.made_up import Truth, batches
from commlens.fleet.questions import NAMES, read_question
from commlens.fleet.spark import SparkEngine

PROFILES = Path(__file__).resolve().parents[1] / "profiles"
SPARK = Path(str(pyspark.__file__)).parent
PATIENCE_S = 300
WORKERS = 2


def line_with(path: Path, pattern: str) -> re.Match[str]:
    """Return the match of a pattern in a file, once it is there."""
    for _ in range(10 * PATIENCE_S):
        found = re.search(pattern, path.read_text(encoding="utf-8"))
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"{pattern} is not in {path.read_text(encoding='utf-8')}")


@pytest.fixture(scope="session")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a master and its workers; return the address."""
    folder = tmp_path_factory.mktemp("cluster")
    environment = {
        **os.environ,
        "SPARK_HOME": str(SPARK),
        "SPARK_WORKER_DIR": str(folder),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> Path:
        log = folder / f"{name}{len(started)}.log"
        with log.open("wb") as file:
            kind = f"org.apache.spark.deploy.{name.lower()}.{name}"
            command = [str(SPARK / "bin" / "spark-class"), kind, "--host", "127.0.0.1", *arguments]
            started.append(subprocess.Popen(command, stdout=file, stderr=file, env=environment))
        return log

    try:
        log = start("Master", "--port", "0", "--webui-port", "0")
        address = line_with(log, r"Starting Spark master at (spark://\S+)")[1]
        for _ in range(WORKERS):
            worker = start("Worker", "--webui-port", "0", "--cores", "1", "--memory", "1g", address)
            line_with(worker, "Successfully registered with master")
        yield address
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait()


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return made-up jobs and recorded profiles, in several files of a month."""
    folder = tmp_path_factory.mktemp("dataset") / "set"
    for rows in batches(300, Truth()):
        Dataset(folder).add(rows)
    command = [
        sys.executable,
        "-m",
        "commlens",
        "ingest",
        str(PROFILES),
        "--into",
        str(folder),
        "--cluster",
        "made-up",
    ]
    subprocess.run(command, check=False, capture_output=True)
    return folder


@pytest.fixture(scope="session")
def spark(master: str, dataset: Path) -> Iterator[Engine]:
    """Return Spark with the dataset."""
    # 200 parts of a shuffle, Spark's default, are for large data.
    conf = "--conf spark.sql.shuffle.partitions=2 --conf spark.executor.memory=768m --conf spark.driver.host=127.0.0.1"
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"{conf} pyspark-shell"
    engine = SparkEngine(dataset, Scope(), master=master)
    yield engine
    engine.stop()


def is_same(one: Any, other: Any) -> bool:
    """Return whether two values are equal, but for the rounding of sums in another order."""
    if isinstance(one, float) or isinstance(other, float):
        return one is not None and other is not None and math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    return bool(one == other)


@pytest.mark.parametrize("name", NAMES)
def test_spark_answers_as_duckdb_does(name: str, spark: Engine, dataset: Path) -> None:
    titles, rows = ask(spark, read_question(name))
    expected_titles, expected = ask(DuckEngine(dataset, Scope()), read_question(name))
    assert (titles, len(rows)) == (expected_titles, len(expected))
    assert rows or name in ("missing", "refused")
    # Rows whose last digits decide the order may be in another one.
    for row, other in zip(sorted(rows, key=repr_of), sorted(expected, key=repr_of)):
        assert all(map(is_same, row, other)), (row, other)


def repr_of(row: tuple[Any, ...]) -> list[str]:
    """Return the texts of a row, by which rows are matched."""
    return [str(value) for value in row if not isinstance(value, float)]


def test_the_work_is_done_by_all_workers(spark: Any) -> None:
    status = spark._session.sparkContext._jsc.sc().statusTracker()
    assert len(status.getExecutorInfos()) == WORKERS + 1, "with the driver"


def test_the_command_asks_spark(dataset: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "commlens",
        "fleet",
        str(dataset),
        "cost",
        "--engine",
        "spark",
        "--format",
        "json",
    ]
    done = subprocess.run([*command, "--master", "local[2]"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {row["code"] for row in json.loads(done.stdout)} >= {"LAMMPS", "CP2K", "record"}
    wrong = [*command[:5], "--engine", "spark", "--master", "local[1]", "--query", "SELECT nothing"]
    done = subprocess.run(wrong, capture_output=True, text=True, check=False)
    assert (done.returncode, "commlens: SQL: " in done.stderr) == (2, True)
