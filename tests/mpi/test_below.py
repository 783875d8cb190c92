# SPDX-License-Identifier: Apache-2.0
"""Messages inside calls, measured on Open MPI: for every pair of processes those its own monitoring component counts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from harness import Mpi
from profile_rows import Profile

Pairs = dict[tuple[int, int], tuple[int, int]]
"""(source, destination) -> (messages, bytes)."""

ALL = {"COMMLENS_MATRIX": "all"}
KINDS = ("blocking", "nonblocking", "persistent", "neighbor", "p2p", "rma", "io", "creation", "threads")


def launcher_args(pml: str, monitor: Path | None = None) -> list[str]:
    """Return the options that choose a point-to-point layer, with the monitoring component in front where asked for."""
    chosen = ["--mca", "pml", f"{pml},monitoring" if monitor else pml]
    if pml == "ucx":  # it gives way where there is no fast network
        chosen += ["--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any"]
    if monitor:
        chosen += ["--mca", "pml_monitoring_enable", "2", "--mca", "pml_monitoring_enable_output", "3"]
        chosen += ["--mca", "pml_monitoring_filename", str(monitor)]
    return chosen


def monitored(files: Path) -> tuple[Pairs, Pairs, Pairs]:
    """Return the counts of the component: two-sided messages, one-sided writes to a target, and reads from it.

    Those of persistent requests that a collective of Open MPI 4 uses stand with the program's own (E), not with the
    library's (I); hence the sum.
    """
    found: tuple[Pairs, Pairs, Pairs] = ({}, {}, {})
    for file in files.parent.glob(f"{files.name}.*.prof"):
        for line in file.read_text().splitlines():
            match = re.match(r"([EISR])\t(\d+)\t(\d+)\t(\d+) bytes\t(\d+) msgs", line)
            if match is None:
                continue
            what, rank, peer, volume, messages = match[1], *map(int, match.groups()[1:])
            of = found["EISR".index(what) // 2 + (what == "R")]
            before = of.get((rank, peer), (0, 0))
            of[rank, peer] = (before[0] + messages, before[1] + volume)
    return found


def pairs(profile: Profile, *kinds: str) -> Pairs:
    """Return these kinds of traffic from the profile."""
    found = profile.rows(
        "SELECT source, destination, SUM(messages) AS m, SUM(bytes) AS b FROM pair "
        f"WHERE kind IN ({','.join('?' * len(kinds))}) GROUP BY 1, 2",
        *kinds,
    )
    return {(r["source"], r["destination"]): (r["m"], r["b"]) for r in found}


def procedures(profile: Profile, kind: str) -> set[str]:
    """Return which procedures caused messages of this kind."""
    return set(
        profile.column("SELECT DISTINCT o.name FROM pair p JOIN op o ON o.id = p.op WHERE p.kind = ?", kind)
    )


@pytest.fixture
def openmpi(mpi: Mpi) -> Mpi:
    """Return an Open MPI; other libraries do not expose messages inside collectives."""
    if mpi.family != "openmpi":
        pytest.skip("only Open MPI shows the messages inside collectives")
    return mpi


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("pml", "n"), [("ob1", 2), ("ob1", 7), ("ucx", 4)])
def test_every_pair_has_the_messages_that_the_monitoring_component_counts(
    openmpi: Mpi, pml: str, n: int, kind: str
) -> None:
    if (pml, kind) == ("ucx", "rma"):
        pytest.skip("windows over UCX do not use messages, and Open MPI's own component fails with them")
    command: list[str | Path] = [openmpi.compile("below.c"), kind]
    env = {"OMPI_MCA_osc": "^rdma"} if openmpi.is_open_mpi_4 else {}  # which fails at times, also without us
    alone = openmpi.fresh("monitor")
    # What is sent does not depend on the layer below, and the component fails over UCX at persistent requests.
    plain = openmpi.run(
        n, command, env, mode="off", cwd=alone, launcher_args=launcher_args("ob1", alone / "m")
    )
    assert plain.rc == 0, plain
    two_sided, put, got = monitored(alone / "m")
    assert two_sided
    for monitor in (False, True) if pml == "ob1" else (False,):  # it may itself be in the table
        where = openmpi.fresh("both")
        arguments = launcher_args(pml, where / "m" if monitor else None)
        result = openmpi.run(n, command, {**ALL, **env}, cwd=where, launcher_args=arguments)
        assert result.rc == 0, result
        profile = result.open()
        profile.check()
        assert profile.meta()["inside"] == "measured"
        assert pairs(profile, "sent", "collective", "internal") == two_sided
        written, read = pairs(profile, "put"), pairs(profile, "get")
        assert {(target, origin): n for (origin, target), n in got.items()} == read
        # One of three reads is MPI_Get, for which the component counts an empty message to the target, too.
        asked = {(target, origin): messages // 3 for (origin, target), (messages, _) in read.items()}
        assert put == {pair: (m + asked[pair], b) for pair, (m, b) in written.items()}


CALLED = {
    "blocking": re.compile(r"MPI_(?!I|Neighbor)\w+(?<!_init)"),
    "nonblocking": re.compile(r"MPI_I(?!neighbor)\w+"),
    "persistent": re.compile(r"MPI_(?!Neighbor)\w+_init"),
    "creation": re.compile(r"MPI_Allreduce|MPI_Barrier"),
    "io": re.compile(r"MPI_Bcast"),
    "threads": re.compile(r"MPI_Allreduce|MPI_Ibcast"),
    "neighbor": re.compile(r"MPI_(Neigh|Ineigh)bor_\w+"),
}


@pytest.mark.parametrize("kind", CALLED)
@pytest.mark.parametrize("n", [3, 8])
def test_messages_of_collectives_belong_to_the_procedure_that_caused_them(
    openmpi: Mpi, n: int, kind: str
) -> None:
    if kind == "persistent" and openmpi.is_open_mpi_4:
        pytest.skip("Open MPI 4 has no persistent collectives")
    profile = openmpi.run(n, [openmpi.compile("below.c"), kind], ALL).open()
    called = set(
        profile.column(
            "SELECT DISTINCT o.name FROM key k JOIN op o ON o.id = k.op WHERE o.class IN ('collective', 'neighbor')"
        )
    )
    assert called == {name for name in called if CALLED[kind].fullmatch(name)}
    assert procedures(profile, "collective") == called
    others = profile.column(
        "SELECT DISTINCT o.name FROM key k JOIN op o ON o.id = k.op WHERE o.class IN ('comm', 'io')"
    )
    assert procedures(profile, "internal") <= set(others)


@pytest.mark.parametrize("n", [2, 7])
def test_what_is_under_way_at_the_same_time_is_told_apart(openmpi: Mpi, n: int) -> None:
    found = []
    for order in ("apart", "together"):
        profile = openmpi.run(n, [openmpi.compile("below.c"), order], ALL).open()
        found.append(
            profile.rows(
                "SELECT c.name, pair.kind, o.name AS op, source, destination, messages, bytes FROM pair "
                "JOIN comm c ON c.id = pair.comm JOIN op o ON o.id = pair.op ORDER BY 1, 2, 3, 4, 5"
            )
        )
    assert found[0] == found[1]
    assert {row["op"] for row in found[0]} >= {"MPI_Ibcast", "MPI_Iscan", "MPI_Iexscan", "MPI_Ibarrier"}


def test_persistent_messages_of_the_program_are_counted_once(openmpi: Mpi) -> None:
    profile = openmpi.run(4, [openmpi.compile("below.c"), "started"], ALL).open()
    sizes = (2, 90, 4050)
    on_world = {(r, (r + 1) % 4): (9, 3 * 4 * sum(sizes)) for r in range(4)}
    on_parts = [(3, 0), (0, 3), (2, 1), (1, 2)]  # in the order of the ranks from the last one on
    expected = {**on_world}
    for pair in on_parts:
        messages, bytes_ = expected.get(pair, (0, 0))
        expected[pair] = (messages + 9, bytes_ + 3 * 4 * sum(sizes))
    assert pairs(profile, "sent") == expected
    assert procedures(profile, "collective") == set()


def test_messages_between_the_groups_of_an_intercommunicator_have_world_ranks(openmpi: Mpi) -> None:
    profile = openmpi.run(5, [openmpi.compile("below.c"), "inter"], ALL).open()
    profile.check()
    found = profile.rows(
        "SELECT source, destination FROM pair JOIN comm c ON c.id = pair.comm "
        "WHERE pair.kind = 'collective' AND c.kind = 'inter'"
    )
    ranks = {(r["source"] % 2, r["destination"] % 2) for r in found if r["source"] in range(5)}
    assert found
    assert {(0, 1), (1, 0)} <= ranks


def test_where_nothing_can_be_seen_the_profile_says_so(mpi: Mpi) -> None:
    result = mpi.run(
        2,
        [mpi.compile("below.c"), "blocking"],
        ALL if mpi.family != "openmpi" else {**ALL, "OMPI_MCA_pml": "cm", "OMPI_MCA_mtl": "ofi"},
    )
    if mpi.family == "openmpi" and result.rc != 0:
        pytest.skip("no network for the point-to-point layer cm")
    inside = result.open().meta()["inside"]
    assert inside.startswith("not seen: ")
    assert result.said[0].endswith(f"collectives are not measured: {inside.removeprefix('not seen: ')}")
    assert procedures(result.open(), "collective") == set()


def test_without_being_asked_for_nothing_is_counted_inside(mpi: Mpi) -> None:
    profile = mpi.run(2, [mpi.compile("below.c"), "blocking"]).open()
    assert profile.meta()["inside"] == "not asked for"
    assert pairs(profile, "collective", "internal") == {}


def test_a_table_with_a_function_that_is_not_known_is_left_alone(openmpi: Mpi) -> None:
    tool = openmpi.compile("below_tool.c", None, shared=True)
    program = openmpi.compile("below.c")
    # Behind us, so that it is there when we look.
    result = openmpi.run(2, [program, "blocking"], ALL, mode="preload", preload=[tool])
    assert result.rc == 0, result
    inside = "this Open MPI uses a point-to-point layer that commlens does not know"
    assert result.open().meta()["inside"] == f"not seen: {inside}"
    assert sum(line.endswith(inside) for line in result.said) == 1


def test_messages_that_go_past_the_table_are_not_called_measured(openmpi: Mpi) -> None:
    result = openmpi.run(2, [openmpi.compile("below_past.c", None, "-ldl")], ALL)
    assert result.rc == 0, result
    profile = result.open()
    assert pairs(profile, "sent") == {(0, 1): (1, 4)}
    past = "not seen: this Open MPI bypasses the table of its point-to-point layer"
    assert profile.meta()["inside"] == past
