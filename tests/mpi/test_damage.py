# SPDX-License-Identifier: Apache-2.0
"""Arenas that are truncated, damaged, or of another version.

Recover reads the readable part, reports the rest, and never crashes.
"""

from __future__ import annotations

import os
import random
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from build_once import PATIENCE
from harness import BUILD, ROOT, Mpi, commlens, small_file_system
from profile_rows import Profile

# What is written, where and by whom does not depend on the MPI library.
pytestmark = pytest.mark.dealt

RANKS, CALLS, COMMS = 2, 50, 1500
TOOL = BUILD / "bin" / "commlens-arena"
VERSION_AT = 8  # behind the magic number, core/arena/format.h
USED_AT = 128


@dataclass(frozen=True)
class Left:
    """What a killed job left: by rank the name and the bytes of its arena."""

    where: Path
    arenas: list[tuple[str, bytes]]

    def put(self, name: str, change: Callable[[int, bytes], bytes | None]) -> Path:
        """Write a folder of its arenas with changed bytes; None leaves one out."""
        folder = self.where / name
        folder.mkdir()
        for rank, (file, content) in enumerate(self.arenas):
            changed = change(rank, content)
            if changed is not None:
                (folder / file).write_bytes(changed)
        return folder


@pytest.fixture(scope="module")
def left(mpi: Mpi) -> Left:
    """Kill a job whose arenas have grown."""
    where = mpi.fresh("damage")
    (where / "arenas").mkdir()
    program: list[str | Path] = [mpi.compile("storage.c"), "work", str(CALLS), "grow", str(COMMS), "kill"]
    mpi.run(RANKS, program, {"COMMLENS_ARENA_DIR": str(where / "arenas")}, cwd=where)
    found: dict[int, tuple[str, bytes]] = {}
    for path in (where / "arenas").iterdir():
        rank = int(list_of([path])[0]["rank"])
        found[rank] = (path.name, path.read_bytes())
    assert sorted(found) == list(range(RANKS))
    return Left(where, [found[rank] for rank in range(RANKS)])


def list_of(files: list[Path]) -> list[dict[str, str]]:
    """Return the tool's output for files: one line each, for any content."""
    done = subprocess.run([TOOL, "list", *files], capture_output=True, timeout=60 * PATIENCE)
    assert (done.returncode, done.stderr) == (0, b"")
    head, *rows = [line.split(b"\t") for line in done.stdout.split(b"\n")[:-1]]
    assert len(rows) == len(files)
    assert {len(row) for row in rows} == {len(head)}
    return [
        dict(zip((name.decode() for name in head), (field.decode(errors="replace") for field in row)))
        for row in rows
    ]


def used(content: bytes) -> int:
    """Return how many bytes hold segments."""
    number: int = struct.unpack_from("=Q", content, USED_AT)[0]
    assert 4096 < number <= len(content)
    return number


def test_the_arenas_are_whole(left: Left) -> None:
    """Else nothing below says anything."""
    folder = left.put("whole", lambda _, content: content)
    done = commlens("recover", "-o", left.where / "whole.db", folder)
    assert (done.returncode, done.stderr) == (0, "")
    profile = Profile(left.where / "whole.db")
    assert profile.rows("PRAGMA foreign_key_check") == []
    assert profile.calls("MPI_Allreduce") == {"W0.0": dict.fromkeys(range(RANKS), CALLS)}
    assert profile.total("MPI_Comm_dup")[0] == COMMS * RANKS
    assert max(len(content) for _, content in left.arenas) > 256 << 10, "they have grown"


@pytest.mark.parametrize("others", [0, 1])
def test_another_version(left: Left, others: int) -> None:
    def change(rank: int, content: bytes) -> bytes:
        return content if rank < others else content[:VERSION_AT] + b"\x63" + content[VERSION_AT + 1 :]

    folder = left.put(f"version{others}", change)
    output = left.where / f"version{others}.db"
    done = commlens("recover", "-o", output, folder)
    lines = done.stderr.splitlines()
    said = [
        line
        for line in lines
        if line.endswith("written by another version of commlens; only that version can read it")
    ]
    assert len(said) == RANKS - others
    assert all(line.startswith(f"commlens: {folder}/commlens-") for line in said)
    if others == 0:
        assert (done.returncode, done.stdout) == (2, "")
        assert lines[-1] == "commlens: nothing to recover: the files that processes left cannot be read"
        assert not output.exists()
    else:
        assert (done.returncode, len(lines)) == (3, 2)
        assert ": missing ranks, which left no files in the folders searched: " in lines[1]
        assert f"1 of {RANKS} ranks" in done.stdout
        assert Profile(output).calls("MPI_Allreduce") == {"W0.0": {0: CALLS}}


def test_cut_off_anywhere(left: Left) -> None:
    """One file after the other, of many lengths; then some of them as a person would see them."""
    content = left.arenas[0][1]
    end = used(content)
    folder = left.where / "cut"
    folder.mkdir()
    lengths = sorted({0, 1, 100, 4095, 4096, 4097, end - 1, end, *range(0, end, end // 97), len(content)})
    files = [folder / f"{length}.arena" for length in lengths]
    for file, length in zip(files, lengths):
        file.write_bytes(content[:length])
    readable = []
    for length, row in zip(lengths, list_of(files)):
        if length >= end:
            assert (row["error"], row["notice"]) == ("", "")
        elif row["error"]:
            assert "too short for an arena" in row["error"] or "cut short" in row["error"], row
        else:
            assert row["notice"].startswith(f"cut short: {length} of {end} bytes are present"), row
            readable.append(length)
    assert len(readable) > 50
    for file in files:
        file.unlink()
    for length in (readable[0], readable[len(readable) // 2], readable[-1]):

        def cut(rank: int, content: bytes, length: int = length) -> bytes:
            return content[:length] if rank == 0 else content

        folder = left.put(f"cut{length}", cut)
        output = left.where / f"cut{length}.db"
        done = commlens("recover", "-o", output, folder)
        assert done.returncode == 3, done
        assert done.stderr.count("\n") == 1
        assert done.stderr.startswith(
            f"commlens: rank 0: {folder}/{left.arenas[0][0]}: cut short: {length} of "
        )
        profile = Profile(output)
        assert profile.calls("MPI_Allreduce")["W0.0"][1] == CALLS
        assert profile.total("MPI_Comm_dup")[0] >= COMMS
        report = commlens("report", output)
        assert (report.returncode, report.stderr) == (0, "")


def test_flipped_anywhere(left: Left) -> None:
    content = left.arenas[0][1]
    end = used(content)
    chance = random.Random(1)
    folder = left.where / "flipped"
    folder.mkdir()
    flips = [
        chance.randrange(end if chance.random() < 0.8 else 300) * 8 + chance.randrange(8) for _ in range(150)
    ]

    def flipped(bit: int) -> bytes:
        return content[: bit // 8] + bytes([content[bit // 8] ^ 1 << bit % 8]) + content[bit // 8 + 1 :]

    files = [folder / f"{number}.arena" for number in range(len(flips))]
    for file, bit in zip(files, flips):
        file.write_bytes(flipped(bit))
    told = [row["error"] or row["notice"] for row in list_of(files)]
    assert 10 < sum(map(bool, told)) < len(flips)
    for file in files:
        file.unlink()
    # Those with something to say first: they are what a person meets.
    for bit, what in sorted(zip(flips, told), key=lambda pair: not pair[1])[:20:2]:
        folder = left.put(f"flip{bit}", lambda rank, whole, b=bit: flipped(b) if rank == 0 else whole)  # type: ignore[misc]
        output = left.where / f"flip{bit}.db"
        done = commlens("recover", "-o", output, folder)
        assert done.returncode == (3 if what else 0), done
        assert done.stderr.count("\n") == (0 if not what else 2 if "missing ranks" in done.stderr else 1)
        profile = Profile(output)
        assert profile.rows("PRAGMA integrity_check") == [{"integrity_check": "ok"}]
        assert 1 in profile.column("SELECT rank FROM rank")
        assert profile.calls("MPI_Allreduce")["W0.0"][1] == CALLS
        for command in ("report", "comms"):
            done = commlens(command, output)
            assert done.returncode in (0, 2), done
            assert done.stderr.count("\n") == (1 if done.returncode else 0)


def test_names_that_are_no_text(mpi: Mpi) -> None:
    """Of a program, and of the place of its arena: any bytes but a zero and a slash."""
    where = mpi.fresh("names")
    arenas = where / os.fsdecode(b"ar\xe9nas")
    arenas.mkdir()
    program = where / os.fsdecode(b"pr\xe9\rgram\xff")
    program.symlink_to(mpi.compile("storage.c"))
    mpi.run(RANKS, [program, "work", str(CALLS), "kill"], {"COMMLENS_ARENA_DIR": str(arenas)}, cwd=where)
    done = subprocess.run(
        [sys.executable, "-m", "commlens", "recover", "-o", where / "x.db", arenas],
        capture_output=True, timeout=60 * PATIENCE, env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(os.fsencode(where / "x.db") + rb": pr\xe9\rgram\xff, 2 of 2 ranks")
    assert Profile(where / "x.db").calls("MPI_Allreduce") == {"W0.0": dict.fromkeys(range(RANKS), CALLS)}


def test_what_nobody_can_read_does_not_stay_in_memory(left: Left) -> None:
    """In a file system in memory, the file name identifies the process, so that recover knows whether it runs."""
    with small_file_system(left.where, "2m") as shm:
        old, short, copy = (shm / name for name in (left.arenas[0][0], left.arenas[1][0], "rank0.1.arena"))
        start = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
        running = shm / f"commlens-{os.getuid()}-{os.getpid()}-{start}.arena"
        for file in (old, copy, running):
            file.write_bytes(left.arenas[0][1][:VERSION_AT] + b"\x63" + bytes(4096))
        short.write_bytes(b"CLARENA\n")
        done = commlens("clean", "--yes", shm)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.splitlines()[-1].startswith("2 files removed, ")
        assert sorted(shm.iterdir()) == sorted([copy, running])
