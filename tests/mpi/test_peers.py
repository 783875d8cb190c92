# SPDX-License-Identifier: Apache-2.0
"""The communication matrix: compares the known messages of programs with the pairs of the profile."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from harness import PROGRAMS, Mpi
from launches import Result

Pairs = dict[tuple[str, int, int], tuple[int, int]]
"""(communicator, source, destination): messages and bytes; world ranks."""
Rule = Callable[[int, int, int], int]
"""Messages from one rank of a communicator to another, by its size."""


def ring(s: int, d: int, n: int) -> int:
    """Return what traffic.c sends to the next rank."""
    return 3 if d == (s + 1) % n else 0


def everybody(s: int, d: int, _: int) -> int:
    """Return what traffic.c sends to all, itself included."""
    return 1 + (s + d) % 2


def sparse(s: int, d: int, _: int) -> int:
    """Return what traffic.c sends to a few that look like chance."""
    return 1 + s * d % 4 if ((s * 31 + d * 17) * 2654435761 & 0xFFFFFFFF) >> 28 < 3 else 0


def transpose(s: int, d: int, n: int) -> int:
    """Return what traffic.c sends in a square grid from (i, j) to (j, i)."""
    q = int(n**0.5)
    return 2 if s < q * q and d == s % q * q + s // q else 0


def stencil(*dims: int) -> Rule:
    """Return what traffic.c sends to the neighbours in a grid of these dimensions."""

    def place(rank: int) -> list[int]:
        at = []
        for size in reversed(dims):
            at.append(rank % size)
            rank //= size
        return at

    size = 1
    for d in dims:
        size *= d

    def rule(s: int, d: int, _: int) -> int:
        if s >= size or d >= size:
            return 0
        return 2 if sum(abs(a - b) for a, b in zip(place(s), place(d), strict=True)) == 1 else 0

    return rule


def communicators(n: int) -> Iterator[tuple[str, list[int]]]:
    """Yield the communicators of the programs: name in the profile, and members as world ranks."""
    columns = int(n**0.5)
    yield "W0.0", list(range(n))
    for row in range((n + columns - 1) // columns):
        members = [r for r in range(n) if r // columns == row]
        yield f"s{members[0]}.1", members
    for column in range(columns):
        yield f"s{column}.2", [r for r in range(n) if r % columns == column]
    yield f"s{n - 1}.3", list(reversed(range(n)))


def expected(n: int, rule: Rule) -> Pairs:
    """Return every communicating pair."""
    pairs: Pairs = {}
    for name, members in communicators(n):
        size = len(members)
        for s in range(size):
            for d in range(size):
                sizes = [(7 * s + 13 * d + 101 * k) % 3000 for k in range(rule(s, d, size))]
                if sizes:
                    pairs[name, members[s], members[d]] = (len(sizes), sum(sizes))
    return pairs


def told(result: Result, kind: str) -> Pairs:
    """Return the pairs of one kind in the profile."""
    sql = (
        "SELECT comm.name, source, destination, messages, bytes FROM pair JOIN comm ON comm.id = comm "
        "WHERE pair.kind = ?"
    )
    rows = [tuple(row.values()) for row in result.open().rows(sql, kind)]
    pairs = {(name, s, d): (messages, size) for name, s, d, messages, size in rows}
    assert len(pairs) == len(rows)
    return pairs


def both_ends(result: Result, pairs: Pairs) -> None:
    """Check the counts of senders and receivers."""
    assert result.rc == 0, result
    assert told(result, "sent") == pairs
    assert told(result, "received") == pairs
    assert told(result, "put") == told(result, "get") == {}


CASES: dict[str, tuple[list[str], Rule]] = {
    "ring": (["ring"], ring),
    "all": (["all"], everybody),
    "sparse": (["sparse"], sparse),
    "transpose": (["transpose"], transpose),
    "stencil-1d": (["stencil", "4"], stencil(4)),
    "stencil-2d": (["stencil", "4", "4"], stencil(4, 4)),
    "stencil-3d": (["stencil", "4", "2", "2"], stencil(4, 2, 2)),
}


@pytest.mark.dealt
@pytest.mark.parametrize("n", [2, 5, 16])
@pytest.mark.parametrize("case", CASES)
def test_every_pair_has_its_messages_and_bytes_at_both_ends(mpi: Mpi, case: str, n: int) -> None:
    arguments, rule = CASES[case]
    result = mpi.run(n, [mpi.compile("traffic.c"), *arguments], timeout=180)
    both_ends(result, expected(n, rule))


def test_sixty_four_ranks(mpi: Mpi) -> None:
    result = mpi.run(64, [mpi.compile("traffic.c"), "stencil", "4", "4", "4"], timeout=300)
    both_ends(result, expected(64, stencil(4, 4, 4)))


@pytest.mark.parametrize("pattern", ["ring", "sparse"])
def test_fortran_and_python_have_the_same_pairs(mpi: Mpi, pattern: str) -> None:
    pairs = expected(4, CASES[pattern][1])
    both_ends(mpi.run(4, [mpi.compile("traffic.f90"), pattern]), pairs)
    if mpi.name == "openmpi":
        both_ends(mpi.run(4, [sys.executable, str(PROGRAMS / "traffic.py"), pattern]), pairs)


@pytest.mark.parametrize("n", [2, 5, 16])
def test_one_sided_traffic_is_told_by_its_origin(mpi: Mpi, n: int) -> None:
    # Without commlens, too, Open MPI 4.1.4 fails at times where many windows are made with osc/rdma.
    env = {"OMPI_MCA_osc": "^rdma"} if mpi.is_open_mpi_4 else {}
    result = mpi.run(n, [mpi.compile("traffic.c"), "one-sided"], env=env, timeout=180)
    assert result.rc == 0, result
    written: Counter[tuple[str, int, int, str]] = Counter()
    read: Counter[tuple[str, int, int, str]] = Counter()

    def add(
        to: Counter[tuple[str, int, int, str]], name: str, source: int, destination: int, size: int
    ) -> None:
        to[name, source, destination, "messages"] += 1
        to[name, source, destination, "bytes"] += size

    for name, members in communicators(n):
        p = len(members)
        for r in range(p) if p > 1 else ():
            right, left, second = members[(r + 1) % p], members[(r - 1) % p], members[(r + 2) % p]
            add(written, name, members[r], right, 100 + r)
            add(read, name, left, members[r], 200 + r)
            add(written, name, members[r], second, 8)
            add(written, name, members[r], right, 8)  # MPI_Fetch_and_op
            add(read, name, right, members[r], 8)
    for kind, sums in (("put", written), ("get", read)):
        pairs = {key[:3]: (sums[(*key[:3], "messages")], sums[(*key[:3], "bytes")]) for key in sums}
        assert told(result, kind) == pairs
    assert told(result, "sent") == told(result, "received") == {}


def test_sizes_of_messages_are_kept_apart(mpi: Mpi) -> None:
    result = mpi.run(4, [mpi.compile("traffic.c"), "ring"])
    bins: Counter[tuple[str, int, int, int]] = Counter()
    for name, members in communicators(4):
        p = len(members)
        for s in range(p):
            for k in range(3):
                size = (7 * s + 13 * ((s + 1) % p) + 101 * k) % 3000
                bins[name, members[s], members[(s + 1) % p], size.bit_length()] += 1
    sql = (
        "SELECT comm.name, rank, peer, bin, messages FROM peer JOIN comm ON comm.id = comm JOIN flow ON flow.id = flow "
        "WHERE flow.name = 'sent'"
    )
    assert {tuple(r.values())[:4]: r["messages"] for r in result.open().rows(sql)} == dict(bins)


def test_without_peers_nothing_is_kept(mpi: Mpi) -> None:
    result = mpi.run(4, [mpi.compile("traffic.c"), "ring"], env={"COMMLENS_MATRIX": "off"})
    assert result.open().rows("SELECT * FROM peer") == []
    result.open().check()


def test_more_pairs_than_asked_for_are_counted_in_blocks(mpi: Mpi) -> None:
    n = 16
    result = mpi.run(n, [mpi.compile("traffic.c"), "all"], env={"COMMLENS_MATRIX_PAIRS": "64"}, timeout=180)
    assert [line for line in result.said if "in blocks of" in line], result.stderr
    sums = result.open().rows(
        "SELECT flow.name, SUM(messages) AS messages, SUM(bytes) AS bytes, SUM(peer IS NULL) AS blocks "
        "FROM peer JOIN flow ON flow.id = flow WHERE flow.name IN ('sent', 'received') GROUP BY flow.name"
    )
    pairs = expected(n, everybody)
    total = (sum(m for m, _ in pairs.values()), sum(b for _, b in pairs.values()))
    assert {(row["name"], row["messages"], row["bytes"]) for row in sums} == {
        ("sent", *total),
        ("received", *total),
    }
    assert all(row["blocks"] > 0 for row in sums)
