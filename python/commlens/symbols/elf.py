# SPDX-License-Identifier: Apache-2.0
"""Reads from ELF files the build id, the functions, and the data of the dynamic loader.

Layout: man 5 elf, "Elf32_Ehdr" to "Elf64_Sym" and "Notes (Nhdr)".  A file that is broken, or not an ELF file,
has no build id and no functions.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import BinaryIO, NamedTuple

from commlens.base.inputs import open_regular

PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_NOTE = 1, 2, 3, 4
DT_NEEDED, DT_STRTAB, DT_SONAME, DT_RPATH, DT_RUNPATH = 1, 5, 14, 15, 29
NT_GNU_BUILD_ID = 3
SHT_SYMTAB, SHT_NOTE, SHT_DYNSYM = 2, 7, 11
STT_FUNC = 2
LARGEST_READ = 1 << 28  # bytes; a broken file may claim any size

BROKEN = (OSError, ValueError, IndexError, struct.error)


class Layout(NamedTuple):
    """Offsets of the headers, and the format of the fields."""

    wide: bool  # 64-bit
    order: str  # of bytes, for struct
    program_headers: tuple[int, int, int]  # offset, size of one, number
    section_headers: tuple[int, int, int]


def read_layout(file: BinaryIO) -> Layout:
    """Return the layout; raise ValueError or struct.error if the file is not ELF."""
    head = file.read(64)
    if head[:4] != b"\x7fELF":
        raise ValueError("not an ELF file")
    wide, order = head[4] == 2, "<" if head[5] == 1 else ">"
    programs, sections = struct.unpack_from(order + ("QQ" if wide else "II"), head, 32 if wide else 28)
    sizes = struct.unpack_from(order + "HHHH", head, 54 if wide else 42)
    return Layout(wide, order, (programs, sizes[0], sizes[1]), (sections, sizes[2], sizes[3]))


def read_at(file: BinaryIO, offset: int, size: int) -> bytes:
    """Return a range of bytes of the file."""
    file.seek(offset)
    return file.read(min(size, LARGEST_READ))


def build_id(path: Path) -> str:
    """Return the GNU build id as hexadecimal digits; empty if there is none."""
    try:
        with open_regular(path) as file:
            layout = read_layout(file)
            segments = [
                (offset, length)
                for kind, offset, _, length in program_headers(file, layout)
                if kind == PT_NOTE
            ]
            # A file with debug information alone may have notes in sections only.
            sections = (
                (offset, length)
                for _, kind, offset, length, _ in section_headers(file, layout)
                if kind == SHT_NOTE
            )
            for offset, length in chain(segments, sections):
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
    """Return the addresses that lie inside a function with a symbol.

    Elsewhere addr2line names the symbol before the address: in a stripped program that is any function.
    """
    ranges = []
    try:
        with open_regular(path) as file:
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


class Dynamic(NamedTuple):
    """Data of a program or shared object that the loader reads."""

    machine: int  # the number of the processor: EM_...
    wide: bool
    static: bool  # no library can be loaded into it
    needed: tuple[str, ...]
    soname: str
    rpath: tuple[str, ...]
    runpath: tuple[str, ...]


def read_dynamic(path: Path) -> Dynamic | None:
    """Return the data of a file that the loader reads; None if it is not a valid ELF file."""
    try:
        with open_regular(path) as file:
            layout = read_layout(file)
            (machine,) = struct.unpack_from(layout.order + "H", read_at(file, 18, 2))
            segments = list(program_headers(file, layout))
            entries: list[tuple[int, int]] = []
            for kind, offset, _, size in segments:
                if kind == PT_DYNAMIC:
                    form = struct.Struct(layout.order + ("qQ" if layout.wide else "iI"))
                    data = read_at(file, offset, size)
                    entries = list(form.iter_unpack(data[: len(data) // form.size * form.size]))
            table = dict(entries)
            strings = b""
            for kind, offset, address, size in segments:
                if kind == PT_LOAD and address <= table.get(DT_STRTAB, -1) < address + size:
                    begin = table[DT_STRTAB] - address
                    strings = read_at(file, offset + begin, size - begin)

            def texts(tag: int) -> list[str]:
                return [string_at(strings, value) for kind, value in entries if kind == tag]

            def folders(tag: int) -> tuple[str, ...]:
                return tuple(part for text in texts(tag) for part in text.split(":") if part)

            return Dynamic(
                machine=machine,
                wide=layout.wide,
                static=not any(kind == PT_INTERP for kind, *_ in segments),
                needed=tuple(texts(DT_NEEDED)),
                soname="".join(texts(DT_SONAME)),
                rpath=folders(DT_RPATH),
                runpath=folders(DT_RUNPATH),
            )
    except BROKEN:
        return None


def program_headers(file: BinaryIO, layout: Layout) -> Iterator[tuple[int, int, int, int]]:
    """Yield kind, offset, address and size in the file of each segment."""
    start, size, count = layout.program_headers
    for i in range(count):
        header = read_at(file, start + i * size, size)
        if layout.wide:
            kind, _, offset, address, _, length = struct.unpack_from(layout.order + "IIQQQQ", header)
        else:
            kind, offset, address, _, length = struct.unpack_from(layout.order + "IIIII", header)
        yield kind, offset, address, length


def section_headers(file: BinaryIO, layout: Layout) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield name, kind, offset, size and link of each section."""
    start, size, count = layout.section_headers
    for i in range(count):
        header = read_at(file, start + i * size, size)
        if layout.wide:
            name, kind, _, _, offset, length, link = struct.unpack_from(layout.order + "IIQQQQI", header)
        else:
            name, kind, _, _, offset, length, link = struct.unpack_from(layout.order + "IIIIIII", header)
        yield name, kind, offset, length, link


def string_at(strings: bytes, offset: int) -> str:
    """Return a text from a string table."""
    return strings[offset : strings.index(b"\0", offset)].decode(errors="replace")


def dynamic_symbols(path: Path) -> tuple[set[str], set[str]]:
    """Return the names that a file exports and imports; empty if the file is damaged."""
    defined: set[str] = set()
    undefined: set[str] = set()
    try:
        with open_regular(path) as file:
            layout = read_layout(file)
            sections = list(section_headers(file, layout))
            form = struct.Struct(layout.order + ("IBBHQQ" if layout.wide else "IIIBBH"))
            for _, kind, offset, size, link in sections:
                if kind != SHT_DYNSYM:
                    continue
                strings = read_at(file, sections[link][2], sections[link][3])
                data = read_at(file, offset, size)
                for fields in form.iter_unpack(data[: len(data) // form.size * form.size]):
                    section = fields[3] if layout.wide else fields[5]
                    (defined if section else undefined).add(string_at(strings, fields[0]))
    except BROKEN:
        return set(), set()
    return defined - {""}, undefined - {""}


def named_sections(file: BinaryIO) -> Iterator[tuple[str, int, int]]:
    """Yield name, offset and size of each section."""
    layout = read_layout(file)
    sections = list(section_headers(file, layout))
    (names,) = struct.unpack_from(layout.order + "H", read_at(file, 62 if layout.wide else 50, 2))
    strings = read_at(file, sections[names][2], sections[names][3])
    for name, _, offset, size, _ in sections:
        yield string_at(strings, name), offset, size


def has_line_numbers(path: Path) -> bool:
    """Return whether a file has debug information with line numbers."""
    try:
        with open_regular(path) as file:
            return any(name in (".debug_line", ".zdebug_line") for name, *_ in named_sections(file))
    except BROKEN:
        return False


def debug_link(path: Path) -> str:
    """Return the name of the file with the debug information, from section .gnu_debuglink; empty without one."""
    try:
        with open_regular(path) as file:
            for name, offset, size in named_sections(file):
                if name == ".gnu_debuglink":
                    return string_at(read_at(file, offset, size), 0)
    except BROKEN:
        pass
    return ""
