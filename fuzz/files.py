# SPDX-License-Identifier: Apache-2.0
"""Steps of MPI-IO."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fuzz.messages import Messages
from fuzz.model import Communicator, Made
from fuzz.writer import BASES

FILE_SIZE = 4096


class FileHandle(Made):
    """An open file; `start` and `unit` are its view, `position` the individual file pointers in bytes."""

    def __init__(self, c: str, comm: Communicator) -> None:
        super().__init__(c, comm)
        self.start, self.unit = 0, 1
        self.position: dict[int, int] = {}


class Files(Messages):
    """Emits reads and writes of two open files."""

    files: Sequence[FileHandle] = ()

    def open_files(self) -> None:
        """Open a file to read, which holds `FILE_SIZE` bytes, and one to write."""
        comm = self.intra()
        comm.kept = True
        self.files = []
        for name, mode in (
            ("in", "MPI_MODE_RDONLY"),
            (f"out{self.used['f']}", "MPI_MODE_CREATE | MPI_MODE_WRONLY"),
        ):
            fh = FileHandle(self.slot("f"), comm)
            self.files.append(fh)
            for me in comm.groups[0]:
                text = f'MPI_File_open({comm.c}, path("{name}"), {mode}, MPI_INFO_NULL, &{fh.c});'
                self.code(me, "File_open", text, comm=comm)
                fh.position[me] = 0

    def close_files(self) -> None:
        for fh in self.files:
            for me in fh.comm.groups[0]:
                self.code(me, "File_close", f"MPI_File_close(&{fh.c});", fh=fh)

    def set_view(self) -> None:
        """Let offsets count from a displacement, in units of 1 or 8 bytes."""
        if not self.files:
            return
        fh = self.random.choice(self.files)
        fh.start, fh.unit = 8 * self.random.randrange(40), self.random.choice([1, 8])
        etype = {1: "MPI_BYTE", 8: "MPI_DOUBLE"}[fh.unit]
        for me in fh.comm.groups[0]:
            text = f'MPI_File_set_view({fh.c}, {fh.start}, {etype}, {etype}, "native", MPI_INFO_NULL);'
            self.code(me, "File_set_view", text, fh=fh)
            fh.position[me] = 0

    def transfer(self) -> None:
        """One read or write, of one process or of all."""
        if not self.files:
            return
        fh = self.random.choice(self.files)
        kind = "read" if fh is self.files[0] else "write"
        group = fh.comm.groups[0]
        shape = self.random.choice(["", "_at", "_all", "_at_all", "_shared", "_ordered"])
        collective = shape.endswith(("all", "ordered"))
        form = self.random.choice(
            ["now", "request"]
            if not collective
            else ["now", "split"]
            if shape == "_ordered"
            else ["now", "request", "split"]
        )
        shared = shape in ("_shared", "_ordered")
        ranks = group if collective else [self.random.choice(group)]
        if shared:
            # Where the shared pointer stands is known only after a collective seek.
            pointer = self.random.choice([0, 0, max(0, FILE_SIZE - fh.start - 8 * self.random.randrange(30))])
            for me in group:
                self.call(me, "Barrier", comm=fh.comm)
                text = f"MPI_File_seek_shared({fh.c}, {pointer // fh.unit}, MPI_SEEK_SET);"
                self.code(me, "File_seek_shared", text, fh=fh)
                self.call(me, "Barrier", comm=fh.comm)
        # Reads past the end of the file come back short; but ROMIO reports all that was asked for when the read is
        # collective, and OMPIO never completes a non-blocking or split one.  Those stay inside the file.
        may_be_short = not collective and (form == "now" or self.mpi4)
        end = FILE_SIZE - fh.start
        args: dict[int, dict[str, Any]] = {}
        for me in ranks:
            base, n = self.random.choice(["MPI_DOUBLE", "MPI_INT", "MPI_BYTE"]), 4 * self.elements()
            asked = n * BASES[base]  # a multiple of 8, as are all offsets
            individual = not shared and not shape.startswith("_at")
            at = (
                pointer
                if shared
                else fh.position[me]
                if individual
                else 8 * self.random.randrange(FILE_SIZE // 8)
            )
            if kind == "read" and not may_be_short and at + asked > end:
                n = asked = at = 0
            if individual and (at != fh.position[me] or self.chance(0.3)):
                text = f"MPI_File_seek({fh.c}, {at // fh.unit}, MPI_SEEK_SET);"
                self.code(me, "File_seek", text, fh=fh)
            arrives = max(0, min(asked, end - at)) if kind == "read" else 0
            # Data with gaps, or without content, is more than OMPIO 4.1 and ROMIO can take in the other calls.
            simple = collective or form != "now" or at + asked > end
            count, datatype = (n, self.types[base][0]) if simple else self.layout(base, n, empty_types=False)
            args[me] = {"fh": fh, "buf": count * datatype.extent, "count": count, "datatype": datatype}
            args[me].update(arrives=arrives, offset=at // fh.unit)
            if shared:
                pointer += asked
            if individual:
                fh.position[me] = at + (arrives if kind == "read" else asked)
        name = f"File_{kind}{shape}"
        for me in ranks:
            if form == "request":
                args[me]["request"] = self.request()
                self.call(me, f"File_i{kind}{shape}", **args[me])
                self.complete(me, [args[me]["request"]])
            elif form == "split":
                self.call(me, name + "_begin", **args[me])
                self.call(me, name + "_end", fh=fh, buf=args[me]["buf"])
            else:
                self.call(me, name, **args[me])
