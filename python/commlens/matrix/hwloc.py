# SPDX-License-Identifier: Apache-2.0
"""Reads the topology of a node from a file that hwloc's `lstopo NODE.xml` wrote."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from commlens.base.errors import CommlensError
from commlens.base.inputs import read_regular

LARGEST_FILE = 64 << 20  # bytes; of a node with 1,000 CPUs lstopo writes 2 MB
LARGEST_CPU = 1 << 16  # number; a profile or a file may claim any

Inside = tuple[int, int, int]


@dataclass(frozen=True)
class Core:
    """A core of a node: its CPUs as the system numbers them; socket, NUMA domain and core complex."""

    cpus: tuple[int, ...]
    inside: Inside


def content(path: Path) -> bytes:
    """Return the content of a file that the user named."""
    try:
        return read_regular(path, LARGEST_FILE)
    except OSError as error:
        raise CommlensError(f"{path}: cannot be read: {error.strerror}") from None


def read_hwloc(path: Path) -> list[Core]:
    """Return the cores in the order of the topology, from a file that `lstopo FILE.xml` wrote.

    Raises
    ------
    CommlensError
        The file is no such topology.
    """
    try:
        root = ElementTree.fromstring(content(path))
        elements = list(root.iter("object"))
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        raise CommlensError(f"{path}: not a topology written by lstopo: {error}") from None
    groups: dict[str, dict[int, int]] = {"socket": {}, "numa": {}, "cache": {}, "core": {}}
    order: list[int] = []
    found = dict.fromkeys(groups, 0)
    for element in elements:
        kind = element.get("type", "")
        title = _title(kind, element)
        cpus = _cpuset(element.get("cpuset", ""))
        if kind == "PU":
            order += [cpu for cpu in cpus if cpu not in order]
        elif title:
            for cpu in cpus:
                groups[title][cpu] = found[title]
            found[title] += 1
    if not order:
        raise CommlensError(f"{path}: not a topology written by lstopo: it has no CPUs")
    cores: dict[int, list[int]] = {}
    for at, cpu in enumerate(order):
        cores.setdefault(groups["core"].get(cpu, -1 - at), []).append(cpu)
    return [
        Core(
            tuple(cpus),
            (
                groups["socket"].get(cpus[0], 0),
                groups["numa"].get(cpus[0], 0),
                groups["cache"].get(cpus[0], -1),
            ),
        )
        for cpus in cores.values()
    ]


def _title(kind: str, element: ElementTree.Element) -> str:
    """Return the level that an object of hwloc is a group of; empty for others."""
    if kind in ("Package", "Socket"):
        return "socket"
    if kind == "L3Cache" or (kind == "Cache" and element.get("depth") == "3"):
        return "cache"
    return {"NUMANode": "numa", "Core": "core"}.get(kind, "")


def _cpuset(text: str) -> list[int]:
    """Return the CPUs of a set as hwloc writes it: words of 32 bits in hexadecimal, the highest first.

    >>> _cpuset("0x00000001,0x00000005")
    [0, 2, 32]
    """
    words = text.split(",")
    if (
        not re.fullmatch(r"(0x[0-9a-fA-F]{1,8}|)(,(0x[0-9a-fA-F]{1,8}|))*", text)
        or len(words) > LARGEST_CPU // 32
    ):
        return []
    mask = 0
    for word in words:
        mask = mask << 32 | int(word or "0", 16)
    return [cpu for cpu in range(mask.bit_length()) if mask >> cpu & 1]
