# SPDX-License-Identifier: Apache-2.0
"""Write cmake/order.txt: the functions of the library that small jobs run, in the order in which they become needed.

    .venv/bin/python bench/order.py        # needs valgrind, Open MPI, MPICH, and a release build

When a page of a library is first used, the kernel maps the 64 KiB around it, so the linker places these functions next to each
other.  They are those that callgrind sees in two ranks of each program.  A name that is missing or outdated costs some memory
and nothing else.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

from bench.apps import PROGRAMS, build  # noqa: E402
from bench.run import BUILD, ENVIRONMENT, RUNNER  # noqa: E402

RUNS = ("bcast_barrier", "pingpong", "message_rate", "halo", "cg")
"""Programs of bench/apps.  The functions of the first come first; the others make the other calls of most applications."""

Symbol = tuple[int, int, str]
"""Address, size and name."""


def run(mpi: str, name: str, folder: Path) -> None:
    """Run a program on two ranks under callgrind, which writes two files per rank: until MPI_Finalize, and from there on."""
    program = PROGRAMS[name]
    subprocess.run(
        [
            *(
                f"mpirun.{mpi}",
                "-n",
                "2",
                "valgrind",
                "--tool=callgrind",
                "--dump-instr=yes",
                "--trace-children=yes",
            ),
            *("--dump-before=MPI_Finalize", "--log-file=/dev/null", f"--callgrind-out-file={folder}/out.%p"),
            *(str(RUNNER), str(build(program, mpi)), *map(str, program.small)),
        ],
        env={**os.environ, **ENVIRONMENT, "COMMLENS_OUTPUT": f"{folder}/x.db"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )


def functions(library: Path) -> list[Symbol]:
    """Return the functions of a library by address."""
    text = subprocess.run(["nm", "-nS", library], capture_output=True, text=True, check=True).stdout
    found = (line.split() for line in text.splitlines())
    return sorted((int(f[0], 16), int(f[1], 16), f[3]) for f in found if len(f) == 4 and f[2] in "tTwW")


def addresses(file: Path) -> Iterator[int]:
    """Yield the addresses in our library of the instructions that a file of callgrind counts."""
    names: dict[str, str] = {}
    here, at = "", 0
    for line in file.read_text().splitlines():
        if of := re.match(r"c?ob=\((\d+)\)(?: (.*))?$", line):
            names[of[1]] = of[2] or names[of[1]]
            if line[0] == "o":
                here = names[of[1]]
        elif counted := re.match(r"(?:0x([0-9a-f]+)|([+-]\d+)|\*) ", line):
            at = int(counted[1], 16) if counted[1] else at + int(counted[2] or 0)
            if here.endswith("/libcommlens.so"):
                yield at


def executed(file: Path, known: list[Symbol]) -> Iterator[str]:
    """Yield the names of the functions of which instructions were executed."""
    begins = [begin for begin, _, _ in known]
    for at in sorted(set(addresses(file))):
        index = bisect_right(begins, at) - 1
        if index >= 0 and at < known[index][0] + known[index][1]:
            yield known[index][2]


def stages(folder: Path, known: list[Symbol]) -> Iterator[tuple[int, str]]:
    """Yield the functions of a run: 0 those before MPI_Finalize, 1 those of all ranks, 2 those of one rank only."""
    before: set[str] = set()
    ranks: Counter[str] = Counter()
    for file in folder.glob("out.*"):
        names = set(executed(file, known))
        if file.name.count(".") == 2 and file.suffix == ".1":
            before |= names
        else:
            ranks.update(names)
    yield from ((0, name) for name in before)
    yield from ((1 if count > 1 else 2, name) for name, count in ranks.items())


def order() -> dict[str, tuple[int, int, str]]:
    """Return the place of each function: by the first program and the first stage that needs it."""
    found: dict[str, tuple[int, int, str]] = {}
    for number, program in enumerate(RUNS):
        for mpi in ("openmpi", "mpich"):
            known = functions(BUILD / "lib" / mpi / "libcommlens.so")
            with tempfile.TemporaryDirectory() as name:
                run(mpi, program, Path(name))
                for stage, function in stages(Path(name), known):
                    place = (number, stage, function)
                    found[function] = min(found.get(function, place), place)
    return found


def main() -> None:
    """Run the programs and write the file."""
    names = [name.removesuffix(".cold") for _, _, name in sorted(order().values())]
    (ROOT / "cmake" / "order.txt").write_text("".join(f"{name}\n" for name in dict.fromkeys(names)))


if __name__ == "__main__":
    main()
