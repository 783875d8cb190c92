# SPDX-License-Identifier: Apache-2.0
"""COMMLENS_TUNE gives families of equal size different algorithms, and changes nothing else."""

from __future__ import annotations

import dataclasses
import json
import sqlite3

import pytest
from click.testing import CliRunner
from harness import Mpi

from commlens.cli import commlens
from commlens.tune.families import RULES, write_family_rules
from commlens.tune.model import Candidate, Case, Choice

DYNAMIC = {"OMPI_MCA_coll_tuned_use_dynamic_rules": "1"}


def choice(connection: sqlite3.Connection, name: str, number: int) -> Choice:
    query = "SELECT c.family, c.size, k.bin FROM comm c JOIN key k ON k.comm = c.id JOIN op o ON o.id = k.op"
    family, size, size_bin = connection.execute(
        f"{query} WHERE c.user_name = ? AND o.name = 'MPI_Alltoall'", (name,)
    ).fetchone()
    case = Case(family, name, "alltoall", size, size_bin, 32)
    return Choice(case, Candidate(number, "x"), 2.0, 1.0, -0.5, -0.6, -0.4, 9)


def rules(mpi: Mpi, program: object) -> str:
    result = mpi.run(5, [program])
    connection = sqlite3.connect(result.profile)
    chosen = [choice(connection, "first", 3), choice(connection, "second", 2)]
    written = write_family_rules(connection, chosen, "Open MPI v4.1.4")
    assert written.kept == chosen
    return written.files[RULES]


@pytest.mark.parametrize(("how", "first"), [("", "bruck"), ("apart", "linear")])
def test_families_of_equal_size_use_different_algorithms(mpi: Mpi, tmp_path, how: str, first: str) -> None:
    if mpi.family != "openmpi":
        pytest.skip("only Open MPI chooses per communicator")
    program = mpi.compile("tune_families.c")
    file = tmp_path / "rules"
    file.write_text(rules(mpi, program))
    result = mpi.run(5, [program, how], {"COMMLENS_TUNE": str(file), "COMMLENS_MATRIX": "all", **DYNAMIC})
    assert result.rc == 0, result
    assert "alltoall_algorithm 0" in result.stdout
    said = CliRunner().invoke(commlens, ["algorithms", str(result.profile), "--format", "json"])
    verdicts = [line["verdict"] for line in json.loads(said.output)["lines"]]
    assert [verdict.split(" (")[0] for verdict in verdicts][2] == "pairwise"
    assert verdicts[1].startswith(first)
    assert verdicts[0] == verdicts[3]
    assert verdicts[0].startswith("linear")


def test_rules_that_cannot_be_used_are_named_once(mpi: Mpi, tmp_path) -> None:
    file = tmp_path / "rules"
    file.write_text("damaged\n")
    result = mpi.run(3, [mpi.compile("tune_families.c")], {"COMMLENS_TUNE": str(file), **DYNAMIC})
    assert result.rc == 0, result
    assert result.stderr.count("COMMLENS_TUNE: communicators are not tuned") == 1


@pytest.mark.parametrize(("number", "is_slow"), [(1, True), (2, False), (3, False)])
def test_the_slow_algorithm_of_the_tests_is_one_algorithm(mpi: Mpi, number: int, is_slow: bool) -> None:
    if mpi.family != "openmpi":
        pytest.skip("the library is for Open MPI")
    slow = mpi.compile("slow_algorithm.c", None, "-ldl", shared=True)
    told = {**DYNAMIC, "OMPI_MCA_coll_tuned_alltoall_algorithm": str(number)}
    result = mpi.run(3, [mpi.compile("tune_families.c")], told, mode="preload", preload=[slow])
    assert result.rc == 0, result
    assert result.stderr.count("slow_algorithm: 40 slow calls") == (3 if is_slow else 0)


@pytest.mark.parametrize("tuned", ["", "multiple"])
def test_only_thread_multiple_leaves_communicators_alone(mpi: Mpi, tmp_path, tuned: str) -> None:
    if mpi.family != "openmpi":
        pytest.skip("only Open MPI chooses per communicator")
    program = mpi.compile("tune_families.c")
    file = tmp_path / "rules"
    file.write_text(rules(mpi, program))
    env = {"COMMLENS_TUNE": str(file), **DYNAMIC}
    result = mpi.run(3, [program, tuned], env)
    assert result.rc == 0, result
    assert ("MPI_THREAD_MULTIPLE" in result.stderr) == (tuned == "multiple")


def test_a_communicator_made_inside_a_tuned_creation_is_not_tuned(mpi: Mpi, tmp_path) -> None:
    if mpi.family != "openmpi":
        pytest.skip("only Open MPI chooses per communicator")
    program = mpi.compile("tune_inside.c")
    connection = sqlite3.connect(mpi.run(5, [program]).profile)
    written = write_family_rules(connection, [choice(connection, "outer", 2)], "Open MPI v4.1.4")
    file = tmp_path / "rules"
    file.write_text(written.files[RULES])
    result = mpi.run(5, [program], {"COMMLENS_TUNE": str(file), "COMMLENS_MATRIX": "all", **DYNAMIC})
    assert result.rc == 0, result
    said = CliRunner().invoke(commlens, ["algorithms", str(result.profile), "--format", "json"])
    verdicts = sorted(line["verdict"].split(" (")[0] for line in json.loads(said.output)["lines"])
    assert verdicts[0].startswith("linear")
    assert verdicts[1:] == ["pairwise"]


def test_two_proc_is_refused_for_more_processes(mpi: Mpi) -> None:
    connection = sqlite3.connect(mpi.run(3, [mpi.compile("tune_families.c")]).profile)
    two = choice(connection, "first", 5)
    two = dataclasses.replace(two, candidate=Candidate(5, "two_proc"))
    written = write_family_rules(connection, [two], "Open MPI v4.1.4")
    assert [reason for _, reason in written.refused] == ["two_proc is for communicators of two processes"]
