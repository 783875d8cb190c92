# SPDX-License-Identifier: Apache-2.0
"""The story that every language tells, here in Python."""

from __future__ import annotations

import contextlib
import sys

import commlens


@commlens.region
def early(value: int) -> int:
    """Return early."""
    if value > 0:
        return value
    return 0


@commlens.region("thrown")
def fail() -> None:
    """Raise an exception."""
    raise ValueError


residual = commlens.metric("residual", unit="1")
cells = commlens.metric("cells")
with commlens.region("main"):
    for step in commlens.loop("time steps", range(3), each=True):
        with commlens.region("solve"):
            residual.record(1 / 2**step)
    with commlens.loop("sweeps") as sweeps:
        sweeps.iteration()
        cells.record(4096)
    with commlens.region("padded"):
        commlens.tag("kind", "IO")
    with commlens.region("Größe µ/流"):
        pass
    with commlens.region(""):
        pass
    with commlens.region("x" * 1000):
        pass
    answer = early(42)
    with contextlib.suppress(ValueError):
        fail()
    commlens.pause()
    commlens.resume()
    commlens.reset()
    written = commlens.flush()
print(f"answer {answer}")
print(
    f"version '{commlens.version()}' active {commlens.active():d} written {written:d}",
    file=sys.stderr,
)
