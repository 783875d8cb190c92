# SPDX-License-Identifier: Apache-2.0
"""Runs a program without a tool, or with one in one of its configurations, under a time limit."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.peers import places
from bench.peers.results import digest
from bench.peers.tools import BY_NAME, COMMLENS, CONFIGURATIONS, Configuration
from bench.run import ENVIRONMENT

from commlens.overhead.legs import Tool
from commlens.overhead.measure import outcome

OUT = "{out}"
HUNG = "hung"
LIBRARIES = ("openmpi", "mpich")
COMPLAINTS = re.compile(
    r"(?i)aborting|caught signal|segmentation|assert|fatal error|mpi_err|abort\(|double free|corrupt|mpip:.*error|caliper.*error|tau.*error"
)

UNSTABLE = re.compile(r"0x[0-9a-f]+|\[\S+:\d+[^]]*\] *|Abort\(\d+\) on node \d+ \(rank \d+ in comm \d+\): ")
"""What differs from run to run: addresses, processes, numbers of errors."""


def is_there(configuration: Configuration, mpi: str) -> bool:
    """Return whether its tool is built for this MPI library."""
    if configuration.peer == COMMLENS:
        return places.RUNNER.exists()
    return BY_NAME[configuration.peer].built(mpi) is not None


def present(mpi: str, *, cost: bool = False, counts: bool = False) -> list[Configuration]:
    """Return the configurations of tools that are built, for counts or for cost."""
    return [
        configuration
        for configuration in CONFIGURATIONS
        if is_there(configuration, mpi)
        and (not cost or configuration.for_cost)
        and (not counts or configuration.for_counts)
    ]


def library(mpi: str) -> Path:
    """Return the commlens library of this tree for an MPI library."""
    return places.ROOT / "build" / "release" / "lib" / mpi / "libcommlens.so"


def version(configuration: Configuration, mpi: str) -> str:
    """Return what a measurement with this configuration depends on."""
    settings = "".join(f"{name}={value};" for name, value in configuration.variables.items())
    if configuration.peer == COMMLENS:
        return f"{digest(library(mpi))} {settings}"
    return f"{BY_NAME[configuration.peer].commit[:12]} {settings}"


def variables(configuration: Configuration, mpi: str) -> dict[str, str]:
    """Return its environment; the folder of the output is still OUT."""
    prefix = "" if configuration.peer == COMMLENS else str(BY_NAME[configuration.peer].prefix(mpi))
    return {name: value.replace("{prefix}", prefix) for name, value in configuration.variables.items()}


def as_tool(configuration: Configuration, mpi: str) -> Tool:
    """Return the configuration as a tool of `commlens overhead`."""
    name = re.sub(r"[^\w.+-]", "_", configuration.name)
    if configuration.peer == COMMLENS:
        return Tool(COMMLENS, wrapper=(str(places.RUNNER),), variables=variables(configuration, mpi))
    library = BY_NAME[configuration.peer].built(mpi)
    return Tool(name, library=str(library), variables=variables(configuration, mpi))


@dataclass(frozen=True)
class Ran:
    """How a run ended: "" in `failure` if well, and the command for a person to repeat it."""

    failure: str
    said: str
    out: Path
    command: str
    seconds: float


def failure_of(code: int, said: str) -> str:
    r"""Return how a run failed, with its most telling line; "" if it did not.

    >>> failure_of(0, "fine"), failure_of(11, "x\nCaught signal 11 (Segmentation fault)\ny")
    ('', 'exit code 11: Caught signal 11 (Segmentation fault)')
    """
    if code == 0:
        return ""
    lines = [UNSTABLE.sub("", line).strip(" :") for line in said.splitlines()]
    telling = next((line for line in lines if COMPLAINTS.search(line)), "")
    return f"{outcome(code, said)}{': ' if telling else ''}{telling[:120]}"


def shown(words: Sequence[str]) -> str:
    """Return a command as the page shows it, without the folders of this machine."""
    return re.sub(r"/tmp/[\w./-]*?/out\b", "OUT", places.name_folders(shlex.join(words)))


def words_of(
    configuration: Configuration | None, mpi: str, ranks: int, argv: Sequence[str | Path], out: Path,
    extra: Mapping[str, str] | None = None,
) -> list[str]:  # fmt: skip
    """Return the command line of a run."""
    settings = {name: value.replace(OUT, str(out)) for name, value in (extra or {}).items()}
    words = [f"mpirun.{mpi}", "-n", str(ranks)]
    runner: list[str] = []
    if configuration is not None:
        settings |= {
            name: value.replace(OUT, str(out)) for name, value in variables(configuration, mpi).items()
        }
        if configuration.peer == COMMLENS:
            runner = [str(places.RUNNER)]
        else:
            settings["LD_PRELOAD"] = str(BY_NAME[configuration.peer].built(mpi))
    if settings:
        words += ["env", *(f"{name}={value}" for name, value in settings.items())]
    return [*words, *runner, *map(str, argv)]


def execute(
    words: Sequence[str], limit: float, folder: Path, *, is_crowded: bool = True,
    more: Mapping[str, str] | None = None,
) -> tuple[int | None, str, float]:  # fmt: skip
    """Run a command; return its exit status (None: it was stopped at the limit), output and seconds.

    is_crowded : whether ranks may share cores, so that a waiting one yields
    more : further environment
    """
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("COMMLENS_", "CALI_"))
    }
    environment.update(
        ENVIRONMENT, OMPI_MCA_fcoll="individual"
    )  # the default of Open MPI 4.1 corrupts its heap
    environment["OMP_NUM_THREADS"] = "1"
    if is_crowded:
        environment["OMPI_MCA_mpi_yield_when_idle"] = "1"
    environment.update(more or {})
    begin = time.monotonic()
    with tempfile.TemporaryFile() as file:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, env=environment,
            cwd=folder, start_new_session=True,
        )  # fmt: skip
        code: int | None
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            code = None
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        file.seek(0)
        return code, file.read().decode(errors="replace"), time.monotonic() - begin


@contextmanager
def run(
    configuration: Configuration | None, mpi: str, ranks: int, argv: Sequence[str | Path], limit: float = 120,
    extra: Mapping[str, str] | None = None,
) -> Iterator[Ran]:  # fmt: skip
    """Run a program once; its output is there until the block ends."""
    with tempfile.TemporaryDirectory(prefix="peers-") as scratch:
        out = Path(scratch) / "out"
        out.mkdir()
        words = words_of(configuration, mpi, ranks, argv, out, extra)
        code, said, seconds = execute(words, limit, Path(scratch))
        failure = f"{HUNG}: not ended after {limit:.0f} s" if code is None else failure_of(code, said)
        # Some tools write into the current folder, whatever they are told.
        for path in Path(scratch).iterdir():
            if path != out:
                shutil.move(str(path), str(out / path.name))
        yield Ran(failure, said, out, shown(words), seconds)


def size_of(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())


def compiled(source: Path, mpi: str, *flags: str, shared: bool = False) -> Path:
    """Compile a program, if it is not there or older than its source."""
    target = places.PROGRAMS / mpi / (f"lib{source.stem}.so" if shared else source.stem)
    if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
        target.parent.mkdir(parents=True, exist_ok=True)
        compiler = f"mpifort.{mpi}" if source.suffix == ".f90" else f"mpicc.{mpi}"
        kind = ["-shared", "-fPIC"] if shared else []
        subprocess.run([compiler, "-O1", "-g", "-w", *kind, source, *flags, "-o", target], check=True)
    return target
