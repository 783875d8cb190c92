# SPDX-License-Identifier: Apache-2.0
"""Random sequences of MPI calls, as C and as the list of calls the model reads.

The sequence is built step by step; a step emits the calls of all processes it concerns.  As every step finds its
partner calls in the same step, executing the ranks' calls in their own order cannot deadlock.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

from fuzz.collectives import Collectives
from fuzz.files import Files
from fuzz.one_sided import OneSided
from fuzz.writer import Writer

ATTACHED = 1 << 24


class Script(Collectives, OneSided, Files):
    """What one thread of every process calls."""

    def begin(self) -> None:
        """Draw what this script does often and what never, and emit what stands at its beginning."""
        actions = [
            (30, self.message),
            (10, self.shift),
            (2, self.cancelled),
            (3, self.forgotten),
            (8, self.persistent_messages),
            (35, self.complete_some),
            (25, self.collective),
            (10, self.neighbourhood),
            (7, self.one_sided),
            (12, self.transfer),
            (1, self.set_view),
            (8 if self.mpi4 else 0, self.partitioned),
            (8, self.make_comm),
            (5, self.free_comm),
            (2, self.rename),
            (3, self.make_type),
        ]
        self.actions = [action for _, action in actions]
        self.weights = [weight * self.random.choice([0, 0.3, 1, 1, 3]) for weight, _ in actions]
        self.weights[0] += 1  # one that is never 0
        for _ in range(self.random.randrange(8)):
            self.make_type()
        for _ in range(self.random.randrange(5)):
            self.make_comm()
        # MPICH's MPI_File_open waits for other ranks while it holds a lock that all files share: two threads that open files
        # on different communicators may wait for each other.
        if self.chance(0.4) and self.strand <= 1:
            self.open_files()

    def steps(self, numbers: Iterable[int]) -> None:
        """Emit these steps; each draws from a sequence of its own, so that one may be left out."""
        for number in numbers:
            self.random = random.Random(f"{self.seed}/{number}")
            self.random.choices(self.actions, self.weights)[0]()

    def end(self) -> None:
        self.random = random.Random(f"{self.seed}/end")
        self.complete_all()
        self.close_files()
        for comm in self.made_comms[1 + len(self.world) :]:
            if comm in self.comms and self.chance(0.6):
                self.free(comm)
        for datatypes in self.types.values():
            for datatype in datatypes[1:]:
                for me in self.world:
                    self.code(me, "Type_free", f"MPI_Type_free(&{datatype.c});")


class MainThread(Script):
    """The script of the thread that calls MPI_Init."""

    def begin(self) -> None:
        for me in self.world:
            self.code(me, "Comm_rank", ";", comm=self.everyone)  # made by `run` of run.h
            self.code(me, "Buffer_attach", f"MPI_Buffer_attach(malloc({ATTACHED}), {ATTACHED});")
        super().begin()

    def prepare(self) -> None:
        """Emit what threads must not do first: Open MPI 4.1 opens what it needs for topologies without a lock."""
        self.cart_of(self.everyone)

    def lend(self, strand: Writer) -> None:
        """Emit the duplicates of MPI_COMM_WORLD and MPI_COMM_SELF that another strand works on."""
        for mine, its in zip(self.comms, strand.comms):
            for me in mine.everybody:
                self.received_comms[me] += 1
                self.code(me, "Comm_dup", f"MPI_Comm_dup({mine.c}, &{its.c});", comm=mine)
            self.set_name(its, its.name)

    def end(self) -> None:
        super().end()
        for me in self.world:
            self.code(me, "Buffer_detach", "{ int size; MPI_Buffer_detach(&memory, &size); }")
