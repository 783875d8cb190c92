# SPDX-License-Identifier: Apache-2.0
"""COMMLENS_TUNE gives families of equal size different algorithms, and changes nothing else."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner
from harness import Mpi
from hosts import Hosts, run_on

from commlens.cli import commlens
from commlens.tune.families import RULES, write_family_rules
from commlens.tune.model import Candidate, Case, Choice
from commlens.tune.steps import make_rules

DYNAMIC = {"OMPI_MCA_coll_tuned_use_dynamic_rules": "1"}


def choice(connection: sqlite3.Connection, name: str, number: int, collective: str = "alltoall") -> Choice:
    query = "SELECT c.family, c.size, k.bin FROM comm c JOIN key k ON k.comm = c.id JOIN op o ON o.id = k.op"
    family, size, size_bin = connection.execute(
        f"{query} WHERE c.user_name = ? AND o.name = ?", (name, f"MPI_{collective.capitalize()}")
    ).fetchone()
    case = Case(family, name, collective, size, size_bin, 32)
    return Choice(case, Candidate(number, "x"), 2.0, 1.0, -0.5, -0.6, -0.4, 9)


def rules(mpi: Mpi, program: Path) -> str:
    result = mpi.run(5, [program])
    with closing(sqlite3.connect(result.profile)) as connection:
        chosen = [choice(connection, "first", 3), choice(connection, "second", 2)]
        written = write_family_rules(connection, chosen, "Open MPI v4.1.4")
    assert written.kept == chosen
    return written.files[RULES]


@pytest.mark.parametrize(("how", "first"), [("", "bruck"), ("apart", "linear")])
def test_families_of_equal_size_use_different_algorithms(
    mpi: Mpi, tmp_path: Path, how: str, first: str
) -> None:
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


def test_rules_that_cannot_be_used_are_named_once(mpi: Mpi, tmp_path: Path) -> None:
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
def test_only_thread_multiple_leaves_communicators_alone(mpi: Mpi, tmp_path: Path, tuned: str) -> None:
    if mpi.family != "openmpi":
        pytest.skip("only Open MPI chooses per communicator")
    program = mpi.compile("tune_families.c")
    file = tmp_path / "rules"
    file.write_text(rules(mpi, program))
    env = {"COMMLENS_TUNE": str(file), **DYNAMIC}
    result = mpi.run(3, [program, tuned], env)
    assert result.rc == 0, result
    assert ("MPI_THREAD_MULTIPLE" in result.stderr) == (tuned == "multiple")


def rule_for(mpi: Mpi, argv: list[str | Path], name: str, file: Path) -> dict[str, str]:
    """Write a rule for the communicators with a name in this program, and return the variables that use it."""
    with closing(sqlite3.connect(mpi.run(5, argv).profile)) as connection:
        written = write_family_rules(connection, [choice(connection, name, 2)], "Open MPI v4.1.4")
    file.write_text(written.files[RULES])
    return {"COMMLENS_TUNE": str(file), "COMMLENS_MATRIX": "all", **DYNAMIC}


def verdicts_of(profile: Path) -> list[str]:
    """Return the algorithms of the lines of `commlens algorithms`."""
    said = CliRunner().invoke(commlens, ["algorithms", str(profile), "--format", "json"])
    return [line["verdict"].split(" (")[0] for line in json.loads(said.output)["lines"]]


@pytest.mark.parametrize("how", ["", "part", "merge"])
def test_a_communicator_made_inside_a_tuned_creation_is_not_tuned(mpi: Mpi, tmp_path: Path, how: str) -> None:
    """By a procedure that a rule may name, on all ranks or on a part of them, and by one that no rule names."""
    if mpi.family != "openmpi":
        pytest.skip("only Open MPI chooses per communicator")
    program = mpi.compile("tune_inside.c")
    env = rule_for(mpi, [program, how], "outer", tmp_path / "rules")
    result = mpi.run(5, [program, how], env)
    assert result.rc == 0, result
    verdicts = sorted(verdicts_of(result.profile))
    assert verdicts[0].startswith("linear")
    assert verdicts[1:] == ["pairwise"]


def test_nothing_is_tuned_while_an_idup_is_not_finished_on_some_rank(mpi: Mpi, tmp_path: Path) -> None:
    """Rank 0 has not waited for it: all ranks leave the first communicator alone, and tune the second."""
    if mpi.family != "openmpi":
        pytest.skip("only Open MPI chooses per communicator")
    program = mpi.compile("tune_pending.c")
    result = mpi.run(5, [program], rule_for(mpi, [program], "first", tmp_path / "rules"))
    assert result.rc == 0, result
    first, second = verdicts_of(result.profile)
    assert first.startswith("linear")
    assert second == "pairwise"
    assert result.stderr.count("COMMLENS_TUNE: a communicator is not tuned: its ranks create it") == 1


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("COMMLENS_TUNE=other", "not all ranks can use the same rules"),
        ("COMMLENS_TUNE=none", "not all ranks can use the same rules"),
        ("COMMLENS_TUNE=", "not all ranks run with commlens and COMMLENS_TUNE"),
    ],
    ids=["other rules", "no such file", "no rules"],
)
def test_no_rank_uses_rules_that_one_rank_does_not_have(
    mpi: Mpi, tmp_path: Path, given: str, why: str
) -> None:
    """Rank 1 has others, or none. One rank says so; without rules on rank 1, after 10 s in which rank 0 waits for it."""
    if mpi.family != "openmpi":
        pytest.skip("only Open MPI chooses per communicator")
    program = mpi.compile("tune_families.c")
    file = tmp_path / "rules"
    file.write_text(rules(mpi, program))
    (tmp_path / "other").write_text(file.read_text() + "# another digest\n")
    name, _, value = given.partition("=")
    own = f"{name}={tmp_path / value if value else ''}"
    script = f'if [ $OMPI_COMM_WORLD_RANK = 1 ]; then export {own}; fi; exec "$@"'
    env = {"COMMLENS_TUNE": str(file), "COMMLENS_MATRIX": "all", **DYNAMIC}
    result = mpi.run(3, ["sh", "-c", script, "sh", program], env, mode="preload")
    assert result.rc == 0, result
    assert result.stderr.count("COMMLENS_TUNE: communicators are not tuned: ") == 1, result
    assert why in result.stderr
    assert all(verdict.startswith("linear") for verdict in verdicts_of(result.profile))


def test_two_proc_is_refused_for_more_processes(mpi: Mpi) -> None:
    with closing(sqlite3.connect(mpi.run(3, [mpi.compile("tune_families.c")]).profile)) as connection:
        two = choice(connection, "first", 5)
        two = dataclasses.replace(two, candidate=Candidate(5, "two_proc"))
        written = write_family_rules(connection, [two], "Open MPI v4.1.4")
    assert [reason for _, reason in written.refused] == ["two_proc is for communicators of two processes"]


def test_on_several_nodes_a_rule_switches_han_off_for_its_family(mpi: Mpi, tmp_path: Path) -> None:
    """From Open MPI 5 on, coll/han comes before a rule for some collectives, and all of them must have one."""
    if mpi.family != "openmpi":
        pytest.skip("only Open MPI chooses per communicator")
    hosts = Hosts(mpi.fresh("several"), 2, 3)
    program = mpi.compile("tune_nodes.c")
    told = {"COMMLENS_MATRIX": "all", **DYNAMIC}
    plain = run_on(mpi, hosts, program, env=told, everywhere=told)
    library = f"Open MPI v{mpi.release}"
    with closing(sqlite3.connect(plain.profile)) as connection:
        ring = choice(connection, "first", 4, "allgather")
        written = make_rules(connection, [ring], library)
    assert written.kept == [ring]
    has_han = int(mpi.release.split(".")[0]) >= 5
    assert ("coll_han_priority 0\n" in written.files[RULES]) == has_han
    (tmp_path / "rules").write_text(written.files[RULES])
    env = {**told, "COMMLENS_TUNE": str(tmp_path / "rules")}
    result = run_on(mpi, hosts, program, env=env, everywhere=env)
    assert result.rc == 0, result
    verdicts = verdicts_of(result.profile)
    assert verdicts[0] == "ring"
    assert verdicts[1:] == verdicts_of(plain.profile)[1:]
    more = run_on(mpi, hosts, program, "more", env=told, everywhere=told)
    with closing(sqlite3.connect(more.profile)) as connection:
        written = make_rules(connection, [choice(connection, "first", 4, "allgather")], library)
    reasons = [reason for _, reason in written.refused]
    if has_han:
        assert reasons == [
            "on several nodes coll/han comes before a rule by size; without coll/han, other calls would change: MPI_Bcast"
        ]
    else:
        assert reasons == []
