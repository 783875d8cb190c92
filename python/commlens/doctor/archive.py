# SPDX-License-Identifier: Apache-2.0
"""Finds libcommlens.a in a program, which also works if the program was stripped of its symbols."""

from __future__ import annotations

from pathlib import Path

from commlens.base.inputs import open_regular

ARCHIVE = "libcommlens.a"
# The archive looks this name up at its start, to stop a libcommlens.so that measures, too (core/mpi/bind.cpp).
MARK = b"commlens_stand_aside\0"
CHUNK = 1 << 20


def is_linked_in(program: Path) -> bool:
    """Return whether a program contains libcommlens.a."""
    try:
        with open_regular(program) as file:
            end = b""
            while chunk := file.read(CHUNK):
                if MARK in end + chunk:
                    return True
                end = chunk[1 - len(MARK) :]
    except OSError:
        pass
    return False
