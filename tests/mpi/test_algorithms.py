# SPDX-License-Identifier: Apache-2.0
"""`commlens algorithms` names the algorithm that Open MPI was set to use."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from harness import ROOT, Mpi

from commlens.cli import commlens

CASES = [
    # collective, number of coll_tuned, name, ranks, bytes, root
    ("barrier", 2, "double_ring", 5, 0, 0),
    ("barrier", 4, "dissemination", 6, 0, 0),
    ("bcast", 1, "linear", 6, 200, 2),
    ("bcast", 3, "pipeline", 5, 200, 1),
    ("bcast", 6, "binomial", 9, 2000, 4),
    ("bcast", 9, "scatter_ring", 7, 2000, 3),
    ("reduce", 6, "in_order_binary", 8, 200, 0),
    ("allreduce", 3, "recursive_doubling", 8, 64, 0),
    ("allreduce", 4, "ring", 6, 4096, 0),
    ("gather", 2, "binomial", 7, 100, 5),
    ("gatherv", 0, "linear", 7, 100, 2),
    ("scatter", 1, "linear", 5, 100, 3),
    ("scatter", 2, "binomial", 8, 100, 3),
    ("scatter", 3, "linear_nonblocking", 5, 100, 3),
    ("allgather", 2, "bruck", 7, 100, 0),
    ("allgather", 4, "ring", 5, 100, 0),
    ("alltoall", 2, "pairwise", 4, 100, 0),
    ("alltoall", 3, "bruck", 8, 40, 0),
]


@pytest.mark.parametrize(
    ("collective", "number", "name", "ranks", "size", "root"), CASES, ids=lambda value: str(value)
)
def test_the_algorithm_open_mpi_was_told_to_use_is_named(
    mpi: Mpi, collective: str, number: int, name: str, ranks: int, size: int, root: int
) -> None:
    if mpi.family != "openmpi":
        pytest.skip("only Open MPI shows the messages inside collectives")
    told = ["--mca", "coll_tuned_use_dynamic_rules", "1"]
    if number:
        told += ["--mca", f"coll_tuned_{collective}_algorithm", str(number)]
    result = mpi.run(
        ranks,
        [mpi.compile("algorithms.c"), collective, str(size), str(root)],
        {"COMMLENS_MATRIX": "all"},
        launcher_args=told,
    )
    assert result.rc == 0, result
    said = CliRunner().invoke(commlens, ["algorithms", str(result.profile), "--format", "json"])
    assert said.exit_code == 0, said.output
    (line,) = json.loads(said.output)["lines"]
    names = {one.split(" (")[0] for one in line["verdict"].removeprefix("ambiguous: ").split(" or ")}
    assert names == {name} if collective == "scatter" else name in names
    assert (line["calls"], line["fit"], line["ranks"]) == (10, 1.0, ranks)
    if collective not in ("barrier", "gatherv"):
        assert line["block"] == size
    if collective in ("bcast", "reduce", "gather", "gatherv", "scatter"):
        assert line["roots"] == [{"rank": root, "calls": 10}]


def test_messages_with_a_tag_of_their_own_belong_to_the_call_that_sends_them(mpi: Mpi) -> None:
    """Open MPI's sparbit sends with tags of the range of non-blocking collectives, the same ones for calls of all sizes."""
    if mpi.family != "openmpi" or mpi.major < 5:
        pytest.skip("Open MPI has sparbit since release 5")
    told = ["--mca", "coll_tuned_use_dynamic_rules", "1", "--mca", "coll_tuned_allgather_algorithm", "7"]
    program = mpi.compile(ROOT / "bench" / "blocks.c")
    result = mpi.run(8, [program, "2"], {"COMMLENS_MATRIX": "all"}, launcher_args=told)
    assert result.rc == 0, result
    arguments = ["algorithms", str(result.profile), "--op", "MPI_Allgather", "--format", "json"]
    said = CliRunner().invoke(commlens, arguments)
    assert said.exit_code == 0, said.output
    lines = json.loads(said.output)["lines"]
    assert {(line["block"], line["verdict"], line["fit"]) for line in lines} == {
        (64 * 8**i, "sparbit", 1.0) for i in range(5)
    }


@pytest.mark.parametrize(
    ("number", "name", "number_v", "name_v"),
    [
        (1, "linear", 1, "linear"),
        (2, "pairwise", 2, "pairwise"),
        (4, "linear_sync", 2, "pairwise"),
        (3, "bruck (radix 2)", 1, "linear"),
    ],
)
def test_all_to_alls_that_send_the_same_messages_are_told_apart(
    mpi: Mpi, number: int, name: str, number_v: int, name_v: str
) -> None:
    if mpi.family != "openmpi":
        pytest.skip("only Open MPI shows the messages inside collectives")
    told = ["--mca", "coll_tuned_use_dynamic_rules", "1"]
    told += ["--mca", "coll_tuned_alltoall_algorithm", str(number)]
    told += ["--mca", "coll_tuned_alltoallv_algorithm", str(number_v)]
    result = mpi.run(16, [mpi.compile("alltoalls.c")], {"COMMLENS_MATRIX": "all"}, launcher_args=told)
    assert result.rc == 0, result
    said = CliRunner().invoke(commlens, ["algorithms", str(result.profile), "--format", "json"])
    assert said.exit_code == 0, said.output
    found = {(line["procedure"], line["ranks"]): line["verdict"] for line in json.loads(said.output)["lines"]}
    # Of three ranks both send the same two messages in the same way.
    alike = "ambiguous: pairwise or bruck (radix 2)"
    assert found["MPI_Alltoall", 3] == (name if name in ("linear", "linear_sync") else alike)
    assert [found["MPI_Alltoall", ranks] for ranks in range(4, 17)] == [name] * 13
    if name_v == "pairwise" and mpi.major >= 5:
        name_v = "pairwise_with_self"  # since Open MPI 5
    assert [found["MPI_Alltoallv", ranks] for ranks in range(3, 17)] == [name_v] * 14


def test_a_persistent_collective_is_modelled_as_often_as_it_was_started(mpi: Mpi) -> None:
    if mpi.is_open_mpi_4:
        pytest.skip("Open MPI 4 has no persistent collectives")
    result = mpi.run(5, [mpi.compile("algorithms.c"), "bcast_init", "200", "3"])
    assert result.rc == 0, result
    arguments = ["--kind", "modelled", "--algorithm", "bcast=linear", "--format", "json"]
    said = CliRunner().invoke(commlens, ["matrix", str(result.profile), *arguments])
    assert said.exit_code == 0, said.output
    sent = {(pair["source"], pair["destination"]): pair for pair in json.loads(said.output)["pairs"]}
    assert set(sent) == {(3, 0), (3, 1), (3, 2), (3, 4)}
    assert {(pair["messages"], pair["bytes"]) for pair in sent.values()} == {(10, 2000)}
