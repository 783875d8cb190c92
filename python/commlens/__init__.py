# SPDX-License-Identifier: Apache-2.0
"""Reads the profiles that commlens writes; annotates Python programs with regions, loops, metrics and tags."""

from commlens.annotate import (
    active,
    flush,
    flush_to,
    loop,
    metric,
    pause,
    region,
    reset,
    resume,
    tag,
    version,
    watch,
)

__all__ = [
    "active",
    "flush",
    "flush_to",
    "loop",
    "metric",
    "pause",
    "region",
    "reset",
    "resume",
    "tag",
    "version",
    "watch",
]
