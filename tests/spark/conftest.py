# SPDX-License-Identifier: Apache-2.0
"""These tests use a package of their own, which tools/spark.sh installs: they do not run with the others."""

from __future__ import annotations

import importlib.util
import signal
from collections.abc import Iterator
from types import FrameType

import pytest

LIMIT_S = 600
"""Of one test with the start of the cluster: on a loaded machine a test takes up to three minutes."""

collect_ignore_glob = [] if importlib.util.find_spec("pyspark") else ["test_*.py"]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """End a test that hangs, with a line that names it."""

    def end(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"{item.name} has not ended within {LIMIT_S} s")

    former = signal.signal(signal.SIGALRM, end)
    signal.alarm(LIMIT_S)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, former)
