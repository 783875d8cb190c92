# SPDX-License-Identifier: Apache-2.0
"""Runs `commlens-arena` on damaged and forged arenas.

    python -m fuzz.arenas check FOLDER [--seed N] [--count N]   write some and let the tool read and merge them
    python -m fuzz.arenas compact ARENA                         the same arena as fuzz/arena/expand.h reads it

The arenas come from the corpus of the fuzzer (fuzz/arena/corpus), so that no MPI is needed to make them.
"""

from __future__ import annotations

import argparse
import functools
import os
import random
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOOL = ROOT / "build" / "release" / "bin" / "commlens-arena"
CORPUS = ROOT / "fuzz" / "arena" / "corpus"
SOUND = ("calls", "comms", "nothing", "peers", "regions", "slices")
"""Those of the corpus that nobody has damaged."""

# core/arena/format.h
MAGIC = b"CLARENA\n"
HEADER_BYTES, ALIGNMENT = 4096, 64
HEAD = struct.Struct("=IIQQ40x")  # SegmentHead: kind, number, bytes, filled
ENTRY = struct.Struct("=IIQ")  # EntryHead: entry, bytes, check
IDENTIFICATION = struct.Struct("=8sIIQ")  # what a Header begins with: magic, version, header_bytes, layout
USED_AT = 128
JOURNAL = 3
JOB, COMM, SITE, REGION, METRIC, TAG = range(1, 7)
END_OF_ARENA = 0xFF
WORD = (1 << 64) - 1

TIMEOUT_S = 10
MEMORY_BYTES = 1 << 30


def mixed(x: int) -> int:
    """Return the finaliser of splitmix64, as core/base/identity.h has it."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & WORD
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & WORD
    return x ^ (x >> 31)


def combine(a: int, b: int) -> int:
    """Return the combined identity of two in this order."""
    return mixed((a * 0x9E3779B97F4A7C15 + mixed((b + 0x9E3779B97F4A7C15) & WORD)) & WORD)


def check_of(entry: int, content: bytes) -> int:
    """Return the header of an entry that readers accept."""
    identity = len(content)
    for at in range(0, len(content), 8):
        identity = combine(identity, int.from_bytes(content[at : at + 8], "little"))
    return combine(identity, entry)


def number(n: int) -> bytes:
    """Return a number of the journal: seven bits a byte, low bits first."""
    n &= WORD
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes(out) + bytes([n])


def signed(n: int) -> bytes:
    """Return a number that may be negative."""
    return number((n << 1) ^ (n >> 63))


def text(content: bytes) -> bytes:
    """Return a text with its length before it."""
    return number(len(content)) + content


@dataclass
class Segment:
    """A segment; of a journal `entries` instead of content."""

    kind: int
    number: int
    content: bytearray
    entries: list[tuple[int, bytes]] = field(default_factory=list)
    told: int | None = None  # bytes, where they are to be wrong

    def packed(self) -> bytes:
        """Return its bytes in a file."""
        content, filled = bytes(self.content), 0
        if self.kind == JOURNAL:
            content = b"".join(
                ENTRY.pack(entry, len(data), check_of(entry, data)) + data for entry, data in self.entries
            )
            filled = len(content)
            content = content.ljust(len(self.content), b"\0")
        content += bytes(-len(content) % ALIGNMENT)
        told = len(content) if self.told is None else self.told
        return HEAD.pack(self.kind, self.number, told & WORD, filled) + content


@dataclass
class Arena:
    """An arena in its parts."""

    header: bytearray  # without what it begins with
    segments: list[Segment]
    used: int | None = None

    def packed(self, identification: bytes) -> bytes:
        """Return the file; `identification` is the first bytes of the header for the build that reads it."""
        body = b"".join(segment.packed() for segment in self.segments)
        header = bytearray((identification + self.header).ljust(HEADER_BYTES, b"\0"))
        used = HEADER_BYTES + len(body) if self.used is None else self.used
        header[USED_AT : USED_AT + 8] = (used & WORD).to_bytes(8, "little")
        return bytes(header) + body

    def journal(self) -> Segment:
        """Return its first journal."""
        return next(segment for segment in self.segments if segment.kind == JOURNAL)

    def compact(self) -> bytes:
        """Return it as fuzz/arena/expand.h reads it."""
        header = bytes(self.header).rstrip(b"\0")
        out = bytearray(b"\0" + len(header).to_bytes(2, "little") + header)
        for segment in self.segments:
            content = bytes(segment.content).rstrip(b"\0")
            if segment.kind == JOURNAL:
                content = b"".join(
                    bytes([entry]) + len(data).to_bytes(2, "little") + data for entry, data in segment.entries
                )
            for at in range(0, max(len(content), 1), 0xFF00):
                part = content[at : at + 0xFF00]
                out += bytes([segment.kind, segment.number & 0xFF])
                out += len(segment.content).to_bytes(4, "little") + len(part).to_bytes(2, "little") + part
        return bytes(out) + bytes([END_OF_ARENA])


def parsed(content: bytes) -> Arena:
    """Return the parts of an arena that is whole."""
    assert content.startswith(MAGIC)
    used = int.from_bytes(content[USED_AT : USED_AT + 8], "little")
    arena = Arena(bytearray(content[IDENTIFICATION.size : HEADER_BYTES].rstrip(b"\0")), [])
    at = HEADER_BYTES
    while at < used:
        kind, its_number, size, filled = HEAD.unpack_from(content, at)
        at += HEAD.size
        segment = Segment(kind, its_number, bytearray(content[at : at + size]))
        if kind == JOURNAL:
            segment.entries = list(entries_in(bytes(segment.content[:filled])))
        if kind != 0:
            arena.segments.append(segment)
        at += size
    return arena


def entries_in(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the entries of a journal."""
    at = 0
    while at < len(content):
        entry, size, _ = ENTRY.unpack_from(content, at)
        at += ENTRY.size
        yield entry, content[at : at + size]
        at += size


def expanded(seed: bytes) -> list[Arena]:
    """Return the arenas of an input of the fuzzer."""
    arenas, at = [], 0

    def take(size: int) -> bytes:
        nonlocal at
        part = seed[at : at + size]
        at += size
        return part

    def take_number(size: int) -> int:
        return int.from_bytes(take(size), "little")

    while at < len(seed):
        take(1)
        arena = Arena(bytearray(take(take_number(2))), [])
        while at < len(seed) and (kind := take_number(1)) != END_OF_ARENA:
            its_number, size, part = take_number(1), min(take_number(4), 1 << 20), take(take_number(2))
            segment = Segment(kind & 0x7F, its_number, bytearray(part.ljust(size, b"\0")))
            if segment.kind == JOURNAL:
                segment.content, inner = bytearray(size), 0
                while inner + 3 <= len(part):
                    length = int.from_bytes(part[inner + 1 : inner + 3], "little")
                    segment.entries.append((part[inner] & 0x7F, part[inner + 3 : inner + 3 + length]))
                    inner += 3 + length
            arena.segments.append(segment)
        arenas.append(arena)
    return arenas


# ---- forged arenas ----

INTERESTING: tuple[int, ...] = (
    0,
    1,
    2,
    127,
    255,
    1 << 14,
    (1 << 25) - 1,
    1 << 25,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 40,
)
INTERESTING += ((1 << 62) - 1, 1 << 62, (1 << 63) - 1, 1 << 63, WORD, WORD - 63)
HOSTILE = (
    b"a\tb\nc\rd",
    b"\n/etc/passwd\t1\t1\t1",
    b"\x1b[2J\x1b]0;title\x07\x9b31m",
    "\u202egnp.exe\u2066\u0085\u009b".encode(),
    b"\0before\0after",
    b"\xff\xfe\xc3(\xed\xa0\x80",
    b"x" * 200_000,
    b"\\t\\n\\x1b\\",
    b"'); DROP TABLE rank; --",
    b"../../../../etc/cron.d/x",
    b"/etc/cron.d/x",
    b"=cmd|' /C calc'!A0",
    b"%s%n%p",
    b"",
)
DATES = (
    b"",
    b"yesterday",
    b"2026-13-45T99:99:99Z",
    b"-1",
    b"0000-00-00T00:00:00Z",
    b"9" * 5000,
    b"2026-01-01\n\t",
)


@dataclass(frozen=True)
class Forged:
    """A forged arena; `size` is that of the file, which ends with a hole if it is larger than the content."""

    kind: str
    content: bytes
    size: int

    def write(self, path: Path) -> None:
        """Write the file as its owner would."""
        with path.open("wb") as file:
            file.write(self.content)
            file.truncate(self.size)
        path.chmod(0o600)


def job_entry(draw: random.Random, rank: int = 0, size: int = 4) -> bytes:
    """Return the entry of a job with hostile texts."""

    def some() -> bytes:
        return text(draw.choice(HOSTILE))

    facts = (
        signed(rank) + signed(size) + b"".join(number(draw.choice((1, 7, *INTERESTING))) for _ in range(6))
    )
    meta = [(b"program", draw.choice(HOSTILE)), (b"start_time", draw.choice((*DATES, *HOSTILE)))]
    meta += [
        (draw.choice((b"ranks", b"schema_version", *HOSTILE)), draw.choice(HOSTILE))
        for _ in range(draw.randrange(4))
    ]
    pairs = b"".join(text(key) + text(value) for key, value in meta)
    return facts + some() + some() + some() + number(len(meta)) + pairs


def comm_entry(draw: random.Random, index: int, members: int = 0) -> bytes:
    """Return the entry of a communicator with mostly random values."""
    small = (0, 1, 2, index - 1, index, *INTERESTING)
    out = number(index) + number(draw.choice((1, 1, 2, 3)))  # kind
    out += number(draw.choice((1, 2, 3, draw.getrandbits(64)))) + number(
        draw.choice(small)
    )  # identity, parent
    out += number(draw.choice((0, 3, *INTERESTING))) + number(
        draw.choice((ord("d"), 0x0A, 0x1B, 0))
    )  # op, letter
    out += number(0x1000) + b"".join(signed(draw.choice((0, 1, 3, -1, -2, *INTERESTING))) for _ in range(4))
    out += (
        number(0)
        + number(draw.choice(INTERESTING))
        + number(draw.choice(INTERESTING))
        + text(draw.choice(HOSTILE))
    )
    claim = members if draw.random() < 0.5 else draw.choice(INTERESTING)
    return out + number(claim) + b"".join(number(draw.randrange(index + 2)) for _ in range(members))


def other_entry(draw: random.Random) -> tuple[int, bytes]:
    """Return the entry of a call site, a region, a metric or a tag."""
    entry = draw.choice((SITE, REGION, METRIC, TAG, draw.randrange(256)))
    first = number(draw.choice((1, 2, 3, 1 << 14, *INTERESTING)))
    if entry == REGION:
        first += number(draw.choice((0, 1, *INTERESTING))) + number(draw.randrange(5))
    return entry, first + text(draw.choice(HOSTILE)) + text(draw.choice(HOSTILE)) + number(
        draw.choice(INTERESTING)
    )


Change = Callable[[random.Random, Arena], None]


def forge_job(draw: random.Random, arena: Arena) -> None:
    """Replace the job: hostile texts, ranks and sizes."""
    entries = [entry for entry in arena.journal().entries if entry[0] != JOB]
    rank, size = draw.choice(
        ((0, 4), (3, 4), (0, (1 << 31) - 1), ((1 << 31) - 2, (1 << 31) - 1), (-1, 4), (4, 4))
    )
    if draw.random() < 0.2:
        rank, size = draw.choice(INTERESTING), draw.choice(INTERESTING)
    arena.journal().entries = [(JOB, job_entry(draw, rank, size)), *entries]


def forge_comms(draw: random.Random, arena: Arena) -> None:
    """Add indices, sizes, parents and members that do not exist."""
    known = sum(entry == COMM for entry, _ in arena.journal().entries)
    for i in range(draw.choice((1, 5, 200))):
        index = draw.choice((known + 1 + i, known + 1 + i, *INTERESTING[:12]))
        arena.journal().entries.append((COMM, comm_entry(draw, index, draw.choice((0, 3, 2000)))))


def forge_names(draw: random.Random, arena: Arena) -> None:
    """Add numbers and texts of regions, metrics, tags and call sites."""
    arena.journal().entries += [other_entry(draw) for _ in range(draw.choice((1, 5, 200)))]


def forge_sizes(draw: random.Random, arena: Arena) -> None:
    """Change lengths and kinds of segments, or the number of bytes in use."""
    segment = draw.choice(arena.segments)
    what = draw.randrange(4)
    if what == 0:
        segment.told = draw.choice((*INTERESTING, 64, 128, 1 << 20))
    elif what == 1:
        segment.kind = draw.choice((*range(12), 255, (1 << 32) - 1))
    elif what == 2:
        segment.number = draw.choice(INTERESTING[:11])
    else:
        arena.used = draw.choice((*INTERESTING, 4096, 4160, 1 << 20))


def forge_words(draw: random.Random, arena: Arena) -> None:
    """Change words of cells, threads and stacks."""
    for _ in range(draw.choice((1, 10, 1000))):
        content = draw.choice(arena.segments).content
        if len(content) >= 8:
            at = draw.randrange(len(content) // 8) * 8
            word = draw.choice((draw.getrandbits(64), *INTERESTING, (1 << 63) | draw.getrandbits(40)))
            content[at : at + 8] = (word & WORD).to_bytes(8, "little")


def forge_header(draw: random.Random, arena: Arena) -> None:
    """Change words of the header: process, namespaces, clocks."""
    arena.header = arena.header.ljust(180, b"\0")
    for _ in range(draw.choice((1, 5))):
        at = draw.randrange(len(arena.header) // 4 - 1) * 4
        arena.header[at : at + 8] = draw.choice((draw.getrandbits(64), *INTERESTING)).to_bytes(8, "little")


def forge_copies(draw: random.Random, arena: Arena) -> None:
    """Duplicate a segment or the journal."""
    times = draw.choice((2, 10, 100))
    if draw.random() < 0.5:
        arena.segments += [draw.choice(arena.segments)] * times
    else:
        arena.journal().entries *= times


def forge_nothing(draw: random.Random, arena: Arena) -> None:
    """Keep the arena of a correct program."""


FORGERS: dict[str, Change] = {
    "whole": forge_nothing,
    "job": forge_job,
    "comms": forge_comms,
    "names": forge_names,
    "sizes": forge_sizes,
    "words": forge_words,
    "header": forge_header,
    "copies": forge_copies,
}


def damaged(draw: random.Random, content: bytes) -> bytes:
    """Flip bytes, mostly in the first pages, or truncate the file."""
    if draw.random() < 0.3:
        return content[: draw.randrange(len(content) + 1)]
    bad = bytearray(content)
    for _ in range(draw.choice((1, 3, 30))):
        at = draw.randrange(min(len(bad), draw.choice((200, 16384, len(bad)))))
        bad[at] = draw.choice((bad[at] ^ 1 << draw.randrange(8), draw.randrange(256)))
    return bytes(bad)


def identification() -> bytes:
    """Return the first bytes of the header of an arena of this source."""
    program = (
        '#include <cstdio>\n#include "core/arena/format.h"\n#include "core/hot/thread.h"\nusing namespace commlens;\n'
        'int main() { std::printf("%u %llu", arena::version, 0ull | sizeof(Thread) << 32 | sizeof(Cell) << 16 | '
        "sizeof(arena::CommState)); }"
    )
    with tempfile.TemporaryDirectory() as folder:  # its own: other processes compile it at the same time
        binary = Path(folder) / "arena-layout"
        compile_it = ["g++", "-std=c++17", f"-I{ROOT}", "-x", "c++", "-", "-o", str(binary)]
        subprocess.run(compile_it, input=program, text=True, check=True)
        version, layout = subprocess.run([binary], capture_output=True, text=True, check=True).stdout.split()
    return IDENTIFICATION.pack(MAGIC, int(version), HEADER_BYTES, int(layout))


@functools.lru_cache(maxsize=1)
def origins() -> tuple[bytes, tuple[bytes, ...]]:
    """Return the first bytes of a header, and the arenas of the corpus that real processes wrote."""
    return identification(), tuple((CORPUS / name).read_bytes() for name in SOUND)


def mutation(seed: int, case: int) -> Forged:
    """Return an arena: the same one for the same seed and case."""
    begin, whole = origins()
    draw = random.Random(f"{seed} {case}")
    arena = expanded(draw.choice(whole))[0]
    kind = draw.choice(list(FORGERS))
    FORGERS[kind](draw, arena)
    content, size = arena.packed(begin), 0
    other = draw.random()
    if other < 0.3:
        kind, content = f"{kind}, damaged", damaged(draw, content)
    elif other < 0.4:  # a hole that the header says is in use, in a segment that is as large
        kind, size = f"{kind}, sparse", draw.choice((5 << 29, 1 << 34, (1 << 34) + 4096, 1 << 40))
        arena.segments[-1].kind = draw.choice(range(11))
        arena.segments[-1].told = size - len(content) + len(arena.segments[-1].content)
        arena.used = size
        content = arena.packed(begin)
    return Forged(kind, content, max(size, len(content)))


# ---- what the tool makes of them ----


@dataclass(frozen=True)
class Answer:
    """How a run of the tool ended."""

    code: int
    said: bytes
    complained: bytes
    seconds: float
    peak_bytes: int


def run_tool(arguments: list[str], names: list[Path]) -> Answer:
    """Run commlens-arena with names on its standard input."""
    with (
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as said,
        tempfile.TemporaryFile() as complained,
    ):
        given.write(b"".join(bytes(name) + b"\0" for name in names))
        given.seek(0)
        begin = time.monotonic()
        process = subprocess.Popen([TOOL, *arguments], stdin=given, stdout=said, stderr=complained)
        late = threading.Timer(6 * TIMEOUT_S, process.kill)
        late.start()
        _, status, used = os.wait4(process.pid, 0)
        late.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        complained.seek(0)
        seconds = time.monotonic() - begin
        return Answer(process.returncode, said.read(), complained.read(), seconds, used.ru_maxrss * 1024)


def faults_of(answer: Answer, *, may_fail: bool) -> list[str]:
    """Return the errors of an answer."""
    faults = []
    if answer.code not in ((0, 1) if may_fail else (0,)):
        faults.append(f"ended with {answer.code}: {answer.complained[-300:]!r}")
    if answer.seconds > TIMEOUT_S:
        faults.append(f"took {answer.seconds:.1f} s")
    if answer.peak_bytes > MEMORY_BYTES:
        faults.append(f"took {answer.peak_bytes >> 20} MiB")
    if any(byte == 0x7F or (byte < 0x20 and byte not in b"\t\n") for byte in answer.said + answer.complained):
        faults.append("printed a control character")
    return faults


def check(folder: Path, seed: int, count: int) -> list[str]:
    """Write `count` arenas into a folder and let the tool read them; return the errors, one line each."""
    faults = []
    for i in range(count):
        arena = mutation(seed, i)
        path = folder / f"commlens-0-{i}.arena"
        arena.write(path)
        listed = run_tool(["list"], [path])
        wrong = faults_of(listed, may_fail=False)
        lines = listed.said.split(b"\n")
        if len(lines) != 3 or lines[2] or lines[0].count(b"\t") != lines[1].count(b"\t"):
            wrong.append(f"list printed {lines!r}"[:300])
        output = folder / f"{i}.db"
        wrong += faults_of(run_tool(["merge", str(output)], [path]), may_fail=True)
        faults += [f"seed {seed}, arena {i} ({arena.kind}): {fault}" for fault in wrong]
        if not wrong:
            path.unlink()
        output.unlink(missing_ok=True)
        if left := [file for file in folder.iterdir() if not file.name.endswith(".arena")]:
            faults.append(f"seed {seed}, arena {i} ({arena.kind}): left {left}")
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["check", "compact"])
    parser.add_argument("where", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    options = parser.parse_args()
    if options.what == "compact":
        sys.stdout.buffer.write(parsed(options.where.read_bytes()).compact())
        return 0
    options.where.mkdir(parents=True, exist_ok=True)
    faults = check(options.where, options.seed, options.count)
    print(*faults, f"{options.count} arenas, {len(faults)} faults", sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
