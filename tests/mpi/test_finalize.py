# SPDX-License-Identifier: Apache-2.0
"""Where the time of MPI_Finalize goes: the phases in a profile, beside a stopwatch around MPI_Finalize."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest
from build_once import PATIENCE
from harness import BUILD, ROOT, SANITIZER, Mpi, commlens

sys.path.insert(0, str(ROOT / "python"))
from commlens.overhead.legs import FOLDER_VARIABLE, STOPWATCH

OF_ALL = {"init", "wait", "collect", "call", "calls"}
FINALIZE = {"wait", "collect", "gather", "agree", "write", "store"}
OF_WRITERS = {"gather", "agree", "split", "write", "store"}
LATE_S = math.ceil(PATIENCE)
LATE = 1_000_000_000 * LATE_S
"""Nanoseconds that the last rank comes later."""

PROGRAM = f"""\
#include <mpi.h>
#include <unistd.h>
int main(int n, char** words) {{
  MPI_Init(&n, &words);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Barrier(MPI_COMM_WORLD);
  if (size > 1 && rank == size - 1) sleep({LATE_S});
  MPI_Finalize();
}}
"""

# Somebody sets the clock forward, or back, by a day before each look at it.
SET_CLOCK = """\
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
time_t time(time_t* to) {
  static long days;
  struct timespec t;
  syscall(SYS_clock_gettime, CLOCK_REALTIME, &t);
  t.tv_sec += __atomic_fetch_add(&days, DAY, __ATOMIC_RELAXED) * 86400;
  if (to != 0) *to = t.tv_sec;
  return t.tv_sec;
}
"""

pytestmark = pytest.mark.skipif(SANITIZER is not None, reason="times of sanitizers are nobody's")


def finalize_ns(folder: Path, pid: int) -> int:
    """Return how long a process was in MPI_Finalize, as the stopwatch saw it."""
    (path,) = folder.glob(f"*.{pid}")
    return int(path.read_text().split()[2])


@pytest.mark.parametrize(
    ("ranks", "options", "writers"),
    [
        (1, {}, {0}),
        (2, {}, {0}),
        (3, {"COMMLENS_AGGREGATORS": "3"}, {0, 1, 2}),
        (2, {"COMMLENS_DETAIL": "summary"}, {0}),
    ],
    ids=["one rank", "one file", "shards", "summary"],
)
def test_the_phases_of_finalize_are_within_it(
    mpi: Mpi, ranks: int, options: dict[str, str], writers: set[int]
) -> None:
    """Each phase is named once and not negative; waiting is that for the late rank, and all others fit beside it."""
    where = mpi.fresh("finalize")
    (where / "late.c").write_text(PROGRAM)
    times = where / "times"
    times.mkdir()
    result = mpi.run(
        ranks,
        [mpi.compile(where / "late.c")],
        {**options, FOLDER_VARIABLE: str(times)},
        preload=[BUILD / "lib" / STOPWATCH],
        profile=where / "profile.db",
    )
    assert result.rc == 0, result
    profile = where / ("profile.commlens" if len(writers) > 1 else "profile.db")
    told = commlens("sql", profile, "SELECT rank, what, ns FROM overhead", "--format", "csv").stdout
    rows = [(int(rank), what, int(ns)) for rank, what, ns in (r.split(",") for r in told.split()[1:])]
    found = {(rank, what): ns for rank, what, ns in rows}
    assert len(found) == len(rows)
    of_ranks = {} if "COMMLENS_DETAIL" in options else dict.fromkeys(range(ranks), OF_ALL)
    assert set(found) == {(rank, what) for rank, all in of_ranks.items() for what in all} | {
        (rank, what) for rank in writers for what in OF_WRITERS
    }
    assert min(found.values()) >= 0
    assert all(found[rank, "store"] > 0 and found[rank, "write"] > 0 for rank in writers)
    inside = sorted(int(path.read_text().split()[2]) for path in times.iterdir())
    if not of_ranks:
        counters = commlens(
            "sql",
            profile,
            "SELECT counter, min, max FROM spread WHERE counter LIKE 'own_%'",
            "--format",
            "csv",
        ).stdout
        spread = {
            name: (int(low), int(high)) for name, low, high in (r.split(",") for r in counters.split()[1:])
        }
        assert LATE / 2 < spread["own_wait_ns"][1] < inside[-1]
        assert sum(found.values()) + spread["own_collect_ns"][0] <= inside[-1]
        return
    pids = commlens("sql", profile, "SELECT rank, pid FROM rank", "--format", "csv").stdout
    for rank, pid in (map(int, row.split(",")) for row in pids.split()[1:]):
        took = finalize_ns(times, pid)
        assert sum(ns for (of, what), ns in found.items() if of == rank and what in FINALIZE) <= took
    waits = [found[rank, "wait"] for rank in range(ranks)]
    assert max(waits) > LATE / 2 or ranks == 1
    assert waits[-1] < min(waits[:-1], default=LATE / 2), "all others wait for the last rank"
    head = commlens("report", profile).stdout
    (line,) = (line for line in head.splitlines() if line.strip().startswith("finalize"))
    assert [part.split()[0] for part in line.split(None, 1)[1].split(", ")[:5]] == [
        "collect", "gather", "agree", "write", "store",
    ]  # fmt: skip


@pytest.mark.dealt
@pytest.mark.parametrize("day", [1, -1])
def test_a_clock_that_is_set_ends_no_patience(mpi: Mpi, day: int) -> None:
    """Rank 0 waits for the late rank 1, and both are in one profile."""
    where = mpi.fresh("set")
    (where / "late.c").write_text(PROGRAM)
    (where / "clock.c").write_text(SET_CLOCK)
    clock = mpi.compile(where / "clock.c", shared=True, flags=[f"-DDAY={day}"])
    done = mpi.run(2, [mpi.compile(where / "late.c")], preload=[clock])
    assert done.rc == 0, done
    assert done.open().rows("SELECT COUNT(*) AS n FROM rank") == [{"n": 2}]


def test_ranks_that_gave_up_and_a_later_one_write_profiles_of_their_own(mpi: Mpi) -> None:
    """No rank waits for ever: the last one arrives when the first one has given up and written its profile."""
    where = mpi.fresh("later")
    (where / "later.c").write_text(
        "#include <mpi.h>\n#include <unistd.h>\nint main(int n, char** words) {\n  MPI_Init(&n, &words);\n  int rank;\n"
        "  MPI_Comm_rank(MPI_COMM_WORLD, &rank);\n  MPI_Barrier(MPI_COMM_WORLD);\n"
        "  for (int i = 0; rank == 2 && access(words[1], F_OK) != 0 && i < 12000; ++i) usleep(10000);\n"
        "  MPI_Finalize();\n}\n"
    )
    files = [where / f"profile.rank{rank}.db" for rank in range(3)]
    result = mpi.run(
        3,
        [mpi.compile(where / "later.c"), files[0]],
        {"COMMLENS_PATIENCE": "1"},
        profile=where / "profile.db",
    )
    assert result.rc == 0, result
    assert not (where / "profile.db").exists()
    for rank, file in enumerate(files):
        told = commlens("sql", file, "SELECT rank FROM rank", "--format", "csv").stdout
        assert told.split()[1:] == [str(rank)]


@pytest.mark.parametrize("ranks", [1, 5, 16, 32])
def test_a_job_of_many_ranks_is_in_one_profile(mpi: Mpi, ranks: int) -> None:
    """With the packages of all ranks in one step, and all ranks in the world that rank 0 has chosen."""
    where = mpi.fresh("many")
    (where / "many.c").write_text(
        "#include <mpi.h>\nint main(int n, char** words) {\n  MPI_Init(&n, &words);\n  MPI_Comm comm;\n"
        "  for (int i = 0; i < 3; ++i) {\n    MPI_Comm_dup(MPI_COMM_WORLD, &comm);\n    MPI_Barrier(comm);\n"
        "    MPI_Comm_free(&comm);\n  }\n  MPI_Finalize();\n}\n"
    )
    result = mpi.run(ranks, [mpi.compile(where / "many.c")])
    assert result.rc == 0, result
    profile = result.open()
    rows = profile.rows("SELECT rank, calls FROM rank ORDER BY rank")
    assert rows == [{"rank": rank, "calls": 9} for rank in range(ranks)]
    # The world that rank 0 has chosen is a part of the identities of communicators: others would be separate rows.
    (found,) = profile.rows(
        "SELECT COUNT(*) AS n, SUM(communicators) AS made, MIN(size) AS size FROM comm WHERE creator <> 0"
    )
    assert (found["made"], found["size"]) == (3, ranks)


def test_the_barrier_is_asked_for_before_there_are_threads(mpi: Mpi) -> None:
    """Asked for later, with the threads of the MPI library there, it would take 10 ms of MPI_Finalize and more."""
    where = mpi.fresh("barrier")
    (where / "asked.c").write_text(
        "#include <linux/membarrier.h>\n#include <mpi.h>\n#include <stdio.h>\n#include <sys/syscall.h>\n"
        "#include <unistd.h>\nint main(int n, char** words) {\n"
        "  const long asked = syscall(SYS_membarrier, 1 << 9, 0, 0); /* MEMBARRIER_CMD_GET_REGISTRATIONS, Linux 6.3 */\n"
        '  printf("%d\\n", asked < 0 ? -1 : (asked & MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) != 0);\n'
        "  MPI_Init(&n, &words);\n  MPI_Finalize();\n}\n"
    )
    result = mpi.run(1, [mpi.compile(where / "asked.c")])
    if result.stdout.strip() == "-1":
        pytest.skip("this kernel does not tell what a process has asked for")
    assert (result.rc, result.stdout.strip()) == (0, "1"), result
