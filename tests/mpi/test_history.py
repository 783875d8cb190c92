# SPDX-License-Identifier: Apache-2.0
"""Snapshots of a running job (COMMLENS_FLUSH_EVERY), which nothing that happens to the job damages.

The oracle is the program itself: it counts the calls it has begun and those that have returned.
"""

from __future__ import annotations

import csv
import io
import os
import random
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import harness
import pytest
from harness import BUILD, Mpi
from processes import kill_at_once, wait_until
from profile_rows import Profile
from recorders import recorders, wait_for_recorder
from test_survive import KINDS, RANKS, Counted, Running, check_names, commlens, job

pytestmark = pytest.mark.dealt

KILLS, FEW_KILLS = 20, 3  # the few without --every-case
EVERY = {"COMMLENS_FLUSH_EVERY": "1"}


def histories(where: Path) -> list[Path]:
    """Return the histories of a job."""
    return sorted((where / "out").glob("commlens-arenas-*/*.history"))


def snapshots(where: Path) -> list[dict[str, str]]:
    """Return the snapshots of a job, oldest first."""
    done = subprocess.run(
        [BUILD / "bin" / "commlens-arena", "snapshots", *histories(where)],
        capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    names, *lines = (line.split("\t") for line in done.stdout.splitlines())
    return [dict(zip(names, line, strict=True)) for line in lines]


def whole(where: Path) -> list[int]:
    """Return the times of the snapshots with all ranks."""
    if not histories(where):
        return []
    return [int(row["time"]) for row in snapshots(where) if int(row["processes"]) == RANKS]


@dataclass
class Log:
    """What the ranks had counted at several times."""

    running: Running
    entries: list[tuple[int, list[Counted]]] = field(default_factory=list)

    def note(self) -> None:
        """Add an entry.  The time is that after the counts were read: they are not newer."""
        counted = self.running.counted()
        self.entries.append((time.time_ns(), counted))

    def before(self, time_ns: int) -> list[Counted]:
        """Return the last counts before a time."""
        return [counted for at, counted in self.entries if at <= time_ns][-1]

    def note_until(self, is_over: float) -> None:
        """Add entries until a time of the monotonic clock."""
        while time.monotonic() < is_over:
            self.note()
            time.sleep(0.01)


def calls_of(profile: Profile, kind: str, rank: int) -> int:
    """Return the calls of a procedure on a rank."""
    return sum(profile.column(
        "SELECT calls FROM cell JOIN key ON key.id = cell.key JOIN op ON op.id = key.op "
        f"WHERE op.name = '{kind}' AND rank = {rank}"
    ))  # fmt: skip


def check_between(profile: Profile, first: list[Counted], last: list[Counted]) -> None:
    """Assert that each call that had returned first is there, and none that had not begun at last."""
    for rank in range(RANKS):
        for kind in KINDS:
            found = calls_of(profile, kind, rank)
            assert first[rank].done[kind] <= found <= last[rank].begun[kind], (rank, kind)


def state_at(where: Path, *arguments: object, command: str = "at") -> Profile:
    """Return the profile of a snapshot."""
    path = where / "state.db"
    path.unlink(missing_ok=True)
    subprocess.run(
        [BUILD / "bin" / "commlens-arena", command, path, *map(str, arguments), *histories(where)],
        check=True, capture_output=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return Profile(path)


def test_the_last_whole_snapshot_survives_a_kill_of_everything(mpi: Mpi, pytestconfig: pytest.Config) -> None:
    """SIGKILL of all ranks and of the recorder at a random moment; then the arenas are lost, too."""
    chance = random.Random(mpi.name)
    for _ in range(KILLS if pytestconfig.getoption("--every-case") else FEW_KILLS):
        with job(mpi, "run", env=EVERY) as running:
            log = Log(running)
            ready = running.wait_until_ready()
            log.note()
            first = log.entries[0][0]
            wait_for_snapshot_after(first, log)
            log.note_until(time.monotonic() + chance.uniform(0, 1.5))
            for pid in [*recorders(running.where), *(one.pid for one in ready)]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            running.wait()
            wait_for_recorder(running.where)
            for path in running.arenas.iterdir():
                path.unlink()
            commlens(
                "recover", "-o", running.where / "recovered.db", running.where / "out", cwd=running.where
            )
            profile = Profile(running.where / "recovered.db")
            check_names(profile)
            # A launcher may have ended a rank on its own, which then made its own copy of a later time.
            assert set(profile.column("SELECT state FROM rank")) <= {"ended", "SIGTERM"}
            last = whole(running.where)[-1]
            check_between(profile, log.before(last), running.counted())
            for at in (at for at in whole(running.where) if at > first):
                check_between(state_at(running.where, at), log.before(at), running.counted())


def wait_for_snapshot_after(time_ns: int, log: Log) -> None:
    """Wait for a snapshot after a time, and add entries to the log meanwhile. The snapshot of MPI_Init is older."""

    def is_there() -> bool:
        log.note()
        return any(at > time_ns for at in whole(log.running.where))

    wait_until(is_there, "no snapshot")


def wait_for_rounds(running: Running, least: int) -> None:
    """Wait until each rank has done so many rounds."""
    wait_until(lambda: all(one.done["MPI_Wait"] >= least for one in running.counted()), "too few rounds")


def kill_after_snapshots(running: Running) -> None:
    """Kill all ranks after four snapshots, and wait for the recorder."""
    ready = running.wait_until_ready()
    wait_for_snapshots(running, 4)
    kill_at_once([one.pid for one in ready])
    running.wait()
    wait_for_recorder(running.where)


def wait_for_snapshots(running: Running, least: int) -> None:
    """Wait until there are so many snapshots of all ranks."""
    wait_until(lambda: len(whole(running.where)) >= least, "too few snapshots", pause_s=0.05)


def test_a_snapshot_of_the_past_and_the_difference_of_two(mpi: Mpi) -> None:
    """The difference has exactly the calls that the later snapshot has more."""
    with job(mpi, "run", env=EVERY) as running:
        kill_after_snapshots(running)
        counts = []
        first, second = whole(running.where)[-3:-1]
        for at in (first, second + 1):
            profile = state_at(running.where, at)
            assert set(profile.column("SELECT state FROM rank")) == {"running"}
            counts.append(
                {(kind, rank): calls_of(profile, kind, rank) for kind in KINDS for rank in range(RANKS)}
            )
        difference = state_at(running.where, first, second, command="between")
        for (kind, rank), calls in counts[1].items():
            assert calls_of(difference, kind, rank) == calls - counts[0][kind, rank]
        assert min(counts[1].values()) > 0


def csv_rows(text: str) -> list[dict[str, str]]:
    """Return the rows of a table in CSV."""
    return list(csv.DictReader(io.StringIO(text)))


def check_refusals(where: Path, folder: Path, until: str) -> None:
    """See that `commlens history` says why it cannot answer a question, and then writes no file."""
    for arguments, reason in (
        ((folder, "--at", "0", "-o", "x.db"), "no snapshot until 0 s: the first one is "),
        ((folder, "--between", until, until, "-o", "x.db"), "no snapshot between"),
        ((folder, "--region", "none"), "no region 'none' in this run"),
        ((folder, "--metric", "none"), "no metric 'none' in this run"),
        ((folder, "--op", "none"), "no operation 'none'"),
        ((folder, "--comm", "s1.1", "--region", "x"), "exclude each other"),
        ((folder, "--at", "1"), "-o is for --at or --between"),
        ((folder, "--at", "1", "--between", "1", "2", "-o", "x.db"), "use one of them"),
        ((folder, "--at", "x"), "'x' is no number of seconds"),
        ((where / "part.db",), "no snapshots of this run beside it"),
        ((where / "arenas",), "not a profile"),
    ):
        done = harness.commlens("history", *map(str, arguments), cwd=where)
        assert done.returncode != 0
        assert reason in done.stderr, (arguments, done.stderr)
    assert not (where / "x.db").exists()


def test_the_command_shows_the_same_numbers_as_the_profiles(mpi: Mpi) -> None:
    """Of a killed job by its folder, and by the profile that was recovered."""
    with job(mpi, "run", env={**EVERY, "COMMLENS_DATATYPES": "1"}) as running:
        kill_after_snapshots(running)
        where = running.where
        commlens("recover", "-o", "recovered.db", "arenas", "out", cwd=where)
        (folder,) = (where / "out").glob("commlens-arenas-*")
        (where / "recovered.db").rename(where / "out" / "recovered.db")
        asked = ("--op", "allreduce", "--comm", "s1.1", "--format", "csv")
        rows = csv_rows(commlens("history", "out/recovered.db", *asked, cwd=where))
        again = csv_rows(commlens("history", folder, *asked, cwd=where))
        for name in ("time_ns", "file_bytes", "new_calls", "new_bytes_sent", "new_bytes_received", "ranks"):
            assert [row[name] for row in rows] == [row[name] for row in again]
        assert [row["time_ns"] for row in rows] == [row["time"] for row in snapshots(where)]
        total = Profile(where / "out" / "recovered.db").calls("MPI_Allreduce")["s1.1"]
        assert sum(int(row["new_calls"]) for row in rows) == sum(total.values())
        assert min(int(row["new_calls"]) for row in rows) >= 0
        text = commlens("history", folder, cwd=where)
        assert len(text.splitlines()) == 3 + len(rows)
        # On a busy machine the first intervals may have no calls; this one has some.
        with_calls = [i for i in range(2, len(rows)) if int(rows[i]["new_calls"]) > 0]
        assert with_calls, rows
        last = with_calls[0]
        begin, until = (float(rows[i]["seconds"]) + 0.001 for i in (last - 1, last))
        commlens("history", folder, "--between", f"{begin:.3f}", f"{until:.3f}", "-o", "part.db", cwd=where)
        found = Profile(where / "part.db").calls("MPI_Allreduce")["s1.1"]
        assert sum(found.values()) == int(rows[last]["new_calls"])
        by_datatype = Profile(where / "part.db").rows(
            "SELECT tree, SUM(calls) AS calls FROM datatype_use JOIN datatype ON datatype.id = sent "
            "JOIN comm ON comm.id = comm JOIN op ON op.id = op "
            "WHERE op.name = 'MPI_Allreduce' AND comm.name = 's1.1' GROUP BY tree"
        )
        assert [row["calls"] for row in by_datatype] == [int(rows[last]["new_calls"])], by_datatype
        part = csv_rows(
            commlens(
                "report", folder, "--between", f"{begin:.3f}", f"{until:.3f}", *asked, "--unfold", cwd=where
            )
        )
        assert sum(int(row["calls"]) for row in part) == int(rows[last]["new_calls"])
        shown = csv_rows(commlens("report", folder, "--at", f"{until:.3f}", *asked, "--unfold", cwd=where))
        assert sum(int(row["calls"]) for row in shown) == sum(
            int(row["new_calls"]) for row in rows[: last + 1]
        )
        assert "snapshot=" in commlens("report", folder, "--at", f"{until:.3f}", cwd=where)
        check_refusals(where, folder, f"{until:.3f}")


def test_calls_after_commlens_reset_on_one_rank_are_all_there(mpi: Mpi) -> None:
    """20 rounds on each rank, a reset on rank 0, then 30 more: its sum grows by less than it counted."""
    with job(mpi, "reset", env=EVERY) as running:
        for rounds, name in ((20, "go"), (50, "on")):
            wait_for_rounds(running, rounds)
            wait_for_snapshots(running, len(whole(running.where)) + 2)  # one may have been taken meanwhile
            (running.where / "counts" / name).touch()
        assert running.wait() == 0
        wait_for_recorder(running.where)
        rows = csv_rows(
            commlens("history", "out/profile.db", "--op", "sendrecv", "--format", "csv", cwd=running.where)
        )
        assert sum(int(row["new_calls"]) for row in rows) == 50 * RANKS
        stored = Profile(running.where / "out" / "profile.db").calls("MPI_Sendrecv")
        assert sum(sum(of.values()) for of in stored.values()) == 50 * RANKS - 20


def test_the_last_snapshot_of_a_good_end_has_everything(mpi: Mpi) -> None:
    """The profile and the last snapshot have the same calls; recover has nothing to do."""
    with job(mpi, "wait", env=EVERY) as running:
        wait_for_snapshots(running, 1)  # a rank that ends before the recorder has seen it is in no snapshot
        (running.where / "counts" / "go").touch()
        assert running.wait() == 0
        wait_for_recorder(running.where)
        assert list(running.arenas.iterdir()) == []
        assert len(histories(running.where)) == 1
        stored = Profile(running.where / "out" / "profile.db")
        last = state_at(running.where, 2**63)
        assert set(last.column("SELECT state FROM rank")) == {"finalized"}
        sql = "SELECT op.name, rank, SUM(calls), SUM(bytes_sent) FROM cell JOIN key ON key.id = cell.key JOIN op ON op.id = key.op"
        rows = [profile.rows(f"{sql} GROUP BY op.name, rank ORDER BY 1, 2") for profile in (stored, last)]
        assert rows[0] == rows[1]
        assert rows[0] != []
        last.check()
        done = harness.commlens("recover", "out", cwd=running.where)
        assert done.returncode != 0
        assert "nothing to recover" in done.stderr


def test_the_program_sees_nothing_of_the_recorder(mpi: Mpi) -> None:
    """No child, no signal, no open file; and the launcher does not wait for it."""
    program = [mpi.compile("children.c")]
    without = mpi.run(RANKS, program)
    result = mpi.run(RANKS, program, {"COMMLENS_FLUSH_EVERY": "3600"})
    assert result.lines == without.lines
    assert len(result.said) == len(without.said)
    wait_for_recorder(result.profile.parent)


def test_a_program_that_adopts_orphans_gets_no_recorder_and_one_line(mpi: Mpi) -> None:
    """The recorder would be its child; that is said once, not by each rank."""
    program: list[str | Path] = [mpi.compile("children.c"), "subreaper"]
    without = mpi.run(RANKS, program)
    result = mpi.run(RANKS, program, {"COMMLENS_FLUSH_EVERY": "3600"})
    assert result.lines == without.lines
    said = [line for line in result.said if "snapshots" in line]
    assert len(said) == 1
    assert ": this program is a child subreaper, so that" in said[0]
    assert recorders(result.profile.parent) == []


def test_a_folder_that_cannot_be_made_costs_one_line(mpi: Mpi) -> None:
    where = mpi.fresh("refused")
    result = mpi.run(
        RANKS,
        [mpi.compile("children.c")],
        {**EVERY, "COMMLENS_OUTPUT": str(where / "none" / "x.db")},
        cwd=where,
    )
    assert result.rc == 0
    assert len(result.lines) == RANKS
    said = [line for line in result.said if "snapshots" in line]
    assert len(said) == 1
    assert said[0].startswith(
        f"commlens: cannot store snapshots of the counters in {where}/none/commlens-arenas-"
    )
    assert said[0].endswith(": No such file or directory; COMMLENS_FLUSH_EVERY tries again")
    wait_for_recorder(where)
