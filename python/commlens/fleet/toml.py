# SPDX-License-Identifier: Apache-2.0
"""Reads TOML files: tables of codes, and rules for alerts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from commlens.base.errors import CommlensError
from commlens.base.inputs import read_regular
from commlens.base.packages import load

MOST_BYTES = 1 << 22


def read_toml(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file.

    Raises
    ------
    CommlensError
        It cannot be read or is no TOML; or Python is older than 3.11, and the package tomli is missing.
    """
    toml = load("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        content: dict[str, Any] = toml.loads(read_regular(path, MOST_BYTES).decode("utf-8"))
    except OSError as error:
        raise CommlensError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # of TOML and of UTF-8
        raise CommlensError(f"{path}: {error}") from None
    return content
