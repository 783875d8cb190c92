# SPDX-License-Identifier: Apache-2.0
"""Messages that are easily attributed to a wrong process: compared with the lists of peer_cases.c."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from build_once import PATIENCE
from harness import LINK, Mpi, commlens
from launches import Result, started
from profile_rows import Profile
from test_annotated import INCLUDE

Sums = dict[tuple[int, int], tuple[int, int]]
"""(source, destination) -> (messages, bytes), in world ranks, of all communicators together."""

RANKS = 6
P2P: dict[str, str] = {}
ALL = {"COMMLENS_MATRIX": "all", "COMMLENS_MATRIX_BY": "both"}
BOTH = pytest.mark.parametrize("env", [P2P, ALL], ids=["p2p", "all"])


def said(result: Result, kind: str) -> Sums:
    """Return the ranks' own counts."""
    rows = [line.split() for line in result.lines if line.startswith(f"{kind} ")]
    return {(int(s), int(d)): (int(messages), int(size)) for _, s, d, messages, size in rows}


def told(profile: Profile, kind: str, where: str = "1") -> Sums:
    """Return the counts of the profile."""
    sql = (
        "SELECT source, destination, SUM(messages) AS messages, SUM(bytes) AS bytes "
        f"FROM pair JOIN op ON op.id = op WHERE kind = ? AND {where} GROUP BY 1, 2"
    )
    rows = [tuple(row.values()) for row in profile.rows(sql, kind)]
    return {(s, d): (messages, size) for s, d, messages, size in rows}


def run(mpi: Mpi, case: str, env: dict[str, str], n: int = RANKS) -> Result:
    """Run a case of peer_cases.c that ends well."""
    # Without commlens, too, Open MPI 4.1.4 fails at times where many windows are made with osc/rdma.
    known = {"OMPI_MCA_osc": "^rdma"} if mpi.is_open_mpi_4 else {}
    result = mpi.run(n, [mpi.compile("peer_cases.c"), case], {**known, **env}, timeout=180)
    assert result.rc == 0, result
    result.open().check()
    return result


def matrix(profile: Path, *arguments: str) -> dict[str, Any]:
    """Return the output of `commlens matrix`."""
    done = commlens("matrix", "--format", "json", *arguments, profile)
    assert done.returncode == 0, done
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def differences(profile: Path) -> list[tuple[int, int, int, int, int, int, str]]:
    """Return where both ends differ: the pair, messages sent and received, bytes sent and received, and why."""
    keys = (
        "source",
        "destination",
        "messages_sent",
        "messages_received",
        "bytes_sent",
        "bytes_received",
        "reason",
    )
    return sorted(tuple(d[key] for key in keys) for d in matrix(profile)["ends"]["differences"])


@pytest.mark.dealt
@BOTH
@pytest.mark.parametrize(
    "case", ["any", "null", "cancelled", "partial", "persistent", "parts", "one-sided", "nobody", "threads"]
)
def test_every_message_is_told_to_whom_it_went(mpi: Mpi, case: str, env: dict[str, str]) -> None:
    result = run(mpi, case, env)
    profile = result.open()
    for kind in ("sent", "put", "get"):
        assert told(profile, kind) == said(result, kind), kind
    assert told(profile, "received") == said(result, "sent")
    shown = matrix(result.profile)
    assert {(p["source"], p["destination"]): (p["messages"], p["bytes"]) for p in shown["pairs"]} == said(
        result, "sent"
    )
    assert shown["ends"] == {"equal": shown["ends"]["equal"], "left_out": 0, "differences": []}
    assert bool(shown["ends"]["equal"]) == bool(said(result, "sent"))


def test_what_replaces_its_own_buffer(mpi: Mpi) -> None:
    """MPI_Sendrecv_replace and its non-blocking forms, for which MPICH does not report the received bytes."""
    result = run(mpi, "replaced", P2P)
    sent = said(result, "sent")
    assert told(result.open(), "sent") == sent
    received = told(result.open(), "received")
    if mpi.family == "openmpi":
        assert received == sent
        return
    assert received == {(s, d): (1, 4 * (10 + (d - s) % RANKS)) for s, d in sent}
    reasons = {difference[-1] for difference in differences(result.profile)}
    assert reasons == (
        {"MPI_Isendrecv: this MPI library does not report what arrived"} if received != sent else set()
    )


@BOTH
def test_messages_between_two_groups_and_from_one_to_the_other(mpi: Mpi, env: dict[str, str]) -> None:
    """In world ranks; also of a copy that lives on when its parent is freed, and of collectives between them."""
    result = run(mpi, "inter", env)
    profile = result.open()
    sent = said(result, "sent")
    assert told(profile, "sent") == told(profile, "received") == sent
    # 3 rounds of 9 messages each way, and one in the merged communicator
    assert sum(messages for messages, _ in sent.values()) == 3 * 18 + 1
    if env is P2P:
        return
    groups = [[4, 2, 0], [1, 3, 5]]
    other = {rank: groups[1 - rank % 2] for rank in range(RANKS)}
    assert told(profile, "share", "op.name = 'MPI_Alltoallv'") == {
        (rank, peer): (1, 12) for rank in range(RANKS) for peer in other[rank]
    }
    if mpi.name != "openmpi":  # others, and later ones, may do it in another way
        return
    inside = told(profile, "collective", "op.name = 'MPI_Bcast'")
    assert list(inside.values()) == [(1, 20)] * 3
    assert (4, 1) in inside, "from the root to the first of the other group, which hands it on to its own"
    assert all(s % 2 == d % 2 == 1 for s, d in inside if (s, d) != (4, 1))
    # each first one collects 8 bytes of two, tells the other first one, and what comes back goes on to two
    inside = told(profile, "collective", "op.name = 'MPI_Allgather'")
    assert inside[4, 1] == inside[1, 4] == (1, 24)
    assert sum(size for _, size in inside.values()) == 2 * (24 + 2 * 8 + 2 * 24)
    assert all(s % 2 == d % 2 for s, d in inside if (s, d) not in ((4, 1), (1, 4)))


def test_messages_without_a_known_receiver_are_not_left_out(mpi: Mpi) -> None:
    """While an intercommunicator is created, Open MPI does not report the destination of a message."""
    if mpi.name != "openmpi":
        pytest.skip("where they are seen, and what they are, is known of this one")
    result = run(mpi, "inter", ALL)
    rows = result.open().rows(
        "SELECT SUM(messages) AS messages, SUM(bytes) AS bytes, SUM(peer IS NULL AND first IS NULL) AS loose "
        "FROM peer JOIN flow ON flow.id = flow WHERE flow.name = 'internal'"
    )
    (all_of_them,) = rows
    assert all_of_them["loose"] > 0
    shown = matrix(result.profile, "--kind", "internal")
    assert shown["not_told_apart"]["messages"] > 0
    for what in ("messages", "bytes"):
        assert sum(pair[what] for pair in shown["pairs"]) + shown["not_told_apart"][what] == all_of_them[what]
        (in_view,) = result.open().column(f"SELECT SUM({what}) FROM pair WHERE kind = 'internal'")
        assert in_view == all_of_them[what]


@BOTH
def test_neighbourhood_collectives(mpi: Mpi, env: dict[str, str]) -> None:
    """What they have for each neighbour on a grid, a line and a graph; their messages where those are seen."""
    result = run(mpi, "neighbors", env)
    blocks = said(result, "share")
    assert (0, 0) in blocks
    others = {(s, d): sums for (s, d), sums in blocks.items() if s != d}
    assert told(result.open(), "share") == others
    if mpi.family == "openmpi" and env is ALL:
        assert told(result.open(), "collective", "op.name LIKE '%neighbor%'") == blocks


def test_what_is_never_received(mpi: Mpi) -> None:
    """The sender counts it, whether it tried to cancel it or not."""
    if mpi.family == "mpich" and not mpi.known:
        pytest.skip("MPICH 4.1 and later may end a program that has not received all messages")
    result = run(mpi, "unreceived", P2P, 3)
    sent = said(result, "sent")
    assert told(result.open(), "sent") == sent
    assert told(result.open(), "received") == dict.fromkeys(sent, (1, 16))
    why = (
        "not received: the receive was cancelled or its request never completed, or the receiver paused counting or cleared "
        "its counters"
    )
    assert differences(result.profile) == [
        (0, 1, 3, 1, 16 + 36 + 44, 16, why),
        (1, 2, 2, 1, 16 + 36, 16, why),
        (2, 0, 2, 1, 16 + 36, 16, why),
    ]
    assert commlens("matrix", "--check", result.profile).returncode == 1


@pytest.mark.parametrize("lost", [False, True], ids=["recovered", "lost"])
def test_one_end_is_killed(mpi: Mpi, lost: bool) -> None:
    """Its last messages have one end; so have all, where nothing of it is left."""
    where = mpi.fresh("killed")
    arenas, output = where / "arenas", where / "recovered.db"
    arenas.mkdir()  # whom the launcher ends has left a copy beside the output
    command, environment = mpi.prepare(
        2, [mpi.compile("peer_cases.c"), "killed"], {"COMMLENS_ARENA_DIR": str(arenas)}, where / "profile.db"
    )
    with started(command, environment, where) as process:
        assert process.wait(60 * PATIENCE) != 0
    if lost:
        recovered = commlens("recover", "-o", where / "both.db", arenas, where)
        assert recovered.returncode == 0, recovered
        (pid,) = Profile(where / "both.db").column("SELECT pid FROM rank WHERE rank = 1")
        (gone,) = (path for path in arenas.iterdir() if f"-{pid}-" in path.name)
        gone.unlink()
    recovered = commlens("recover", "-o", output, arenas, where)
    assert recovered.returncode == (3 if lost else 0), recovered
    profile = Profile(output)
    assert profile.rows("PRAGMA foreign_key_check") == []
    assert told(profile, "sent") == {(0, 1): (4, 4 * (1 + 2 + 3 + 8)), **({} if lost else {(1, 0): (1, 28)})}
    assert told(profile, "received") == {(1, 0): (1, 28), **({} if lost else {(0, 1): (3, 24)})}
    if lost:
        why = "rank 1 is not in this profile"
        assert differences(output) == [(0, 1, 4, 0, 56, 0, why), (1, 0, 0, 1, 0, 28, why)]
    else:
        (found,) = differences(output)
        assert found[:6] == (0, 1, 4, 3, 56, 24)
        assert found[6].startswith("rank ") and "did not reach MPI_Finalize: " in found[6]
        assert "both ends   sent and received are equal in 1 of 2 pairs" in commlens("matrix", output).stdout


@BOTH
def test_a_child_that_talks_is_nobody(mpi: Mpi, env: dict[str, str]) -> None:
    """It shares what its parent counts in."""
    result = run(mpi, "forked", env, 2)
    assert [line for line in result.lines if line.startswith("child")] == ["child 33"] * 2
    assert told(result.open(), "sent") == told(result.open(), "received") == said(result, "sent")


def test_two_worlds(mpi: Mpi) -> None:
    """Processes of another world have no world rank here: their messages are counted, and belong to no pair."""
    if mpi.name == "mpich":
        pytest.skip("cannot spawn over UCX")
    program = mpi.compile("peer_cases.c")
    result = mpi.run(
        3, [program, "spawn", mpi.runner], {"OMPI_MCA_btl": "self,tcp"} if mpi.family == "openmpi" else {}
    )
    mpi.skip_if_broken(result)
    assert result.rc == 0, result
    first, second = Profile(result.profile), Profile(result.profile.with_suffix(".1.db"))
    if first.meta()["ranks"] == "2":
        first, second = second, first
    parents, children = 3, 2
    for profile, mine, theirs, base, shift in (
        (first, parents, children, 1, 0),
        (second, children, parents, 100, 3),
    ):
        profile.check()
        across = [base + 10 * me + i for me in range(mine) for i in range(theirs)]
        arrived = [(101 - base) + 10 * i + me for me in range(mine) for i in range(theirs)]
        ring = [200 + shift + me for me in range(mine - 1)]
        to_me, from_me = 200 + (shift - 1) % 5, 200 + shift + mine - 1
        inside = {(me, me + 1): (1, 4 * ints) for me, ints in enumerate(ring)}
        loose = {"sent": [*across, from_me], "received": [*arrived, to_me]}
        for kind, sizes in loose.items():
            known = told(profile, kind, "source IS NOT NULL AND destination IS NOT NULL")
            assert known == inside, kind
            nobody = told(profile, kind, "(source IS NULL OR destination IS NULL)")
            assert sum(m for m, _ in nobody.values()) == len(sizes)
            assert sum(size for _, size in nobody.values()) == 4 * sum(sizes)
        shown = matrix(profile.path)
        assert shown["not_told_apart"]["messages"] == len(loose["sent"])
        assert shown["not_told_apart"]["bytes"] == 4 * sum(loose["sent"])
        assert shown["ends"]["differences"] == []


@pytest.mark.parametrize("by", ["none", "region", "slice", "both"])
def test_a_message_is_of_the_region_that_began_it(mpi: Mpi, by: str) -> None:
    """Where its call or request was made, like its bytes: also when that ends in a region that does not count."""
    result = marks(mpi, "regions", {"COMMLENS_REGIONS": "!quiet", "COMMLENS_MATRIX_BY": by})
    parts = {
        "sent": {"": (1, 4), "sends": (1, 8), "sends/within": (1, 12), "posts": (2, 48)},
        "received": {"": (1, 4), "posts": (1 + 2, 8 + 48), "sends/within": (1, 12)},
    }
    for kind, expected in parts.items():
        if by in ("none", "slice"):
            expected = {"": (sum(m for m, _ in expected.values()), sum(b for _, b in expected.values()))}
        sql = (
            "SELECT path, SUM(messages) AS m, SUM(bytes) AS b FROM pair JOIN region_path USING (region) "
            "WHERE kind = ? AND source = 0 AND destination = 1 GROUP BY path"
        )
        assert {row["path"]: (row["m"], row["b"]) for row in result.open().rows(sql, kind)} == expected
    if by in ("region", "both"):
        for region, sums in (("posts", (2, 48)), ("sends", (2, 20))):
            shown = matrix(result.profile, "--region", region)
            found = {(p["source"], p["destination"]): (p["messages"], p["bytes"]) for p in shown["pairs"]}
            assert found == ring(sums)
    assert matrix(result.profile)["ends"]["differences"] == []


def test_slices_of_time(mpi: Mpi) -> None:
    """Four exchanges more than half a second apart are in slices of their own, and in the order of time."""
    result = marks(mpi, "slices", {"COMMLENS_MATRIX_BY": "slice"})
    width = int(result.open().meta()["slice_ns"])
    last = {}
    for kind in ("sent", "received"):
        rows = result.open().rows(
            "SELECT slice, messages, bytes FROM pair WHERE kind = ? AND source = 0 AND destination = 1 ORDER BY slice",
            kind,
        )
        assert [(row["messages"], row["bytes"]) for row in rows] == [(1, 4 * i) for i in (1, 2, 3, 4)]
        apart = [later["slice"] - sooner["slice"] for sooner, later in zip(rows, rows[1:])]
        assert all(slices * width > 500_000_000 for slices in apart)
        last[kind] = rows[-1]["slice"]
    # On a busy machine a message is received some slices later; the matrix has it where it was sent.
    shown = matrix(result.profile, "--slice", f"0-{last['sent'] - 1}")
    assert {(p["source"], p["destination"]): p["messages"] for p in shown["pairs"]}[0, 1] == 3
    assert shown["ends"] is None, "what is sent in one slice may be received in the next"


def test_messages_from_before_the_counters_were_cleared(mpi: Mpi) -> None:
    """Three were sent before, and received after it."""
    result = marks(mpi, "reset")
    assert told(result.open(), "sent") == ring((2, 160))
    assert told(result.open(), "received") == ring((5, 160 + 40 + 44 + 48))
    why = "received, but not counted as sent: the sender paused counting or cleared its counters"
    assert differences(result.profile) == [(s, d, 2, 5, 160, 292, why) for s, d in sorted(ring((0, 0)))]


def test_one_end_clears_its_counters(mpi: Mpi) -> None:
    result = marks(mpi, "reset-one")
    assert [difference[:6] for difference in differences(result.profile)] == [
        (0, 1, 2, 1, 280, 80),
        (1, 2, 1, 2, 80, 280),
    ]


def test_what_is_said_in_a_pause_is_not_counted(mpi: Mpi) -> None:
    result = marks(mpi, "pause")
    assert told(result.open(), "sent") == told(result.open(), "received") == ring((2, 16))


@pytest.mark.parametrize("pairs", ["1", "64"])
def test_few_pairs_at_hand_lose_nothing(mpi: Mpi, pairs: str) -> None:
    """With communicators that come and go, peers that are not known, threads, regions and slices."""
    for case in ("threads", "inter", "any"):
        result = run(mpi, case, {**ALL, "COMMLENS_MATRIX_PAIRS": pairs})
        sent = said(result, "sent")
        for kind in ("sent", "received"):
            found = told(result.open(), kind)
            assert sum(m for m, _ in found.values()) == sum(m for m, _ in sent.values())
            assert sum(b for _, b in found.values()) == sum(b for _, b in sent.values())
        shown = matrix(result.profile)
        drawn = sum(pair["messages"] for pair in shown["pairs"]) + shown["not_told_apart"]["messages"]
        assert drawn == sum(m for m, _ in sent.values())
        assert shown["ends"]["differences"] == []


def ring(sums: tuple[int, int], n: int = 3) -> Sums:
    """Return a ring in which each has so many messages and bytes for the next."""
    return {(rank, (rank + 1) % n): sums for rank in range(n)}


def marks(mpi: Mpi, case: str, env: dict[str, str] | None = None) -> Result:
    """Run a case of peer_marks.c."""
    command: Sequence[str | Path] = [mpi.compile("peer_marks.c", "c", *LINK, flags=INCLUDE), case]
    result = mpi.run(3, command, env)
    assert result.rc == 0, result
    result.open().check()
    return result
