# SPDX-License-Identifier: Apache-2.0
"""Part "features": small programs, each with one use of MPI, and whether a tool's output has what they did."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.peers import correct, outputs, places, runs
from bench.peers.outputs import OutputError, Row
from bench.peers.results import Budget, Store
from bench.peers.tools import BY_NAME, COMMLENS, Configuration

PART = "features"
RANKS = 4
TIMES = 7
YES, NO = "yes", "no"


@dataclass(frozen=True)
class Feature:
    """A use of MPI.

    Attributes
    ----------
    mode : argument of features.c
    title : str
    calls : by procedure, of all ranks
    comms : smallest number of communicators among which the calls of `apart` are divided
    apart : the procedure
    shows : what a person must find in the tool's own display of its output
    is_lost : whether the program ends without MPI_Finalize
    mpis : the MPI libraries that have it
    """

    mode: str
    title: str
    calls: Mapping[str, int]
    comms: int = 0
    apart: str = "MPI_Allreduce"
    shows: str = ""
    is_lost: bool = False
    mpis: tuple[str, ...] = ("openmpi", "mpich")


def times(*procedures: str, n: int = TIMES * RANKS) -> dict[str, int]:
    """Return that each procedure is called as often."""
    return {f"MPI_{name}": n for name in procedures}


FEATURES = (
    Feature("self", "a collective on MPI_COMM_SELF", times("Allreduce")),
    Feature(
        "nonblocking",
        "non-blocking collectives, and the calls that complete them",
        times("Iallreduce", "Wait"),
    ),
    Feature("neighbor", "neighbourhood collectives", times("Neighbor_alltoall")),
    Feature("persistent", "persistent requests", times("Startall", "Waitall")),
    Feature(
        "onesided", "one-sided: puts and fences", {**times("Put"), **times("Win_fence", n=2 * TIMES * RANKS)}
    ),
    Feature("file", "MPI-IO", times("File_write_at")),
    Feature("intercommunicator", "intercommunicators", times("Allreduce"), comms=1),
    Feature("idup", "communicators of MPI_Comm_idup", times("Allreduce"), comms=1),
    Feature("reused", "communicators that are freed, each apart", times("Allreduce"), comms=TIMES),
    Feature("named", "the name that MPI_Comm_set_name gave", times("Allreduce"), comms=1, shows=r"ocean"),
    Feature("wildcard", "receives from MPI_ANY_SOURCE", times("Recv", "Isend", "Wait")),
    Feature("wildcard", "the line of the source that calls", times("Recv"), shows=r"features\.c[:\s]+\d+"),
    Feature("large", "the large-count form MPI_Allreduce_c", times("Allreduce"), mpis=("mpich",)),
    Feature("aborted", "counts of a job that ends by MPI_Abort", times("Allreduce"), is_lost=True),
    Feature("killed", "counts of a job whose ranks are killed (SIGKILL)", times("Allreduce"), is_lost=True),
)
"""In the order of the page. Title and MPI library are the key of a result."""


def commlens_words(*words: str | Path) -> list[str]:
    """Return a command of the reader of this tree."""
    return [sys.executable, "-m", "commlens", *map(str, words)]


def answer(words: Sequence[str | Path]) -> str:
    """Return what a command prints."""
    environment = {**os.environ, "PYTHONPATH": str(places.ROOT / "python")}
    done = subprocess.run(
        list(map(str, words)),
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=120,
        env=environment,
    )
    return done.stdout + done.stderr


def text_files(folder: Path) -> str:
    """Return the content of all files, as text."""
    return "\n".join(path.read_text(errors="replace") for path in sorted(folder.rglob("*")) if path.is_file())


def displayed(configuration: Configuration, mpi: str, folder: Path) -> tuple[str, str]:
    """Return what a tool's own display shows of an output, and the command of it."""
    if configuration.peer == COMMLENS:
        words = commlens_words("report", folder / "profile.db", "--unfold", "--callsites", "--top", "0")
        return answer(words), "commlens report profile.db --unfold --callsites --top 0"
    prefix = BY_NAME[configuration.peer].prefix(mpi)
    if configuration.peer == "mpisee":
        words = [sys.executable, str(prefix / "bin" / "mpisee-through.py"), "-i", str(folder / "mpisee.db")]
        return answer(words), "mpisee-through.py -i mpisee.db"
    if configuration.peer == "Caliper":
        files = sorted(map(str, folder.glob("*.cali")))
        return answer([prefix / "bin" / "cali-query", "-t", *files]), "cali-query -t *.cali"
    return text_files(folder), "the text that it wrote"


def recovered(folder: Path) -> None:
    """Make a profile of what killed processes left."""
    if not (folder / "profile.db").exists():
        answer(commlens_words("recover", folder, "-o", folder / "profile.db"))


def checked(feature: Feature, rows: Sequence[Row]) -> str:
    """Return YES, or what is missing."""
    for op, calls in feature.calls.items():
        found = sum(row.calls for row in rows if row.op == op)
        if found != calls:
            return f"{NO}: {op} {found} of {calls} calls" if found else f"{NO}: {op} is not counted"
    if feature.comms:
        names = (feature.apart, feature.apart + outputs.ON_COMM)
        # A number that means something in one process only is counted once for all of them.
        apart = {str(row.comm).split("/")[-1] for row in rows if row.op in names and row.comm is not None}
        if not apart:
            return f"{NO}: communicators are not told apart"
        if len(apart) < feature.comms:
            return f"{NO}: {len(apart)} communicators of {feature.comms}"
    return YES


def tried(feature: Feature, configuration: Configuration, mpi: str, program: Path) -> dict[str, Any]:
    """Run one feature with one tool."""
    # The counters of killed processes are kept beside the output, apart from those of other jobs of this machine.
    keeps = feature.is_lost and configuration.peer == COMMLENS
    extra = {"COMMLENS_ARENA_DIR": runs.OUT} if keeps else {}
    with runs.run(configuration, mpi, RANKS, [program, feature.mode], 60, extra) as plain:
        if plain.failure and not feature.is_lost:
            return {"verdict": f"crash: {plain.failure}", "command": plain.command}
        if keeps:
            recovered(plain.out)
        try:
            rows = list(outputs.READERS[configuration.peer](plain.out, mpi))
            verdict = checked(feature, rows)
        except OutputError as error:
            return {"verdict": f"{NO}: {error}", "command": plain.command}
        command = plain.command
        if verdict == YES and feature.shows:
            shown, display = displayed(configuration, mpi, plain.out)
            command += f"; {display}"
            if not re.search(feature.shows, shown):
                verdict = f"{NO}: not in its display"
        return {"verdict": verdict, "command": command}


def measure(store: Store, mpis: Sequence[str], budget: Budget) -> None:
    """Run what has not been run yet."""
    for mpi in mpis:
        program = runs.compiled(Path(__file__).parent / "features.c", mpi)
        tools = [tool for tool in runs.present(mpi, counts=True) if tool.peer in outputs.READERS]
        for feature in FEATURES:
            for tool in tools if mpi in feature.mpis else ():
                key, version = (mpi, tool.name, feature.title), runs.version(tool, mpi)
                if store.has(key, version) or not budget.allows(30):
                    continue
                result = tried(feature, tool, mpi, program)
                for _ in range(correct.TRIES - 1):
                    if result["verdict"] == YES:
                        break
                    result = tried(feature, tool, mpi, program)
                store.put(key, version, **result)
                print(
                    f"features {mpi:8} {feature.title[:40]:40} {tool.name:18} {result['verdict']}", flush=True
                )
