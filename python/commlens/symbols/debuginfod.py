# SPDX-License-Identifier: Apache-2.0
"""Gets debug information from the servers in DEBUGINFOD_URLS, by debuginfod-find of elfutils."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path, PurePosixPath

from commlens.base.messages import print_message

URLS = "DEBUGINFOD_URLS"


class Downloads:
    """Asks the servers for one module after the other, for a limited time in all.

    Parameters
    ----------
    limit_s : float
        Longest time for all downloads together; 0: none is made.
    """

    def __init__(self, limit_s: float):
        self._limit_s = limit_s
        self._spent_s = 0.0

    def get(self, module: str, identity: str) -> tuple[Path | None, str]:
        """Return the file with the debug information of a build, or the reason why there is none.

        The reason is empty if nobody asked for downloads. A message on stderr precedes each of them.
        """
        if not os.environ.get(URLS) or not self._limit_s:
            return None, ""
        tool = shutil.which("debuginfod-find")
        if tool is None:
            return None, f"{URLS} is set, but debuginfod-find is not installed"
        left_s = self._limit_s - self._spent_s
        if left_s <= 0:
            return None, f"the {self._limit_s:g} s for downloads are over (--download-time)"
        name = PurePosixPath(module).name or "a module"
        print_message(f"asking the servers of {URLS} for {name}, at most {left_s:.0f} s")
        begin = time.monotonic()
        try:
            done = subprocess.run(
                [tool, "debuginfo", identity], capture_output=True, timeout=left_s, stdin=subprocess.DEVNULL
            )
        except subprocess.TimeoutExpired:
            return None, f"debuginfod-find did not get it in {left_s:.0f} s (--download-time)"
        except OSError as error:
            return None, f"debuginfod-find cannot be started: {error.strerror}"
        finally:
            self._spent_s += time.monotonic() - begin
        lines = done.stdout.decode(errors="replace").splitlines()
        if done.returncode == 0 and lines:
            return Path(lines[-1]), ""
        said = done.stderr.decode(errors="replace").strip().splitlines()
        return None, f"debuginfod-find: {said[-1] if said else f'exit code {done.returncode}'}"
