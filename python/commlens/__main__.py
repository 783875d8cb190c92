# SPDX-License-Identifier: Apache-2.0
"""Starts the `commlens` command."""

from __future__ import annotations

import io
import signal
import sys

from commlens.cli import commlens


def main() -> None:
    """Run the command as a program."""
    # If the reader of a pipe ends, as in `commlens report x | head`, SIGPIPE ends this process without a traceback.
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    # Characters that the encoding of the output lacks become visible escapes (commlens.base.escape), not a traceback.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    commlens(prog_name="commlens")


if __name__ == "__main__":
    main()
