# SPDX-License-Identifier: Apache-2.0
"""Steps of MPI-IO."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Transfer:
    """A read or write: `shape` ends its name; `form` is "now", "request" or "split"."""

    fh: FileHandle
    kind: str
    shape: str
    form: str

    @property
    def is_collective(self) -> bool:
        return self.shape.endswith(("all", "ordered"))

    @property
    def is_shared(self) -> bool:
        return self.shape in ("_shared", "_ordered")

    @property
    def is_individual(self) -> bool:
        return not self.is_shared and not self.shape.startswith("_at")


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
        one = Transfer(fh, kind, shape, form)
        ranks = group if collective else [self.random.choice(group)]
        pointer = self.seek_shared(fh) if one.is_shared else 0
        args: dict[int, dict[str, Any]] = {}
        for me in ranks:
            args[me], asked = self.transfer_args(one, me, pointer)
            pointer += asked
        for me in ranks:
            self.emit_transfer(one, me, args[me])

    def seek_shared(self, fh: FileHandle) -> int:
        """Set the shared file pointer and return it: where it stands is known only after a collective seek."""
        pointer = self.random.choice([0, 0, max(0, FILE_SIZE - fh.start - 8 * self.random.randrange(30))])
        for me in fh.comm.groups[0]:
            self.call(me, "Barrier", comm=fh.comm)
            text = f"MPI_File_seek_shared({fh.c}, {pointer // fh.unit}, MPI_SEEK_SET);"
            self.code(me, "File_seek_shared", text, fh=fh)
            self.call(me, "Barrier", comm=fh.comm)
        return pointer

    def transfer_args(self, one: Transfer, me: int, pointer: int) -> tuple[dict[str, Any], int]:
        """Return the arguments of one process, and how many bytes it asks for; `pointer` is the shared one."""
        fh = one.fh
        # Reads past the end of the file come back short; but ROMIO reports all that was asked for when the read is
        # collective, and OMPIO never completes a non-blocking or split one.  Those stay inside the file.
        may_be_short = not one.is_collective and (one.form == "now" or self.mpi4)
        end = FILE_SIZE - fh.start
        base, n = self.random.choice(["MPI_DOUBLE", "MPI_INT", "MPI_BYTE"]), 4 * self.elements()
        asked = n * BASES[base]  # a multiple of 8, as are all offsets
        at = (
            pointer
            if one.is_shared
            else fh.position[me]
            if one.is_individual
            else 8 * self.random.randrange(FILE_SIZE // 8)
        )
        if one.kind == "read" and not may_be_short and at + asked > end:
            n = asked = at = 0
        if one.is_individual and (at != fh.position[me] or self.chance(0.3)):
            text = f"MPI_File_seek({fh.c}, {at // fh.unit}, MPI_SEEK_SET);"
            self.code(me, "File_seek", text, fh=fh)
        arrives = max(0, min(asked, end - at)) if one.kind == "read" else 0
        # Data with gaps, or without content, is more than OMPIO 4.1 and ROMIO can take in the other calls.
        simple = one.is_collective or one.form != "now" or at + asked > end
        count, datatype = (n, self.types[base][0]) if simple else self.layout(base, n, empty_types=False)
        if one.is_individual:
            fh.position[me] = at + (arrives if one.kind == "read" else asked)
        args = {"fh": fh, "buf": count * datatype.extent, "count": count, "datatype": datatype}
        return {**args, "arrives": arrives, "offset": at // fh.unit}, asked

    def emit_transfer(self, one: Transfer, me: int, args: dict[str, Any]) -> None:
        """Emit the calls of one process."""
        name = f"File_{one.kind}{one.shape}"
        if one.form == "request":
            request = self.request()
            self.call(me, f"File_i{one.kind}{one.shape}", **args, request=request)
            self.complete(me, [request])
        elif one.form == "split":
            self.call(me, name + "_begin", **args)
            self.call(me, name + "_end", fh=one.fh, buf=args["buf"])
        else:
            self.call(me, name, **args)
