# SPDX-License-Identifier: Apache-2.0
"""What we need to know of an ELF file: its build id, and whether a function is at an address.

Layout: man 5 elf, "Elf32_Ehdr" to "Elf64_Sym" and "Notes (Nhdr)".  A file that is broken, or no ELF file,
has no build id and no functions.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

PT_NOTE = 4
NT_GNU_BUILD_ID = 3
SHT_SYMTAB, SHT_DYNSYM = 2, 11
STT_FUNC = 2
LARGEST_READ = 1 << 28  # a broken file may claim any size

BROKEN = (OSError, ValueError, IndexError, struct.error)


class Layout(NamedTuple):
    """Where headers are, and how fields are stored."""

    wide: bool  # 64-bit
    order: str  # of bytes, for struct
    program_headers: tuple[int, int, int]  # offset, size of one, number
    section_headers: tuple[int, int, int]


def read_layout(file: BinaryIO) -> Layout:
    """Return the layout; raises ValueError or struct.error if there is none."""
    head = file.read(64)
    if head[:4] != b"\x7fELF":
        raise ValueError("no ELF file")
    wide, order = head[4] == 2, "<" if head[5] == 1 else ">"
    programs, sections = struct.unpack_from(order + ("QQ" if wide else "II"), head, 32 if wide else 28)
    sizes = struct.unpack_from(order + "HHHH", head, 54 if wide else 42)
    return Layout(wide, order, (programs, sizes[0], sizes[1]), (sections, sizes[2], sizes[3]))


def read_at(file: BinaryIO, offset: int, size: int) -> bytes:
    """Return bytes of the file."""
    file.seek(offset)
    return file.read(min(size, LARGEST_READ))


def build_id(path: Path) -> str:
    """Return the GNU build id as hexadecimal digits; empty if there is none."""
    try:
        with path.open("rb") as file:
            layout = read_layout(file)
            start, size, count = layout.program_headers
            for i in range(count):
                header = read_at(file, start + i * size, size)
                if layout.wide:
                    kind, _, offset, _, _, length = struct.unpack_from(layout.order + "IIQQQQ", header)
                else:
                    kind, offset, _, _, length = struct.unpack_from(layout.order + "IIIII", header)
                if kind == PT_NOTE:
                    for name, note_kind, content in notes(read_at(file, offset, length), layout.order):
                        if name == b"GNU\0" and note_kind == NT_GNU_BUILD_ID:
                            return content.hex()
    except BROKEN:
        pass
    return ""


def notes(data: bytes, order: str) -> Iterator[tuple[bytes, int, bytes]]:
    """Yield name, kind and content of each note."""
    at = 0
    while at + 12 <= len(data):
        name_size, size, kind = struct.unpack_from(order + "III", data, at)
        name = at + 12
        content = name + (name_size + 3) // 4 * 4
        yield data[name : name + name_size], kind, data[content : content + size]
        at = content + (size + 3) // 4 * 4


def inside_functions(path: Path, addresses: Iterable[int]) -> set[int]:
    """Return those of the addresses that lie inside a function the file has a symbol for.

    Elsewhere addr2line names the symbol before the address: in a stripped program that is any function.
    """
    ranges = []
    try:
        with path.open("rb") as file:
            layout = read_layout(file)
            start, size, count = layout.section_headers
            for i in range(count):
                header = read_at(file, start + i * size, size)
                if layout.wide:
                    _, kind, _, _, offset, length = struct.unpack_from(layout.order + "IIQQQQ", header)
                else:
                    _, kind, _, _, offset, length = struct.unpack_from(layout.order + "IIIIII", header)
                if kind in (SHT_SYMTAB, SHT_DYNSYM):
                    ranges += functions(read_at(file, offset, length), layout)
    except BROKEN:
        return set()
    ranges.sort()
    starts = [begin for begin, _ in ranges]
    found = set()
    for address in addresses:
        i = bisect_right(starts, address) - 1
        # Several symbols may begin at one place; sorted, the longest is the last of them.
        if i >= 0 and address < ranges[i][1]:
            found.add(address)
    return found


def functions(symbols: bytes, layout: Layout) -> list[tuple[int, int]]:
    """Return begin and end of each function in a symbol table."""
    form = struct.Struct(layout.order + ("IBBHQQ" if layout.wide else "IIIBBH"))
    whole = symbols[: len(symbols) // form.size * form.size]
    if layout.wide:
        fields = (
            (info, section, value, size) for _, info, _, section, value, size in form.iter_unpack(whole)
        )
    else:
        fields = (
            (info, section, value, size) for _, value, size, info, _, section in form.iter_unpack(whole)
        )
    return [
        (value, value + size)
        for info, section, value, size in fields
        if info & 15 == STT_FUNC and section and size
    ]
