# SPDX-License-Identifier: Apache-2.0
"""The generators are scripts in gen/, not a package: make them importable."""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "gen"))

import output
from policy import Policy, read_policy
from standard import Form, standard_forms

CALLS = output.read_toml("spec/calls.toml")
FORMS = standard_forms()


def column(spec: dict[str, Any], table: str, name: str) -> dict[str, Any]:
    """Return one column of a table."""
    found: dict[str, Any] = next(c for c in spec["table"][table]["columns"] if c["name"] == name)
    return found


@pytest.fixture
def spec() -> dict[str, Any]:
    """Return spec/calls.toml, for a test to spoil."""
    return copy.deepcopy(CALLS)


@pytest.fixture(scope="session")
def forms() -> dict[str, list[Form]]:
    """Return the procedures of the standard."""
    return FORMS


@pytest.fixture(scope="session")
def policy() -> dict[str, Policy]:
    """Return what spec/calls.toml says of each of them."""
    return read_policy(copy.deepcopy(CALLS), set(FORMS))
