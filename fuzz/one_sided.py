# SPDX-License-Identifier: Apache-2.0
"""Steps of one-sided communication."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fuzz.messages import Messages
from fuzz.model import NO_OP, PROC_NULL, RMA, Made
from fuzz.writer import DIVISOR

WINDOW = 8192


class OneSided(Messages):
    """Emits windows, epochs and the operations in them."""

    def make_window(self) -> Made:
        comm = self.intra(2)
        c = self.slot("w")
        kind = self.random.choice(["create", "allocate", "allocate_shared"])
        size = f"{WINDOW}, 1, MPI_INFO_NULL, {comm.c}"
        for me in comm.groups[0]:
            if kind == "create":
                self.code(me, "Win_create", f"MPI_Win_create(room({WINDOW}), {size}, &{c});", comm=comm)
            else:
                self.code(me, f"Win_{kind}", f"MPI_Win_{kind}({size}, &memory, &{c});", comm=comm)
        return Made(c, comm)

    def window_call(self, win: Made, ranks: Sequence[int], name: str, *arguments: Any) -> None:
        """Emit a synchronisation call, its window last, on `ranks` (world ranks)."""
        text = f"MPI_{name}({', '.join(map(str, (*arguments, win.c)))});"
        for me in ranks:
            self.code(me, name, text, win=win)

    def one_sided(self) -> None:
        """One epoch on a new window, of a random kind, with random operations of every process."""
        if len(self.world) < 2:
            return  # Open MPI 4.1 refuses MPI_Win_create on a communicator of one process
        win = self.make_window()
        group = win.comm.groups[0]
        kind = self.random.choice(["fence", "lock_all", "lock", "general"])
        if kind == "fence":
            self.window_call(win, group, "Win_fence", 0)
            for _ in range(self.random.randrange(1, 3)):
                self.operations(win, group, range(len(group)), passive=False)
                self.window_call(win, group, "Win_fence", 0)
        elif kind == "lock_all":
            self.window_call(win, group, "Win_lock_all", 0)
            self.operations(win, group, range(len(group)), passive=True)
            for me in group:
                flush = self.random.choice(
                    ["Win_flush", "Win_flush_local", "Win_flush_all", "Win_flush_local_all"]
                )
                self.window_call(win, [me], flush, *([] if flush.endswith("all") else [0]))
            self.window_call(win, group, "Win_sync")
            self.window_call(win, group, "Win_unlock_all")
        elif kind == "lock":
            for me in group:
                target = self.random.randrange(len(group))
                lock = self.random.choice(["MPI_LOCK_SHARED", "MPI_LOCK_EXCLUSIVE"])
                self.window_call(win, [me], "Win_lock", lock, target, 0)
                self.operations(win, [me], [target], passive=True)
                self.window_call(win, [me], "Win_unlock", target)
        else:
            self.general_epoch(win)
        # An operation of another process may still be under way: MPI_Win_free waits for all.
        for me in group:
            self.code(me, "Win_free", f"MPI_Win_free(&{win.c});", win=win)

    def general_epoch(self, win: Made) -> None:
        """Post, start, complete, wait: every process is target and origin of every other."""
        group = win.comm.groups[0]
        g = self.slot("g")
        for me in group:
            self.code(me, "Comm_group", f"MPI_Comm_group({win.comm.c}, &{g});", comm=win.comm)
        self.window_call(win, group, "Win_post", g, 0)
        self.window_call(win, group, "Win_start", g, 0)
        self.operations(win, group, range(len(group)), passive=False)
        self.window_call(win, group, "Win_complete")
        for me in group:
            if self.chance(0.5):
                self.window_call(win, [me], "Win_wait")
            else:
                self.code(me, "Win_test", f"Win_test({win.c});", win=win)
            self.code(me, "Group_free", f"MPI_Group_free(&{g});")

    def operations(self, win: Made, ranks: Sequence[int], targets: Sequence[int], passive: bool) -> None:
        for me in ranks:
            requests = []
            for _ in range(self.random.randrange(6)):
                name = self.random.choice(sorted(n for n in RMA if passive or n[0] != "R"))
                target: int | str = PROC_NULL if self.chance(0.15) else self.random.choice(targets)
                base = self.random.choice(["MPI_INT", "MPI_DOUBLE"])
                plain = self.types[base][0]
                n = DIVISOR * self.random.choice([0, 1, 2, 9])
                op = self.random.choice(["MPI_SUM", "MPI_REPLACE", NO_OP if "et" in name else "MPI_MAX"])
                count, datatype = self.layout(base, n)
                there_count, there = self.layout(base, n)
                back_count, back = self.layout(base, n)
                # The target area may start SLACK bytes early, see `room`.
                a: dict[str, Any] = {"target_rank": target, "target_disp": 64, "win": win, "op": op}
                if name in ("Fetch_and_op", "Compare_and_swap"):
                    integer = self.types["MPI_INT"][0]
                    a.update(origin_addr=4, compare_addr=4, result_addr=4, datatype=integer)
                    a["op"] = self.random.choice(["MPI_SUM", "MPI_REPLACE", NO_OP])
                else:
                    if "accumulate" in name:  # predefined datatypes are what every library accepts here
                        (count, datatype), (there_count, there), (back_count, back) = ((n, plain),) * 3
                    a.update(
                        origin_addr=count * datatype.extent, origin_count=count, origin_datatype=datatype
                    )
                    a.update(target_count=there_count, target_datatype=there)
                    a.update(
                        result_addr=back_count * back.extent, result_count=back_count, result_datatype=back
                    )
                if name[0] == "R":
                    a["request"] = self.request()
                    requests.append(a["request"])
                self.call(me, name, **a)
            if requests:
                self.complete(me, requests)
