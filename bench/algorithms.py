# SPDX-License-Identifier: Apache-2.0
"""Compares the messages of Open MPI's algorithms with schedules and profiles; writes docs/evidence/algorithms.md.

Every collective is called with every algorithm that coll_tuned can be told to use, on communicators of 2 to 33 ranks.
What was sent inside is measured twice in the same run, by Open MPI's own monitoring component and by commlens. Both are
compared with the schedule, pair by pair: messages, bytes, and messages of each size. What `commlens algorithms` names in
the profile is compared with what was told.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "python")]

from bench.algorithm_cases import Launch, Where, cases, launches  # noqa: E402
from bench.algorithm_page import SOURCES, naming_of, outcome, page, parameters_of, sizes_of  # noqa: E402
from bench.algorithm_results import Answer, Result, Sent, compare  # noqa: E402

from commlens.algorithms.calls import collective_of  # noqa: E402
from commlens.algorithms.pattern import Pairs  # noqa: E402
from commlens.algorithms.recognise import recognise  # noqa: E402
from commlens.profile import open_profile  # noqa: E402

PAGE = ROOT / "docs" / "evidence" / "algorithms.md"
MARK = "<!-- written by bench/algorithms.py; DO NOT EDIT below -->"
BUILD = ROOT / "build" / "algorithms"
RUNNER = ROOT / "build" / "release" / "bin" / "commlens-run"


@dataclass(frozen=True)
class Library:
    """An Open MPI and how to use it."""

    name: str
    release: str
    compiler: tuple[str, ...]
    launcher: tuple[str, ...]
    environment: dict[str, str]


def libraries() -> list[Library]:
    """Return the Open MPIs that are here."""
    common = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "OMPI_MCA_hwloc_base_binding_policy": "none",
    }
    found: list[tuple[str, tuple[str, ...], str, dict[str, str]]] = []
    if subprocess.run(["which", "mpirun.openmpi"], capture_output=True).returncode == 0:
        found.append(("openmpi", ("mpicc.openmpi",), "mpirun.openmpi", {"OMPI_MCA_btl": "self,vader"}))
    wheel = ROOT / "build" / "mpis" / "openmpi5"
    if (wheel / "bin" / "mpirun").exists():
        lib = wheel / "lib"
        compiler = ("gcc", f"-I{wheel}/include", f"-L{lib}", f"-Wl,-rpath,{lib}", "-lmpi")
        found.append(("openmpi5", compiler, str(wheel / "bin" / "mpirun"), {"OMPI_MCA_btl": "self,sm", "LD_LIBRARY_PATH": str(lib)}))  # fmt: skip
    result = []
    for name, command, launcher, more in found:
        environment = {**os.environ, **common, **more}
        environment.pop("OMPI_MCA_pml", None)  # naming one would leave the monitoring component out
        said = subprocess.run([launcher, "--version"], capture_output=True, text=True, env=environment).stdout
        result.append(Library(name, said.split("\n")[0].split()[-1], command, (launcher,), environment))
    return result


def program(library: Library) -> Path:
    """Compile the program that calls the collectives."""
    binary = BUILD / library.name / "collectives"
    source = ROOT / "bench" / "collectives.c"
    if not binary.exists() or binary.stat().st_mtime < source.stat().st_mtime:
        binary.parent.mkdir(parents=True, exist_ok=True)
        compiler, *flags = library.compiler
        subprocess.run(
            [compiler, "-O1", "-Wall", "-rdynamic", "-o", binary, source, *flags, "-ldl"], check=True
        )
    return binary


def run(library: Library, launch: Launch, again: bool) -> Path:
    """Return the folder with what a run has measured: of the last time, unless it is to be measured again."""
    told = [*launch.options(), *launch.jobs()]
    kept = BUILD / library.name / hashlib.sha256("\n".join(told).encode()).hexdigest()[:12]
    if kept.exists() and not again:
        return kept
    place = kept.with_suffix(".now")
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    command = [
        *library.launcher,
        *("-n", str(launch.ranks)),
        *("--mca", "coll", "monitoring,tuned,basic,libnbc,self,inter,sync"),
        *("--mca", "pml_monitoring_enable", "2"),
        *("--mca", "pml_monitoring_enable_output", "3"),
        *("--mca", "pml_monitoring_filename", f"{place}/stock"),
        *launch.options(),
        str(RUNNER),
        str(program(library)),
        str(place),
        *launch.jobs(),
    ]
    environment = {k: v for k, v in library.environment.items() if not k.startswith("COMMLENS_")}
    environment |= {"COMMLENS_MATRIX": "all", "COMMLENS_OUTPUT": f"{place}/profile.db"}
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=1200
    )
    (place / "said").write_text(" ".join(command) + "\n" + done.stdout + done.stderr)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout[-500:]}{done.stderr[-1500:]}")
    shutil.rmtree(kept, ignore_errors=True)
    place.rename(kept)
    return kept


def stock(place: Path, ranks: int) -> dict[Where, Sent]:
    """Read what Open MPI's own monitoring component has counted."""
    pairs: dict[Where, list[tuple[int, int, int, int]]] = {}
    sizes: dict[Where, dict[tuple[int, int, int], int]] = {}
    for rank in range(ranks):
        for line in (place / str(rank)).read_text().splitlines():
            collective, *words = line.split()
            size, block, root, peer, messages, nbytes = map(int, words[:6])
            where = (collective, size, block, root)
            pairs.setdefault(where, []).append((rank, peer, messages, nbytes))
            bins = sizes.setdefault(where, {})
            for word in words[6:]:
                bin, _, number = word.partition(":")
                bins[rank, peer, int(bin)] = int(number)
    return {
        where: Sent(Pairs.of(where[1], *np.array(rows, np.int64).T), sizes[where])
        for where, rows in pairs.items()
    }


def profiled(connection: sqlite3.Connection) -> tuple[dict[Where, Sent], dict[Where, Answer]]:
    """Read what commlens has counted, and what `commlens algorithms` makes of it.

    Raises
    ------
    RuntimeError
        Something is in the profile that does not belong to a call of collectives.c.
    """
    told = dict(connection.execute("SELECT key, value FROM meta"))
    if told["inside"] != "measured":
        raise RuntimeError(f"messages inside collectives: {told['inside']}")
    names = {int(id): name for id, name in connection.execute("SELECT id, COALESCE(user_name, '') FROM comm")}
    ops = {int(id): collective_of(name) for id, name in connection.execute("SELECT id, name FROM op")}

    def where(comm: int, collective: str | None) -> Where:
        words = names[comm].split()
        if len(words) != 3 or collective is None:
            raise RuntimeError(f"messages of {collective} on a communicator '{names[comm]}'")
        size, block, root = map(int, words)
        return collective, size, block, root

    rows: dict[Where, list[tuple[int, ...]]] = {}
    for comm, op, peers, *row in connection.execute(
        "SELECT comm, op, peers, rank, peer, bin, SUM(messages), SUM(bytes) FROM peer JOIN flow ON flow.id = flow "
        "WHERE flow.name = 'collective' GROUP BY comm, op, peers, rank, peer, bin"
    ):
        if peers != 1 or row[1] is None:
            raise RuntimeError("a peer is not known")
        rows.setdefault(where(comm, ops[op]), []).append(tuple(row))
    sent = {one: Sent.of(one[1], np.array(found, np.int64)) for one, found in rows.items()}
    answers: dict[Where, Answer] = {}
    for line in recognise(connection).lines:
        calls = [where(comm.id, line.collective) for comm in line.where]
        answers |= dict.fromkeys(calls, Answer(line, Counter(root for *_, root in calls)))
    return sent, answers


def main() -> None:
    """Measure what has not been, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--again", action="store_true", help="measure also what has been measured")
    parser.add_argument("--only", default="", help="one collective, and no page")
    options = parser.parse_args()
    results: dict[str, list[Result]] = {}
    for library in libraries():
        wanted = [case for case in cases(library.release) if options.only in ("", case.collective)]
        found: dict[int, Result] = {}
        for launch in launches(wanted):
            place = run(library, launch, options.again)
            component = stock(place, launch.ranks)
            with open_profile(str(place / "profile.db")) as connection:
                profile, answers = profiled(connection)
            for case in launch.cases:
                result = compare(library.release, case, component, profile, answers)
                print(
                    f"Open MPI {library.release} {case.collective} {case.number} ({parameters_of(case)}; {sizes_of(case)} bytes): "
                    + "; ".join(f"{source} {outcome(result, source)}" for source in SOURCES)
                    + f"; named: {naming_of(result)}",
                    flush=True,
                )
                found[wanted.index(case)] = result
            called = {where for case in launch.cases for where in case.calls()}
            stray = (component.keys() | profile.keys() | answers.keys()) - called
            if stray:
                raise RuntimeError(f"not called: {sorted(stray)[:3]}")
        results[library.release] = [found[number] for number in sorted(found)]
    bad = sum(result.bad for all_of in results.values() for result in all_of)
    if not options.only:
        kept = PAGE.read_text().split(MARK)[0]
        PAGE.write_text("\n".join([kept + MARK, "", *page(results), ""]))
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
