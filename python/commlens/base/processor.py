# SPDX-License-Identifier: Apache-2.0
"""The processor of this system, as the linker, the loader and Debian call it."""

from __future__ import annotations

import platform
from typing import NamedTuple


class Processor(NamedTuple):
    """Names and numbers of one processor.

    Attributes
    ----------
    name : as `uname -m` prints it
    elf : the number in the header of its programs (EM_...)
    mark : what distinguishes its libraries in the output of `ldconfig -p`
    folder : the folder of its libraries in Debian
    keyctl : the number of this system call
    has_assembly : False: commlens is slower, and finds call sites but no call paths
    """

    name: str
    elf: int
    mark: str
    folder: str
    keyctl: int
    has_assembly: bool


KNOWN = {
    known.name: known
    for known in (
        Processor("x86_64", 62, "x86-64", "x86_64-linux-gnu", 250, True),
        Processor("aarch64", 183, "AArch64", "aarch64-linux-gnu", 219, True),
        Processor("ppc64le", 21, "64bit", "powerpc64le-linux-gnu", 271, False),
        Processor("riscv64", 243, "double-float", "riscv64-linux-gnu", 219, False),
        Processor("s390x", 22, "64bit", "s390x-linux-gnu", 280, False),
    )
}
"""The processors for which commlens is built, by name."""


def processor() -> Processor:
    """Return the processor of this system; an unknown one is taken for x86-64."""
    return KNOWN.get(platform.machine(), KNOWN["x86_64"])
