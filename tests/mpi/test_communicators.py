# SPDX-License-Identifier: Apache-2.0
"""Every procedure that makes a communicator, on 4 ranks: one row for all members, and the right one.

programs/comms.c gives each communicator a number of barriers of its own; a communicator that some rank took for
another one shows as a wrong count, a wrong member list or a row too many.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
from harness import Mpi
from launches import Result
from profile_rows import Profile

ALL = [0, 1, 2, 3]


class Made(NamedTuple):
    """What is expected of one communicator."""

    name: str
    members: list[list[int]]
    barriers: int
    parent: str | None = "W0.0"
    freed: bool = True
    topology: str | None = None
    user_name: str | None = None


CREATOR = {
    "s": "MPI_Comm_split",
    "t": "MPI_Comm_split_type",
    "c": "MPI_Comm_create",
    "g": "MPI_Comm_create_group",
    "d": "MPI_Comm_dup",
    "w": "MPI_Comm_dup_with_info",
    "i": "MPI_Comm_idup",
    "j": "MPI_Comm_idup_with_info",
    "a": "MPI_Cart_create",
    "b": "MPI_Cart_sub",
    "G": "MPI_Graph_create",
    "x": "MPI_Dist_graph_create",
    "y": "MPI_Dist_graph_create_adjacent",
    "I": "MPI_Intercomm_create",
    "m": "MPI_Intercomm_merge",
    "p": "MPI_Comm_spawn",
    "q": "MPI_Comm_spawn_multiple",
    "P": "MPI_Comm_get_parent",
    "A": "MPI_Comm_accept",
    "C": "MPI_Comm_connect",
    "J": "MPI_Comm_join",
    "f": "MPI_Comm_create_from_group",
    "F": "MPI_Intercomm_create_from_groups",
}

CASES: dict[str, list[Made]] = {
    "split": [
        Made("s2.1", [[2, 0]], 1),
        Made("s3.1", [[3, 1]], 1),
        Made("s0.2", [[0, 1, 2]], 2),
        *(Made(f"s{rank}.{2 if rank == 3 else 3}", [[rank]], 3) for rank in ALL),
        Made("s0.4", [ALL], 4, freed=False),
    ],
    "split_type": [Made("t1.1", [[1, 2, 3]], 1), Made("t3.2", [[3, 2, 1, 0]], 2)],
    "create": [Made("c3.1", [[3, 1]], 1), Made("c0.1", [[0, 1, 2]], 2), Made("c2.2", [[2, 0, 3, 1]], 4)],
    "create_group": [
        Made("g0.1", [[0, 1, 2]], 1),
        Made("g1.2", [[1, 2, 3]], 2),
        Made("g0.2", [[0, 1, 2]], 3),
        Made("g0.3", [[0, 3]], 4),
        Made("g3.3", [[3, 0]], 5),
        Made("g0.5", [[0, 1, 2]], 6),
    ],
    "dup": [
        Made("d0.1", [ALL], 1),
        Made("d0.2", [ALL], 2, parent="d0.1"),
        Made("w0.3", [ALL], 3),
        *(Made(f"d{rank}.4", [[rank]], 4, parent=f"S{rank}.0") for rank in ALL),
    ],
    "idup": [Made(f"i0.{n}", [ALL], n) for n in range(1, 8)],
    "idup_ways": [Made(f"i0.{n}", [ALL], n) for n in range(1, 6)],
    "idup_late": [
        Made("d0.1", [ALL], 1),
        Made("i0.2", [ALL], 2),
        Made("i0.3", [ALL], 3),
        Made("i0.4", [ALL], 4),
    ],
    "cart": [
        Made("a0.1", [ALL], 1, topology="cart 2x2 periodic 10"),
        Made("b0.2", [[0, 1]], 2, "a0.1", topology="cart 2 periodic 0"),
        Made("b2.2", [[2, 3]], 2, "a0.1", topology="cart 2 periodic 0"),
        Made("b0.3", [[0, 2]], 3, "a0.1", topology="cart 2 periodic 1"),
        Made("b1.3", [[1, 3]], 3, "a0.1", topology="cart 2 periodic 1"),
        Made("a0.4", [[0, 1, 2]], 4, topology="cart 3 periodic 1"),
        Made("a0.5", [ALL], 5, topology="cart 4x1x1 periodic 011"),
    ],
    "graph": [
        Made("G0.1", [[0, 1, 2]], 1, topology="graph 3 nodes 4 edges"),
        Made("x0.2", [ALL], 2, topology="dist_graph"),
        Made("y0.3", [ALL], 3, topology="dist_graph"),
    ],
    "inter": [
        Made("s0.1", [[0, 1]], 1),
        Made("s2.1", [[2, 3]], 1),
        Made("I0.2", [[0, 1], [2, 3]], 2, "s0.1"),
        Made("m2.3", [[2, 3, 0, 1]], 3, "I0.2"),
        Made("d0.4", [[0, 1], [2, 3]], 4, "I0.2"),
        Made("s0.5", [[0], [2]], 5, "I0.2"),
        Made("s1.5", [[1], [3]], 5, "I0.2"),
        Made("I0.6", [[0, 1], [2, 3]], 6, "s0.1"),
    ],
    "name": [
        Made("d0.1", [ALL], 1, user_name='it\'s "the" solver\u00e9', freed=False),
        Made("d0.2", [ALL], 2, user_name="only rank 2 says so"),
    ],
}

# Those of MPI 4, where this MPI has them.
CASES_MPI4: dict[str, list[Made]] = {
    "idup_with_info": [Made("j0.1", [ALL], 1)],
    "from_group": [Made(f"f2.{n}", [[2, 0, 1]], n, parent=None) for n in (1, 2, 3)],
    "inter_from_groups": [Made("F0.1", [[0, 1], [3, 2]], 1, parent=None)],
}


@pytest.mark.parametrize("case", CASES)
def test_made_communicators(mpi: Mpi, case: str) -> None:
    _check(_run(mpi, case).open(), CASES[case])


@pytest.mark.parametrize("case", CASES_MPI4)
def test_made_communicators_of_mpi_4(mpi: Mpi, case: str) -> None:
    profile = _run(mpi, case).open()
    # Open MPI 4.1 declares none of these procedures; then the program does nothing and the profile shows just that.
    _check(profile, CASES_MPI4[case] if mpi.family != "openmpi" else [])


def _run(mpi: Mpi, *arguments: str | Path, **options: Any) -> Result:
    result = mpi.run(4, [mpi.compile("comms.c"), *arguments], **options)
    assert (result.rc, result.stdout) == (0, f"{arguments[0]} done\n"), result
    return result


def _check(profile: Profile, expected: list[Made]) -> None:
    profile.check()
    found = {name: row for name, row in profile.comms().items() if name[0] not in "WS"}
    barriers = profile.calls("MPI_Barrier")
    assert [_seen(name, row, barriers) for name, row in sorted(found.items())] == sorted(expected)
    for name, row in found.items():
        letter = name[0]
        assert row["creator_name"] == CREATOR[letter]
        assert row["leader"] == row["groups"][0][0]
        assert row["size"] == len(row["groups"][0])
        assert row["kind"] == ("inter" if len(row["groups"]) == 2 else "intra")
        assert row["remote_size"] == (len(row["groups"][1]) if row["kind"] == "inter" else None)
        assert row["created_ns"] > 0
        assert row["freed_ns"] is None or row["freed_ns"] >= row["created_ns"]
        assert row["callsite"] is not None
        assert set(barriers[name]) == {rank for group in row["groups"] for rank in group}
        assert len(set(barriers[name].values())) == 1, f"{name}: not the same on all members"
    hashes = [row["hash"] for row in profile.comms().values()]
    assert len(set(hashes)) == len(hashes)


def _seen(name: str, row: dict[str, Any], barriers: dict[str, Any]) -> Made:
    return Made(
        name,
        row["groups"],
        max(barriers[name].values()),
        row["parent_name"],
        row["freed_ns"] is not None,
        row["topology"],
        row["user_name"],
    )


def test_a_thousand_freed_communicators_keep_their_calls(mpi: Mpi) -> None:
    profile = _run(mpi, "many", "1000").open()
    profile.check()
    made = [row for name, row in profile.comms().items() if name[0] == "d"]
    assert sorted(row["name"] for row in made) == sorted(f"d0.{n}" for n in range(1, 1001))
    assert all(row["members"] == "0-3" and row["freed_ns"] >= row["created_ns"] for row in made)
    assert len({row["family"] for row in made}) == 1, "one line made them all"
    assert profile.calls("MPI_Barrier", "d%") == {f"d0.{n}": dict.fromkeys(ALL, 1) for n in range(1, 1001)}
    order = [row["created_ns"] for row in made]
    assert order == sorted(order), "ids follow the order of creation"


def test_families_are_line_and_parent(mpi: Mpi) -> None:
    communicators = _run(mpi, "families").open().comms()
    family = {name: row["family"] for name, row in communicators.items()}
    assert len({family["d0.1"], family["d0.3"], family["d0.5"]}) == 1
    assert len({family["d0.2"], family["d0.4"], family["d0.6"]}) == 1
    assert family["s0.8"] == family["s1.8"]
    assert len({family[name] for name in ("W0.0", "d0.1", "d0.2", "d0.7", "s0.8")}) == 5
    without = _run(mpi, "families", env={"COMMLENS_CALLSITES": "0"}).open().comms()
    family = {name: row["family"] for name, row in without.items()}
    assert len({family[f"d0.{n}"] for n in (1, 3, 5, 7)}) == 1, (
        "without call sites the procedure and parent decide"
    )


def test_self_has_a_row_only_where_it_is_used(mpi: Mpi) -> None:
    assert set(_run(mpi, "split").open().comms()) & {f"S{rank}.0" for rank in ALL} == set()
    rows = _run(mpi, "dup").open().comms()
    for rank in ALL:
        assert rows[f"S{rank}.0"]["groups"] == [[rank]]
        assert rows[f"S{rank}.0"]["creator"] is None
    assert len({rows[f"S{rank}.0"]["family"] for rank in ALL}) == 1


# Debian's Open MPI reaches processes of another job over TCP only.
_DYNAMIC = {"OMPI_MCA_btl": "self,vader,tcp"}
_NEEDS = {
    "port": ["MPI_Comm_accept", "MPI_Comm_connect", "MPI_Open_port", "MPI_Close_port"],
    "join": ["MPI_Comm_join"],
    "spawn": ["MPI_Comm_spawn"],
    "spawn_multiple": ["MPI_Comm_spawn_multiple"],
}


def test_accept_and_connect(mpi: Mpi) -> None:
    result = _same_outcome(mpi, "port")
    if result.rc != 0:
        return  # Debian's MPICH has no ports over UCX: it fails, and fails the same under commlens
    profile = result.open()
    profile.check()
    between = {name: row for name, row in profile.comms().items() if name[0] in "AC"}
    assert len(between) == 1, "accept and connect made one communicator"
    ((name, row),) = between.items()
    assert (row["groups"], row["kind"]) == ([[0, 1], [2, 3]], "inter")
    assert row["freed_ns"] is not None
    assert profile.calls("MPI_Barrier", name) == {name: dict.fromkeys(ALL, 1)}


def test_join(mpi: Mpi) -> None:
    result = _same_outcome(mpi, "join")
    if result.rc != 0:
        return
    profile = result.open()
    profile.check()
    assert profile.comms()["J0.1"]["groups"] == [[0], [1]]
    assert profile.calls("MPI_Barrier", "J%") == {"J0.1": {0: 1, 1: 1}}


def test_ports_by_name(mpi: Mpi) -> None:
    program = mpi.compile("comms.c")
    plain, under = mpi.pair(4, [program, "published"], env=_DYNAMIC)
    assert (under.rc, under.lines) == (plain.rc, plain.lines)
    assert (plain.rc, plain.lines[0]) == (0, "published done")
    profile = under.open()
    profile.check()
    assert profile.calls("MPI_Lookup_name") == {"-": {1: 1, 2: 1, 3: 1}}
    for op in ("Open_port", "Publish_name", "Unpublish_name"):
        assert profile.calls(f"MPI_{op}") == {"-": {0: 1}}, op
    # Debian's MPICH opens no port over UCX; what is not open the program does not close.
    opened = any(line.startswith("rank 0: 1 ") for line in plain.lines)
    assert opened or mpi.name != "openmpi"
    assert profile.calls("MPI_Close_port") == ({"-": {0: 1}} if opened else {})


@pytest.mark.parametrize("how", ["spawn", "spawn_multiple"])
def test_a_spawned_program_that_is_not_profiled(mpi: Mpi, how: str) -> None:
    """What the parents know of it: that it has two processes, and what they sent."""
    if mpi.name == "mpich":
        pytest.skip("MPICH cannot spawn here: test_a_spawned_program_writes_a_profile_of_its_own")
    result = _same_outcome(mpi, how)
    profile = result.open()
    profile.check()
    assert profile.meta()["ranks"] == "4"
    assert [path.name for path in result.profile.parent.glob("*.db")] == [result.profile.name]
    rows = profile.comms()
    (link,) = (row for row in rows.values() if row["name"][0] in "pq")
    (merged,) = (row for row in rows.values() if row["name"][0] == "m")
    assert (link["size"], link["remote_size"], merged["size"]) == (4, 2, 6)
    assert profile.calls("MPI_Barrier", link["name"]) == {link["name"]: dict.fromkeys(ALL, 1)}
    assert profile.calls("MPI_Barrier", merged["name"]) == {merged["name"]: dict.fromkeys(ALL, 3)}


@pytest.mark.parametrize("how", ["spawn", "spawn_multiple"])
def test_a_spawned_program_writes_a_profile_of_its_own(mpi: Mpi, how: str) -> None:
    result = _same_outcome(mpi, how, mpi.runner)
    if result.rc != 0:
        return
    parents = result.open()
    children = Profile(result.profile.with_suffix(".1.db"))
    if parents.meta()["ranks"] == "2":  # whoever ended first took the name
        parents, children = children, parents
    for profile, ranks, letter in ((parents, ALL, "p" if how == "spawn" else "q"), (children, [0, 1], "P")):
        profile.check()
        assert profile.meta()["ranks"] == str(len(ranks))
        rows = profile.comms()
        assert len(rows) == 5
        (link,) = (row for row in rows.values() if row["name"][0] == letter)
        (merged,) = (row for row in rows.values() if row["name"][0] == "m")
        assert (link["kind"], link["size"], link["remote_size"]) == ("inter", len(ranks), 6 - len(ranks))
        assert (merged["kind"], merged["size"], merged["parent"]) == ("intra", 6, link["id"])
        assert link["freed_ns"] is not None
        assert profile.calls("MPI_Barrier", link["name"]) == {link["name"]: dict.fromkeys(ranks, 1)}
        # both halves of the merged one have their leader among the parents: their world ranks 0 and 1
        parts = [row for row in rows.values() if row["name"][0] == "s"]
        assert [row["size"] for row in parts] == [3, 3]
        leaders: set[int | None] = {0, 1} if letter != "P" else {None}
        assert {row["leader"] for row in parts} == leaders
        halves = {frozenset(profile.calls("MPI_Barrier", row["name"])[row["name"]].items()) for row in parts}
        assert halves == {
            frozenset((rank, 4 + parity) for rank in ranks if rank % 2 == parity) for parity in (0, 1)
        }
        assert profile.calls("MPI_Barrier", merged["name"]) == {merged["name"]: dict.fromkeys(ranks, 3)}
    worlds = [profile.rows("SELECT DISTINCT world FROM rank") for profile in (parents, children)]
    assert len(worlds[0]) == len(worlds[1]) == 1
    assert worlds[0] != worlds[1]


def _same_outcome(mpi: Mpi, case: str, runner: Path = Path("/usr/bin/env")) -> Result:
    program = mpi.compile("comms.c")
    plain = mpi.run(4, [program, case, "/usr/bin/env"], env=_DYNAMIC, mode="off")
    if mpi.name == "openmpi":
        mpi.skip_if_broken(plain)
    result = mpi.run(4, [program, case, runner], env=_DYNAMIC)
    assert plain.rc == 0 or mpi.name != "openmpi", plain
    assert result.rc == plain.rc or mpi.fails_by_itself(plain), result
    if plain.rc == 0:  # what a failing launcher prints has process ids in it
        assert result.lines == plain.lines
    else:
        mpi.note_failing(*_NEEDS[case])
    return result


def test_equal_calls_on_communicators_of_idup_one_after_the_other(mpi: Mpi) -> None:
    """The call cache knows none of them by the handle of an earlier one, and their parent while they are unfinished."""
    result = mpi.run(2, [mpi.compile("idup_pending.c"), "repeat"])
    assert result.rc == 0, result
    profile = result.open()
    profile.check()
    assert profile.calls("MPI_Allreduce") == {
        f"i0.{n}": dict.fromkeys((0, 1), 3 if n % 2 == 0 else 2) for n in range(1, 201)
    }
    assert profile.calls("MPI_Iprobe") == {"W0.0": dict.fromkeys((0, 1), 300)}


def test_calls_on_a_communicator_that_is_still_being_made(mpi: Mpi) -> None:
    plain, result = mpi.pair(4, [mpi.compile("idup_pending.c")])
    assert (
        (result.rc, result.lines) == (plain.rc, plain.lines) == (0, [f"{rank} sees 2" for rank in range(4)])
    )
    profile = result.open()
    profile.check()
    assert set(profile.comms()) == {"W0.0", "i0.1", "s0.2", "s1.2", "I0.3", "i0.4"}
    assert profile.comms()["i0.1"]["parent_name"] == "W0.0"
    assert profile.comms()["i0.4"]["parent_name"] == "I0.3"
    assert profile.calls("MPI_Barrier") == dict.fromkeys(("i0.1", "i0.4"), dict.fromkeys(range(4), 1))


def test_threads_make_communicators_at_the_same_time(mpi: Mpi) -> None:
    result = mpi.run(2, [mpi.compile("comms_threads.c")], timeout=120)
    assert (result.rc, result.stdout) == (0, "done\n"), result
    profile = result.open()
    profile.check()
    rows = profile.comms()
    roots = [row["name"] for row in rows.values() if row["parent_name"] == "W0.0"]
    assert len(roots) == 3
    barriers = profile.calls("MPI_Barrier")
    for number, root in enumerate(sorted(roots), 1):
        children = [row for row in rows.values() if row["parent_name"] == root]
        assert len(children) == 40
        for position, row in enumerate(sorted(children, key=lambda row: row["created_ns"]), 1):
            assert row["groups"] == [[0, 1]]
            # thread `number` gives its position-th child that many barriers, the second kind of child one more
            assert barriers[row["name"]] == dict.fromkeys((0, 1), number + position % 3), row
    assert profile.rows("SELECT threads FROM rank") == [{"threads": 4}] * 2
