# SPDX-License-Identifier: Apache-2.0
"""Reads the profiles that commlens writes; annotates Python programs with regions, loops, metrics and tags."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from commlens.annotate import (
    active,
    flush,
    flush_to,
    loop,
    metric,
    pause,
    region,
    reorder,
    reset,
    resume,
    tag,
    version,
    watch,
)

if TYPE_CHECKING:
    from commlens.frames import Profile

# Without open: "from commlens import *" must not hide Python's own in an application.
__all__ = [
    "active",
    "flush",
    "flush_to",
    "loop",
    "metric",
    "pause",
    "region",
    "reorder",
    "reset",
    "resume",
    "tag",
    "version",
    "watch",
]


def open(profile: str | os.PathLike[str]) -> Profile:
    """Return a profile, whose tables are data frames and whose page a notebook shows: see commlens.frames.Profile.

    Parameters
    ----------
    profile : path
        Path of the profile: a file, or a directory of shards.

    Raises
    ------
    CommlensError
        The profile cannot be read.
    """
    # Here: an annotated application imports commlens in every process, and reads no profile.
    from commlens.frames import Profile

    return Profile(profile)
