# SPDX-License-Identifier: Apache-2.0
"""What `commlens algorithms` names, in profiles whose messages are those of a schedule."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from build_profile import PeerRow, ProfileBuilder, size_bin
from conftest import Run

from commlens.algorithms import recognise
from commlens.algorithms.matching import Match, Measured, match
from commlens.algorithms.registry import COLLECTIVES, ROOTED, Algorithm, algorithm, algorithms
from commlens.algorithms.schedule import Call

VARYING = ("gatherv", "scatterv", "allgatherv", "alltoallv", "alltoallw", "reduce_scatter")
UNSIZED = ("barrier", *VARYING)


def procedure(collective: str) -> str:
    return f"MPI_{collective.capitalize()}"


def volumes(collective: str, call: Call) -> tuple[list[int], list[int]]:
    """Return the bytes that one call sends and receives on each rank, as docs/bytes.md has them."""
    n, size, parts = call.size, range(call.size), None
    if collective == "barrier":
        return [0] * n, [0] * n
    if collective.startswith("alltoall"):
        return call.matrix.sum(axis=1).tolist(), call.matrix.sum(axis=0).tolist()
    if collective in ("bcast", "reduce", "allreduce", "scan", "exscan"):
        whole, root = call.bytes, call.root
        at_root = [whole if rank == root else 0 for rank in size]
        elsewhere = [0 if rank == root else whole for rank in size]
        if collective == "bcast":
            return at_root, elsewhere
        return [whole] * n, at_root if collective == "reduce" else [whole] * n
    parts = call.parts.tolist()
    total = [sum(parts)] * n
    at_root = [sum(parts) if rank == call.root else 0 for rank in size]
    return {
        "gather": (parts, at_root),
        "scatter": (at_root, parts),
        "allgather": (parts, total),
        "reduce_scatter": (total, parts),
    }[collective.removesuffix("v").removesuffix("_block")]


def do(
    build: ProfileBuilder,
    one: Algorithm,
    call: Call,
    calls: int = 1,
    comm: int = 1,
    op: str | None = None,
    started: int | None = None,
) -> None:
    """Let all ranks of a communicator make calls, and tell the messages that one algorithm makes of them."""
    op = op or procedure(one.collective)
    members = build.comms[comm].ranks
    size = None if one.collective in VARYING else int(call.block)  # type: ignore[arg-type]
    sent, received = volumes(one.collective, call)
    times = calls if started is None else started
    for rank, world in enumerate(members):
        build.count(comm, op, world, calls, 1000, size, times * sent[rank], times * received[rank])
    steps = one.schedule(call)
    rows = np.stack([steps.source, steps.destination, steps.bytes], axis=1)
    kinds, counts = np.unique(rows, axis=0, return_counts=True)
    call_bin = None if one.collective in UNSIZED else size_bin(size)
    for (source, destination, nbytes), messages in zip(kinds.tolist(), counts.tolist()):
        tell(build, members[source], members[destination], messages * times, nbytes, comm, op, call_bin)


def tell(
    build: ProfileBuilder,
    source: int,
    destination: int,
    messages: int,
    nbytes: int,
    comm: int = 1,
    op: str = "MPI_Bcast",
    call_bin: int | None = None,
) -> None:
    build.peers.append(
        PeerRow(
            *(comm, "collective", op, call_bin, 0, 0, source, destination, None, 1),
            *(size_bin(nbytes), messages, messages * nbytes),
        )
    )


def joined(build: ProfileBuilder) -> None:
    """Let the calls of one size be one cell of each rank, as they are in a profile."""
    cells: dict[tuple[int, str, int, int], Any] = {}
    for cell in build.cells:
        first = cells.setdefault((cell.comm, cell.op, cell.bin, cell.rank), cell)
        if first is not cell:
            first.calls += cell.calls
            first.sent += cell.sent
            first.received += cell.received
    build.cells = list(cells.values())


def new(ranks: int, **more: str) -> ProfileBuilder:
    return ProfileBuilder(ranks=ranks, meta={"inside": "measured", **more})


def lines(run: Run, build: ProfileBuilder, place: Path, *arguments: object) -> list[dict[str, Any]]:
    """Return the lines that the command says as JSON."""
    path = place / "profile.db"
    if not path.exists():
        joined(build)
        build.write(path)
    result = run("algorithms", path, *arguments, "--format", "json")
    assert (result.exit_code, result.stderr) == (0, "")
    found: list[dict[str, Any]] = json.loads(result.stdout)["lines"]
    return found


def named(line: dict[str, Any]) -> set[str]:
    """Return the names that a verdict has, without parameters."""
    return {name.split(" (")[0] for name in line["verdict"].removeprefix("ambiguous: ").split(" or ")}


@pytest.mark.parametrize("ranks", [8, 13])
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_every_algorithm_names_itself(run: Run, tmp_path: Path, collective: str, ranks: int) -> None:
    """Each on a communicator of its own."""
    build, expected = new(ranks), []
    root = ranks // 2 if collective in ROOTED else 0
    blocks = [0] if collective == "barrier" else [96] if collective in VARYING else [96, 5000]
    for one in algorithms(collective):
        # With radix 2 such a tree is the binomial one.
        call = Call(ranks, root=root, radix=3 if one.name == "knomial" else 2)
        possible = [block for block in blocks if one.needs(call.but(block=block)) and "nodes" not in one.uses]
        comm = build.comm(f"{one.name}.1", list(range(ranks))) if possible else 0
        for block in possible:
            do(build, one, call.but(block=block), calls=3, comm=comm)
            expected.append((one.same_as or one.name, block))  # no part is empty
    found = lines(run, build, tmp_path)
    assert len(found) == len(expected)
    for line, (name, block) in zip(found, expected):
        assert name in named(line)
        assert (line["fit"], line["calls"], line["procedure"]) == (1.0, 3, procedure(collective))
        if collective not in VARYING:
            assert line["block"] == block
        if collective in ROOTED:
            assert line["roots"] == [{"rank": root, "calls": 3}]


def test_sizes_of_one_bin_may_differ(run: Run, tmp_path: Path) -> None:
    build = new(8)
    for block in (600, 700, 901):
        do(build, algorithm("allreduce", "ring"), Call(8, block=block))
    (line,) = lines(run, build, tmp_path)
    assert (line["verdict"], line["calls"], line["block"]) == ("ring", 3, None)
    assert (line["size_low"], line["size_high"]) == (512, 1023)
    assert line["fit"] > 0.99


def test_each_size_has_its_own_algorithm(run: Run, tmp_path: Path) -> None:
    build = new(8)
    do(build, algorithm("bcast", "binomial"), Call(8, block=100), calls=10)
    do(build, algorithm("bcast", "pipeline"), Call(8, block=8192, segment=1024), calls=4)
    small, large = lines(run, build, tmp_path)
    assert (small["verdict"], small["block"], small["depth"], small["degree"]) == ("binomial", 100, 3, 3)
    assert (large["verdict"], large["segments"], large["depth"], large["degree"]) == ("pipeline", 8, 7, 1)
    assert large["segment_low"] <= 1024 <= large["segment_high"]
    text = run("algorithms", tmp_path / "profile.db").stdout
    assert "pipeline, 8 segments of 1,024 to 1,170 B" in text
    assert "depth 7, degree 1" in text


def test_messages_that_do_not_tell_their_size_are_looked_at_together(run: Run, tmp_path: Path) -> None:
    build = new(8)
    do(build, algorithm("bcast", "binomial"), Call(8, block=100), calls=2)
    do(build, algorithm("bcast", "binomial"), Call(8, block=1000), calls=3)
    for row in build.peers:
        if row.call_bin == size_bin(1000):
            row.call_bin = None
    (line,) = lines(run, build, tmp_path)
    assert (line["verdict"], line["calls"], line["block"]) == ("binomial", 5, None)
    assert (line["size_low"], line["size_high"]) == (64, 1023)


def test_several_roots_are_counted(run: Run, tmp_path: Path) -> None:
    build = new(12)
    for root, calls in ((0, 5), (3, 2), (11, 1)):
        do(build, algorithm("reduce", "binomial"), Call(12, block=640, root=root), calls)
    (line,) = lines(run, build, tmp_path)
    assert line["verdict"] == "binomial"
    assert [(root["rank"], root["calls"]) for root in line["roots"]] == [(0, 5), (3, 2), (11, 1)]
    assert "0 (5), 3 (2), 11 (1)" in run("algorithms", tmp_path / "profile.db").stdout


def test_communicators_of_a_family_with_the_same_answer_are_one_line(run: Run, tmp_path: Path) -> None:
    build = new(24)
    made = {"parent": 1, "creator": "MPI_Comm_split", "family": 2}
    for i in range(4):
        comm = build.comm(f"s{6 * i}.1", list(range(6 * i, 6 * i + 6)), **made)
        name = "binomial" if i < 3 else "linear"
        do(build, algorithm("bcast", name), Call(6, block=64, root=i), calls=i + 1, comm=comm)
    first, last = lines(run, build, tmp_path)
    assert (first["communicator"], first["communicators"], first["calls"]) == ("s0.1", 3, 6)
    assert first["roots"] == [{"rank": i, "calls": i + 1} for i in range(3)]
    assert (last["communicator"], last["communicators"], last["verdict"]) == ("s18.1", 1, "linear")
    assert len(lines(run, build, tmp_path, "--comm", "s6.1")) == 1
    assert lines(run, build, tmp_path, "--op", "allreduce") == []
    assert "s0.1 x3" in run("algorithms", tmp_path / "profile.db").stdout


def test_messages_that_no_algorithm_sends_are_unknown(run: Run, tmp_path: Path) -> None:
    build = new(8)
    do(build, algorithm("bcast", "binomial"), Call(8, block=100), calls=2)
    for rank in range(7):
        tell(build, rank, (rank + 3) % 8, 5, 60, call_bin=size_bin(100))
    (line,) = lines(run, build, tmp_path)
    assert (line["verdict"], line["algorithm"], line["roots"]) == ("unknown", None, [])
    assert 0 < line["fit"] < 0.95


def test_ranks_are_those_of_the_communicator(run: Run, tmp_path: Path) -> None:
    build = new(16)
    members = [13, 2, 7, 0, 11, 5, 9]
    comm = build.comm("s13.1", members)
    do(build, algorithm("scatter", "binomial"), Call(7, block=48, root=2), calls=2, comm=comm)
    (line,) = lines(run, build, tmp_path, "--tree", 1)
    assert (line["verdict"], line["roots"]) == ("binomial", [{"rank": 2, "calls": 2}])


def test_the_tree_of_a_line_is_drawn(run: Run, tmp_path: Path) -> None:
    build = new(6)
    comm = build.comm("s5.1", [5, 4, 3, 2])
    do(build, algorithm("bcast", "binomial"), Call(4, block=8, root=1), comm=comm)
    (line,) = lines(run, build, tmp_path, "--tree", 1)
    assert line["tree"] == [2, -1, 1, 1]
    drawn = run("algorithms", tmp_path / "profile.db", "--tree", 1).stdout.split("\n\n")[1].splitlines()
    assert drawn[1] == "1 (world 4)"
    assert len(drawn) == 5
    beyond = run("algorithms", tmp_path / "profile.db", "--tree", 2)
    assert (beyond.exit_code, "the table ends at line 1" in beyond.stderr) == (2, True)


def test_nonblocking_and_persistent_forms_are_named(run: Run, tmp_path: Path) -> None:
    build = new(9)
    do(build, algorithm("bcast", "chain"), Call(9, block=4000), calls=2, op="MPI_Ibcast")
    do(build, algorithm("bcast", "binary"), Call(9, block=4000), calls=1, op="MPI_Bcast_init", started=35)
    persistent, nonblocking = sorted(lines(run, build, tmp_path), key=lambda line: line["procedure"])
    assert (persistent["verdict"], persistent["calls"], persistent["block"]) == ("binary", 35, 4000)
    assert (nonblocking["verdict"], nonblocking["calls"]) == ("chain (fanout 4)", 2)


def test_starts_of_persistent_forms_are_those_that_were_counted(run: Run, tmp_path: Path) -> None:
    build = new(8)
    # The messages alone would as well be those of three starts, with two segments each.
    do(
        build,
        algorithm("bcast", "pipeline"),
        Call(8, block=3900, segment=1300),
        op="MPI_Bcast_init",
        started=2,
    )
    start(build, "MPI_Bcast_init", "one_to_all", {0: 2})
    (line,) = lines(run, build, tmp_path)
    assert (line["verdict"], line["calls"], line["block"], line["segments"]) == ("pipeline", 2, 3900, 3)


def start(build: ProfileBuilder, op: str, shape: str, starts: dict[int, int]) -> None:
    """Tell how often each rank has started requests of a persistent form, as the shape of a collective does."""
    for rank, times in starts.items():
        build.peers.append(
            PeerRow(
                1, shape, op, None, 0, 0, rank, None, None, 1, 1, times, times
            )  # bytes do not matter here
        )


@pytest.mark.parametrize("collective", VARYING)
def test_parts_that_differ_are_those_of_the_calls(run: Run, tmp_path: Path, collective: str) -> None:
    """Also where most parts are empty, and an algorithm does not send those."""
    build = new(9)
    parts = np.array([0, 0, 50] * 3)
    to_each = collective.startswith("alltoall")
    block = np.add.outer(parts, np.arange(9) % 2 * 7).reshape(-1) if to_each else parts
    call = Call(9, block=block)
    one = algorithms(collective)[0]
    do(build, one, call, calls=4)
    if to_each:
        share(build, procedure(collective), call, 4)
    (line,) = lines(run, build, tmp_path)
    assert one.name in named(line)
    assert (line["fit"], line["fit_bytes"], line["block"]) == (1.0, 1.0, None)


def share(build: ProfileBuilder, op: str, call: Call, calls: int) -> None:
    """Tell what a collective has for each single process."""
    for (source, destination), nbytes in np.ndenumerate(call.matrix):
        if source != destination:
            size = int(nbytes)
            build.peers.append(
                PeerRow(
                    *(1, "share", op, None, 0, 0, source, destination, None, 1),
                    *(size_bin(size), calls, calls * size),
                )
            )


def test_parts_that_are_not_the_same_in_all_calls_are_not_made_up(run: Run, tmp_path: Path) -> None:
    build = new(6)
    for parts in ([7, 8, 30, 5, 1, 90], [8, 9, 1, 50, 2, 3]):
        do(build, algorithm("allgatherv", "bruck"), Call(6, block=parts))
    (line,) = lines(run, build, tmp_path)
    assert (line["verdict"], line["calls"], line["block"]) == ("bruck (radix 2)", 2, None)


def test_calls_that_send_nothing_say_so(run: Run, tmp_path: Path) -> None:
    build = new(4)
    for rank in range(4):
        build.count(1, "MPI_Bcast", rank, 3, 100, 0)
    (line,) = lines(run, build, tmp_path)
    assert (line["verdict"], line["calls"], line["fit"]) == ("sends nothing", 3, None)


@pytest.mark.parametrize(
    ("inside", "said"),
    [("not asked for", "(not asked for)"), ("not seen: no table", "(not seen: no table)")],
)
def test_where_nothing_was_measured_the_command_says_so(
    run: Run, tmp_path: Path, inside: str, said: str
) -> None:
    build = ProfileBuilder(ranks=4, meta={"inside": inside})
    for rank in range(4):
        build.count(1, "MPI_Bcast", rank, 3, 100, 8, 24 if rank == 0 else 0)
    result = run("algorithms", build.write(tmp_path / "p.db"))
    assert (result.exit_code, result.stderr) == (0, "")
    assert f"were not measured {said}; the run needs COMMLENS_MATRIX=all" in result.stdout
    assert "commlens matrix --kind modelled" in result.stdout


@pytest.mark.parametrize("kind", ["inter", "shared", "blocks"])
def test_what_cannot_be_compared_says_why(run: Run, tmp_path: Path, kind: str) -> None:
    build = new(4)
    do(build, algorithm("bcast", "linear"), Call(4, block=8))
    if kind == "inter":
        build.comms[1].kind, build.comms[1].remote_size, build.comms[1].members = "inter", 2, "0, 1 | 2, 3"
    elif kind == "shared":
        build.comms[1].members = "0-2"
    else:
        build.peers[0].peer, build.peers[0].first, build.peers[0].peers = None, 0, 4
    (line,) = lines(run, build, tmp_path)
    why = {
        "inter": "an intercommunicator",
        "shared": "the members of the communicator are unknown",
        "blocks": "for blocks of ranks",
    }
    assert line["verdict"].startswith("unknown: ")
    assert why[kind] in line["verdict"]


def test_csv_and_sql_have_the_same_lines(run: Run, tmp_path: Path) -> None:
    build = new(8)
    do(build, algorithm("gather", "binomial"), Call(8, block=32, root=5), calls=4)
    path = build.write(tmp_path / "p.db")
    (row,) = csv.DictReader(io.StringIO(run("algorithms", path, "--format", "csv").stdout))
    assert (row["algorithm"], row["roots"], row["block"], row["fit"]) == ("binomial", "5:4", "32", "1.0")
    assert run("algorithms", path, "--sql").stdout.count("SELECT") == 2


def test_a_hundred_lines_of_thousands_of_ranks_take_seconds(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Communicators with equal patterns are matched once; without that it would take minutes."""
    matched: list[Measured] = []

    def counted(measured: Measured, nodes: Sequence[int] | None) -> Match:
        matched.append(measured)
        return match(measured, nodes)

    monkeypatch.setattr(recognise, "match", counted)
    build = new(1024)
    made = {"parent": 1, "creator": "MPI_Comm_split", "family": 2}
    one, call = algorithm("bcast", "binomial"), Call(8, block=64)
    for i in range(128):
        comm = build.comm(f"s{8 * i}.1", list(range(8 * i, 8 * i + 8)), **made)
        do(build, one, call, comm=comm)
    (line,) = lines(run, build, tmp_path)
    assert (line["communicators"], line["calls"], line["verdict"]) == (128, 128, "binomial")
    assert len(matched) == 1


def modelled(run: Run, path: Path, *arguments: object) -> dict[str, Any]:
    result = run("matrix", path, "--kind", "modelled", *arguments, "--format", "json")
    assert (result.exit_code, result.stderr) == (0, "")
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_what_is_modelled_is_what_the_algorithm_sends(run: Run, tmp_path: Path, collective: str) -> None:
    one = next(one for one in algorithms(collective) if one.needs(Call(6, block=48)))
    build = new(9)
    comm = build.comm("s7.1", [7, 2, 5, 0, 8, 3])
    do(build, one, Call(6, block=48, root=3 if collective in ROOTED else 0), calls=4, comm=comm)
    path = build.write(tmp_path / "p.db")
    measured = json.loads(run("matrix", path, "--kind", "collective", "--format", "json").stdout)
    model = modelled(run, path, "--algorithm", f"{collective}={one.name}")
    assert (model["kind"], model["origin"], measured["origin"]) == ("modelled", "modelled", "measured")
    if collective == "barrier":
        assert model["pairs"]
    assert model["pairs"] == measured["pairs"]


def test_what_mpich_chooses_is_modelled_without_being_told(run: Run, tmp_path: Path) -> None:
    build = new(8, mpi_library="MPICH Version: 4.0.2")
    do(build, algorithm("bcast", "in_order_binomial"), Call(8, block=100, root=3), 5)
    path = build.write(tmp_path / "p.db")
    model = modelled(run, path)
    measured = json.loads(run("matrix", path, "--kind", "collective", "--format", "json").stdout)
    assert model["pairs"] == measured["pairs"]
    said = run("matrix", path, "--kind", "modelled").stdout
    assert said.startswith("inside collectives, modelled (not measured): 7 pairs")
    assert "bcast by in_order_binomial, as MPICH chooses" in said


def test_what_is_modelled_is_marked_in_files(run: Run, tmp_path: Path) -> None:
    build = new(8)
    do(build, algorithm("bcast", "linear"), Call(8, block=100), 5)
    path = build.write(tmp_path / "p.db")
    for ending in ("csv", "mtx", "graphml", "svg"):
        file = tmp_path / f"m.{ending}"
        assert (
            run("matrix", path, "--kind", "modelled", "--algorithm", "bcast=linear", "--to", file).exit_code
            == 0
        )
        assert "modelled" in file.read_text()
    file = tmp_path / "m.npz"
    assert (
        run("matrix", path, "--kind", "modelled", "--algorithm", "bcast=linear", "--to", file).exit_code == 0
    )
    assert np.load(file)["kind"] == "modelled"


def test_what_cannot_be_modelled_is_said(run: Run, tmp_path: Path) -> None:
    build = new(8, mpi_library="Open MPI v4.1.4")
    do(build, algorithm("bcast", "linear"), Call(8, block=100), 5)
    do(build, algorithm("gatherv", "linear"), Call(8, block=10), 2)
    path = build.write(tmp_path / "p.db")
    model = modelled(run, path)
    assert sum(pair["messages"] for pair in model["pairs"]) == 14
    said = " ".join(model["remarks"])
    assert (
        "not modelled: MPI_Bcast, 5 collectives, 40 calls of all ranks: the algorithm that 'Open MPI v4.1.4' uses is unknown"
        in said
    )
    assert "gatherv by linear, the only algorithm of Open MPI: 2 collectives, 16 calls of all ranks" in said


def test_persistent_forms_are_modelled_as_often_as_they_were_started(run: Run, tmp_path: Path) -> None:
    build = new(8, mpi_library="Open MPI v4.1.4")
    do(build, algorithm("bcast", "binomial"), Call(8, block=100), op="MPI_Bcast_init", started=35)
    start(build, "MPI_Bcast_init", "one_to_all", {0: 35})
    do(build, algorithm("allreduce", "ring"), Call(8, block=64), op="MPI_Allreduce_init", calls=2, started=5)
    start(build, "MPI_Allreduce_init", "all_to_all", dict.fromkeys(range(8), 5))
    for size in (10, 1000):  # how often which is not told
        do(build, algorithm("reduce", "linear"), Call(8, block=size), op="MPI_Reduce_init", started=3)
    start(build, "MPI_Reduce_init", "all_to_one", {0: 6})
    build.peers = [row for row in build.peers if row.kind != "collective"]
    joined(build)
    path = build.write(tmp_path / "p.db")
    model = modelled(
        run,
        path,
        "--algorithm",
        "bcast=linear",
        "--algorithm",
        "allreduce=ring",
        "--algorithm",
        "reduce=linear",
    )
    sent = {
        (pair["source"], pair["destination"]): (pair["messages"], pair["bytes"]) for pair in model["pairs"]
    }
    ring = (5 * 14, 5 * 14 * 8)
    assert sent[0, 7] == (35, 3500)
    assert sent[0, 1] == (35 + ring[0], 3500 + ring[1])
    assert sent[3, 4] == ring
    said = " ".join(model["remarks"])
    assert "bcast by linear, as chosen: 35 collectives, 280 calls of all ranks" in said
    assert "allreduce by ring, as chosen: 5 collectives, 40 calls of all ranks" in said
    assert (
        "not modelled: MPI_Reduce_init, 2 collectives, 16 calls of all ranks: the number of starts of the requests is unknown"
        in said
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--algorithm", "bcast=linear"), "--algorithm applies only to --kind modelled"),
        (("--kind", "modelled", "--algorithm", "bcast=spiral"), "bcast has no algorithm spiral"),
        (("--kind", "modelled", "--algorithm", "spiral=linear"), "no collective spiral"),
        (("--kind", "modelled", "--algorithm", "bcast"), "not COLLECTIVE=NAME"),
        (("--kind", "modelled", "--slice", "0"), "cannot be split by region or slice"),
    ],
)
def test_choices_that_make_no_sense_are_refused(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    result = run("matrix", new(2).write(tmp_path / "p.db"), *arguments)
    assert (result.exit_code, said in result.stderr) == (2, True)
