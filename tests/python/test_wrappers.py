# SPDX-License-Identifier: Apache-2.0
"""Functions that only pass calls on to MPI: named by the configuration, and recognised."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from build_paths import add_path, compiled, recorded
from build_profile import ProfileBuilder
from conftest import MS, Run

from commlens.profile import open_profile
from commlens.profile.added import replace_table
from commlens.reports.wrappers import MOST_PATTERNS, configured, suggested
from commlens.symbols.paths import PathTree

OPTION = "COMMLENS_WRAPPERS"
SKIPPED = "solve solver.c:31 > [hypre_MPI_Isend]"
HINT = "hint          hypre_MPI_* only pass calls on to MPI: --wrapper 'hypre_MPI_*' shows the callers"


@pytest.fixture(scope="module")
def solver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("solver"))


@pytest.fixture(autouse=True)
def no_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(OPTION, raising=False)


def written(
    solver: Path, path: Path, options: str = "", operation: Callable[[int], str] = lambda _: "MPI_Isend"
) -> Path:
    build = ProfileBuilder(ranks=1, meta={"options": f"COMMLENS_FRAMES=8\n{options}"})
    for i, (_, offsets) in enumerate(recorded(solver)):
        build.count(1, operation(i), 0, 1, MS, 8, callsite=add_path(build, solver, offsets))
    return build.write(path)


def shown(run: Run, path: Path, *options: str) -> str:
    done = run("report", path, "--callsites", "--top", 0, *options)
    assert (done.exit_code, done.stderr) == (0, "")
    return done.stdout


# The configuration.


def test_wrappers_of_the_environment_are_those_of_the_option(
    run: Run, solver: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(solver, tmp_path / "x.db")
    assert SKIPPED not in shown(run, path)
    for options in ((), ("--flat",), ("--format", "csv"), ("--flat", "--format", "json")):
        monkeypatch.delenv(OPTION, raising=False)
        wanted = shown(run, path, "--wrapper", "hypre_MPI_*", *options)
        monkeypatch.setenv(OPTION, "no_such , hypre_MPI_*,")
        assert shown(run, path, *options) == wanted
    assert SKIPPED in shown(run, path)


def test_the_option_replaces_the_environment_and_that_replaces_the_run(
    run: Run, solver: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(solver, tmp_path / "x.db", f"{OPTION}=hypre_MPI_*,other\n")
    plain = shown(run, path, "--wrapper", "no_such")
    assert SKIPPED not in plain
    assert SKIPPED in shown(run, path)
    assert shown(run, path, "--wrapper", "") == plain.replace("\n\n", f"\n{HINT}\n\n", 1)
    monkeypatch.setenv(OPTION, "")
    assert SKIPPED not in shown(run, path)
    monkeypatch.setenv(OPTION, "hypre_MPI_*")
    assert SKIPPED in shown(run, path)
    assert shown(run, path, "--wrapper", "no_such") == plain


def test_a_configuration_does_not_make_a_report_fail_that_has_no_paths(
    run: Run, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = shown(run, small)
    monkeypatch.setenv(OPTION, "hypre_MPI_*")
    assert shown(run, small) == plain
    assert "--wrapper needs call paths" in run("report", small, "--callsites", "--wrapper", "x").stderr


def test_only_so_many_patterns_are_used(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OPTION, "*," * 10_000)
    with open_profile(str(small)) as connection:
        assert configured(connection) == ("*",) * MOST_PATTERNS


# Recognised.


def test_functions_named_like_the_procedure_that_they_call_are_suggested(
    run: Run, solver: Path, tmp_path: Path
) -> None:
    path = written(solver, tmp_path / "x.db")
    assert HINT in shown(run, path).splitlines()
    for options in (("--wrapper", "hypre_MPI_*"), ("--flat",), ("--format", "csv")):
        assert "hint" not in shown(run, path, *options)


def test_a_function_that_calls_another_procedure_is_no_wrapper(
    run: Run, solver: Path, tmp_path: Path
) -> None:
    for operation in (lambda _: "MPI_Allreduce", lambda i: "MPI_Allreduce" if i == 8 else "MPI_Isend"):
        path = tmp_path / "x.db"
        assert "hint" not in shown(run, written(solver, path, operation=operation))
        path.unlink()


@pytest.mark.parametrize(
    "names, callers, patterns",
    [
        ({"hypre_MPI_Isend": ["MPI_Isend"], "hypre_MPI_Bcast": ["MPI_Bcast"]}, 1, ["hypre_MPI_*"]),
        ({"hypre_MPI_Isend": ["MPI_Isend"]}, 1, []),
        ({"hypre_MPI_Isend": ["MPI_Isend"]}, 2, ["hypre_MPI_*"]),
        ({"my_mpi_isend": ["MPI_Isend"], "x_MPI_Bcast": ["MPI_Bcast"]}, 2, ["my_mpi_*", "x_MPI_*"]),
        ({"hypre_MPI_Isend": ["MPI_Isend", "MPI_Irecv"]}, 2, []),
        ({"hypre_MPI_Isend": ["MPI_Isend"], "hypre_MPI_Exchange": ["MPI_Irecv"]}, 2, []),
        ({"MPI_Isend": ["MPI_Isend"], "PMPI_Isend": ["MPI_Isend"]}, 2, []),
        ({"exchange": ["MPI_Isend"], "main": ["MPI_Bcast"], "isend": ["MPI_Isend"]}, 2, []),
        ({"send_mpi_isend_all": ["MPI_Isend"], "mpi_exchange": ["MPI_Isend"]}, 2, []),
        ({"x'; rm -rf /; '_MPI_Isend": ["MPI_Isend"], "a b_MPI_Bcast": ["MPI_Bcast"]}, 2, []),
    ],
)
def test_ordinary_functions_are_not_suggested(
    tmp_path: Path, names: dict[str, list[str]], callers: int, patterns: list[str]
) -> None:
    """Each function calls its procedures from one place each, and is called from so many places."""
    build, frames = ProfileBuilder(ranks=1), []
    for name, operations in names.items():
        for _ in range(callers):
            outer = len(build.sites)
            build.sites[outer] = ("/nowhere/app", "ab", outer)
            frames.append((outer, 0, "main", "/src/main.c", outer))
            for operation in operations:
                site = len(build.sites)
                build.sites[site] = ("/nowhere/app", "ab", site)
                build.callers[site] = outer
                build.count(1, operation, 0, 1, MS, 8, callsite=site)
                frames.append((site, 0, name, "/src/mpi.c", site))
    path = build.write(tmp_path / "x.db")
    replace_table(path, "frame", frames)
    with open_profile(str(path)) as connection:
        called = [site for (site,) in connection.execute("SELECT DISTINCT callsite FROM key")]
        assert suggested(connection, PathTree(connection, called)) == patterns
