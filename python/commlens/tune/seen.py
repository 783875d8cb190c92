# SPDX-License-Identifier: Apache-2.0
"""Whether rules really change the algorithm: one run with them that measures the messages inside collectives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from commlens.algorithms.recognise import SENDS_NOTHING, UNKNOWN, recognise
from commlens.algorithms.text import algorithm_text
from commlens.base.errors import CommlensError
from commlens.compare.text import bin_text
from commlens.overhead.legs import commlens_tool, find_stopwatch
from commlens.overhead.measure import run_once, scratch
from commlens.profile import open_profile
from commlens.tune.candidates import is_openmpi
from commlens.tune.model import Case, Choice
from commlens.tune.proof import ENDINGS, remove

INSIDE = "inside"
"""Folder of the profiles of these runs."""

Key = tuple[str, str, int, int]
"""Name of the family, procedure, size of the communicator, and size bin."""
Seen = dict[Key, set[str]]


def seen_lines(
    choices: Sequence[Choice],
    variables: Mapping[str, str],
    library: str,
    profile: str,
    launch: Sequence[str],
    folder: Path,
) -> list[str]:
    """Return which algorithm ran without and with the rules, a line for each; or why this cannot be told.

    The profile tells what ran without the rules, if it has the messages inside collectives; otherwise another run does.

    Parameters
    ----------
    choices : those that have a rule
    variables : those that make a job use the rules
    folder : of the proof
    """
    if not is_openmpi(library):
        return ["which algorithms ran cannot be seen: only Open MPI shows the messages inside collectives"]
    names = sorted({f"MPI_{choice.case.collective.capitalize()}" for choice in choices})
    try:
        before = read_seen(profile, names) or read_seen(run(launch, folder, "without", {}), names)
        after = read_seen(run(launch, folder, "with", variables), names)
    except CommlensError as error:
        return [f"which algorithms ran cannot be seen: {error.message}"]
    return [seen_line(choice.case, before, after) for choice in choices]


def run(launch: Sequence[str], folder: Path, name: str, variables: Mapping[str, str]) -> str:
    """Run the application once with the messages inside collectives; return the profile, which is kept.

    It gets its name when the run has ended: an interrupted one leaves a profile of a part of the calls.
    """
    place = (folder / INSIDE).absolute()
    for ending in ENDINGS:
        if (place / f"{name}{ending}").exists():
            return str(place / f"{name}{ending}")
    place.mkdir(parents=True, exist_ok=True)
    unfinished = [place / f"{name}.unfinished{ending}" for ending in ENDINGS]
    for path in unfinished:
        remove(path)
    settings = {
        "COMMLENS_OUTPUT": str(unfinished[0]).replace("%", "%%"),
        "COMMLENS_MATRIX": "all",
        **variables,
    }
    with scratch() as times:
        run_once(commlens_tool(INSIDE, settings), launch, find_stopwatch(), times / "1", 1, 1)
    for path, ending in zip(unfinished, ENDINGS):
        if path.exists():
            return str(path.rename(place / f"{name}{ending}"))
    raise CommlensError("the run wrote no profile")


def read_seen(profile: str, names: Sequence[str]) -> Seen:
    """Return the algorithms of these procedures; empty if the messages inside collectives were not measured."""
    found: Seen = {}
    with open_profile(profile) as connection:
        families = dict(connection.execute("SELECT family, name FROM family").fetchall())
        try:
            lines = recognise(connection, (), names).lines
        except CommlensError:  # a profile without messages
            return {}
    for line in lines:
        for bin in line.bins:
            key = (families.get(line.where[0].family, ""), line.procedure, line.where[0].size, bin)
            found.setdefault(key, set()).add(algorithm_text(line))
    return found


def seen_line(case: Case, before: Seen, after: Seen) -> str:
    """Return which algorithm ran in a case without and with its rule.

    >>> case = Case(1, "d0.1", "allgather", 8, 19, 300000)
    >>> key = ("d0.1", "MPI_Allgather", 8, 19)
    >>> seen_line(case, {key: {"ring"}}, {key: {"sparbit"}})
    'MPI_Allgather 256-512 KiB on d0.1, 8 ranks: ring before, sparbit after (seen below MPI)'
    >>> seen_line(case, {key: {"ring"}}, {key: {"ring"}})
    'MPI_Allgather 256-512 KiB on d0.1, 8 ranks: ring before and after, so that the rule does not count (seen below MPI)'
    >>> seen_line(case, {key: {"unknown"}}, {})
    'MPI_Allgather 256-512 KiB on d0.1, 8 ranks: the algorithm cannot be told'
    """
    operation = f"MPI_{case.collective.capitalize()}"
    key = (case.communicator, operation, case.comm_size, case.bin)
    first, second = (" and ".join(sorted(seen.get(key, ()))) for seen in (before, after))
    name = f"{operation} {bin_text(case.bin)} on {case.communicator}, {case.comm_size:,} ranks"
    if not is_told(first) and not is_told(second):
        return f"{name}: the algorithm cannot be told"
    if first != second:
        first, second = (text if is_told(text) else "unknown" for text in (first, second))
        return f"{name}: {first} before, {second} after (seen below MPI)"
    if first.startswith("ambiguous"):
        return f"{name}: {first} before and after (seen below MPI): whether it changed cannot be told"
    return f"{name}: {first} before and after, so that the rule does not count (seen below MPI)"


def is_told(text: str) -> bool:
    """Whether a verdict names an algorithm, or several that send the same messages."""
    return bool(text) and text != SENDS_NOTHING and not text.startswith(UNKNOWN)
