# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of the build itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from machine import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Return a bare machine: no compiler, no MPI, no apt-get, nobody logged in."""
    return Machine(tmp_path)
