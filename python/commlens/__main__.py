# SPDX-License-Identifier: Apache-2.0
"""Starts the `commlens` command."""

from __future__ import annotations

import signal

from commlens.cli import commlens


def main() -> None:
    """Run the command as a program of its own."""
    # `commlens report x | head` ends the way every other program in a pipe does.
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    commlens(prog_name="commlens")


if __name__ == "__main__":
    main()
