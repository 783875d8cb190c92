# SPDX-License-Identifier: Apache-2.0
"""Regions of the application: what is counted where, and what comes of programs that say odd things."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from build_once import PATIENCE
from harness import LINK, ROOT, SANITIZER, SANITIZER_ENV, Mpi, commlens
from launches import Result, started
from processes import is_alive, kill_at_once, wait_until
from profile_rows import Profile

HEADERS = (f"-I{ROOT / 'include' / 'commlens'}", f"-I{ROOT / 'include'}")

CALLS_SQL = """
SELECT path, op.name, SUM(calls) FROM region_operation o JOIN region_path p ON p.region = o.region
  JOIN op ON op.id = o.op WHERE op.class IN ('p2p', 'collective', 'completion') GROUP BY 1, 2 ORDER BY 1, 2"""
TIMES_SQL = """
SELECT path, SUM(calls), SUM(open) FROM region_time t JOIN region_path p ON p.region = t.region GROUP BY 1 ORDER BY 1"""
TOTALS_SQL = """
SELECT comm.name, op.name, key.bin, rank, SUM(calls), SUM(bytes_sent), SUM(bytes_received)
  FROM cell JOIN key ON key.id = cell.key JOIN comm ON comm.id = key.comm JOIN op ON op.id = key.op
 GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4"""
ROWS_SQL = """
SELECT {columns}, execution, iteration, rank FROM {table} t JOIN region_path p ON p.region = t.region
 ORDER BY 1, 2, execution, iteration, rank"""


def program(mpi: Mpi, name: str, *flags: str) -> Path:
    """Compile an annotated program."""
    return mpi.compile(name, None, *LINK, flags=(*HEADERS, *flags))


def answers(profile: Profile, sql: str) -> list[tuple[Any, ...]]:
    """Return the rows of an answer; of columns with the same name all."""
    with closing(sqlite3.connect(f"file:{profile.path}?mode=ro", uri=True)) as db:
        return list(db.execute(sql))


def checked(result: Result) -> Profile:
    """Return the profile of a launch that went well."""
    assert result.rc == 0, result
    profile = result.open()
    profile.check()
    return profile


def oddities(result: Result) -> list[str]:
    """Return what was said about how the program uses regions."""
    return [line for line in result.said if line.startswith("commlens: rank")]


# ---- what is counted where ----


def test_regions_change_no_total_of_any_cell(mpi: Mpi) -> None:
    plain = checked(mpi.run(4, [program(mpi, "grid.c")]))
    annotated = checked(mpi.run(4, [program(mpi, "grid.c", "-DANNOTATED")]))
    assert answers(annotated, TOTALS_SQL) == answers(plain, TOTALS_SQL)
    assert answers(plain, "SELECT * FROM region_time") == []
    ranks, steps = 4, 5
    transposes = ranks * steps
    assert answers(annotated, CALLS_SQL) == [
        ("program/steps", "MPI_Allreduce", ranks * 3),
        ("program/steps/halo", "MPI_Irecv", transposes),
        ("program/steps/halo", "MPI_Isend", transposes),
        ("program/steps/halo/wait", "MPI_Waitall", transposes),
        ("program/steps/transpose/columns", "MPI_Alltoall", transposes),
        ("program/steps/transpose/rows", "MPI_Alltoall", transposes),
    ]
    communicators = """SELECT path, c.name FROM region_operation o JOIN region_path p ON p.region = o.region
                         JOIN comm c ON c.id = o.comm JOIN op ON op.id = o.op WHERE op.name = 'MPI_Alltoall' ORDER BY 1, 2"""
    assert answers(annotated, communicators) == [
        ("program/steps/transpose/columns", "s0.2"),
        ("program/steps/transpose/columns", "s1.2"),
        ("program/steps/transpose/rows", "s0.1"),
        ("program/steps/transpose/rows", "s2.1"),
    ]
    assert answers(annotated, "SELECT DISTINCT iteration FROM region_time WHERE region = "
                   "(SELECT region FROM region_path WHERE path = 'program/steps/halo') ORDER BY 1") == [
        (i,) for i in range(steps)
    ]  # fmt: skip
    # It ended after MPI_Finalize, when the profile was written.
    assert (("program", ranks, ranks)) in answers(annotated, TIMES_SQL)


def test_each_thread_has_regions_of_its_own(mpi: Mpi) -> None:
    profile = checked(mpi.run(2, [program(mpi, "region_threads.c")]))
    expected = [("main", "MPI_Sendrecv", 2 * 3)]
    for n in range(4):
        expected.append((f"thread {n}", "MPI_Sendrecv", 2 * 10 * (n + 1)))
        expected.append((f"thread {n}/within", "MPI_Sendrecv", 2 * (n + 1)))
    assert answers(profile, CALLS_SQL) == expected
    apart = """SELECT p.path, COUNT(DISTINCT user_name), COUNT(DISTINCT comm.id) FROM region_operation o
                 JOIN region_path p ON p.region = o.region JOIN comm ON comm.id = o.comm
                 JOIN op ON op.id = o.op WHERE op.name = 'MPI_Sendrecv' AND path LIKE 'thread%' GROUP BY 1"""
    assert {row[2] for row in answers(profile, apart)} == {2}  # one communicator on each of two ranks
    assert ("left open", 2 * 4, 0) in answers(profile, TIMES_SQL)  # they end with their threads
    assert answers(profile, "SELECT threads FROM rank") == [(5,), (5,)]


# ---- control ----


@pytest.mark.dealt
@pytest.mark.parametrize(
    ("how", "env", "barriers", "values"),
    [
        ("plain", {}, {"": 64, "whole": 1, "whole/solve": 2, "whole/solve/exchange": 20,
                       "whole/solve/exchange/inner": 8, "whole/output": 32}, (3, 111.0)),
        ("pause", {}, {"": 64, "whole": 1, "whole/solve": 2, "whole/solve/exchange": 20, "whole/output": 32},
         (2, 101.0)),
        ("reset", {}, {"": 64, "whole/output": 32}, (1, 100.0)),
        ("plain", {"COMMLENS_PAUSED": "1"}, {}, None),
        ("resume", {"COMMLENS_PAUSED": "1"}, {"": 64, "whole": 1, "whole/solve": 2, "whole/solve/exchange": 20,
                                              "whole/solve/exchange/inner": 8, "whole/output": 32}, (3, 111.0)),
        ("plain", {"COMMLENS_REGIONS": "exchange"},
         {"whole/solve/exchange": 20, "whole/solve/exchange/inner": 8}, (1, 10.0)),
        ("plain", {"COMMLENS_REGIONS": "!exchange"},
         {"": 64, "whole": 1, "whole/solve": 2, "whole/output": 32}, (2, 101.0)),
        ("plain", {"COMMLENS_REGIONS": "!*/exchange , whole/solve/*/inner"},
         {"whole/solve/exchange/inner": 8}, (1, 10.0)),
        ("plain", {"COMMLENS_REGIONS": "!exchange,inner,!nothing"}, {"whole/solve/exchange/inner": 8}, (1, 10.0)),
        ("plain", {"COMMLENS_REGIONS": "nothing"}, {}, None),
    ],
)  # fmt: skip
def test_what_does_not_count_is_nowhere(
    mpi: Mpi, how: str, env: dict[str, str], barriers: dict[str, int], values: tuple[int, float] | None
) -> None:
    result = mpi.run(3, [program(mpi, "controlled.c"), how], env=env)
    assert (result.rc, result.stdout, oddities(result)) == (0, "1\n" * 3, []), result
    profile = result.open()
    profile.check()
    sql = CALLS_SQL.replace("op.class IN ('p2p', 'collective', 'completion')", "op.name = 'MPI_Barrier'")
    assert {path: calls for path, _, calls in answers(profile, sql)} == {
        k: 3 * v for k, v in barriers.items()
    }
    [(count, total)] = answers(profile, "SELECT SUM(count), SUM(sum) FROM metric_value")
    assert (count, total) == ((None, None) if values is None else (3 * values[0], 3 * values[1]))
    was_in = {path for path, _, _ in answers(profile, TIMES_SQL)}
    assert {path for path in barriers if path} <= was_in
    if how == "reset":
        assert was_in == {"whole", "whole/solve", "whole/output"}
    elif how != "plain" or env.get("COMMLENS_REGIONS"):
        assert ("whole/solve/exchange/inner" in was_in) == ("whole/solve/exchange/inner" in barriers)
    if not barriers:
        assert was_in == set()
        assert answers(profile, "SELECT SUM(calls), SUM(mpi_ns) FROM rank") == [(0, 0)]


# ---- programs that do it wrong ----

WORK = ("work", "MPI_Barrier", 9)
OUTSIDE = ("", "MPI_Barrier", 6)
X255 = "x" * 255
ODD: dict[str, tuple[list[str], list[tuple[str, str, int]], dict[str, int]]] = {
    "no_begin": (['the end of "never begun" at {p} has no begin on its thread; it is ignored'], [], {}),
    "no_end": (
        ['region "inner", begun at {p}, was still open when the enclosing "outer" ended at {p}: it ends there'],
        [],
        {"outer": 3, "outer/inner": 3},
    ),
    "other_thread": (
        ['the end of "elsewhere" at {p} has no begin on its thread; another thread began it at {p}; it is ignored'],
        [],
        {"elsewhere": 3},
    ),
    "names": ([], [], {"(no name)": 9, X255: 9, "not \ufffd\ufffd UTF-8 \ufffd": 3}),
    "million": (['more than 16384 different regions: all others count as one, "...others"'], [], {}),
    "deep": (
        ['regions are nested more than 128 deep, such as "deeper" at {p}: deeper ones count as part of the '
         "last"],
        [("/".join(["deeper"] * 128), "MPI_Barrier", 3)],
        {"/".join(["deeper"] * n): 3 for n in range(1, 129)},
    ),
    "values": (['metric "energy" has two units, "J" and "kJ"; its values are kept apart'], [], {}),
    "no_loop": (["an iteration at {p} is outside any loop and is ignored"], [], {"no loop": 3}),
    "longjmp": (
        ['region "falling", begun at {p}, was still open when the enclosing "catcher" ended at {p}: it ends there'],
        [("catcher" + "/falling" * 6, "MPI_Barrier", 3)],
        {"catcher" + "/falling" * n: 3 for n in range(7)},
    ),
    "fork": ([], [], {"forks": 3}),
    "around": ([], [], {"whole": 3}),
    "one": (['the end of "only here" at {p} has no begin on its thread; it is ignored'], [], {}),
}  # fmt: skip
PLACE = "odd_regions-[0-9a-f]*[+]0x[0-9a-f]+"


@pytest.mark.dealt
@pytest.mark.parametrize("how", ODD)
def test_what_is_said_wrongly_is_survived_and_said_once(mpi: Mpi, how: str) -> None:
    result = mpi.run(3, [program(mpi, "odd_regions.c"), how], timeout=120)
    profile = checked(result)
    said, calls, times = ODD[how]
    who = "rank 1" if how == "one" else r"rank 0 \(and 2 more ranks\)"
    expected = [f"commlens: {who}: " + re.escape(line).replace(r"\{p\}", PLACE) for line in said]
    found = oddities(result)
    assert len(found) == len(expected), result
    for line, pattern in zip(found, expected, strict=True):
        assert re.fullmatch(pattern, line), (line, pattern)
    work = [("whole/work", *WORK[1:]), ("whole", *OUTSIDE[1:])] if how == "around" else [WORK, OUTSIDE]
    if how == "million":
        work = [("...others", *WORK[1:]), OUTSIDE]
    assert answers(profile, CALLS_SQL) == sorted([*work, *calls])
    entered = {path: calls for path, calls, _ in answers(profile, TIMES_SQL)}
    if how == "million":
        assert len(entered) == 16384
        assert entered["...others"] == 3 * (1_000_000 - 16383 + 1)
        assert sum(entered.values()) == 3 * 1_000_001
    else:
        assert entered == {**times, work[0][0]: 3}
    if how == "values":
        values = answers(profile, "SELECT name, unit, count, sum, min, max, last, not_finite FROM metric_value "
                         "JOIN metric ON metric.id = metric WHERE rank = 1 ORDER BY 1, 2")  # fmt: skip
        assert values == [
            ("(no name)", "", 1, 1.0, 1.0, 1.0, 1.0, 0),
            ("energy", "J", 3, float("-inf"), -1e308, 2.5, -1e308, 2),
            ("energy", "kJ", 1, 1.0, 1.0, 1.0, 1.0, 0),
        ]


def test_threads_that_go_on_telling_in_mpi_finalize_cost_no_profile(mpi: Mpi) -> None:
    executable = program(mpi, "tells_on.c")
    for _ in range(3):
        result = mpi.run(2, [executable])
        profile = checked(result)
        assert result.lines == ["done"] * 2
        rows = answers(profile, "SELECT rank, SUM(calls) FROM region_time t JOIN region_path p ON p.region = t.region "
                       "WHERE path = 'outer' GROUP BY 1")  # fmt: skip
        assert [rank for rank, _ in rows] == [0, 1] and all(calls >= 100 for _, calls in rows), rows


@pytest.mark.parametrize("when", ["early", "late"])
def test_children_of_a_fork_do_not_wait_for_threads_they_do_not_have(mpi: Mpi, when: str) -> None:
    result = mpi.run(1, [program(mpi, "forks_telling.c"), when], timeout=120)
    assert (result.rc, result.stdout) == (0, "0 hung\n"), result


@pytest.mark.skipif(
    SANITIZER == "thread", reason="the sanitizer fails in exit handlers that a thread calls when it ends"
)
def test_a_thread_that_ends_in_a_child_leaves_the_regions_of_its_parent(mpi: Mpi) -> None:
    result = mpi.run(1, [program(mpi, "forks_from_thread.c")])
    assert (result.rc, result.stdout) == (0, "child 0\n"), result
    rows = result.open().rows(
        "SELECT path, SUM(total.calls) AS calls FROM key_total AS total JOIN key ON key.id = total.key"
        " JOIN op ON op.id = key.op JOIN region_path ON region_path.region = key.region"
        " WHERE op.name = 'MPI_Barrier' GROUP BY path"
    )
    assert [(row["path"], row["calls"]) for row in rows] == [("work/inner", 3)]


def test_switched_off_all_is_as_without_us(mpi: Mpi) -> None:
    executable = program(mpi, "controlled.c")
    plain = mpi.run(2, [executable, "pause"], mode="off")
    result = mpi.run(2, [executable, "pause"], env={"COMMLENS_ENABLE": "0"})
    assert (result.rc, result.lines, result.said) == (plain.rc, plain.lines, [])
    assert not result.profile.exists()


@pytest.mark.parametrize("how", ["alone", "preload", "exec", "exec_mpi"])
def test_a_program_that_never_calls_mpi_leaves_nothing(mpi: Mpi, how: str) -> None:
    where = mpi.fresh("alone")
    (where / "arenas").mkdir()
    executable = program(mpi, "annotated_only.c")
    env = {k: v for k, v in os.environ.items() if not k.startswith("COMMLENS_")}
    env.update(
        {**mpi.environment, **SANITIZER_ENV},
        COMMLENS_ARENA_DIR=str(where / "arenas"),
        COMMLENS_OUTPUT=str(where / "profile.db"),
    )
    argv = [str(executable)]
    if how.startswith("exec"):
        argv += ["/bin/echo", "done"] if how == "exec" else [str(program(mpi, "controlled.c")), "plain"]
    if how == "preload":
        env["LD_PRELOAD"] = str(mpi.library)
    else:
        argv.insert(0, str(mpi.runner))
        env["COMMLENS_MPI"] = mpi.family
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60 * PATIENCE, cwd=where)
    if how == "exec_mpi":
        assert (done.returncode, done.stdout) == (0, "1\n"), done
        Profile(where / "profile.db").check()
    else:
        assert not (where / "profile.db").exists()
        expected = (0, "done\n", "") if how == "exec" else (7, "done, active 0, flush 1\n", "")
        assert (done.returncode, done.stdout, done.stderr) == expected, done
    if how == "exec":  # nobody is there any more to remove it
        assert (
            commlens("clean", "--yes", where / "arenas").stdout.splitlines()[-1].startswith("1 files removed")
        )
    assert list((where / "arenas").iterdir()) == []


# ---- other ways for a profile to come about ----


def entries(profile: Profile) -> list[list[tuple[Any, ...]]]:
    """Return all of regions that two runs of one program share."""
    return [
        answers(
            profile, "SELECT region, p.path, depth, name, kind FROM region_path p JOIN region ON id = region"
        ),
        answers(profile, ROWS_SQL.format(table="region_time", columns="p.path, calls, open")),
        answers(profile, ROWS_SQL.format(table="loop_time", columns="p.path, iterations")),
        answers(
            profile,
            ROWS_SQL.format(table="metric_value", columns="p.path, metric, count, sum, min, max, last"),
        ),
        answers(profile, CALLS_SQL),
        answers(profile, "SELECT * FROM metric"),
    ]


@pytest.mark.dealt
@pytest.mark.parametrize("writers", [2, 3])
@pytest.mark.parametrize("name", ["grid.c", "controlled.c"])
def test_many_writers_write_the_regions_that_one_writes(mpi: Mpi, name: str, writers: int) -> None:
    argv: list[str | Path] = [program(mpi, name, "-DANNOTATED"), "pause"]
    one = checked(mpi.run(6, argv))
    many = mpi.run(6, argv, env={"COMMLENS_AGGREGATORS": str(writers)})
    assert many.rc == 0, many
    directory = many.profile.with_suffix(".commlens")
    target = directory.with_name("merged.db")
    done = commlens("merge", directory, "-o", target)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{target}\n", "")
    merged = Profile(target)
    merged.check()
    assert entries(merged) == entries(one)


def test_what_is_odd_is_said_once_by_many_writers_and_in_a_summary(mpi: Mpi) -> None:
    executable = program(mpi, "odd_regions.c")
    for env in ({"COMMLENS_AGGREGATORS": "2"}, {"COMMLENS_DETAIL": "summary"}):
        result = mpi.run(4, [executable, "no_end"], env=env)
        assert result.rc == 0, result
        assert len(oddities(result)) == 1, result
        assert oddities(result)[0].startswith('commlens: rank 0 (and 3 more ranks): region "inner"'), result


def test_a_summary_has_the_regions_of_the_rows(mpi: Mpi) -> None:
    argv = [program(mpi, "grid.c", "-DANNOTATED")]
    full = checked(mpi.run(6, argv))
    summary = Profile(mpi.run(6, argv, env={"COMMLENS_DETAIL": "summary"}).profile)
    sql = "SELECT p.path, kind, ranks, calls FROM region_total t JOIN region_path p ON p.region = t.region " \
          "JOIN region ON region.id = t.region ORDER BY 1"  # fmt: skip
    assert answers(summary, sql) == answers(full, sql)
    assert len(answers(full, sql)) == 9
    assert answers(summary, CALLS_SQL) == answers(full, CALLS_SQL)
    assert answers(summary, "SELECT * FROM region_time UNION ALL SELECT * FROM region_time") == []
    [(bad,)] = answers(summary, "SELECT COUNT(*) FROM region_total WHERE mpi_ns > time_ns OR exclusive_ns > time_ns "
                       "OR rank_min_ns > rank_max_ns OR rank_max_ns > time_ns OR parallel_efficiency NOT BETWEEN 0 AND 1")  # fmt: skip
    assert bad == 0


# ---- what is left of a job that is killed ----


def test_regions_of_a_killed_job_are_there_and_those_under_way_have_their_time(mpi: Mpi) -> None:
    where = mpi.fresh("killed")
    for name in ("arenas", "out"):
        (where / name).mkdir()
    command, env = mpi.prepare(
        3, [program(mpi, "endless.c"), where / "ready"], {"COMMLENS_ARENA_DIR": str(where / "arenas")},
        where / "out" / "profile.db",
    )  # fmt: skip
    with started(command, env, where):
        pids = wait_for_ready(where, 3)
        time.sleep(0.3)
        kill_at_once(pids)
        wait_until(lambda: not any(map(is_alive, pids)), "ranks outlive the signal")
    done = commlens("recover", "-o", where / "recovered.db", where / "arenas")
    assert done.returncode == 0, done
    profile = Profile(where / "recovered.db")
    check_endless(profile, 3)
    inside = answers(profile, "SELECT path FROM position JOIN region_path p ON p.region = position.region")
    assert {path for (path,) in inside} <= {"endless/steps", "endless/steps/reduce"}
    assert len(inside) == 3


def wait_for_ready(where: Path, ranks: int) -> list[int]:
    """Wait until all ranks of endless.c are in their loop; return their process ids."""

    def found() -> list[int]:
        texts = [path.read_text() for path in where.glob("ready.*")]
        is_whole = len(texts) == ranks and all(text.endswith("\n") for text in texts)
        return [int(text) for text in texts] if is_whole else []

    return wait_until(found, "not all ranks came out of MPI_Init")


def check_endless(profile: Profile, ranks: int) -> None:
    """Assert what must hold of endless.c whenever somebody looked at it."""
    profile.check_regions()
    rows = answers(profile, "SELECT rank, p.path, SUM(calls), SUM(open), SUM(time_ns), SUM(nested_ns), SUM(mpi_ns) "
                   "FROM region_time t JOIN region_path p ON p.region = t.region GROUP BY 1, 2")  # fmt: skip
    found = {(rank, path): row for rank, path, *row in rows}
    apps = dict(answers(profile, "SELECT rank, app_ns FROM rank"))
    assert set(apps) == set(range(ranks))
    for rank in range(ranks):
        endless, steps = found[rank, "endless"], found[rank, "endless/steps"]
        assert endless[:2] == [1, 1] and steps[:2] == [1, 1]
        assert 0 < steps[2] <= endless[2]
        assert endless[2] > apps[rank] > 0  # begun before MPI_Init
        calls, is_open, *_ = found.get((rank, "endless/steps/reduce"), [0, 0])
        [(reductions,)] = answers(
            profile, "SELECT COALESCE(SUM(calls), 0) FROM cell JOIN key ON key.id = cell.key JOIN op ON op.id = key.op "
            f"WHERE op.name = 'MPI_Allreduce' AND rank = {rank} AND region = "
            "(SELECT region FROM region_path WHERE path = 'endless/steps/reduce')")  # fmt: skip
        # The one under way may have returned, or not even begun.
        assert calls - 1 <= reductions <= calls and is_open in (0, 1)
        [(iterations,)] = answers(
            profile, f"SELECT COALESCE(SUM(iterations), 0) FROM loop_time WHERE rank = {rank}"
        )
        assert calls - 1 <= iterations + 1 <= calls + 1
        [(values, last)] = answers(
            profile,
            f"SELECT COALESCE(SUM(count), 0), COALESCE(MAX(last), -1) FROM metric_value WHERE rank = {rank}",
        )
        assert values - 1 <= last + 1 <= values + 1 and abs(values - iterations) <= 2


def test_every_flush_leaves_a_consistent_profile(mpi: Mpi) -> None:
    """The copies of a running job, one after the other, and each recovered by itself."""
    where = mpi.fresh("flushed")
    for name in ("arenas", "out"):
        (where / name).mkdir()
    command, env = mpi.prepare(
        2, [program(mpi, "endless.c"), where / "ready", "flush"], {"COMMLENS_ARENA_DIR": str(where / "arenas")},
        where / "out" / "profile.db",
    )  # fmt: skip
    looked, times = 0, list[int]()
    with started(command, env, where):
        wait_for_ready(where, 2)
        end = time.monotonic() + 60 * PATIENCE
        while looked < 5 or times[0] == times[-1]:
            assert time.monotonic() < end, "no copies"
            target = where / f"recovered{looked}.db"
            done = commlens("recover", "-o", target, where / "out")
            if done.returncode != 0 or len(answers(Profile(target), "SELECT rank FROM rank")) < 2:
                target.unlink(missing_ok=True)  # there is not yet a copy of each
                time.sleep(0.2)
                continue
            profile = Profile(target)
            check_endless(profile, 2)
            times.append(answers(profile, "SELECT MAX(app_ns) FROM rank")[0][0])
            looked += 1
            time.sleep(0.3)
    assert times == sorted(times)
