# SPDX-License-Identifier: Apache-2.0
"""Starts the `commlens` command."""

from __future__ import annotations

import io
import signal
import sys

from commlens.cli import commlens


def main() -> None:
    """Run the command as a program of its own."""
    # `commlens report x | head` ends the way every other program in a pipe does.
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    # What the encoding of the output lacks becomes visible, as everywhere (commlens.base.escape), instead of a traceback.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    commlens(prog_name="commlens")


if __name__ == "__main__":
    main()
