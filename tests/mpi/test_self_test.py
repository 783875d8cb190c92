# SPDX-License-Identifier: Apache-2.0
"""`commlens self-test` finds every number as known, in C and in Python, and says which one is not."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from harness import Mpi
from test_languages import mpi4py_env

from commlens.cli import commlens
from commlens.launch import compiler
from commlens.profile import open_profile
from commlens.selftest import checks, known

PYTHON = str(Path(__file__).resolve().parents[2] / "python")
RANKS = 3
NAMES = (
    *(
        "program",
        "without commlens",
        "with commlens",
        "library",
        "ranks",
        "communicators",
        "calls",
        "bytes sent",
    ),
    *("bytes received", "regions", "matrix", "time", "killed"),
)


def checked(mpi: Mpi, monkeypatch: pytest.MonkeyPatch, folder: Path) -> Result:
    for name, value in mpi.environment.items():
        monkeypatch.setenv(name, value)
    # The libraries stand before the source, as no wrapper would have it.
    monkeypatch.setenv("MPICC", " ".join([mpi.compilers["c"], *mpi.flags, "-Wl,--no-as-needed", *mpi.libs]))
    monkeypatch.setenv("PATH", f"{mpi.runner.parent}:{os.environ['PATH']}")
    words = ["self-test", "--folder", folder, "--", mpi.launcher, "-n", RANKS]
    return CliRunner().invoke(commlens, [str(word) for word in words])


def states(text: str) -> dict[str, str]:
    """Return the state of each check, by its name."""
    lines = [line for line in text.splitlines() if line.startswith(("ok ", "warning ", "problem "))]
    return {line[9:27].strip(): line[:9].strip() for line in lines}


def test_all_is_well_and_a_wrong_number_is_found(
    mpi: Mpi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "kept"
    done = checked(mpi, monkeypatch, folder)
    assert done.exit_code == 0, done.output
    assert states(done.output) == dict.fromkeys(NAMES, "ok"), done.output
    assert "all 120 calls before the kill are there" in done.output  # 20 sent and 20 received, three times
    line = checks.Said(RANKS, 0, 0, 0.0)
    # Each of these makes one number of the profile wrong; exactly the checks that look at it say so.
    wrong = {
        "UPDATE key SET usual_calls = usual_calls + 1 WHERE op = (SELECT id FROM op WHERE name = 'MPI_Bcast')": {
            "calls"
        },
        "UPDATE cell_row SET bytes_sent = bytes_sent - 1 WHERE id IN (SELECT key.id + 1 FROM key JOIN op ON op.id = key.op "
        "WHERE op.name = 'MPI_Reduce')": {"bytes sent"},
        "UPDATE key SET usual_received = usual_received + 4 WHERE op = (SELECT id FROM op WHERE name = 'MPI_Gather')": {
            "bytes received"
        },
        "UPDATE key SET bin = bin + 1 WHERE op = (SELECT id FROM op WHERE name = 'MPI_Allreduce')": {
            *("calls", "bytes sent", "bytes received")
        },
        "UPDATE comm SET members = '0-1' WHERE name = 'W0.0'": {"communicators"},
        "UPDATE region SET name = 'rang' WHERE name = 'ring'": {"regions"},
        "UPDATE peer SET bytes = bytes + 1 WHERE rank = 2 AND flow = (SELECT id FROM flow WHERE name = 'sent')": {
            "matrix"
        },
        "UPDATE rank SET app_ns = 1 WHERE rank = 1": {"time"},
    }
    for number, (change, names) in enumerate(wrong.items()):
        copy = tmp_path / f"wrong{number}.db"
        copy.write_bytes((folder / "profile.db").read_bytes())
        with sqlite3.connect(copy) as connection:
            assert connection.execute(change).rowcount > 0, change
        connection.close()
        with open_profile(str(copy)) as profile:
            found = {finding.check: finding for finding in checks.check_profile(profile, line)}
        assert {name for name, finding in found.items() if finding.state != "ok"} == names, change


def test_without_a_compiler_it_runs_in_python(
    mpi: Mpi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if mpi.family == "abi":
        pytest.skip("mpi4py's wheel has no build for the standard interface")
    for name, value in {**mpi4py_env(mpi), "PYTHONPATH": PYTHON}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(compiler, "has_compiler", lambda: False)
    done = checked(mpi, monkeypatch, tmp_path / "kept")
    assert done.exit_code == 0, done.output
    assert states(done.output) == dict.fromkeys(NAMES, "ok"), done.output
    assert "in Python, by mpi4py" in done.output


def test_a_launcher_that_fails_ends_it(mpi: Mpi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = tmp_path / "launch"
    launcher.write_text("#!/bin/sh\necho no such option >&2\nexit 7\n", encoding="utf-8")
    launcher.chmod(0o755)
    monkeypatch.setattr(mpi, "launcher", str(launcher))
    done = checked(mpi, monkeypatch, tmp_path / "kept")
    assert done.exit_code == 1
    assert "the program fails: exit code 7: no such option" in done.output
    assert states(done.output) == {"program": "ok", "without commlens": "problem"}


def test_processes_that_do_not_know_each_other_are_found(
    mpi: Mpi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with the launcher of another MPI library."""
    launcher = tmp_path / "launch"
    launcher.write_text('#!/bin/sh\nshift 2\n"$@" && exec "$@"\n', encoding="utf-8")
    launcher.chmod(0o755)
    monkeypatch.setattr(mpi, "launcher", str(launcher))
    done = checked(mpi, monkeypatch, tmp_path / "kept")
    assert done.exit_code == 1
    assert "started 2 processes, and each is alone" in done.output


@pytest.mark.parametrize("processes", [1, 2, 7])
def test_the_known_counts_add_up(processes: int) -> None:
    """Bytes that go around the ring arrive; broadcasts have one root in each part."""
    rows = list(known.rows(processes))
    ring = [row for row in rows if row.procedure in ("MPI_Isend", "MPI_Recv")]
    assert sum(row.sent for row in ring) == sum(row.received for row in ring) == 20_000 * processes
    roots = [row for row in rows if row.procedure == "MPI_Bcast" and row.sent]
    assert len(roots) == min(2, processes)
