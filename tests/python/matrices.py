# SPDX-License-Identifier: Apache-2.0
"""Profiles with known traffic, and what `commlens matrix` says of them."""

from __future__ import annotations

import itertools
import json
import struct
import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from build_profile import ProfileBuilder
from conftest import Run

Pair = tuple[int, int]
Sums = dict[Any, tuple[int, int]]  # by pairs of ranks, or of names


def read(run: Run, *arguments: object) -> dict[str, Any]:
    """Return what the command says as JSON."""
    result = run("matrix", *arguments, "--format", "json")
    assert (result.exit_code, result.stderr) == (0, "")
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def grid(dims: tuple[int, ...], periods: str, steps: Iterable[tuple[int, ...]]) -> set[Pair]:
    """Return the pairs of neighbours on a grid, by coordinates."""
    places = {at: number for number, at in enumerate(itertools.product(*map(range, dims)))}
    pairs = set()
    for at, step in itertools.product(places, steps):
        there = tuple(
            (a + s) % n if period == "1" else a + s for a, s, n, period in zip(at, step, dims, periods)
        )
        if there in places and there != at:
            pairs.add((places[at], places[there]))
    return pairs


def star(n: int, ways: tuple[int, ...] = (-1, 1)) -> list[tuple[int, ...]]:
    return [tuple(way * (i == axis) for i in range(n)) for axis in range(n) for way in ways]


def box(n: int) -> list[tuple[int, ...]]:
    return [step for step in itertools.product((-1, 0, 1), repeat=n) if any(step)]


def talking(ranks: int, pairs: Iterable[Pair], size: int = 1000) -> ProfileBuilder:
    """Return a profile in which these pairs talk."""
    build = ProfileBuilder(ranks=ranks)
    for source, destination in sorted(pairs):
        build.send(source, destination, 2, size)
    return build


def pixels(png: bytes) -> Any:
    """Return the pixels of a PNG file, by the standard's rules; every row is unfiltered."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        kind, content = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        (checked,) = struct.unpack(">I", png[at + 8 + length : at + 12 + length])
        assert checked == zlib.crc32(kind + content)
        chunks[kind] = content
        at += 12 + length
    width, height, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert rest == [8, 2, 0, 0, 0]
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), dtype=np.uint8).reshape(height, 1 + 3 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 3)
