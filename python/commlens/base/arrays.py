# SPDX-License-Identifier: Apache-2.0
"""Arrays of integers."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

Flags = NDArray[np.bool_]


def ints(values: Iterable[int] = ()) -> Ints:
    """Return integers as an array."""
    return np.asarray(list(values), dtype=np.int64)
