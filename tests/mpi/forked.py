# SPDX-License-Identifier: Apache-2.0
"""Runs `commlens` in forks of a process that has imported it: to start Python takes longer than most commands.

    python forked.py        # reads requests from stdin, a line each, and answers each with an exit code

The process knows nothing of pytest; a fork has the environment, folder and files of its request, and ends as a program
does.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from build_once import PATIENCE

PYTHON = Path(__file__).resolve().parents[2] / "python"
TIMEOUT_S = 120 * PATIENCE

_one_at_a_time = threading.Lock()


def run(
    arguments: Sequence[object], environment: Mapping[str, str], folder: Path
) -> subprocess.CompletedProcess[str]:
    """Run `commlens` and return how it ended, like subprocess.run()."""
    command = ["commlens", *map(str, arguments)]
    with _one_at_a_time, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        server = _server(os.getpid())
        assert server.stdin is not None
        assert server.stdout is not None
        paths = [f"/proc/{os.getpid()}/fd/{file.fileno()}" for file in (out, err)]
        request = {
            "command": command,
            "environment": dict(environment),
            "folder": str(folder),
            "files": paths,
        }
        server.stdin.write(json.dumps(request).encode() + b"\n")
        server.stdin.flush()
        if not select.select([server.stdout], [], [], TIMEOUT_S)[0]:
            os.killpg(server.pid, signal.SIGKILL)
            _server.cache_clear()
            raise subprocess.TimeoutExpired(command, TIMEOUT_S)
        code = int(server.stdout.readline())
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(command, code, out.read().decode(), err.read().decode())


@functools.cache
def _server(of: int) -> subprocess.Popen[bytes]:  # noqa: ARG001
    """Start the process of a process; it ends with that one, and a fork of that one has its own."""
    environment = {**os.environ, "PYTHONPATH": str(PYTHON), "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, __file__], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    atexit.register(process.__exit__, None, None, None)
    return process


def serve() -> None:
    """Answer requests until there are no more; a fork returns when its command has ended."""
    from commlens.cli import COMMANDS

    for name in COMMANDS:
        import_module(f"commlens.cli.{name.replace('-', '_')}")
    for line in sys.stdin.buffer:
        child = os.fork()
        if child == 0:
            answer(json.loads(line))
            return
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def answer(request: dict[str, Any]) -> None:
    """Run the command of a request in this process."""
    from commlens.__main__ import main

    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    for descriptor, path in enumerate([os.devnull, *request["files"]]):
        os.dup2(os.open(path, os.O_RDWR), descriptor)
    sys.stdin, sys.stdout, sys.stderr = (
        open(descriptor, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
        for descriptor, mode in enumerate("rww")
    )
    sys.argv = request["command"]
    main()


if __name__ == "__main__":
    serve()
