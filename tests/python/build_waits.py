# SPDX-License-Identifier: Apache-2.0
"""Adds samples of collectives to a profile of the tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from build_profile import OP_ID, ProfileBuilder


class Kind(NamedTuple):
    """Which calls were sampled."""

    comm: int
    op: str
    bin: int
    region: int = 0


class RankWaits(NamedTuple):
    """What one rank spent in the sampled calls, ns, and in how many it was last."""

    time_ns: int
    waiting_ns: int
    last: int = 0
    late_ns: int = 0
    behind_ns: int = 0
    between_ns: int = 0
    outside_ns: int = 0


def add_samples(
    build: ProfileBuilder,
    kind: Kind,
    ranks: Mapping[int, RankWaits],
    samples: int,
    collectives: int | None = None,
    error_ns: int | None = 0,
) -> None:
    """Add the rows of tables waiting and sampled. collectives: all calls; by default as many as samples."""
    place = (kind.comm, OP_ID[kind.op], kind.bin)
    for rank, one in ranks.items():
        row = (
            *place, kind.region, rank, samples, one.time_ns, one.waiting_ns, one.last, one.late_ns, one.behind_ns,
            one.between_ns, one.outside_ns,
        )  # fmt: skip
        build.more.setdefault("waiting", []).append(row)
    times, waits = (sum(one[i] for one in ranks.values()) for i in (0, 1))
    late = sum(one.late_ns for one in ranks.values())
    spread = max(one.behind_ns for one in ranks.values()) // samples
    build.more.setdefault("sampled", []).append(
        (*place, samples, collectives or samples, 0, times, waits, error_ns, spread, late)
    )


def add_unsplit(build: ProfileBuilder, kind: Kind, reason: str, calls: int) -> None:
    """Add a row of table unsplit."""
    build.more.setdefault("unsplit", []).append((kind.comm, OP_ID[kind.op], kind.bin, reason, calls))
