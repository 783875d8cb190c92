# SPDX-License-Identifier: Apache-2.0
"""Run long, with and without commlens, and print the resident memory over time.

.venv/bin/python -m fuzz.soak
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from harness import ROOT, Mpi

HERE = Path(__file__).resolve().parent
SECONDS = 7200
TITLES = {"openmpi": "Open MPI", "mpich": "MPICH"}


def curve(mpi: Mpi, what: str, n: int, mode: str) -> dict[int, int]:
    """Return the resident memory, KiB, of one process after so many calls or objects; the most it was as -1."""
    program = mpi.compile(HERE / "soak.c")
    env = {"COMMLENS_QUIET": "1"} if mode != "off" else {}
    result = mpi.run(1, [str(program), what, str(n)], env=env, timeout=SECONDS, mode=mode)
    assert result.rc == 0, result
    if mode != "off":
        result.open().check()
    return {int(done): int(kib) for done, kib in map(str.split, result.stdout.splitlines())}


def main() -> None:
    """Parse, run, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=100_000_000, help="default: %(default)s")
    parser.add_argument("--comms", type=int, default=100_000, help="default: %(default)s")
    parser.add_argument("--windows", type=int, default=20_000, help="default: %(default)s")
    parser.add_argument("--files", type=int, default=20_000, help="default: %(default)s")
    parser.add_argument("--mpi", default="openmpi,mpich", help="default: %(default)s")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends what was launched, too
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as scratch:
        for name in options.mpi.split(","):
            folder = Path(scratch, name)
            folder.mkdir()
            mpi = Mpi(name, folder)
            for what in ("calls", "comms", "windows", "files"):
                without, under = (curve(mpi, what, getattr(options, what), mode) for mode in ("off", "run"))
                print(f"\n{TITLES[name]}, KiB resident:\n")
                print(f"| {what} | without | under commlens | more |\n|---:|---:|---:|---:|")
                for done in [*list(without)[:-1:4], -1]:
                    when = "most" if done < 0 else f"{done:,}"
                    more = under[done] - without[done]
                    print(f"| {when} | {without[done]:,} | {under[done]:,} | {more:,} |")
                print(end="", flush=True)


if __name__ == "__main__":
    main()
