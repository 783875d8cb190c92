# SPDX-License-Identifier: Apache-2.0
"""Rules for MPICH change exactly the calls that they name, to exactly the algorithm that a variable chooses."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from harness import Mpi

from commlens.algorithms._offered import LIBRARIES
from commlens.algorithms.offered import library_of, offered
from commlens.tune.candidates import settings_of
from commlens.tune.model import Candidate, Case, Choice
from commlens.tune.rules import RuleSet, write_rules
from commlens.tune.rules.mpich_tables import TABLES, read_library

RANKS, RULED = 5, 4  # processes of the job, and of the communicators with rules
SIZES = tuple(8**i for i in range(1, 7))
COLLECTIVES = (
    "barrier", "bcast", "gather", "scatter", "allgather", "allgatherv", "alltoall", "reduce", "allreduce",
    "reduce_scatter", "reduce_scatter_block",
)  # fmt: skip
REDUCTIONS = ("reduce", "allreduce", "reduce_scatter", "reduce_scatter_block")
NO_DELAY = {"MPIR_CVAR_POSIX_NUM_COLLS_THRESHOLD": "0"}
"""MPICH 5 uses shared memory from the fifth call on, so that a signature would depend on the calls before."""
NETWORK = {"MPIR_CVAR_NOLOCAL": "1"}
Signatures = dict[tuple[str, int, int], str]


def mpich_only(mpi: Mpi) -> str:
    """Return the first line of MPI_Get_library_version."""
    if mpi.name not in ("mpich", "mpich5"):
        pytest.skip("only MPICH has these tables")
    return f"MPICH Version: {mpi.release}"


def module_of(mpi: Mpi) -> str:
    """Return the file of the MPI library."""
    linked = subprocess.run(["ldd", mpi.compile("chosen.c")], capture_output=True, text=True, check=True)
    path = re.search(r"libmpi(?:ch)?\.so\S* => (\S+)", linked.stdout)
    assert path is not None, linked.stdout
    return path[1]


def signatures(mpi: Mpi, collectives: Sequence[str], settings: Mapping[str, str]) -> Signatures:
    """Return what the program prints."""
    sends = mpi.compile("netmod_sends.c", None, "-ldl", shared=True)
    command: list[str | Path] = [mpi.compile("chosen.c", None, "-ldl"), *collectives]
    done = mpi.run(RANKS, command, settings, mode="off", preload=[sends])
    assert done.rc == 0, done
    lines = [line.split() for line in done.stdout.splitlines()]
    found = {(name, int(size), int(bytes)): signature for name, size, bytes, signature in lines}
    assert len(found) == len(collectives) * (RANKS - 1) * len(SIZES)
    return found


def choice(collective: str, bytes: int, candidate: Candidate) -> Choice:
    bin = {"barrier": 0}.get(
        collective, -1 if collective.endswith(("v", "reduce_scatter")) else bytes.bit_length()
    )
    case = Case(1, "W0.0", collective, RULED, bin, bytes)
    return Choice(case, candidate, 2000.0, 1000.0, -0.5, -0.6, -0.4, 40)


def tried(library: str, collective: str) -> list[Candidate]:
    """Return the algorithms for a signature to tell apart: not those that call other collectives, or need more.

    Algorithms whose parameters the tables of this release do not accept are left out, too.
    """
    offer, known = offered(library, collective), library_of(library)
    assert offer is not None and known is not None
    found = []
    for number, name in enumerate(offer.names, 1):
        needs = TABLES[collective].needs.get(name, ())
        too_old = known[1] < TABLES[collective].since.get(name, (0, 0))
        if (
            name not in ("smp", "ccl")
            and not too_old
            and not {
                "is_op_built_in=yes",
                "is_sendbuf_inplace=yes",
                "is_block_regular=yes",
            }
            & set(needs)
        ):
            found.append(Candidate(number, name))
    return found


def forced(library: str, chosen: Mapping[str, Candidate]) -> dict[str, str]:
    """Return the variables with which the replay measures candidates, by collective."""
    found = {}
    for collective, candidate in chosen.items():
        case = Case(1, "W0.0", collective, RULED, 4, 8)
        for name, value in settings_of(library, case, candidate):
            shown = str(value)
            offer = offered(library, collective)
            if offer is not None and name == offer.variable:
                shown = offer.names[value - 1]
            found[name.removeprefix("?")] = "mpir" if "_POSIX_" in name else shown
    return found


def in_folder(rules: RuleSet, folder: Path) -> dict[str, str]:
    """Store the files of the rules; return the variables."""
    for name, text in rules.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return {name: value.replace("{folder}", str(folder)) for name, value in rules.variables.items()}


@pytest.mark.parametrize("network", [True, False])
def test_rules_change_exactly_their_calls(mpi: Mpi, tmp_path: Path, network: bool) -> None:
    """Where a size has a rule, the signature is that of the algorithm forced by variables; elsewhere the library's own.

    Over the network, the messages of each rank count, too. Inside a machine, only the order of reductions is seen.
    """
    library = mpich_only(mpi)
    collectives = COLLECTIVES if network else REDUCTIONS
    settings = {**NO_DELAY, **(NETWORK if network else {})}
    own = signatures(mpi, collectives, settings)
    candidates = {name: tried(library, name) for name in collectives}
    by_variable = []
    for k in range(max(map(len, candidates.values()))):
        one = {name: some[k % len(some)] for name, some in candidates.items()}
        by_variable.append(signatures(mpi, collectives, {**settings, **forced(library, one)}))
    choices, wanted = [], dict(own)
    for name, some in candidates.items():
        for k, bytes in enumerate(SIZES):
            number = 0 if TABLES[name].bytes == "none" else k % len(some)
            choices.append(choice(name, bytes, some[number]))
            wanted[name, RULED, bytes] = by_variable[number][name, RULED, bytes]
    rules = write_rules(choices, library, [(1, RULED)], [one.case for one in choices], module_of(mpi))
    assert rules.refused == []
    assert {"mpich.json"} <= rules.files.keys()
    found = signatures(mpi, collectives, {**settings, **in_folder(rules, tmp_path)})
    assert found == wanted
    changed = {name for name, _, _ in own if any(own[key] != found[key] for key in own if key[0] == name)}
    assert changed >= ({"bcast", "allgather", "alltoall"} if network else {"reduce_scatter_block"})


def test_an_algorithm_of_parts_is_chosen_inside_a_machine(mpi: Mpi, tmp_path: Path) -> None:
    """It calls the collective again on a part that is as large; the rule must not count there."""
    library = mpich_only(mpi)
    names = tuple(name for name in ("reduce", "allreduce", "bcast") if "smp" in offered(library, name).names)  # type: ignore[union-attr]
    chosen = {name: Candidate(offered(library, name).names.index("smp") + 1, "smp") for name in names}  # type: ignore[union-attr]
    own = signatures(mpi, names, NO_DELAY)
    for name in names:
        by_variable = signatures(mpi, names, {**NO_DELAY, **forced(library, {name: chosen[name]})})
        rules = write_rules(
            [one := choice(name, 4096, chosen[name])], library, [(1, RULED)], [one.case], module_of(mpi)
        )
        found = signatures(mpi, names, {**NO_DELAY, **in_folder(rules, tmp_path)})
        key = (name, RULED, 4096)
        assert found == {**own, key: by_variable[key]}


def test_calls_that_an_algorithm_cannot_do_keep_their_own(mpi: Mpi, tmp_path: Path) -> None:
    """An algorithm for built-in operations is not used for the program's, nor a rule with MPI_IN_PLACE, which has no size."""
    library = mpich_only(mpi)
    names = ("allreduce", "reduce", "inplace")
    chosen = [
        choice("allreduce", 4096, Candidate(4, "reduce_scatter_allgather")),
        choice("reduce", 4096, Candidate(4, "reduce_scatter_gather")),
        choice("alltoall", 4096, Candidate(1, "brucks")),
    ]
    rules = write_rules(chosen, library, [(1, RULED)], [one.case for one in chosen], module_of(mpi))
    assert len(rules.kept) == 3
    variables = in_folder(rules, tmp_path)
    for settings in (NO_DELAY, {**NO_DELAY, **NETWORK}):
        assert signatures(mpi, names, {**settings, **variables}) == signatures(mpi, names, settings)


def test_the_library_has_a_key_for_each_algorithm_and_composition(mpi: Mpi) -> None:
    library = mpich_only(mpi)
    tables = read_library(Path(module_of(mpi)))
    assert tables is not None and tables.compositions is not None
    for collective, facts in LIBRARIES["mpich"].tables.items():
        for candidate in tried(library, collective):
            where = "allcomm" if candidate.name in ("nb", "linear") else "intra"
            assert f"algorithm=MPIR_{collective.capitalize()}_{where}_{candidate.name}" in tables.keys
        if facts.composition:
            key = f"composition=MPIDI_{collective.capitalize()}_intra_composition_{facts.composition}"
            assert key in tables.keys
