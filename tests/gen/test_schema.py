# SPDX-License-Identifier: Apache-2.0
"""gen/schema.py: a specification that is not consistent is refused."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from conftest import column

import output
import schema

SCHEMA = output.read_toml("spec/schema.toml")


SPOIL: dict[str, Callable[[dict[str, Any]], object]] = {
    "rank.pid: unknown unit seconds": lambda s: column(s, "rank", "pid").update(unit="seconds"),
    "rank.pid: unknown type INT": lambda s: column(s, "rank", "pid").update(type="INT"),
    "rank.pid: doc is no sentence": lambda s: column(s, "rank", "pid").update(doc="number"),
    "rank.pid: declared twice": lambda s: s["table"]["rank"]["columns"].append(column(s, "rank", "pid")),
    "rank.P: no identifier": lambda s: column(s, "rank", "pid").update(name="P"),
    "comm.parent: no column comm.nothing": lambda s: column(s, "comm", "parent").update(ref="comm.nothing"),
    "rank: needs either one key column": lambda s: column(s, "rank", "rank").pop("key"),
    "rank: more than one key column": lambda s: column(s, "rank", "pid").update(key=True),
    "slice: primary key ranks is no column": lambda s: s["table"]["slice"].update(primary_key=["ranks"]),
    "meta: primary_key goes with without_rowid": lambda s: s["table"]["meta"].pop("without_rowid"),
    "rank: doc is missing": lambda s: s["table"]["rank"].pop("doc"),
    "a name is both table and view": lambda s: s["view"].update(rank=s["view"]["member"]),
    "member: a view needs its sql": lambda s: s["view"]["member"].pop("sql"),
}


@pytest.mark.parametrize("complaint", SPOIL)
def test_a_specification_that_is_not_consistent_is_refused(
    monkeypatch: pytest.MonkeyPatch, complaint: str
) -> None:
    spec = copy.deepcopy(SCHEMA)
    SPOIL[complaint](spec)
    monkeypatch.setattr(output, "read_toml", lambda _: spec)
    with pytest.raises(SystemExit, match=complaint):
        schema.texts()
