# SPDX-License-Identifier: Apache-2.0
"""Reads what the batch system accounts: the output of `sacct --parsable2`, one job a line under a heading."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass
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
UNFINISHED = ("PENDING", "REQUEUED", "RESIZING", "RUNNING", "SUSPENDED")
"""States of jobs that have not ended. The dataset never changes a row, so it gets only jobs that have."""
MOST_NAMED = 5


@dataclass(frozen=True)
class Accounting:
    """What a file of the batch system contains.

    Attributes
    ----------
    rows : list of tuples
        Rows of table batch_job.
    unfinished : int
        Jobs that have not ended; these have no row.
    clusters : set of str
        Machines of the rows.
    """

    rows: list[tuple[Any, ...]]
    unfinished: int
    clusters: set[str]


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


def row_of(line: dict[str, str], job_id: str, cluster: str, pseudonyms: Pseudonyms) -> tuple[Any, ...]:
    """Return the row of table batch_job for a job."""
    spec = TABLES["batch_job"]
    start, owner = time_of(line.get("Start")), (line.get("User") or "")[:MOST_TEXT]
    row = {
        "id": pseudonyms.number("batch_job", cluster, job_id, line.get("Start")),
        "cluster": cluster,
        "month": month_of(start),
        "start": start,
        "job_id": job_id,
        "owner": owner,
        "queue": (line.get("Partition") or "")[:MOST_TEXT],
        "name": (line.get("JobName") or "")[:MOST_TEXT],
        "state": state_of(line)[:MOST_TEXT],
        "tasks": count(line.get("NTasks") or line.get("AllocCPUS")),
        "cpu_ns": min(count(line.get("CPUTimeRAW")) * 10**9, LARGEST_NS),
    }
    return pseudonyms.applied(spec, [row[column.name] for column in spec.columns], owner)


def state_of(line: dict[str, str]) -> str:
    """Return the state of a job.

    >>> state_of({"State": "CANCELLED by 1000"}), state_of({})
    ('CANCELLED', '')
    """
    return (line.get("State") or "").partition(" ")[0]


def accounting_of(
    lines: Iterable[dict[str, str]], pseudonyms: Pseudonyms, *, cluster: str, default: str
) -> Accounting:
    """Return the jobs in the lines of a file, without the steps of a job (4711.0). For the arguments see read_accounting()."""
    rows: list[tuple[Any, ...]] = []
    unfinished = 0
    named: set[str] = set()
    stored: set[str] = set()
    for line in lines:
        # For a task of a job array, JobID is like 4711_3.  Profiles have the value of SLURM_JOB_ID, which is JobIDRaw.
        job_id = (line.get("JobIDRaw") or line.get("JobID") or "")[:MOST_TEXT]
        if not job_id or "." in job_id:
            continue
        if state_of(line) in UNFINISHED:
            unfinished += 1
            continue
        column = line.get("Cluster") or ""
        named.add(column)
        of_cluster = cluster or column or default
        stored.add(of_cluster)
        rows.append(row_of(line, job_id, of_cluster, pseudonyms))
    if cluster and len(named) > 1:
        # Their job ids are not unique together.
        raise CommlensError(
            f"has jobs of {len(named)} clusters ({names_text(named)}), and --cluster {cluster} names one: write one file "
            "per cluster with sacct --clusters=NAME"
        )
    return Accounting(rows, unfinished, stored)


def names_text(names: Iterable[str]) -> str:
    """Return some names in a line.

    >>> names_text({"b", "a"}), names_text(map(str, range(9)))
    ('a, b', '0, 1, 2, 3, 4, …')
    """
    every = sorted(names)
    return ", ".join(
        [*(name or "''" for name in every[:MOST_NAMED]), *(["…"] if len(every) > MOST_NAMED else [])]
    )


def unmatched_text(accounted: set[str], profiled: set[str]) -> str:
    """Return a message about clusters of the batch system without a profile; empty if each has some, or there is no profile.

    Parameters
    ----------
    accounted, profiled : set of str
        Clusters of the jobs of the batch system and of the profiles.

    >>> unmatched_text({"a"}, {"a", "b"}), unmatched_text({"a"}, set())
    ('', '')
    """
    without = accounted - profiled
    if not without or not profiled:
        return ""
    return (
        f"the dataset has no profile of cluster {names_text(without)}, but of {names_text(profiled)}: question missing "
        "matches equal names only; use the same --cluster for the profiles and for --accounting"
    )


def read_accounting(path: Path, pseudonyms: Pseudonyms, *, cluster: str, default: str) -> Accounting:
    """Return the jobs of a file that `sacct --parsable2 --allusers` wrote.

    Parameters
    ----------
    cluster : str
        The machine of all jobs; empty: the one that column Cluster names.
    default : str
        The machine where neither names one.

    Raises
    ------
    CommlensError
        The file cannot be read, lacks a column, or has jobs of several clusters although `cluster` names one.
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
    try:
        return accounting_of(reader, pseudonyms, cluster=cluster, default=default)
    except CommlensError as error:
        raise CommlensError(f"{path}: {error.message}") from None
