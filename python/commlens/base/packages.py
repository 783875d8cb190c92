# SPDX-License-Identifier: Apache-2.0
"""Loads packages that only some exports need, when they need them."""

from __future__ import annotations

import importlib
from typing import Any

from commlens.base.errors import CommlensError


def load(module: str, package: str | None = None) -> Any:
    """Return a module; `package` is its name for pip.

    Raises
    ------
    CommlensError
        It is not installed, or cannot be loaded.
    """
    top = module.partition(".")[0]
    package = package or top
    try:
        importlib.import_module(top)
        return importlib.import_module(module)
    except ImportError as error:
        is_missing = isinstance(error, ModuleNotFoundError) and error.name == top
        why = f"the package {package} is missing" if is_missing else f"{module} cannot be loaded: {error}"
        raise CommlensError(f"{why}; try: pip install {package}") from None
