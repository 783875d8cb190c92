# SPDX-License-Identifier: Apache-2.0
"""Limits of processor time and memory for reading a file, proportional to the bytes stored in it."""

from __future__ import annotations

import errno
import os

LIMIT_S = 5.0
SECONDS_PER_BYTE = 4.0e-6
"""Processor time for all queries on a file. An intact profile needs at most a fiftieth of it."""
LONGEST_TEXT = 1 << 26  # bytes of a text or a row
LEAST_TEXT = 1 << 20
"""Bytes that a text may always have, because queries concatenate texts; no statement is longer."""
PAGE = 4096
LEAST_PAGES, MOST_PAGES = 1000, 1 << 30
PAGES_PER_BYTE = 8 / PAGE
"""Pages for a copy: shards have smaller pages than the copy, and even an empty table occupies one."""

LEAST_STORED = 1 << 20
MOST_EXTENTS = 10_000
"""Number of extents that are searched for; commlens writes files without holes."""


def seconds_for(stored: int) -> float:
    """Return the processor time, in seconds, that reading `stored` bytes may take."""
    return LIMIT_S + stored * SECONDS_PER_BYTE


def pages_for(stored: int) -> int:
    """Return the number of pages that a copy of `stored` bytes may have."""
    return min(LEAST_PAGES + int(stored * PAGES_PER_BYTE), MOST_PAGES)


def longest_for(stored: int) -> int:
    """Return the maximum size of a text, in bytes, from a file with `stored` bytes."""
    return min(LONGEST_TEXT, max(stored, LEAST_TEXT))


def stored_bytes(descriptor: int) -> int:
    """Return the number of bytes of a file outside holes, because anyone can create a hole of a terabyte.

    There are two sources, and each is wrong on some file systems. A compressed file has fewer blocks than bytes, and a
    file that was just written may have none yet. Where a file system does not report holes, the kernel reports the
    whole file as data. The limits must suffice for an intact profile, so the larger number counts, and at least 1 MiB.
    """
    facts = os.fstat(descriptor)
    found = max(_bytes_of_data(descriptor, facts.st_size), facts.st_blocks * 512, LEAST_STORED)
    return min(facts.st_size, found)


def _bytes_of_data(descriptor: int, size: int) -> int:
    """Return the number of bytes between holes."""
    found = end = 0
    try:
        for _ in range(MOST_EXTENTS):
            if end >= size:
                break
            begin = os.lseek(descriptor, end, os.SEEK_DATA)
            end = os.lseek(descriptor, begin, os.SEEK_HOLE)
            found += end - begin
    except OSError as error:
        if error.errno != errno.ENXIO:  # nothing but a hole is left
            return size
    return found
