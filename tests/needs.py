# SPDX-License-Identifier: Apache-2.0
"""What a test needs of the machine; without it, the test fails and names the package to install."""

from __future__ import annotations

import importlib.util
import shutil

import pytest


def need_programs(*names: str, package: str) -> None:
    """Fail the test if one of these programs is missing.

    Parameters
    ----------
    package : the packages of Debian with these programs
    """
    missing = [name for name in names if shutil.which(name) is None]
    if missing:
        pytest.fail(f"missing: {', '.join(missing)}; install {package}, or run `make setup`", pytrace=False)


def need_modules(*names: str) -> None:
    """Fail the test if one of these Python packages is missing in the environment that `make setup` creates."""
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing:
        pytest.fail(f"missing in this Python: {', '.join(missing)}; run `make setup`", pytrace=False)
