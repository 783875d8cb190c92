# SPDX-License-Identifier: Apache-2.0
"""Rules change the chosen cases and no others, as a model of the library's parser says."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from commlens.algorithms._offered import LIBRARIES
from commlens.base.errors import CommlensError
from commlens.selection.sizes import BinRange
from commlens.tune.model import Candidate, Case, Choice
from commlens.tune.rules import RuleSet, intel, page, write_rules
from commlens.tune.rules.openmpi_model import parse, select

OPEN_MPI = "Open MPI v4.1.4, package: Debian"
MPICH = "MPICH Version:\t4.0.2"
INTEL = "Intel(R) MPI Library 2021.18.1 for Linux* OS"
FACTS = LIBRARIES["openmpi"].rules


def choice(
    collective: str, size: int, bin: int, candidate: Candidate, family: int = 1, name: str = "rows"
) -> Choice:
    case = Case(family, name, collective, size, bin, 0)
    return Choice(case, candidate, 2000.0, 1500.0, -0.25, -0.3, -0.2, 40)


def test_a_rule_lies_between_rules_with_the_default() -> None:
    ring = Candidate(4, "ring", 1024)
    rules = write_rules([choice("allgather", 4, 7, ring)], OPEN_MPI, [(0, 16), (1, 4), (2, 3), (3, 5)])
    assert not rules.refused
    assert rules.variables == {
        "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
        "OMPI_MCA_coll_tuned_dynamic_rules_filename": "{folder}/openmpi.rules",
    }
    assert rules.files["openmpi.rules"].splitlines() == [
        "# Written by commlens tune.",
        "1  # collectives",
        "0  # allgather",
        "3  # communicator sizes",
        "0 1  # processes, rules: bytes, algorithm, fan, segment",
        "0 0 0 0",
        "4 3  # processes, rules: bytes, algorithm, fan, segment",
        "0 0 0 0",
        "256 4 4 1024",
        "512 0 0 0",
        "5 1  # processes, rules: bytes, algorithm, fan, segment",
        "0 0 0 0",
    ]


def test_the_model_reads_a_file_as_open_mpi_does() -> None:
    """The first size counts for smaller communicators, the nearest lower one for others."""
    table = parse("# two\n1\n3 2\n 4 2\n0 1 0 0\n0x10 2 0 010 # hexadecimal, octal\n8 1\n0 3 0 0\n")
    found = [
        select(table, 3, size, bytes)[::2] for size, bytes in ((2, 15), (4, 16), (7, 99), (8, 0), (99, 99))
    ]
    assert found == [(1, 0), (2, 8), (2, 8), (3, 0), (3, 0)]
    assert select(table, 2, 4, 16) == (0, 0, 0)


@pytest.mark.parametrize(
    "text", ["", "1\n", "1\n22 0\n", "1\n3 1\n4 1\n1 2 0 0\n", "1\n3 1\n4 1\n0 -2 0 0\n"]
)
def test_the_model_refuses_what_open_mpi_ignores(text: str) -> None:
    with pytest.raises(CommlensError, match="would ignore"):
        parse(text)


@pytest.mark.parametrize("seed", range(40))
def test_random_choices_change_no_other_case(seed: int) -> None:
    """An oracle that looks at each message size itself: its bin has a choice, or the library's own one counts."""
    random_ = random.Random(seed)
    by_bytes = sorted(name for name, (_, meaning) in FACTS.items() if meaning in ("block", "blocks"))
    wanted: dict[tuple[str, int, int], Candidate] = {}
    for _ in range(random_.randint(1, 12)):
        key = (random_.choice(by_bytes), random_.randint(2, 9), random_.randint(0, 20))
        wanted[key] = Candidate(random_.randint(1, 4), "any", random_.choice([0, 4096]))
    comms = [(size, size) for size in range(1, 12)]
    chosen = [choice(name, size, bin, one, family=size) for (name, size, bin), one in wanted.items()]
    rules = write_rules(chosen, OPEN_MPI, comms)
    assert len(rules.kept) == len(chosen)
    table = parse(rules.files["openmpi.rules"])
    for collective, (number, meaning) in FACTS.items():
        for size in range(1, 40):
            for message in {
                0,
                *(random_.randint(0, 1 << 21) for _ in range(20)),
                *(1 << bin for bin in range(22)),
            }:
                one = wanted.get((collective, size, message.bit_length()), Candidate())
                bytes = message * size if meaning == "blocks" else message
                assert select(table, number, size, bytes)[::2] == (one.number, one.segment_bytes)


def test_a_rule_without_a_message_size_needs_the_same_choice_for_all_calls() -> None:
    linear, binomial = Candidate(1, "basic_linear"), Candidate(2, "binomial")
    chosen = [choice("gather", 4, 3, binomial), choice("gather", 4, 9, binomial)]
    comms = [(1, 4)]
    cases = [one.case for one in chosen]
    assert len(write_rules(chosen, OPEN_MPI, comms, cases).kept) == 2
    other = Case(1, "rows", "gather", 4, 12, 0)
    for left in (write_rules(chosen, OPEN_MPI, comms), write_rules(chosen, OPEN_MPI, comms, [*cases, other])):
        assert (left.files, left.kept, len(left.refused)) == ({}, [], 2)
        assert "compute differently" in left.refused[0][1]
    mixed = [chosen[0], choice("gather", 4, 9, linear)]
    assert not write_rules(mixed, OPEN_MPI, comms, cases).kept
    barrier = choice("barrier", 4, 0, Candidate(4, "bruck"))
    assert (
        write_rules([barrier, choice("alltoallv", 4, -1, Candidate(2, "pairwise"))], OPEN_MPI, comms).refused
        == []
    )


def test_families_of_equal_size_need_the_same_choice() -> None:
    ring, bruck = Candidate(4, "ring"), Candidate(2, "bruck")
    alone = write_rules([choice("allgather", 4, 7, ring)], OPEN_MPI, [(1, 4), (2, 4)])
    assert "other communicators of size 4" in alone.refused[0][1]
    silent = write_rules([one := choice("allgather", 4, 7, ring)], OPEN_MPI, [(1, 4), (2, 4)], [one.case])
    assert silent.kept == [one]
    calls = [one.case, Case(2, "rows", "allgather", 4, 7, 0)]
    assert not write_rules([one], OPEN_MPI, [(1, 4), (2, 4)], calls).kept
    chosen = [choice("allgather", 4, 7, ring), choice("allgather", 4, 7, bruck, family=2)]
    different = write_rules(chosen, OPEN_MPI, [(1, 4), (2, 4)])
    assert [reason for _, reason in different.refused] == [
        "communicators of size 4 have different choices"
    ] * 2
    same = write_rules([chosen[0], choice("allgather", 4, 7, ring, family=2)], OPEN_MPI, [(1, 4), (2, 4)])
    assert len(same.kept) == 2 and not same.refused


def test_what_would_fail_or_is_unknown_is_refused() -> None:
    two = Candidate(6, "two_proc")
    assert "more than two" in write_rules([choice("allgather", 4, 7, two)], OPEN_MPI, [(1, 4)]).refused[0][1]
    assert len(write_rules([choice("allgather", 2, 7, two)], OPEN_MPI, [(1, 2)]).kept) == 1
    for library, reason in (
        ("Open MPI v6.0.0", "not compared"),
        ("Intel(R) MPI Library 2021.18", "counts for all calls"),
        ("MPI of tomorrow 1.0", "no rules for this MPI library"),
    ):
        ((_, why),) = write_rules([choice("allgather", 2, 7, two)], library, [(1, 2)]).refused
        assert reason in why


def test_the_variable_of_mpich_needs_the_same_choice_everywhere() -> None:
    ring = Candidate(4, "ring")
    chosen = [choice("allgather", 4, 7, ring), choice("allgather", 2, 8, ring, family=2)]
    cases = [one.case for one in chosen]
    rules = write_rules(chosen, MPICH, [(0, 1), (1, 4), (2, 2)], cases)
    assert rules.variables == {"MPIR_CVAR_ALLGATHER_INTRA_ALGORITHM": "ring"}
    assert len(rules.kept) == 2
    assert len(write_rules(chosen, MPICH, [(1, 4), (2, 2), (3, 9)], cases).kept) == 2
    other = Case(3, "rows", "allgather", 9, 7, 0)
    for comms, known in (([(1, 4), (2, 2), (3, 9)], [*cases, other]), ([(1, 4), (2, 2)], [])):
        left = write_rules(chosen, MPICH, comms, known)
        assert (left.variables, left.kept, len(left.refused)) == ({}, [], 2)


def test_mpich_broadcasts_on_the_communicator_itself() -> None:
    """Inside machines, and between them, its own algorithms would come before the chosen one."""
    chosen = [choice("bcast", 4, 7, Candidate(1, "binomial"))]
    rules = write_rules(chosen, MPICH, [(1, 4)], [chosen[0].case])
    assert rules.variables == {
        "MPIR_CVAR_BCAST_INTRA_ALGORITHM": "binomial",
        "MPIR_CVAR_BCAST_POSIX_INTRA_ALGORITHM": "mpir",
        "MPIR_CVAR_BCAST_COMPOSITION": "3",
    }


def intel_rules(*chosen: Choice, others: Sequence[Case] = ()) -> RuleSet:
    return write_rules(chosen, INTEL, [], [*(one.case for one in chosen), *others])


@pytest.mark.parametrize(
    ("collective", "calls", "value"),
    [
        ("bcast", {(4, 7): 3, (2, 9): 3}, "3"),
        ("allreduce", {(4, 7): 8, (2, 0): 2}, "2:0-63;8:64-2147483647"),
        ("allreduce", {(4, 7): 8, (4, 8): 8, (2, 9): 8, (2, 11): 1}, "8:0-1023;1:1024-2147483647"),
        ("allreduce", {(4, 7): 8, (2, 7): 2}, "2:0-2147483647@0-3;8:0-2147483647@4-2147483647"),
        ("reduce_scatter", {(2, -1): 1, (5, -1): 3}, "1:0-2147483647@0-4;3:0-2147483647@5-2147483647"),
    ],
)
def test_the_variable_of_intel_mpi_contains_all_sizes(
    collective: str, calls: dict[tuple[int, int], int], value: str
) -> None:
    """One algorithm for all, or ranges without a gap of either bytes or processes."""
    rules = intel_rules(
        *(
            choice(collective, size, bin, Candidate(k, f"preset {k}"), family=size)
            for (size, bin), k in calls.items()
        )
    )
    assert rules.variables == {f"I_MPI_ADJUST_{collective.upper()}": value}
    assert (len(rules.kept), rules.refused) == (len(calls), [])
    ranges = intel.parse(value)
    for (size, bin), k in calls.items():
        low, high = BinRange(bin, bin).bounds if bin >= 0 else (0, 0)
        assert {intel.select(ranges, size, bytes) for bytes in (low, high or low)} == {k}


def test_intel_mpi_leaves_no_call_to_its_own_choice() -> None:
    """A call of the profile without a choice, or choices that ranges cannot tell apart, refuse all of the collective."""
    one, two = Candidate(1, "preset 1"), Candidate(2, "preset 2")
    for rules, reason in (
        (
            intel_rules(choice("allreduce", 4, 7, one), others=[Case(2, "rows", "allreduce", 4, 7, 64)]),
            intel.NOT_ALL,
        ),
        (
            intel_rules(choice("allreduce", 4, 7, one), others=[Case(1, "W0.0", "allreduce", 4, 8, 128)]),
            intel.NOT_ALL,
        ),
        (intel_rules(choice("bcast", 4, 7, one), choice("bcast", 4, 8, two)), intel.NOT_APART),
        (
            intel_rules(
                choice("allreduce", 4, 7, one),
                choice("allreduce", 4, 8, two),
                choice("allreduce", 2, 7, two, family=2),
            ),
            intel.NOT_APART,
        ),
        (
            intel_rules(choice("allreduce", 4, 7, one), choice("allreduce", 4, 7, two, family=2)),
            intel.NOT_APART,
        ),
    ):
        assert (rules.variables, rules.kept) == ({}, [])
        assert {why for _, why in rules.refused} == {reason}


@pytest.mark.parametrize(
    "value",
    ["x", "-1", "2:64-127@4-4", "2:0-63", "2:0-63;3:65-2147483647", "2:0-64;3:64-2147483647",
     "2:0-63@0-3;3:64-2147483647@4-2147483647"],
)  # fmt: skip
def test_a_value_of_intel_mpi_that_counts_otherwise_is_refused(value: str) -> None:
    with pytest.raises(CommlensError, match="Intel MPI"):
        intel.parse(value)


def test_the_page_says_why_and_no_name_can_break_it() -> None:
    name = "rows | <b>`x`\n# \x1b[m"
    chosen = [
        choice("allgather", 4, 7, Candidate(4, "ring"), name=name),
        choice("gather", 4, 7, Candidate(1, "l")),
    ]
    rules = write_rules(chosen, OPEN_MPI, [(1, 4)])
    text = page(rules, OPEN_MPI, Path("/tmp/it's here"))
    shown = "rows &#124; &#60;b&#62;&#96;x&#96;&#92;n# &#92;x1b&#91;m"
    numbers = "2.00 µs | 1.50 µs | -25.0 % | -30.0 to -20.0 % | 40"
    assert f"| {shown} | 4 | MPI_Allgather | 64 to 127 | 4 ring | {numbers} |" in text.splitlines()
    assert "    export OMPI_MCA_coll_tuned_dynamic_rules_filename='/tmp/it'\\''s here/openmpi.rules'" in text
    assert "| MPI_Gather |" in text and "compute differently" in text
    assert "\x1b" not in text
    assert "for communicators of its size only" in text
    barrier = [choice("barrier", 4, 0, Candidate(3, "dissemination"))]
    assert "all communicators and message sizes" in page(
        write_rules(barrier, MPICH, [(1, 4)]), MPICH, Path("/tmp")
    )
    assert "leave the library's own choice" in page(write_rules([], OPEN_MPI, []), OPEN_MPI, Path("/tmp"))
