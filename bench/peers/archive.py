# SPDX-License-Identifier: Apache-2.0
"""The archive of all results, beside the page: every run of every round.

With it anyone computes the page again, or goes on with the measurement on another machine.
"""

from __future__ import annotations

import io
import shutil
import tarfile
from pathlib import Path

from bench.peers import places


def members(parts: tuple[str, ...]) -> list[str]:
    """Return the names of the files of results.

    >>> members(("calls",))
    ['calls.json', 'calls.jsonl']
    """
    return sorted(f"{part}.{kind}" for part in parts for kind in ("json", "jsonl"))


def pack(target: Path, parts: tuple[str, ...]) -> None:
    """Write the results of these parts. The same results give the same bytes."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(target, "w:xz", format=tarfile.USTAR_FORMAT) as archive:
        for name in members(parts):
            path = places.RESULTS / name
            if path.exists():
                content = path.read_bytes()
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))


def take(source: Path, parts: tuple[str, ...]) -> list[str]:
    """Take over results that were measured elsewhere, in place of those of the same parts here.

    source : a folder of results, or an archive

    Returns the names of the files.
    """
    places.RESULTS.mkdir(parents=True, exist_ok=True)
    names = members(parts)
    if source.is_dir():
        taken = [name for name in names if (source / name).is_file()]
        for name in taken:
            shutil.copy(source / name, places.RESULTS / name)
        return taken
    taken = []
    with tarfile.open(source) as archive:
        for entry in archive:
            content = archive.extractfile(entry) if entry.name in names else None
            if content is not None:
                (places.RESULTS / entry.name).write_bytes(content.read())
                taken.append(entry.name)
    return sorted(taken)
