# SPDX-License-Identifier: Apache-2.0
"""The algorithms of collectives in the page: the lines of the command, and drawings of the recorded messages only."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Browser, browser
from build_profile import PeerRow, ProfileBuilder
from conftest import Run
from test_cli_algorithms import do, joined, new, tell
from test_page import compare

from commlens.algorithms.registry import algorithm
from commlens.algorithms.schedule import Call
from commlens.algorithms.trees import at_root, binomial, depth
from commlens.page.build import page
from commlens.page.collectives import collectives
from commlens.profile import open_profile

pytestmark = pytest.mark.long

RANKS = 16
ROOT = 3
Messages = dict[tuple[int, int], tuple[int, int]]


@pytest.fixture(scope="module")
def tab() -> Iterator[Browser]:
    with browser() as found:
        yield found


def several() -> ProfileBuilder:
    """Return a profile with a tree, a chain, a ring and exchanges; the ring runs on ranks in the opposite order."""
    build = new(RANKS)
    do(build, algorithm("bcast", "binomial"), Call(RANKS, block=100, root=ROOT), calls=5)
    do(build, algorithm("bcast", "pipeline"), Call(RANKS, block=5000), calls=2)
    do(build, algorithm("allreduce", "recursive_doubling"), Call(RANKS, block=64), calls=3)
    ranks = list(range(RANKS))
    for odd in (0, 1):
        half = build.comm(f"s{odd}.1", ranks[odd::2][::-1], parent=1, creator="MPI_Comm_split", family=2)
        do(build, algorithm("allgather", "ring"), Call(RANKS // 2, block=700), calls=4, comm=half)
    return build


def written(build: ProfileBuilder, folder: Path) -> Path:
    joined(build)
    return build.write(folder / "collectives.db")


def page_of(profile: Path) -> Path:
    target = profile.with_suffix(".html")
    with open_profile(str(profile)) as connection:
        target.write_text(page(connection, profile), encoding="utf-8")
    return target


def sent(name: str, collective: str, call: Call, calls: int) -> Messages:
    """Return messages and bytes of each pair, by the messages of the algorithm one by one."""
    found: Messages = {}
    steps = algorithm(collective, name).schedule(call)
    for source, destination, nbytes in zip(
        steps.source.tolist(), steps.destination.tolist(), steps.bytes.tolist()
    ):
        old = found.get((source, destination), (0, 0))
        found[source, destination] = (old[0] + calls, old[1] + calls * nbytes)
    return found


def arrows(tab: Browser) -> Messages:
    """Return what the page draws: the tooltips of the arrows, which name both ranks, messages and bytes."""
    titles = tab.run(
        "return [...document.querySelectorAll('#inside .edge title')].map((each) => each.textContent)"
    )
    found = {}
    for title in titles:
        source, destination, messages = re.fullmatch(r"(\d+) → (\d+): ([\d,]+) messages?, .*", title).groups()  # type: ignore[union-attr]
        assert (int(source), int(destination)) not in found
        found[int(source), int(destination)] = int(messages.replace(",", ""))
    rows = csv.DictReader(io.StringIO(tab.results()["inside"]["csv"]))
    table = {
        (int(row["source"]), int(row["destination"])): (int(row["messages"]), int(row["bytes"]))
        for row in rows
    }
    assert found == {pair: messages for pair, (messages, _) in table.items()}
    return table


def nodes(tab: Browser) -> list[tuple[float, float]]:
    """Return where the ranks are."""
    found = tab.run(
        "return [...document.querySelectorAll('#inside .node circle')].map((each) => [+each.getAttribute('cx'), +each.getAttribute('cy')])"
    )
    return [(x, y) for x, y in found]


def test_the_page_has_the_lines_of_the_command(tmp_path: Path, run: Run) -> None:
    profile = written(several(), tmp_path)
    said = json.loads(run("algorithms", profile, "--format", "json").stdout)
    with open_profile(str(profile)) as connection:
        found = collectives(connection)
    assert found["remarks"] == said["remarks"] == []
    assert len(found["lines"]) == len(said["lines"]) == 4
    for own, line in zip(found["lines"], said["lines"]):
        for name in ("line", "comms", "ranks", "procedure", "calls", "fit"):
            assert own[name] == line[name]
        assert own["algorithm"].startswith(line["verdict"])
        assert own["root"] == ", ".join(str(root["rank"]) for root in line["roots"])
        assert own["drawing"]["root"] == (line["roots"][0]["rank"] if line["roots"] else None)


def test_a_tree_is_drawn_in_layers_from_its_root(tab: Browser, tmp_path: Path) -> None:
    profile = written(several(), tmp_path)
    tab.open(page_of(profile), "view=peers&bin=7&op=3")
    assert (
        tab.run("return document.querySelector('#inside h2').textContent")
        == "Inside MPI_Bcast on W0.0 MPI_COMM_WORLD"
    )
    said = tab.run("return document.querySelector('#inside .about').textContent")
    assert said.startswith("MPI_Bcast of 100 B: binomial, root 3, depth 4, degree 4. Fit: 100 %.")
    assert "all 5 calls" in said
    assert arrows(tab) == sent("binomial", "bcast", Call(RANKS, block=100, root=ROOT), 5)
    left = [x for x, _ in nodes(tab)]
    layers = sorted(set(left))
    assert [layers.index(x) for x in left] == depth(at_root(binomial(RANKS), ROOT)).tolist()
    assert len(set(nodes(tab))) == RANKS
    assert tab.run("return document.querySelector('#inside .node.root text').textContent") == str(ROOT)
    with open_profile(str(profile)) as connection:
        assert compare(connection, "inside", tab.results()["inside"]) == RANKS - 1
    assert tab.complaints() == []


@pytest.mark.parametrize(
    ("line", "collective", "name", "call", "calls"),
    [
        (1, "allreduce", "recursive_doubling", Call(RANKS, block=64), 3),
        (3, "bcast", "pipeline", Call(RANKS, block=5000), 2),
        (4, "allgather", "ring", Call(RANKS // 2, block=700), 4),
    ],
)
def test_rings_exchanges_and_long_chains_are_on_a_circle(
    tab: Browser, tmp_path: Path, line: int, collective: str, name: str, call: Call, calls: int
) -> None:
    profile = written(several(), tmp_path)
    tab.open(page_of(profile), "view=peers")
    tab.run(f"[...document.querySelectorAll('#algorithms .pick')][{line - 1}].click()")
    tab.wait_until(f"location.hash.endsWith('inside={line}')")
    assert arrows(tab) == sent(name, collective, call, calls)
    places = nodes(tab)
    middle = [sum(each) / len(places) for each in zip(*places)]
    assert len(places) == call.size
    radii = [math.dist(place, middle) for place in places]
    assert max(radii) - min(radii) < 1
    with open_profile(str(profile)) as connection:
        assert compare(connection, "inside", tab.results()["inside"]) == len(arrows(tab))
    said = tab.run("return document.querySelector('#inside .about').textContent")
    assert ("the first of 2 communicators" in said) == (name == "ring")
    (row,) = [
        row
        for row in csv.DictReader(io.StringIO(tab.results()["algorithms"]["csv"]))
        if row["line"] == str(line)
    ]
    assert name in row["algorithm"]


def test_a_rank_shows_its_messages_and_restricts_the_views(tab: Browser, tmp_path: Path) -> None:
    tab.open(page_of(written(several(), tmp_path)), "view=peers&inside=4")
    first = "document.querySelectorAll('#inside .node')[2]"
    tab.run(f"{first}.dispatchEvent(new Event('focus'))")
    # Rank 2 of s0.1 is world rank 10.
    assert tab.run("return document.querySelector('#inside .readout').textContent") == (
        "rank 2 (world 10) sends 28 messages, 19.1 KiB, to 3; receives 28 messages, 19.1 KiB, from 1"
    )
    assert tab.run("return document.querySelectorAll('#inside .edge.lit').length") == 2
    tab.run(f"{first}.dispatchEvent(new KeyboardEvent('keydown', {{key: 'Enter'}}))")
    tab.wait_until("document.querySelectorAll('.chip').length === 1")
    assert tab.run("return location.hash") == "#view=peers&rank=10&inside=4"
    assert tab.run("return document.querySelector('#inside .node.picked text').textContent") == "2"


def test_the_filter_leaves_lines_and_a_line_that_it_removes_is_not_drawn(
    tab: Browser, tmp_path: Path
) -> None:
    file = page_of(written(several(), tmp_path))

    def lines(filter: str) -> list[str]:
        tab.open(file, f"view=peers&{filter}")
        results = tab.results()
        if "algorithms" not in results:
            return []
        return [row["line"] for row in csv.DictReader(io.StringIO(results["algorithms"]["csv"]))]

    assert lines("") == ["1", "2", "3", "4"]
    assert lines("comm=3&inside=1") == lines("family=2") == ["4"]
    assert (
        tab.run("return document.querySelector('#inside h2').textContent")
        == "Inside MPI_Allgather on s0.1 x2"
    )
    assert lines("op=3") == ["2", "3"]
    assert lines("op=3&bin=13") == ["3"]
    assert lines("op=4") == []


def test_only_recorded_messages_are_drawn(tab: Browser, tmp_path: Path) -> None:
    """Also if they are those of no known algorithm, or of one but for a message."""
    build = new(6)
    do(build, algorithm("bcast", "linear"), Call(6, block=100), calls=40)
    tell(build, 4, 5, 3, 100, call_bin=7)
    odd = build.comm("s0.1", [5, 3, 1], parent=1)
    for rank in build.comms[odd].ranks:
        build.count(odd, "MPI_Allreduce", rank, 7, 1000, 8, 56, 56)
    tell(build, 5, 3, 3, 8, odd, "MPI_Allreduce", 4)
    build.peers.append(PeerRow(odd, "collective", "MPI_Allreduce", 4, 0, 0, 3, None, 2, 1, 4, 9, 72))
    build.peers.append(PeerRow(odd, "collective", "MPI_Allreduce", 4, 0, 0, 3, None, None, 1, 4, 5, 40))
    profile = written(build, tmp_path)
    file = page_of(profile)
    tab.open(file, "view=peers&inside=1")
    linear = sent("linear", "bcast", Call(6, block=100), 40)
    assert arrows(tab) == {**linear, (4, 5): (3, 300)}
    tab.go("view=peers&inside=2")
    assert arrows(tab) == {(0, 1): (3, 24), (1, 2): (9, 72)}
    assert "No known algorithm" in tab.run("return document.querySelector('#inside .about').textContent")
    with open_profile(str(profile)) as connection:
        assert compare(connection, "inside", tab.results()["inside"]) == 2


def test_a_large_communicator_gets_a_link_to_its_matrix(tab: Browser, tmp_path: Path) -> None:
    build = new(80)
    do(build, algorithm("bcast", "binomial"), Call(80, block=100))
    half = build.comm("s0.1", list(range(64)), parent=1)
    do(build, algorithm("bcast", "binomial"), Call(64, block=100), comm=half)
    do(build, algorithm("alltoall", "pairwise"), Call(64, block=100), comm=half)
    file = page_of(written(build, tmp_path))
    for line, is_drawn in ((1, False), (2, False), (3, True)):
        tab.open(file, f"view=peers&inside={line}")
        assert tab.run("return document.querySelector('#inside svg') !== null") == is_drawn
        assert ("inside" in tab.results()) == is_drawn
    tab.go("view=peers&inside=1")
    tab.run("document.querySelector('#inside a').click()")
    tab.wait_until("document.querySelectorAll('.chip').length === 1")
    assert "comm=1" in tab.run("return location.hash")
    assert tab.run("return document.querySelector('input[name=kind]:checked').value") == "collective"


def test_the_arrows_of_a_recorded_run(tab: Browser, tmp_path: Path) -> None:
    recorded = Path(__file__).parents[1] / "profiles" / "version10.db"
    profile = tmp_path / "recorded.db"
    profile.write_bytes(recorded.read_bytes())
    tab.open(page_of(profile), "view=peers&inside=1")
    assert arrows(tab) == {(0, 1): (1, 400), (0, 2): (1, 400), (1, 3): (1, 400)}


def test_without_messages_the_page_says_what_a_run_needs(tab: Browser, tmp_path: Path) -> None:
    build = ProfileBuilder(ranks=2, meta={"inside": "not asked for"})
    build.send(0, 1, 1, 8)
    tab.open(page_of(build.write(tmp_path / "p2p.db")), "view=peers")
    said = tab.run("return document.querySelector('#algorithms p').textContent")
    assert "COMMLENS_MATRIX=all" in said
    assert tab.run("return document.getElementById('inside')") is None


@pytest.mark.parametrize("width", [380, 1400])
def test_names_of_strangers_are_text_and_fit(tab: Browser, tmp_path: Path, width: int) -> None:
    evil = "<img src=x onerror='window.evil=1'></script><script>window.evil=2</script>\u202e" + "x" * 300
    build = new(64)
    comm = build.comm(evil, list(range(64)), user_name=evil, parent=1)
    do(build, algorithm("bcast", "linear"), Call(64, block=100), comm=comm)
    tab.resize(width)
    file = page_of(written(build, tmp_path))
    tab.open(file, "view=peers")
    tab.complaints()
    shown: Any = tab.run("return document.querySelector('#inside h2').textContent")
    assert "<img src=x onerror='window.evil=1'>" in shown
    assert "\u202e" not in shown
    assert tab.run("return [window.evil ?? null, document.querySelectorAll('img, #page script').length]") == [
        None,
        0,
    ]
    assert tab.run("return document.documentElement.scrollWidth <= window.innerWidth")
    assert len(arrows(tab)) == 63
    assert tab.complaints() == []
    tab.resize(1400)
