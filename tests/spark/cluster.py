# SPDX-License-Identifier: Apache-2.0
"""A standalone cluster of Spark on this machine: a master and workers, each a process with one core."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

SPARK = Path(str(pyspark.__file__)).parent
PATIENCE_S = 300
MEMORY_MB = 1024
"""Of a worker; its executor takes EXECUTOR_MB of it."""
EXECUTOR_MB = 768


def line_with(path: Path, pattern: str, process: subprocess.Popen[bytes]) -> re.Match[str]:
    """Return the match of a pattern in the log of a process, once it is there."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        text = path.read_text(encoding="utf-8", errors="replace")
        found = re.search(pattern, text)
        if found:
            return found
        assert process.poll() is None, f"{path.name}: ended with {process.returncode}:\n{text}"
        time.sleep(0.1)
    raise AssertionError(f"{path.name}: no '{pattern}' within {PATIENCE_S} s:\n{text}")


@contextmanager
def cluster(folder: Path, workers: int) -> Iterator[str]:
    """Start a master and workers, and end them; return the address of the master."""
    environment = {
        **os.environ,
        "SPARK_HOME": str(SPARK),
        "SPARK_WORKER_DIR": str(folder),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
    }
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> tuple[Path, subprocess.Popen[bytes]]:
        log = folder / f"{name}{len(started)}.log"
        kind = f"org.apache.spark.deploy.{name.lower()}.{name}"
        command = [str(SPARK / "bin" / "spark-class"), kind, "--host", "127.0.0.1", *arguments]
        with log.open("wb") as file:
            started.append(subprocess.Popen(command, stdout=file, stderr=file, env=environment))
        return log, started[-1]

    try:
        log, process = start("Master", "--port", "0", "--webui-port", "0")
        address = line_with(log, r"Starting Spark master at (spark://\S+)", process)[1]
        one = ("--webui-port", "0", "--cores", "1", "--memory", f"{MEMORY_MB}m", address)
        for log, process in [start("Worker", *one) for _ in range(workers)]:
            line_with(log, "Successfully registered with master", process)
        yield address
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait()


def use_workers(number: int) -> None:
    """Let Spark sessions that this process starts from now on use so many workers."""
    settings = {
        # 200 parts of a shuffle, Spark's default, are for large data.
        "spark.sql.shuffle.partitions": number,
        "spark.executor.memory": f"{EXECUTOR_MB}m",
        "spark.driver.host": "127.0.0.1",
        "spark.cores.max": number,
    }
    settings_text = " ".join(f"--conf {name}={value}" for name, value in settings.items())
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"{settings_text} pyspark-shell"
