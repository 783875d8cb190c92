# SPDX-License-Identifier: Apache-2.0
"""Call paths in other tools: a tree of functions for Hatchet, Thicket and their Caliper readers, stacks for speedscope."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import hatchet
import pytest
import thicket
from build_paths import add_path, compiled, recorded
from build_profile import ProfileBuilder
from conftest import MS, Run

import commlens.export

# Warnings of these packages about each other.
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")

RANKS = 2
SETUP = [("main", "setup", name) for name in ("exchange", "exchange", "exchange", "hypre_MPI_Isend")]
# What PROGRAM of build_paths does, in its order.
FUNCTIONS = [
    *SETUP,
    *[("main", "solve", "halo", "exchange")] * 3,
    ("main", "solve", "norm", "inlined"),
    ("main", "solve", "hypre_MPI_Isend"),
    *SETUP,
]
Path_ = tuple[str, ...]


def operation(i: int) -> str:
    return "MPI_Allreduce" if i % 3 == 0 else "MPI_Isend"


def time_ns(i: int, rank: int) -> int:
    return (i + 1) * MS if rank == 0 else 1000 * i + 7


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the program with its calls in turn outside regions and in one."""
    folder = tmp_path_factory.mktemp("paths")
    solver = compiled(folder)
    build = ProfileBuilder(ranks=RANKS, meta={"program": "solver"})
    region = build.region("steps")
    for i, (_, path) in enumerate(recorded(solver)):
        site = add_path(build, solver, path)
        for rank in range(RANKS):
            build.count(
                1,
                operation(i),
                rank,
                i + 1,
                time_ns(i, rank),
                8,
                callsite=site,
                region=region if i % 2 else 0,
            )
    for rank in range(RANKS):
        ns = sum(time_ns(i, rank) for i in range(1, len(FUNCTIONS), 2))
        build.spend(region, rank, 1, ns, mpi_ns=ns)
    return build.write(folder / "paths.db")


def expected() -> dict[Path_, dict[int, tuple[int, int, int]]]:
    """Return calls, exclusive and inclusive time of each function and operation below the regions, by rank."""
    found: dict[Path_, dict[int, tuple[int, int, int]]] = {}
    for i, path in enumerate(FUNCTIONS):
        whole = (*(("solver", "steps") if i % 2 else ("solver",)), *path, operation(i))
        for depth in range(len(whole) - len(path), len(whole) + 1):
            for rank in range(RANKS):
                ns, is_leaf = time_ns(i, rank), depth == len(whole)
                old = found.setdefault(whole[:depth], {}).get(rank, (0, 0, 0))
                added = ((i + 1) * is_leaf, ns * is_leaf, ns)
                found[whole[:depth]][rank] = tuple(a + b for a, b in zip(old, added))  # type: ignore[assignment]
    return found


def seen(graphframe: Any) -> dict[Path_, dict[int, tuple[int, int, int]]]:
    """Return the same of what a reader has made."""
    paths: dict[int, Path_] = {}
    pending: list[tuple[Path_, Any]] = [((), root) for root in graphframe.graph.roots]
    while pending:
        above, node = pending.pop()
        paths[id(node)] = (*above, node.frame["name"])
        pending += [(paths[id(node)], child) for child in node.children]
    found: dict[Path_, dict[int, tuple[int, int, int]]] = {}
    for row in graphframe.dataframe.reset_index().to_dict("records"):
        path = paths[id(row["node"])]
        numbers = (int(row["calls"]), *(round(row[name] * 10**9) for name in ("time", "time (inc)")))
        found.setdefault(path, {})[row["rank"]] = numbers
    return {
        path: numbers for path, numbers in found.items() if path not in (("solver",), ("solver", "steps"))
    }


def exported(run: Run, profile: Path, to: str, folder: Path, *options: str) -> Path:
    output = folder / f"profile.{to}.json"
    done = run("export", profile, "--to", to, "-o", output, *options)
    assert (done.exit_code, done.stdout, done.stderr) == (0, f"{output}\n", "")
    return output


def read_json(path: Path) -> str:
    return path.read_text(encoding="utf-8")


READERS = {
    "hatchet": lambda path: hatchet.GraphFrame.from_json(read_json(path)),
    "caliper": lambda path: hatchet.GraphFrame.from_caliper(str(path)),
    "thicket": lambda path: thicket.Thicket.from_json(read_json(path)),
}


@pytest.mark.parametrize("to", READERS)
def test_readers_see_the_functions_from_the_outside_in(
    run: Run, profile: Path, tmp_path: Path, to: str
) -> None:
    assert seen(READERS[to](exported(run, profile, to, tmp_path, "--callsites"))) == expected()


def test_objects_have_the_same_functions(profile: Path) -> None:
    made = commlens.export.hatchet(profile, callsites=True)
    assert seen(made) == expected()
    assert seen(commlens.export.thicket(profile, callsites=True)) == expected()
    types = dict(zip(made.dataframe["name"], made.dataframe["type"]))
    assert (types["main"], types["MPI_Isend"], types["steps"]) == ("function", "operation", "region")
    assert "W0.0" in set(commlens.export.hatchet(profile).dataframe["name"]), "by default by communicator"


def test_exclusive_times_add_up_to_the_run(profile: Path) -> None:
    frame = commlens.export.hatchet(profile, callsites=True).dataframe
    root = frame[frame["name"] == "solver"]["time (inc)"].sum()
    assert round(frame["time"].sum() * 10**9) == round(root * 10**9)


def check_sampled(file: Any) -> None:
    """Refuse what is no file of speedscope with sampled profiles.

    Source: https://github.com/jlfwong/speedscope/blob/main/src/lib/file-format-spec.ts
    """
    assert file["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert set(file) == {"$schema", "exporter", "name", "activeProfileIndex", "shared", "profiles"}
    names = [frame["name"] for frame in file["shared"]["frames"]]
    assert len(set(names)) == len(names)
    for profile in file["profiles"]:
        assert set(profile) == {"type", "name", "unit", "startValue", "endValue", "samples", "weights"}
        assert (profile["type"], profile["unit"], profile["startValue"]) == ("sampled", "nanoseconds", 0)
        assert len(profile["samples"]) == len(profile["weights"])
        assert profile["endValue"] == sum(profile["weights"])
        assert all(0 <= number < len(names) for stack in profile["samples"] for number in stack)


def stacks(file: Any, name: str) -> dict[Path_, int]:
    names = [frame["name"] for frame in file["shared"]["frames"]]
    (found,) = (profile for profile in file["profiles"] if profile["name"] == name)
    return {
        tuple(names[number] for number in stack): weight
        for stack, weight in zip(found["samples"], found["weights"])
    }


def test_speedscope_has_the_time_of_each_path_and_rank(run: Run, profile: Path, tmp_path: Path) -> None:
    file = json.loads(read_json(exported(run, profile, "speedscope", tmp_path, "--callsites")))
    check_sampled(file)
    assert [profile["name"] for profile in file["profiles"]] == ["all ranks", "rank 0", "rank 1"]
    wanted = [Counter[Path_](), Counter[Path_]()]
    for i, path in enumerate(FUNCTIONS):
        for rank in range(RANKS):
            wanted[rank][(*path, operation(i))] += time_ns(i, rank)
    assert stacks(file, "rank 0") == wanted[0]
    assert stacks(file, "rank 1") == wanted[1]
    assert stacks(file, "all ranks") == wanted[0] + wanted[1]
    folded = exported(run, profile, "folded", tmp_path).read_text(encoding="utf-8").splitlines()
    assert dict(line.rsplit(" ", 1) for line in folded) == {
        ";".join(path): str(ns) for path, ns in (wanted[0] + wanted[1]).items()
    }
    (tmp_path / "profile.speedscope.json").unlink()
    one = json.loads(read_json(exported(run, profile, "speedscope", tmp_path, "--callsites", "--rank", "1")))
    assert stacks(one, "all ranks") == wanted[1]


def test_without_callers_a_path_is_the_function_that_calls_mpi(run: Run, small: Path, tmp_path: Path) -> None:
    file = json.loads(read_json(exported(run, small, "speedscope", tmp_path, "--callsites")))
    check_sampled(file)
    assert ("listing1+0x1234", "MPI_Allreduce") in stacks(file, "all ranks")
    made = READERS["hatchet"](exported(run, small, "hatchet", tmp_path, "--callsites"))
    assert ("listing1", "listing1+0x1234", "MPI_Allreduce") in seen(made)


@pytest.mark.parametrize(
    "options, reason",
    [
        (
            ("--to", "chrome"),
            "--callsites does not apply to chrome, only to hatchet, thicket, caliper, speedscope",
        ),
        (("--to", "hatchet", "--unfold"), "use it without --unfold and --no-mpi"),
        (("--to", "speedscope", "--no-mpi"), "use it without --unfold and --no-mpi"),
    ],
)
def test_what_it_does_not_apply_to_is_refused(
    run: Run, profile: Path, tmp_path: Path, options: tuple[str, ...], reason: str
) -> None:
    done = run("export", profile, "-o", tmp_path / "x", "--callsites", *options)
    assert done.exit_code == 2
    assert reason in done.stderr
