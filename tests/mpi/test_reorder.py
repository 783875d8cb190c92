# SPDX-License-Identifier: Apache-2.0
"""commlens_reorder() in running jobs: on simulated hosts, the ranks that exchange much come together."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest
from harness import LINK, PROGRAMS, Mpi
from hosts import Hosts, run_on
from launches import Result
from test_annotated import FORTRAN, INCLUDE
from test_languages import mpi4py_env

ANY_GAIN = {"COMMLENS_REORDER_MIN_GAIN": "0"}
"""Whatever the call costs: how long it takes is not for a test to say."""
LINE = re.compile(r"(\d+) (-?\d+) (\S+): (\d+) -> (\d+), partners on my host (\d+) of (\d+)")


class Step(NamedTuple):
    """What a process says after one call."""

    step: int
    outcome: int
    host: str
    before: int
    rank: int
    here: int
    partners: int


def steps(done: Result) -> list[list[Step]]:
    """Return what the processes say, by step and new rank."""
    assert done.rc == 0, done
    said = []
    for line in done.lines:
        if "UCX  WARN" in line:
            continue  # below MPICH, of the barrier in MPI_Finalize to which a process without commlens never comes
        match = LINE.fullmatch(line)
        assert match is not None, line
        step, outcome, host, *rest = match.groups()
        said.append(Step(int(step), int(outcome), host, *map(int, rest)))
    last = max(one.step for one in said)
    found = [sorted((s for s in said if s.step == step), key=lambda s: s.rank) for step in range(last + 1)]
    for step in found:
        assert [s.rank for s in step] == list(range(len(step))), "each rank is there once"
    return found


def program(mpi: Mpi) -> Path:
    """Build the program in C."""
    return mpi.compile("reorder.c", "c", *LINK, flags=INCLUDE)


def is_unchanged(step: list[Step]) -> bool:
    """Return whether all say that they have a duplicate, with their old ranks."""
    return all(one.outcome == 0 and one.before == one.rank for one in step)


def are_together(step: list[Step]) -> bool:
    """Return whether all say that the order is another one, and all have their partners on their hosts."""
    return all(one.outcome == 1 and one.here == one.partners > 0 for one in step)


def test_the_order_follows_a_pattern_that_changes(mpi: Mpi) -> None:
    """First neighbours are together already; then r and r + size/2 exchange, and then neighbours again."""
    hosts = Hosts(mpi.fresh("several"), 2, 2)
    done = run_on(mpi, hosts, program(mpi), "pairs,halves,halves,pairs", everywhere=ANY_GAIN)
    first, second, third, fourth = steps(done)
    assert is_unchanged(first)
    assert are_together(second)
    assert is_unchanged(third), "only what was exchanged since the last call counts"
    assert are_together(fourth)
    profile = done.open()
    metrics = profile.rows(
        "SELECT name, unit, SUM(count) AS values_, MAX(max) AS most FROM metric_value "
        "JOIN metric ON metric.id = metric_value.metric GROUP BY 1, 2 ORDER BY 1"
    )
    assert [(row["name"], row["unit"], row["values_"]) for row in metrics] == [
        ("commlens_reorder: gain", "%", 16),
        ("commlens_reorder: time", "s", 16),
    ]
    # Two nodes are 20 apart; within a node it is 4, or less if its hosts share a socket or a cache.
    assert 80 <= round(metrics[0]["most"]) <= 95


@pytest.mark.dealt
def test_more_processes_than_are_tried_in_all_orders(mpi: Mpi) -> None:
    hosts = Hosts(mpi.fresh("several"), 3, 4)
    (step,) = steps(run_on(mpi, hosts, program(mpi), "halves", everywhere=ANY_GAIN))
    assert are_together(step)


@pytest.mark.dealt
def test_a_cartesian_communicator_keeps_its_grid(mpi: Mpi) -> None:
    hosts = Hosts(mpi.fresh("several"), 2, 2)
    done = run_on(mpi, hosts, program(mpi), "halves,pairs", "cart", everywhere=ANY_GAIN)
    assert all(are_together(step) for step in steps(done))


@pytest.mark.parametrize("matrix", ["p2p", "all"])
def test_blocks_of_collectives_count(mpi: Mpi, matrix: str) -> None:
    """Pairs talk in communicators of two; with Open MPI and "all", by the messages inside the collectives."""
    hosts = Hosts(mpi.fresh("several"), 2, 2)
    everywhere = {**ANY_GAIN, "COMMLENS_MATRIX": matrix}
    done = run_on(mpi, hosts, program(mpi), "halves,pairs", "alltoall", everywhere=everywhere)
    assert all(are_together(step) for step in steps(done))


def messages_by_procedure(done: Result) -> Counter[str]:
    """Return the messages between processes that the profile attributes to each procedure."""
    rows = done.open().rows(
        "SELECT op.name AS op, SUM(messages) AS messages FROM peer JOIN op ON op.id = peer.op "
        "JOIN flow ON flow.id = peer.flow "
        "WHERE flow.name NOT IN ('share', 'one_to_all', 'all_to_one', 'all_to_all') GROUP BY 1"
    )
    return Counter({row["op"]: row["messages"] for row in rows})


@pytest.mark.parametrize("what", ["", "cart"])
def test_no_message_of_the_call_is_counted(mpi: Mpi, what: str) -> None:
    """Three calls that each make another order: only the messages of the program itself are there three times."""
    if mpi.family != "openmpi":
        pytest.skip("only Open MPI shows the messages inside MPI calls")
    # Open MPI 5's coll/han makes communicators of its own in the first collective.
    everywhere = {**ANY_GAIN, "COMMLENS_MATRIX": "all", "OMPI_MCA_coll": "^han"}
    found = []
    for patterns in ("halves", "halves,pairs,halves"):
        hosts = Hosts(mpi.fresh("several"), 2, 2)
        done = run_on(mpi, hosts, program(mpi), patterns, what, everywhere=everywhere)
        assert all(are_together(step) for step in steps(done))
        found.append(messages_by_procedure(done))
    once, thrice = found
    assert once["MPI_Allgather"] > 0, "messages inside collectives are counted"
    own = ("unknown", "MPI_Allgather")  # those of no collective, and those of tell()
    assert thrice == once + Counter({op: 2 * once[op] for op in own})


@pytest.mark.dealt
def test_a_part_of_the_processes(mpi: Mpi) -> None:
    """Five of six, backwards: nobody else takes part, and one has no partner."""
    hosts = Hosts(mpi.fresh("several"), 3, 2)
    (step,) = steps(run_on(mpi, hosts, program(mpi), "pairs", "sub", everywhere=ANY_GAIN))
    assert [one.here == one.partners for one in step] == [True] * 5


@pytest.mark.dealt
@pytest.mark.parametrize("language", ["use mpi", "use mpi_f08", "Python"])
def test_other_languages_get_the_same(mpi: Mpi, language: str) -> None:
    if language == "Python" and mpi.family == "abi":
        pytest.skip("mpi4py has no build for it here")
    if language != "Python" and "fortran" not in mpi.compilers:
        pytest.skip("the wheels have no Fortran")
    hosts = Hosts(mpi.fresh("several"), 2, 2)
    everywhere = dict(ANY_GAIN)
    if language == "Python":
        everywhere.update(mpi4py_env(mpi))
        argv: list[str | Path] = [sys.executable, PROGRAMS / "reorder.py"]
    else:
        flags = (*FORTRAN, *(["-DUSE_MPI_F08"] if language == "use mpi_f08" else []))
        argv = [mpi.compile("reorder.F90", "fortran", *LINK, flags=flags)]
    (step,) = steps(run_on(mpi, hosts, *argv, everywhere=everywhere))
    assert are_together(step)
    (step,) = steps(run_on(mpi, hosts, *argv, mode="off", everywhere=everywhere))
    assert is_unchanged(step)
    assert [one.here for one in step] == [0] * 4


UNCHANGED = {
    "not enough to gain": ("halves", "", {"COMMLENS_REORDER_MIN_GAIN": "100"}),
    "nothing counted": ("halves", "", {**ANY_GAIN, "COMMLENS_MATRIX": "off"}),
    "counted and reset": ("halves", "reset", ANY_GAIN),
    "nothing exchanged": ("silent,silent", "", ANY_GAIN),
    "another topology": ("halves", "graph", ANY_GAIN),
    "switched off": ("halves", "", {**ANY_GAIN, "COMMLENS_ENABLE": "0"}),
}


@pytest.mark.dealt
@pytest.mark.parametrize(("patterns", "what", "env"), UNCHANGED.values(), ids=UNCHANGED.keys())
def test_otherwise_it_is_a_duplicate(mpi: Mpi, patterns: str, what: str, env: dict[str, str]) -> None:
    hosts = Hosts(mpi.fresh("several"), 2, 2)
    done = run_on(mpi, hosts, program(mpi), patterns, what, everywhere=env)
    assert all(is_unchanged(step) for step in steps(done))


def test_without_the_profiler_it_is_a_duplicate(mpi: Mpi) -> None:
    done = mpi.run(4, [program(mpi), "halves,pairs"], mode="off")
    assert all(is_unchanged(step) for step in steps(done))


@pytest.mark.dealt
@pytest.mark.parametrize("ranks", [1, 3])
def test_one_host_has_nothing_to_gain(mpi: Mpi, ranks: int) -> None:
    done = mpi.run(ranks, [program(mpi), "ring,pairs"], ANY_GAIN)
    assert all(is_unchanged(step) for step in steps(done))


@pytest.mark.parametrize("mode", ["run", "off"])
def test_an_intercommunicator_is_duplicated(mpi: Mpi, mode: str) -> None:
    done = mpi.run(4, [program(mpi), "silent", "inter"], mode=mode)
    assert done.rc == 0, done
    assert done.lines == ["0"] * 4


@pytest.mark.dealt
def test_a_process_without_the_profiler_keeps_nobody_waiting(mpi: Mpi) -> None:
    """Rank 1 runs without commlens: all get duplicates, and then the others write what they have."""
    script = mpi.fresh("mixed") / "mixed"
    rank = "PMI_RANK" if mpi.hydra else "OMPI_COMM_WORLD_RANK"
    script.write_text(f'#!/bin/sh\n[ "${rank}" = 1 ] && exec "$@"\nexec {mpi.runner} "$@"\n')
    script.chmod(0o755)
    env = {**ANY_GAIN, "COMMLENS_PATIENCE": "1"}
    done = mpi.run(4, [script, program(mpi), "halves,pairs"], env, mode="off")
    assert all(is_unchanged(step) for step in steps(done))


@pytest.mark.parametrize("mode", ["run", "off"])
@pytest.mark.parametrize("when", ["early", "late"])
def test_before_and_after_mpi_there_is_no_communicator(mpi: Mpi, when: str, mode: str) -> None:
    if when == "early" and "MPI_Session_init" in mpi.procedures:
        pytest.skip("the library has sessions: a program may have communicators without MPI_Init")
    done = mpi.run(2, [program(mpi), "silent", when], ANY_GAIN, mode=mode)
    assert done.rc == 0, done
    assert [line for line in done.lines if "MPI" in line] == ["without MPI: -1"] * 2
