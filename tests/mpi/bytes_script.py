# SPDX-License-Identifier: Apache-2.0
"""Random sequences of MPI calls, as a C program and as the list of calls the model reads.

The sequence is built step by step; a step emits the calls of all processes it concerns.  As every step finds its
partner calls in the same step, executing the ranks' calls in their own order cannot deadlock.
"""

from __future__ import annotations

from bytes_collectives import Collectives
from bytes_files import Files
from bytes_one_sided import OneSided

ATTACHED = 1 << 24


class Script(Collectives, OneSided, Files):
    """A whole sequence."""

    def build(self, steps: int) -> None:
        """Emit the whole program."""
        for me in self.world:
            self.code(me, "Comm_rank", ";", comm=self.comms[0])  # made by `run` of bytes_run.h
            self.code(me, "Buffer_attach", f"MPI_Buffer_attach(malloc({ATTACHED}), {ATTACHED});")
        for _ in range(12):
            self.make_type()
        for _ in range(10):
            self.make_comm()
        self.cart()
        self.graph()
        self.inter()
        made = len(self.comms)
        self.open_files()
        actions = [
            (30, self.message),
            (10, self.shift),
            (2, self.cancelled),
            (8, self.persistent_messages),
            (35, self.complete_some),
            (25, self.collective),
            (10, self.neighbourhood),
            (7, self.one_sided),
            (12, self.transfer),
            (1, self.set_view),
            (4 if self.mpi4 else 0, self.partitioned),
        ]
        weights = [weight for weight, _ in actions]
        for _ in range(steps):
            self.random.choices([action for _, action in actions], weights)[0]()
        self.complete_all()
        self.close_files()
        for comm in self.comms[made - self.random.randrange(3, 8) :]:
            for me in sum(comm.groups, ()):
                self.code(me, "Comm_free", f"MPI_Comm_free(&{comm.c});", comm=comm)
        for datatypes in self.types.values():
            for datatype in datatypes[1:]:
                for me in self.world:
                    self.code(me, "Type_free", f"MPI_Type_free(&{datatype.c});")
        for me in self.world:
            self.code(me, "Buffer_detach", "{ int size; MPI_Buffer_detach(&memory, &size); }")

    def program(self) -> str:
        """Return the C program."""
        parts = ['#include "bytes_run.h"\n']
        for me, lines in enumerate(self.lines):
            parts.append(f"static void rank{me}(void) {{\n  AT " + "\n  AT ".join(lines) + "\n}\n")
        names = ", ".join(f"rank{me}" for me in self.world)
        parts.append(f"static rank_program *const programs[] = {{{names}}};")
        parts.append("int main(int argc, char **argv) { return run(argc, argv, programs); }\n")
        return "\n".join(parts)
