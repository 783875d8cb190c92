# SPDX-License-Identifier: Apache-2.0
"""Reads what the batch system accounts: the output of `sacct --parsable2`, one job a line under a heading."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from commlens.base.errors import CommlensError
from commlens.base.inputs import open_regular
from commlens.fleet._dataset import TABLES
from commlens.fleet.job import MOST_TEXT, month_of
from commlens.fleet.pseudonyms import Pseudonyms

NEEDED = ("JobID", "State", "Start")
TIME = "%Y-%m-%dT%H:%M:%S"
NUMBER = re.compile(r"\d{1,15}", re.ASCII)
LARGEST_NS = 1 << 60


def count(text: str | None) -> int:
    """Return a number, 0 for anything else.

    >>> count("128"), count(""), count(None), count("1e9")
    (128, 0, 0, 0)
    """
    return int(text) if text and NUMBER.fullmatch(text) else 0


def time_of(text: str | None) -> datetime | None:
    """Return a time of the batch system, or None for "Unknown"."""
    try:
        return datetime.strptime(text or "", TIME)
    except ValueError:
        return None


def rows_of(lines: Iterable[dict[str, str]], cluster: str, pseudonyms: Pseudonyms) -> list[tuple[Any, ...]]:
    """Return the rows of table batch_job; steps of a job (4711.0) are left out."""
    spec = TABLES["batch_job"]
    found = []
    for line in lines:
        # For a task of a job array, JobID is like 4711_3.  Profiles have the value of SLURM_JOB_ID, which is JobIDRaw.
        job_id = (line.get("JobIDRaw") or line.get("JobID") or "")[:MOST_TEXT]
        if not job_id or "." in job_id:
            continue
        start, owner = time_of(line.get("Start")), (line.get("User") or "")[:MOST_TEXT]
        of_cluster = line.get("Cluster") or cluster
        row = {
            "id": pseudonyms.number("batch_job", of_cluster, job_id, line.get("Start")),
            "cluster": of_cluster,
            "month": month_of(start),
            "start": start,
            "job_id": job_id,
            "owner": owner,
            "queue": (line.get("Partition") or "")[:MOST_TEXT],
            "name": (line.get("JobName") or "")[:MOST_TEXT],
            # "CANCELLED by 1000"
            "state": (line.get("State") or "").partition(" ")[0][:MOST_TEXT],
            "tasks": count(line.get("NTasks") or line.get("AllocCPUS")),
            "cpu_ns": min(count(line.get("CPUTimeRAW")) * 10**9, LARGEST_NS),
        }
        found.append(pseudonyms.applied(spec, [row[column.name] for column in spec.columns], owner))
    return found


def read_accounting(path: Path, cluster: str, pseudonyms: Pseudonyms) -> list[tuple[Any, ...]]:
    """Return the rows of a file that `sacct --parsable2 --allusers` wrote.

    Raises
    ------
    CommlensError
        It cannot be read, or lacks a column.
    """
    try:
        with open_regular(path) as binary:
            text = binary.read().decode("utf-8", "replace")
    except OSError as error:
        raise CommlensError(f"{path}: cannot be read: {error.strerror or error}") from None
    reader = csv.DictReader(text.splitlines(), delimiter="|", quoting=csv.QUOTE_NONE)
    missing = ", ".join(name for name in NEEDED if name not in (reader.fieldnames or ()))
    if missing:
        raise CommlensError(
            f"{path}: has no column {missing}: write it by sacct --parsable2 --format=JobID,JobIDRaw,JobName,User,Partition,"
            "Cluster,State,Start,NTasks,AllocCPUS,CPUTimeRAW"
        )
    return rows_of(reader, cluster, pseudonyms)
