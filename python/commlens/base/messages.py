# SPDX-License-Identifier: Apache-2.0
"""The only functions that write to stderr."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from commlens.base.escape import Target, escape


def print_message(message: object, details: Sequence[str] = ()) -> None:
    """Print one line to stderr, followed by the details on indented lines."""
    if sys.stderr is None:  # the process was started without stderr
        return
    for line in [f"commlens: {message}", *(f"  {detail}" for detail in details)]:
        sys.stderr.write(f"{shown(line)}\n")
    sys.stderr.flush()


def shown(line: str) -> str:
    """Return a line with escapes, including those for characters that stderr cannot encode."""
    encoding = getattr(sys.stderr, "encoding", None) or "ascii"
    return escape(line, Target.LINE).encode(encoding, "backslashreplace").decode(encoding)
