# SPDX-License-Identifier: Apache-2.0
"""A random program: its scripts, its C text, and its expected profile."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from profile_rows import Profile

from fuzz.model import Call, Communicator, CompleteRequests, Counts, Key, RankModel
from fuzz.script import MainThread, Script

MOST_RANKS = 4
MOST_STEPS = 80


class Part:
    """The calls of one thread of every process between two synchronisations of the threads."""

    def __init__(self, strand: int, thread: int, calls: list[list[Call]], lines: list[list[str]]) -> None:
        self.strand, self.thread = strand, thread
        self.calls, self.lines = calls, lines


class Program:
    """One program.

    Most have one thread.  The others have several strands beside it: a strand is a script of its own on
    communicators of its own, and goes on in another thread after every meeting; some of its requests become
    another strand's there.

    Parameters
    ----------
    seed : int
        Decides everything, together with `mpi4` and `get_status` (see `Writer`).
    steps : numbers of steps, or None
        Leave out all other steps than these, to find a short program that still fails.
    """

    def __init__(
        self, seed: int, mpi4: bool, steps: Iterable[int] | None = None, get_status: bool = True
    ) -> None:
        self.seed = seed
        draw = random.Random(seed)
        self.ranks = draw.choice([1, 2, 2, 2, 3, 3, MOST_RANKS])
        self.callsites = draw.choice("01")
        self.length = draw.randrange(10, MOST_STEPS)
        self.threads = draw.choice([0, 0, 0, 2, 3, 4])
        wanted = set(range(self.length) if steps is None else steps)
        self.main = MainThread(f"{seed}", self.ranks, mpi4, get_status)
        self.strands = [
            Script(f"{seed}.{strand}", self.ranks, mpi4, get_status, strand)
            for strand in range(1, self.threads + 1)
        ]
        self.parts: list[list[Part]] = []  # meeting by meeting
        # The main thread works before and after the others.
        share = self.length // (2 + 2 * self.threads) if self.threads else self.length
        self.main.begin()
        if self.strands:
            self.main.prepare()
        for strand in self.strands:
            self.main.lend(strand)
        self.main.steps(sorted(wanted & set(range(share))))
        if self.threads:
            self.cut([self.main], 0)
            for strand in self.strands:
                strand.begin()
            meetings = draw.randrange(1, 4)
            for meeting in range(meetings):
                numbers = range(share * 2 * meeting // meetings, share * 2 * (meeting + 1) // meetings)
                for strand in self.strands:
                    strand.steps(share + share * 2 * (strand.strand - 1) + n for n in numbers if n in wanted)
                    if meeting == meetings - 1:
                        strand.end()
                self.cut(self.strands, meeting)
                self.hand_over(draw)
            for strand in self.strands:
                for me in range(self.ranks):
                    self.main.received_comms[me] += strand.received_comms[me]
            self.main.steps(sorted(wanted & set(range(self.length - share, self.length))))
        self.main.end()
        self.cut([self.main], 0)

    def cut(self, scripts: Sequence[Script], turn: int) -> None:
        """Take what the scripts emitted since the last meeting; every meeting turns the threads by one."""
        parts = []
        for i, script in enumerate(scripts):
            thread = 1 + (i + turn) % len(scripts) if script.strand else 0
            parts.append(Part(script.strand, thread, script.calls, script.lines))
            script.calls, script.lines = [[] for _ in script.world], [[] for _ in script.world]
        self.parts.append(parts)

    def hand_over(self, draw: random.Random) -> None:
        """Let strands swap requests that are under way."""
        for me in range(self.ranks):
            pools = [strand.pending[me] for strand in self.strands]
            # `Writer.free_comm` must know the collectives that are under way.
            stay = [[request for request in pool if request.collective] for pool in pools]
            swapped = [request for pool in pools for request in pool if not request.collective]
            draw.shuffle(swapped)
            for pool, kept in zip(pools, stay):
                pool[:] = kept + [swapped.pop() for _ in range(len(pool) - len(kept))]

    @property
    def scripts(self) -> list[Script]:
        return [self.main, *self.strands]

    # -- the C program ------------------------------------------------------------------------------------------

    def text(self, name: str) -> str:
        """Return the definition of `struct program NAME`, for run.h."""
        out: list[str] = []
        table: list[str] = []
        for me in range(self.ranks):
            for meeting, parts in enumerate(self.parts):
                for part in sorted(parts, key=lambda part: part.thread):
                    function = f"{name}_{me}_{meeting}_{part.thread}"
                    body = "".join(f"  AT {line}\n" for line in part.lines[me])
                    out.append(f"static void {function}(void) {{\n{body}}}\n")
                    table.append(f"{{{function}, {part.strand}}}")
        out.append(f"static struct part const {name}_parts[] = {{{', '.join(table)}}};\n")
        middle = len(self.parts) - 2
        out.append(
            f"static struct program const {name} = {{{self.threads}, {max(0, middle)}, {name}_parts}};\n"
        )
        return "\n".join(out)

    # -- what must come out -------------------------------------------------------------------------------------

    def expected(self, me: int, folder: Path) -> dict[Key, Counts]:
        """Return what rank `me` must have counted; the program's logs are in `folder`.

        To be asked once: the requests remember how they ended.
        """
        model = RankModel(me)
        logs = [log_of(folder / f"log.{me}.{script.strand}") for script in self.scripts]
        threads = [CompleteRequests() for _ in self.scripts]
        for parts in self.parts:
            for part in parts:
                model.follow(part.calls[me], logs[part.strand], threads[part.thread])
        for strand, log in enumerate(logs):
            left = list(log)
            assert not left, f"rank {me}, strand {strand}: more calls logged than the script has: {left[:3]}"
        return model.cells

    def differences(self, profile: Profile, everything: Sequence[dict[Key, Counts]]) -> list[str]:
        """Return one line for what is not as it must be; `everything` has what each rank must have counted."""
        wrong = comm_differences([comm for script in self.scripts for comm in script.made_comms], profile)
        for me, expected in enumerate(everything):
            measured = measured_cells(profile, me)
            for key in sorted(expected.keys() | measured.keys(), key=lambda key: (sorted(key[0]), *key[1:])):
                if expected.get(key) != measured.get(key):
                    who = "+".join(sorted(key[0])) or "-"
                    wrong.append(
                        f"rank {me}: {who} {key[1]} bin {key[2]}: expected {expected.get(key)}, got {measured.get(key)}"
                    )
        return wrong


def log_of(path: Path) -> Iterator[str]:
    return iter(path.read_text().splitlines())


def source(programs: Sequence[Program]) -> str:
    """Return one C program that is all of these; its second argument says which one to be."""
    names = [f"p{program.seed}" for program in programs]
    texts = [program.text(name) for program, name in zip(programs, names)]
    table = ", ".join(f"&{name}" for name in names)
    return (
        '#include "run.h"\n\n'
        + "\n".join(texts)
        + f"\nstatic struct program const *const programs[] = {{{table}}};\n"
        + "int main(int argc, char **argv) { return run(argc, argv, programs); }\n"
    )


CELLS = """
    SELECT c.id, c.kind, o.name AS op, k.bin, SUM(x.calls), SUM(x.noncontiguous),
        SUM(x.bytes_sent), SUM(x.bytes_received)
    FROM cell x JOIN key k ON k.id = x.key JOIN comm c ON c.id = k.comm JOIN op o ON o.id = k.op
    WHERE x.rank = ? GROUP BY c.id, o.name, k.bin
"""


def comm_name(row: dict[str, Any]) -> str:
    """Return the model's name of a communicator: that of a strand if it was given one, else ours."""
    given = row["user_name"] or ""
    return given if given[:1].isdigit() else row["name"]


def measured_cells(profile: Profile, world_rank: int) -> dict[Key, Counts]:
    """Return the cells of one rank from the profile, call sites added up, sets as the names of their members."""
    names = {row["id"]: comm_name(row) for row in profile.rows("SELECT id, name, user_name FROM comm")}
    members: dict[int, set[str]] = {}
    for row in profile.rows("SELECT comm, member FROM comm_set"):
        members.setdefault(row["comm"], set()).add(names[row["member"]])
    cells: dict[Key, Counts] = {}
    for row in profile.rows(CELLS, world_rank):
        comm, kind, op, size_bin, *counts = row.values()
        who = frozenset() if kind == "none" else frozenset(members[comm] if kind == "set" else {names[comm]})
        assert (who, op, size_bin) not in cells, f"two communicators are the same: {sorted(who)}"
        cells[who, op, size_bin] = Counts(*counts)
    return cells


def comm_differences(made: Sequence[Communicator], profile: Profile) -> list[str]:
    """Return one line for every communicator that the profile does not describe as it is."""
    found = {
        comm_name(row): (row["groups"], row["user_name"], row["freed_ns"] is not None)
        for row in profile.comms().values()
    }
    expected = {
        comm.name: ([list(group) for group in comm.groups], comm.user_name, comm.freed)
        for comm in made
        if comm.name in found
        or not comm.name.startswith("S")  # a profile has no MPI_COMM_SELF that was not used
    }
    return [
        f"communicator {name}: expected {expected.get(name)}, got {found.get(name)}"
        for name in sorted(expected.keys() | found.keys())
        if expected.get(name) != found.get(name)
    ]
