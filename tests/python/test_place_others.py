# SPDX-License-Identifier: Apache-2.0
"""commlens place --mapper: KaHIP and Scotch as back ends, with a program that stands for Scotch's."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import pytest
from conftest import Run
from test_place import graph_of, shuffled_profile

from commlens.base.errors import CommlensError
from commlens.place import others
from commlens.place.machine import Slot, build, regular
from commlens.place.mapper import place

# Reads what Scotch reads, checks it, and writes what Scotch writes: vertex v to group v * groups // size, or all to one.
GMAP = """#!{python}
import sys
graph, target, mapping = sys.argv[1:]
lines = open(graph).read().split("\\n")
assert lines[0] == "0" and lines[2] == "0 010"
size, arcs = map(int, lines[1].split())
rows = [list(map(int, line.split())) for line in lines[3:3 + size]]
assert len(rows) == size and sum(row[0] for row in rows) == arcs
pairs = {{}}
for vertex, row in enumerate(rows):
    assert len(row) == 1 + 2 * row[0]
    for weight, other in zip(row[1::2], row[2::2]):
        pairs[vertex, other] = weight
assert all(pairs[b, a] == weight > 0 for (a, b), weight in pairs.items())
kind, levels, *rest = open(target).read().split()
assert kind == "tleaf" and len(rest) == 2 * int(levels)
groups = 1
for count in rest[::2]:
    groups *= int(count)
open(sys.argv[3], "w").write(f"{{size}}\\n" + "".join(f"{{v}}\\t{{{group}}}\\n" for v in range(size)))
"""


def scotch(folder: Path, monkeypatch: pytest.MonkeyPatch, group: str, text: str = GMAP) -> None:
    """Put a program on the path that stands for Scotch's; `group` is the group of vertex v."""
    program = folder / "scotch_gmap"
    program.write_text(text.format(python=sys.executable, group=group))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


CHAIN = graph_of(16, {(rank, rank + 1): 10.0 for rank in range(15)})


def test_a_placement_of_scotch_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain in its order on 4 nodes of 4 slots: 3 pairs between nodes, at 20; 12 inside, at 4."""
    scotch(tmp_path, monkeypatch, "v * groups // size")
    found = place(CHAIN, build(regular(4, 1, 4)), by="scotch")
    assert (found.cost, found.late) == (10 * (3 * 20 + 12 * 4), 0)


def test_ranks_in_full_groups_get_other_slots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All 16 in the first of 4 groups: 12 have no room there. Two ranks stay where they must."""
    scotch(tmp_path, monkeypatch, "0")
    pins = {0: 15, 9: 2}
    found = place(CHAIN, build(regular(4, 1, 4)), by="scotch", pins=pins)
    assert found.late == 12
    assert sorted(found.slots.tolist()) == list(range(16))
    assert {rank: int(found.slots[rank]) for rank in pins} == pins


def test_a_start_that_is_better_remains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scotch(tmp_path, monkeypatch, "v % groups")
    start = np.arange(16)
    machine = build(regular(4, 1, 4))
    assert place(CHAIN, machine, by="scotch", starts=[start]).cost <= 10 * (3 * 20 + 12 * 4)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("#!{python}\nimport sys\nsys.exit('bad graph')\n", "failed: bad graph"),
        ("#!{python}\n", "wrote no mapping of 16 vertices"),
        ("#!{python}\nimport sys\nopen(sys.argv[3], 'w').write('genome')\n", "wrote no mapping"),
        ("#!{python}\nimport sys\nopen(sys.argv[3], 'w').write('1\\n99 0\\n')\n", "wrote no mapping"),
        (GMAP.replace("{{{group}}}", "7"), "wrote no mapping"),
        ("#!/nonexistent\n", "scotch_gmap: "),
    ],
)
def test_what_is_no_scotch_gets_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, line: str
) -> None:
    scotch(tmp_path, monkeypatch, "0", text)
    with pytest.raises(CommlensError, match=line) as error:
        place(CHAIN, build(regular(4, 1, 4)), by="scotch")
    assert "\n" not in str(error.value)


def test_groups_that_differ_get_one_line() -> None:
    uneven = build([*regular(4, 1, 4), Slot("more", (0,), (0,), (0, 0, -1))])
    for name in others.MAPPERS:
        with pytest.raises(
            CommlensError, match="need a machine whose nodes, sockets and other groups are all alike"
        ):
            place(CHAIN, uneven, by=name)


def test_what_is_not_installed_gets_one_line(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(name: str) -> None:
        raise PackageNotFoundError(name)

    profile = shuffled_profile(tmp_path / "p.db")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(others, "files", none)
    for name, line in (
        ("kahip", "KaHIP is not installed: pip install kahip"),
        ("scotch", "Scotch is not installed: there is no program scotch_gmap or gmap on the path"),
    ):
        result = run("place", profile, "--mapper", name)
        assert (result.exit_code, result.stderr) == (2, f"commlens: {line}\n")


def test_the_command_says_who_searched(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    scotch(tmp_path, monkeypatch, "0")
    result = run("place", shuffled_profile(tmp_path / "p.db"), "--mapper", "scotch")
    assert (result.exit_code, result.stderr) == (0, "")
    words = " ".join(result.stdout.split())
    assert "searched by Scotch, then improved by moves and swaps of ranks." in words
    assert "Scotch had put 12 of the ranks and free slots into full groups" in words


def test_kahip_places_a_chain() -> None:
    try:
        others.kahip_library()
    except CommlensError as error:
        pytest.skip(str(error))
    found = place(CHAIN, build(regular(4, 1, 4)), by="kahip")
    assert found.cost == 10 * (3 * 20 + 12 * 4)
