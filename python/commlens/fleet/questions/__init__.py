# SPDX-License-Identifier: Apache-2.0
"""The questions to a dataset: each is one SQL view in a file of its own, for DuckDB."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

NAMES = (
    *("share", "communicators", "procedures", "candidates", "regressions"),
    *("slow-nodes", "imbalance", "misuse", "missing", "cost", "refused"),
)
"""In the order in which they are listed; each has a file questions/NAME.sql, with _ for -."""

OF_ALL_CODES = ("missing", "refused")
"""Questions about jobs whose code is unknown, because no profile of them was read."""

OF_DATE = ("regressions",)
"""Questions that use view asked: what changed at the date of --at."""

VIEW = re.compile(r"^CREATE OR REPLACE TEMPORARY VIEW (\w+) AS$", re.MULTILINE)


@dataclass(frozen=True)
class Question:
    """One question.

    Attributes
    ----------
    title : str
        The question in a sentence.
    about : str
        What its columns are.
    view : str
        Name of the view that answers it.
    sql : str
        The statement that creates the view.
    """

    name: str
    title: str
    about: str
    view: str
    sql: str


@cache
def read_question(name: str) -> Question:
    """Return a question of NAMES."""
    text = (Path(__file__).parent / f"{name.replace('-', '_')}.sql").read_text(encoding="utf-8")
    lines = text.splitlines()
    comments = [line[2:].strip() for line in lines if line.startswith("--")]
    sql = "\n".join(line for line in lines if not line.startswith("--"))
    found = VIEW.search(sql)
    assert found is not None, name
    return Question(name, comments[1], " ".join(comments[3:]), found[1], sql)
