# SPDX-License-Identifier: Apache-2.0
"""Programs with one hidden fault: the line at the end of the run and the report name it; a healthy one has no finding.

The faults are far beyond the thresholds, because work is sleep and a busy machine adds to every time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

import pytest
from harness import TRIES, Mpi, commlens
from launches import Result

PROGRAM = "faults_to_find.c"

FAULTS = {
    "late": (
        3,
        5,
        r"rank 1 spends .* outside MPI, the others only .* on average; the others wait for rank 1 in MPI_Allreduce{}",
    ),
    "chain": (
        4,
        1,
        r"ranks 0 to 3 work one after another: time in MPI_Recv changes by \d+ ms from rank to rank{}; on average [01]\.\d of 4 "
        r"ranks work at a time",
    ),
    "tiny": (
        2,
        2,
        r"\d[\d,]*0,000 calls of MPI_Alltoall with 8-15 B on s0\.1{}, \d.* [nµ]s each, take \d\d\.\d % of the time",
    ),
    "uneven": (
        4,
        15,
        r"rank 1 arrives last in MPI_Barrier on s1\.1{}: the other members spend .* in it on average, rank 1 .*",
    ),
    "loop": (2, 1_000, r"all ranks call MPI_Comm_dup 1,000 times each{}, which takes .* % of the time"),
    "turns": (
        4,
        40,
        r"ranks spend .* on average in 40 barriers{}; no rank is always the last, so they wait in turns",
    ),
    "steps": (
        4,
        40,
        r"\d\d\.\d % of the time of MPI_Allreduce is waiting, .* per rank: they wait for each other in turns, no rank "
        r"causes more than \d\d\.\d % of the delay",
    ),
    "root": (
        4,
        40,
        r"rank 0 arrives last in \d+\.\d % of the calls of MPI_Bcast on MPI_COMM_WORLD: the ranks that need it wait .* "
        r"for it alone, because it comes late out of other MPI calls",
    ),
    "sender": (
        4,
        40,
        r"rank 1 sends late: the other ranks together wait .* for it, longest in MPI_Recv; rank 1 itself waits .* for them",
    ),
    "polling": (
        3,
        4,
        r"rank 0 calls MPI_Iprobe [\d,]+ times{}, which takes (?:\d\d\.\d|100\.0) % of its time",
    ),
}
"""Number of ranks, repeats or seconds, and the sentence, with braces where the call site is."""


def explained(result: Result) -> list[str]:
    """Return what `commlens explain` finds."""
    done = commlens("explain", "--format", "json", result.profile)
    assert done.returncode == 0, done
    return [str(one["finding"]) for one in json.loads(done.stdout)]


def one_run_shows(
    mpi: Mpi, ranks: int, arguments: Sequence[object], is_right: Callable[[list[str], str], bool]
) -> None:
    """Run the program until `is_right` holds of its findings and of the line at its end, at most TRIES times."""
    for _ in range(TRIES):
        result = mpi.run(ranks, [mpi.compile(PROGRAM), *map(str, arguments)], timeout=120)
        assert result.rc == 0, result
        (line,) = result.summary
        found = explained(result)
        if is_right(found, line):
            return
    pytest.fail(f"{found}, {line}")


@pytest.mark.dealt
@pytest.mark.parametrize("fault", FAULTS)
def test_a_hidden_fault_is_the_first_finding(mpi: Mpi, fault: str) -> None:
    ranks, repeats, sentence = FAULTS[fault]
    site = rf" at faults_to_find\.c:\d+ in {fault}"

    def is_first(found: list[str], line: str) -> bool:
        in_line = re_match(r"commlens: \d+\.\d % of the time in MPI: " + sentence, "", line)
        return in_line and found != [] and re_match(sentence, site, found[0])

    one_run_shows(mpi, ranks, (fault, repeats), is_first)


def test_a_rank_that_serves_all_others_is_found(mpi: Mpi) -> None:
    # Rank 0 also works longest: which of the two sentences is first is a matter of milliseconds.
    sentence = (
        r"100\.0 % of all messages go to or from rank 0, which is busy: the other ranks spend .* on average in MPI_Recv{}, "
        r"rank 0 .*"
    )
    site = r" at faults_to_find\.c:\d+ in serves"
    one_run_shows(
        mpi, 8, ("serves", 40), lambda found, _: any(re_match(sentence, site, text) for text in found[:2])
    )


def test_a_communicator_that_is_slower_than_its_siblings_is_found(mpi: Mpi) -> None:
    """Its members are late in turns, which costs about as much: which of the two sentences is first is chance."""
    sentences = (
        r"s4\.1 takes \d.* ms per call of MPI_Allreduce with 8-15 B, the other 2 communicators of s\*\.1 take .*",
        r"\d\d\.\d % of the time of MPI_Allreduce on s\*\.1 is waiting, .* per rank: they wait for each other in turns, .*",
    )
    site = r" at faults_to_find\.c:\d+ in slow"

    def are_first(found: list[str], line: str) -> bool:
        both = all(any(re_match(sentence, site, text) for text in found[:2]) for sentence in sentences)
        return both and line.endswith(f"in MPI: {found[0]}")

    one_run_shows(mpi, 6, ("slow", 40), are_first)


def re_match(sentence: str, site: str, text: object) -> bool:
    """Return whether `text` is this sentence, with or without the call site."""
    return re.fullmatch(sentence.replace("{}", site), str(text)) is not None


def test_a_healthy_program_has_no_finding(mpi: Mpi) -> None:
    bare = re.compile(r"commlens: <?\d+\.\d % of the time in MPI")
    one_run_shows(
        mpi, 4, ("healthy", 15), lambda found, line: found == [] and bare.fullmatch(line) is not None
    )


def test_the_line_at_the_end_of_a_short_run_has_no_finding(mpi: Mpi) -> None:
    bare = re.compile(r"commlens: \d+\.\d % of the time in MPI")
    one_run_shows(mpi, 2, ("late", 1), lambda _, line: bare.fullmatch(line) is not None)


def test_without_messages_there_is_no_line(mpi: Mpi) -> None:
    result = mpi.run(2, [mpi.compile(PROGRAM), "late", "1"], {"COMMLENS_QUIET": "1"})
    assert (result.rc, result.said, result.summary) == (0, [], [])
