# SPDX-License-Identifier: Apache-2.0
"""Counts the work of a function by its calls, which are as many on a slow and on a busy machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

Returned = TypeVar("Returned")


def count_calls(function: Callable[[], Returned]) -> tuple[int, Returned]:
    """Call `function`; return how many functions it called, in Python and C, and what it returned."""
    calls = 0

    def count(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    former = sys.getprofile()
    sys.setprofile(count)
    try:
        returned = function()
    finally:
        sys.setprofile(former)
    return calls, returned
