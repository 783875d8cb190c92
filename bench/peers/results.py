# SPDX-License-Identifier: Apache-2.0
"""Results that are kept after every step, so that a stopped comparison goes on where it was.

A part of the comparison has a file of JSON lines, one for each step, and a file of the facts that the page states:
commit, machine, versions. A step counts as done if it was measured with the same version of the tool.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.peers import places

Record = dict[str, Any]

ENOUGH = 6
"""Rounds from which there are intervals: FEWEST of commlens.overhead.estimate, which needs numpy."""


class Store:
    """The results of one part."""

    def __init__(self, part: str, folder: Path | None = None, commit: str = "") -> None:
        """Read what is there.

        commit : of the tree, which new results get
        """
        self.part = part
        self.commit = commit
        self.path = (folder or places.RESULTS) / f"{part}.jsonl"
        self.records: dict[tuple[str, ...], Record] = {}
        if self.path.exists():
            for line in self.path.read_text(encoding="utf-8").splitlines():
                try:
                    record = json.loads(line)
                except ValueError:  # the last line of a run that was killed while it wrote
                    continue
                self.records[tuple(record["key"])] = record

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records.values())

    def has(self, key: Sequence[str], version: str) -> bool:
        """Return whether the step is done with this version."""
        found = self.records.get(tuple(key))
        return found is not None and found["version"] == version

    def get(self, *key: str) -> Record | None:
        """Return the result of a step, of whatever version."""
        return self.records.get(key)

    def put(self, key: Sequence[str], version: str, **fields: Any) -> Record:
        """Keep the result of a step; a later result of the same step replaces it."""
        record: Record = {
            "key": list(key),
            "version": version,
            "at": int(time.time()),
            **({"commit": self.commit} if self.commit else {}),
            **fields,
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.records[tuple(key)] = record
        return record

    def facts(self) -> dict[str, str]:
        """Return what the page states of how this part was measured."""
        path = self.path.with_suffix(".json")
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def add_facts(self, now: dict[str, str]) -> None:
        """Add facts; where they differ from those before, both are kept, separated by semicolons."""
        before = self.facts()
        merged = {
            name: "; ".join(
                dict.fromkeys(
                    word for facts in (before, now) if name in facts for word in facts[name].split("; ")
                )
            )
            for name in dict.fromkeys((*before, *now))
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.with_suffix(".json").write_text(json.dumps(merged, indent=1) + "\n", encoding="utf-8")

    def forget(self) -> None:
        """Remove all results of this part."""
        self.records.clear()
        self.path.unlink(missing_ok=True)
        self.path.with_suffix(".json").unlink(missing_ok=True)


def of_one_version(records: Sequence[Record], enough: int = ENOUGH) -> list[Record]:
    """Return the rounds of a program that were measured with the same versions of all tools.

    They are those of the newest versions, or of the newest ones with enough rounds if there are any.
    """
    by: dict[str, list[Record]] = {}
    for record in records:
        by.setdefault(record["version"], []).append(record)
    newest_first = sorted(by.values(), key=lambda of: max(record["at"] for record in of), reverse=True)
    return next((of for of in newest_first if len(of) >= enough), newest_first[0] if newest_first else [])


class Budget:
    """The time that a command may take."""

    def __init__(self, minutes: float | None) -> None:
        self.end = None if minutes is None else time.monotonic() + 60 * minutes

    def allows(self, seconds: float) -> bool:
        """Return whether a step of this length ends in time."""
        return self.end is None or time.monotonic() + seconds < self.end

    def left(self) -> float:
        """Return the seconds that are left."""
        return math.inf if self.end is None else max(0.0, self.end - time.monotonic())

    def share(self, parts: int) -> Budget:
        """Return an equal share of the time that is left for so many parts."""
        if self.end is None:
            return self
        return Budget(self.left() / 60 / parts)


def digest(*paths: Path) -> str:
    """Return twelve digits that stand for the content of files; "missing" for one that is not there."""
    found = hashlib.sha256()
    for path in paths:
        if not path.exists():
            return "missing"
        found.update(path.read_bytes())
    return found.hexdigest()[:12]
