# SPDX-License-Identifier: Apache-2.0
"""Arenas that say something else: as a stranger would forge them, from a real one (core/arena/format.h)."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce

HEADER_BYTES_AT = 12
HEAD = struct.Struct("=IIQQ40x")  # SegmentHead: kind, number, bytes, filled
ENTRY = struct.Struct("=IIQ")  # EntryHead: kind, bytes, check
JOURNAL = 3
JOB, COMM = 1, 2
WORD = 2**64


@dataclass
class Job:
    """The journal entry of the process, in the order of its fields."""

    rank: int
    size: int
    launch: int
    times: list[int]
    constants: list[int]
    node: bytes
    cpus: bytes
    settings: bytes
    output: bytes
    meta: dict[bytes, bytes] = field(default_factory=dict)


# -- numbers and texts, core/base/wire.h ------------------------------------------------------------------------------


def number(value: int) -> bytes:
    """Return a number of seven bits a byte, low bits first."""
    low, high = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + number(high) if high else bytes([low])


def signed(value: int) -> bytes:
    return number(2 * value if value >= 0 else -2 * value - 1)


def text(value: bytes) -> bytes:
    return number(len(value)) + value


class Wire:
    """Reads what these write."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.at = 0

    def number(self) -> int:
        value = shift = 0
        while True:
            byte = self.content[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def signed(self) -> int:
        value = self.number()
        return value // 2 if value % 2 == 0 else -(value + 1) // 2

    def text(self) -> bytes:
        length = self.number()
        self.at += length
        return self.content[self.at - length : self.at]


def job_from(content: bytes) -> Job:
    wire = Wire(content)
    rank, size, launch = wire.signed(), wire.signed(), wire.number()
    times = [wire.number() for _ in range(5)]
    constants = [wire.signed() for _ in range(3)]
    node, cpus, settings, output = (wire.text() for _ in range(4))
    meta = {wire.text(): wire.text() for _ in range(wire.number())}
    return Job(rank, size, launch, times, constants, node, cpus, settings, output, meta)


def written(job: Job) -> bytes:
    pairs = b"".join(text(key) + text(value) for key, value in job.meta.items())
    head = signed(job.rank) + signed(job.size) + number(job.launch) + b"".join(map(number, job.times))
    head += b"".join(map(signed, job.constants))
    return (
        head
        + text(job.node)
        + text(job.cpus)
        + text(job.settings)
        + text(job.output)
        + number(len(job.meta))
        + pairs
    )


# -- checks, core/base/identity.h -------------------------------------------------------------------------------------


def mixed(x: int) -> int:
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % WORD
    return x ^ (x >> 31)


def combine(a: int, b: int) -> int:
    return mixed((a * 0x9E3779B97F4A7C15 + mixed((b + 0x9E3779B97F4A7C15) % WORD)) % WORD)


def check_of(entry: int, content: bytes) -> int:
    words = (int.from_bytes(content[at : at + 8], "little") for at in range(0, len(content), 8))
    return combine(reduce(combine, words, len(content)), entry)


# -- arenas -----------------------------------------------------------------------------------------------------------


def segments(arena: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Return of each segment where its content is, its kind, its size, and how much of it is filled."""
    if not arena:
        return  # a process is just making it
    at = int(struct.unpack_from("=I", arena, HEADER_BYTES_AT)[0])
    while at + HEAD.size <= len(arena):
        kind, _, size, filled = HEAD.unpack_from(arena, at)
        if kind == size == 0:
            return
        at += HEAD.size
        yield at, kind, size, filled
        at += size


def entries(arena: bytes) -> Iterator[tuple[int, bytes]]:
    """Return kind and content of all entries of the journal."""
    for begin, kind, _, filled in segments(arena):
        at = begin
        while kind == JOURNAL and at + ENTRY.size <= begin + filled:
            entry, size, _ = ENTRY.unpack_from(arena, at)
            at += ENTRY.size + size
            yield entry, arena[at - size : at]


def with_entries(arena: bytes, wanted: list[tuple[int, bytes]]) -> bytes:
    """Return an arena with these entries in the first segment of its journal, and none in the others."""
    forged = bytearray(arena)
    journal = b"".join(ENTRY.pack(kind, len(it), check_of(kind, it)) + it for kind, it in wanted)
    for at, kind, size, _ in segments(arena):
        if kind != JOURNAL:
            continue
        assert len(journal) <= size, "the journal has no room for this"
        struct.pack_into("=Q", forged, at - HEAD.size + 16, len(journal))
        forged[at : at + len(journal)] = journal
        journal = b""
    return bytes(forged)


def job_of(arena: bytes) -> Job:
    """Return the job entry of an arena."""
    return next(job_from(content) for kind, content in entries(arena) if kind == JOB)


def with_job(arena: bytes, meta: Mapping[bytes, bytes] | None = None, **fields: object) -> bytes:
    """Return an arena with a changed job entry: fields of Job, and values of table meta."""
    changed = replace(job_of(arena), **fields)  # type: ignore[arg-type]
    changed.meta.update(meta or {})
    return with_entries(
        arena, [(kind, written(changed) if kind == JOB else it) for kind, it in entries(arena)]
    )


def with_last_comm(arena: bytes, index: int) -> bytes:
    """Return an arena whose last communicator has another index."""
    all_entries = list(entries(arena))
    last = max(at for at, (kind, _) in enumerate(all_entries) if kind == COMM)
    wire = Wire(all_entries[last][1])
    wire.number()
    all_entries[last] = (COMM, number(index) + wire.content[wire.at :])
    return with_entries(arena, all_entries)


def with_used(arena: bytes, used: int) -> bytes:
    """Return an arena with another number of bytes in use."""
    ends = [at + size for at, _, size, _ in segments(arena)]
    before = [at for at in range(0, 4096, 8) if struct.unpack_from("=Q", arena, at)[0] in ends]
    assert len(before) == 1, "where `used` is cannot be told"
    forged = bytearray(arena)
    struct.pack_into("=Q", forged, before[0], used)
    return bytes(forged)
