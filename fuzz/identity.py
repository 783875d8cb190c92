# SPDX-License-Identifier: Apache-2.0
"""Random sequences of communicators, to check that exactly the members of a communicator compute its identity.

    .venv/bin/python -m fuzz.identity --sequences 100000

Replays identity.c without MPI.  What the library put together from its members must be exactly the communicators that
were made: each with all its members, in order, and with the calls of each.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness import ROOT, Mpi
from launches import Result
from profile_rows import Profile

HERE = Path(__file__).resolve().parent
MOST_ALIVE = 8
MOST_THREADS = 8
STEPS = 8
ALL_KINDS = "fdisgcb"
"""free, dup, idup, split, create_group, Cart_create and Cart_sub, Intercomm_create and _merge"""
SECONDS = 600


@dataclass
class Made:
    """A communicator: its groups in world ranks, and how often each member asked for its size."""

    groups: list[list[int]]
    marks: int


class Replay:
    """The sequences of one thread."""

    def __init__(self, seed: int, number: int, n_sequences: int, n_ranks: int, kinds: str) -> None:
        self._kinds = kinds
        self._state = seed * MOST_THREADS + number
        self._number = number
        self.made: dict[str, Made] = {}
        self._count = 0
        for self._sequence in range(n_sequences):
            self._alive = [list(range(n_ranks))]
            for _ in range(STEPS):
                self._step()

    def _draw(self, below: int) -> int:
        self._state = (self._state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self._state >> 33) % below

    def _note(self, groups: list[list[int]]) -> None:
        self._count += 1
        self.made[f"{self._number}.{self._sequence}.{self._count}"] = Made(groups, 1 + self._count % 5)

    def _add(self, members: list[int]) -> None:
        if members:
            self._alive.append(members)
            self._note([members])

    def _step(self) -> None:
        k = self._draw(len(self._alive))
        what = "f" if len(self._alive) >= MOST_ALIVE else self._kinds[self._draw(len(self._kinds))]
        members = self._alive[k]
        if what == "f" and k > 0:
            del self._alive[k]
        elif what in "di":
            self._add(members)
        elif what == "s":
            drawn = [(self._draw(3), self._draw(4), member) for member in members]
            for wanted in range(2):
                self._add([m for color, _, m in sorted(drawn, key=lambda d: d[1]) if color == wanted])
        elif what == "g":
            order = list(members)
            for i in range(len(order) - 1, 0, -1):
                j = self._draw(i + 1)
                order[i], order[j] = order[j], order[i]
            n = 1 + self._draw(len(order))
            self._draw(3)
            self._add(order[:n])
        elif what == "c" and len(members) > 1:
            even = len(members) // 2 * 2
            self._add(members[:even])
            self._add(members[0:even:2])
            self._add(members[1:even:2])
        elif what == "b" and len(members) > 1:
            cut, first_is_high = 1 + self._draw(len(members) - 1), self._draw(2)
            halves = [members[:cut], members[cut:]]
            for half in halves:
                self._add(half)
            # The side whose rank 0 has the lower world rank stands first.
            self._note(sorted(halves))
            self._add(halves[1] + halves[0] if first_is_high else members)


@dataclass(frozen=True)
class Run:
    """One run of identity.c; `sequences` are those of each thread."""

    seed: int
    sequences: int
    threads: int
    ranks: int
    kinds: str

    def launch(self, mpi: Mpi, mode: str = "run") -> Result:
        argv = [str(mpi.compile(HERE / "identity.c"))]
        argv += map(str, (self.seed, self.sequences, self.threads, self.kinds))
        # Every one of them apart, however many one parent has.
        env = {"COMMLENS_QUIET": "1", "COMMLENS_COMMS": "1000000"} if mode != "off" else {}
        return mpi.run(self.ranks, argv, env=env, timeout=SECONDS, mode=mode, once=True)

    def differences(self, profile: Profile) -> Iterator[str]:
        """Yield one line for every communicator that is not as it was made."""
        expected: dict[str, Made] = {}
        for number in range(self.threads):
            expected.update(Replay(self.seed, number, self.sequences, self.ranks, self.kinds).made)
        asked: dict[str, dict[int, int]] = {}
        for row in profile.rows(
            "SELECT c.user_name AS name, x.rank, SUM(x.calls) AS calls FROM cell x JOIN key k ON k.id = x.key "
            "JOIN op o ON o.id = k.op JOIN comm c ON c.id = k.comm WHERE o.name = 'MPI_Comm_size' "
            "AND c.user_name IS NOT NULL GROUP BY c.id, x.rank"
        ):
            asked.setdefault(row["name"], {})[row["rank"]] = row["calls"]
        found = {row["user_name"]: row["groups"] for row in profile.comms().values() if row["user_name"]}
        for name in expected.keys() | found.keys():
            made = expected.get(name)
            if made is None:
                yield f"{name}: never made"
            elif found.get(name) != made.groups:
                yield f"{name}: members {found.get(name)}, not {made.groups}"
            elif asked[name] != {rank: made.marks for group in made.groups for rank in group}:
                yield f"{name}: calls by rank {asked[name]}, not {made.marks} each"
        rows = profile.rows(
            "SELECT COUNT(*) AS n, COUNT(DISTINCT hash) AS hashes, SUM(user_name IS NULL) AS nameless FROM comm "
            "WHERE kind IN ('intra', 'inter')"
        )[0]
        if rows["n"] != rows["hashes"]:
            yield f"{rows['n']} communicators have {rows['hashes']} identities"
        if rows["nameless"] != 1 + self.threads:  # MPI_COMM_WORLD and its duplicates
            yield f"{rows['nameless']} communicators without a name, not {1 + self.threads}"


def nth_run(mpi: str, n: int, at_once: int) -> Run:
    """Return the n-th run: with three threads every second one, as far as the MPI library bears it.

    Open MPI 4.1 hangs when threads make communicators by different procedures at once, and is slow when by the same
    one; MPICH 4.0 hangs when one of them is in MPI_Comm_idup or MPI_Intercomm_merge.
    """
    if n % 2:
        return Run(n, at_once, 1, (2, 3, 4, 5)[n // 2 % 4], ALL_KINDS)
    if mpi == "openmpi":
        return Run(n, at_once // 30, 3, 2, ("fd", "fs")[n // 2 % 2])
    return Run(n, at_once // 3, 3, (2, 3, 4)[n // 2 % 3], "fddssgc")


def main() -> None:
    """Parse, run, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sequences", type=int, default=100_000, help="on each MPI (default: %(default)s)")
    parser.add_argument(
        "--at-once", type=int, default=1000, help="sequences of one run (default: %(default)s)"
    )
    parser.add_argument("--mpi", default="openmpi,mpich", help="default: %(default)s")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends what was launched, too
    (ROOT / "build").mkdir(exist_ok=True)
    bad = 0
    for name in options.mpi.split(","):
        began = time.monotonic()
        done = in_threads = made = n = failed = wrong = 0
        while done < options.sequences:
            n += 1
            run = nth_run(name, n, options.at_once)
            with tempfile.TemporaryDirectory(prefix=f"identity-{name}-", dir=ROOT / "build") as scratch:
                mpi = Mpi(name, Path(scratch))
                result = run.launch(mpi)
                if result.rc != 0:
                    plain = run.launch(mpi, mode="off")
                    print(f"{name}: {run}: exit code {result.rc}, without commlens {plain.rc}", flush=True)
                    failed += 1
                    if failed > 20:
                        sys.exit("too many failures")
                    continue
                profile = result.open()
                lines = list(run.differences(profile))
                wrong += len(lines)
                for line in lines[:10]:
                    print(f"{name}: {run}: {line}", flush=True)
                made += len(profile.comms())
                done += run.sequences * run.threads
                in_threads += run.sequences * run.threads * (run.threads > 1)
        print(
            f"{name}: {done:,} sequences, {in_threads:,} of them in threads at the same time, {made:,} communicators, "
            f"{wrong} not as they were made, {failed} runs that failed, {time.monotonic() - began:.0f} s",
            flush=True,
        )
        bad += wrong
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
