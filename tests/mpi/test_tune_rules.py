# SPDX-License-Identifier: Apache-2.0
"""Rules for communicators of size 4 change them alone, as the messages inside the collectives show."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from harness import Mpi
from launches import Result

from commlens.algorithms._offered import LIBRARIES
from commlens.cli import commlens
from commlens.tune.model import Candidate, Case, Choice
from commlens.tune.rules import write_rules

SIZES = (3, 4, 5, 16)
CHOSEN = {
    # number, what it is named, whether Open MPI finds the rule by the message size
    "allgather": (4, "ring", True),
    "allgatherv": (3, "ring", False),
    "allreduce": (4, "ring", True),
    "alltoall": (2, "pairwise", True),
    "alltoallv": (2, "pairwise", False),
    "barrier": (2, "double_ring", False),
    "bcast": (3, "pipeline", True),
    "exscan": (2, "recursive_doubling", False),
    "gather": (1, "linear", False),
    "reduce": (3, "pipeline", True),
    "reduce_scatter": (3, "ring", False),
    "reduce_scatter_block": (2, "recursive_doubling", True),
    "scan": (2, "recursive_doubling", False),
    "scatter": (1, "linear", False),
}
VARYING = ("allgatherv", "alltoallv", "reduce_scatter")
Key = tuple[str, int, int]
"""Collective, processes and bytes of a block."""


def bins_of(collective: str) -> tuple[int, ...]:
    """Return the bins in which a profile has the blocks of 100 and 1,000 bytes."""
    return (0,) if collective == "barrier" else (-1,) if collective in VARYING else (7, 10)


def ran(result: Result) -> dict[Key, set[str]]:
    """Return the algorithms that ran."""
    assert result.rc == 0, result
    said = CliRunner().invoke(commlens, ["algorithms", str(result.profile), "--format", "json"])
    assert said.exit_code == 0, said.output
    found: dict[Key, set[str]] = {}
    for line in json.loads(said.output)["lines"]:
        key = (line["collective"], line["ranks"], line["block"])
        found[key] = set(line["verdict"].removeprefix("ambiguous: ").split(" or "))
    return found


def test_rules_for_size_four_change_no_other_communicator_or_message_size(mpi: Mpi) -> None:
    if mpi.family != "openmpi":
        pytest.skip("only Open MPI shows the messages inside collectives")
    assert CHOSEN.keys() == LIBRARIES["openmpi"].rules.keys()
    cases = [Case(size, "", name, size, bin, 0) for name in CHOSEN for size in SIZES for bin in bins_of(name)]
    choices = [
        Choice(case, Candidate(number, name), 2.0, 1.0, -0.5, -0.6, -0.4, 9)
        for case in cases
        if case.comm_size == 4
        for number, name, by_size in [CHOSEN[case.collective]]
        if case.bin == 7 or not by_size
    ]
    rules = write_rules(choices, f"Open MPI v{mpi.release}", [(size, size) for size in SIZES], cases)
    assert (len(rules.kept), rules.refused) == (len(choices), [])
    folder = mpi.fresh("rules")
    for name, text in rules.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    variables = {name: value.format(folder=folder) for name, value in rules.variables.items()}
    program = mpi.compile("rules.c")
    default = ran(mpi.run(16, [program], {"COMMLENS_MATRIX": "all"}))
    chosen = ran(mpi.run(16, [program], {"COMMLENS_MATRIX": "all", **variables}))
    expected = {
        (name, 4, block)
        for name, (_, _, by_size) in CHOSEN.items()
        for block in ((0,) if name == "barrier" else (100,) if by_size else (100, 1000))
    }
    assert len(default) == 4 * (2 * len(CHOSEN) - 1)
    assert {key for key, names in chosen.items() if names != default[key]} == expected
    for name, four, block in expected:
        wanted = CHOSEN[name][1]
        if name == "alltoallv" and mpi.name != "openmpi":
            wanted = "pairwise_with_self"  # since Open MPI 5
        assert any(one.startswith(wanted) for one in chosen[name, four, block]), (
            name,
            chosen[name, four, block],
        )


def test_mpich_takes_the_algorithm_that_a_variable_names(mpi: Mpi) -> None:
    """Recursive doubling needs a power of two of processes: on three, MPICH fails if it may not take another one."""
    if mpi.name not in ("mpich", "mpich5"):
        pytest.skip("rules are written for MPICH")
    cases = [Case(size, "", "allgather", size, bin, 0) for size in SIZES for bin in bins_of("allgather")]
    place = 3 if mpi.name == "mpich" else 4
    choices = [
        Choice(case, Candidate(place, "recursive_doubling"), 2.0, 1.0, -0.5, -0.6, -0.4, 9) for case in cases
    ]
    rules = write_rules(choices, f"MPICH Version:\t{mpi.release}", [(size, size) for size in SIZES], cases)
    assert (len(rules.kept), rules.refused) == (len(choices), [])
    program = mpi.compile("rules.c")
    strict = {"MPIR_CVAR_COLLECTIVE_FALLBACK": "error"}
    ended = [mpi.run(16, [program], env, mode="off").rc == 0 for env in (strict, rules.variables)]
    assert ended == [True, True]
    failed = mpi.run(16, [program], {**strict, **rules.variables}, mode="off")
    assert failed.rc != 0, failed


def test_intel_mpi_takes_the_form_of_its_variable(mpi: Mpi) -> None:
    if mpi.name != "intel":
        pytest.skip("the variable is Intel MPI's")
    case = Case(4, "", "allreduce", 4, 7, 0)
    choices = [Choice(case, Candidate(2, "Rabenseifner's"), 2.0, 1.0, -0.5, -0.6, -0.4, 9)]
    rules = write_rules(choices, "Intel(R) MPI Library 2021.18", [(size, size) for size in SIZES])
    ((name, value),) = rules.variables.items()
    program = mpi.compile("rules.c")
    said = [
        mpi.run(16, [program], {"I_MPI_DEBUG": "6", name: text}, mode="off") for text in (value, f"{value};x")
    ]
    assert [one.rc for one in said] == [0, 0], said
    assert ["will be ignored" in one.stdout + one.stderr for one in said] == [False, True]
