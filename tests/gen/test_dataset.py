# SPDX-License-Identifier: Apache-2.0
"""gen/dataset.py: a specification that is not consistent is refused."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from conftest import column

import dataset
import output

DATASET, CODES = output.read_toml(dataset.SPEC), output.read_toml(dataset.CODES)


SPOIL: dict[str, Callable[[dict[str, Any]], object]] = {
    "job.ranks: unknown unit s": lambda s: column(s, "job", "ranks").update(unit="s"),
    "job.ranks: unknown type INT": lambda s: column(s, "job", "ranks").update(type="INT"),
    "job.ranks: doc is no sentence": lambda s: column(s, "job", "ranks").update(doc="number"),
    "job.ranks: since is no version": lambda s: column(s, "job", "ranks").update(since=s["version"] + 1),
    "job.ranks: unknown fact unti": lambda s: column(s, "job", "ranks").update(unti=""),
    "job.owner: unknown kind of personal data": lambda s: column(s, "job", "owner").update(personal="name"),
    "job: a column is declared twice": lambda s: s["table"]["job"]["columns"].append(
        dict(s["common"]["columns"][0])
    ),
    "site: no column time": lambda s: s["table"]["site"].update(order="time"),
    "refused: no column cluster": lambda s: s["table"]["refused"]["columns"].remove(
        column(s, "refused", "cluster")
    ),
    "job: by is neither": lambda s: s["table"]["job"].update(by="rank"),
}


@pytest.mark.parametrize("complaint", SPOIL)
def test_an_inconsistent_specification_is_refused(complaint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = copy.deepcopy(DATASET)
    SPOIL[complaint](spec)
    monkeypatch.setattr(output, "read_toml", lambda _: spec)
    with pytest.raises(SystemExit, match=complaint):
        dataset.read_spec()


def test_a_code_has_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = copy.deepcopy(CODES)
    codes["code"].append({"name": "LAMMPS"})
    monkeypatch.setattr(output, "read_toml", lambda _: codes)
    with pytest.raises(SystemExit, match="a code is named twice"):
        dataset.read_codes()
