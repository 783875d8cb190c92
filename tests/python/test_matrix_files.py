# SPDX-License-Identifier: Apache-2.0
"""The files that `commlens matrix` writes: against packages that read them."""

from __future__ import annotations

import base64
import csv
import io
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from build_profile import ProfileBuilder
from conftest import Run
from matrices import Pair, Sums, pixels
from test_matrix import made_up, plain

from commlens.matrix.image import LETTERS

# Files.


@pytest.fixture
def known(tmp_path: Path) -> tuple[Path, Sums, int]:
    """Return a profile, its pairs, and how many ranks it has."""
    build = made_up(1)
    return build.write(tmp_path / "known.db"), plain(build, "p2p"), build.ranks


@pytest.mark.parametrize("what", ["messages", "bytes"])
def test_every_format_gives_back_what_was_written(
    known: tuple[Path, Sums, int], tmp_path: Path, run: Run, what: str
) -> None:
    import networkx
    import scipy.io
    import scipy.sparse

    path, expected, ranks = known
    index = ("messages", "bytes").index(what)
    one = {pair: sums[index] for pair, sums in expected.items()}

    def written(ending: str) -> Path:
        output = tmp_path / f"m{ending}"
        result = run("matrix", path, "--what", what, "--to", output)
        assert (result.exit_code, result.stdout, result.stderr) == (0, f"{output}\n", "")
        again = run("matrix", path, "--to", output)
        assert (again.exit_code, again.stderr) == (2, f"commlens: {output}: exists\n")
        return output

    def pairs_of(sparse: Any) -> dict[Pair, int]:
        assert sparse.shape == (ranks, ranks)
        found = scipy.sparse.coo_array(sparse)
        return {(int(r), int(c)): int(v) for r, c, v in zip(found.row, found.col, found.data)}

    printed = run("matrix", path, "--what", what, "--format", "json").stdout
    assert written(".json").read_text() == printed
    rows = list(csv.DictReader(io.StringIO(written(".csv").read_text())))
    assert {
        (int(r["source"]), int(r["destination"])): (int(r["messages"]), int(r["bytes"])) for r in rows
    } == expected
    npz = written(".npz")
    assert pairs_of(scipy.sparse.load_npz(npz)) == one
    with np.load(npz) as arrays:
        columns = [arrays[name].tolist() for name in ("row", "col", "messages", "bytes")]
        assert {(r, c): (m, b) for r, c, m, b in zip(*columns)} == expected
    assert pairs_of(scipy.io.mmread(written(".mtx"))) == one
    graph = networkx.read_graphml(written(".graphml"))
    assert graph.is_directed()
    assert {n: d["node"] for n, d in graph.nodes(data=True)} == {
        str(rank): f"node{rank * made_up(1).nodes // ranks}" for rank in range(ranks)
    }
    assert {
        (int(s), int(d)): (edge["messages"], edge["bytes"]) for s, d, edge in graph.edges(data=True)
    } == expected


def test_a_picture_has_a_square_of_its_colour_for_each_pair(tmp_path: Path, run: Run) -> None:
    build = ProfileBuilder(ranks=8)
    expected = {(0, 3): 10, (7, 7): 10, (5, 1): 1000}
    for (source, destination), size in expected.items():
        build.send(source, destination, 1, size)
    path = build.write(tmp_path / "p.db")
    for ending in (".png", ".svg"):
        assert run("matrix", path, "--to", tmp_path / f"m{ending}").exit_code == 0
    root = ElementTree.fromstring((tmp_path / "m.svg").read_text())
    space = "{http://www.w3.org/2000/svg}"
    image = root.findall(f"{space}image")[0]
    content = base64.b64decode(image.get("href", "").partition("base64,")[2])
    shown = pixels(content)
    side = shown.shape[0] // 8
    middle = [
        [tuple(shown[r * side + side // 2, c * side + side // 2].tolist()) for c in range(8)]
        for r in range(8)
    ]
    white = (255, 255, 255)
    assert {(r, c) for r in range(8) for c in range(8) if middle[r][c] != white} == set(expected)
    assert middle[0][3] == middle[7][7] != middle[5][1]
    whole = pixels((tmp_path / "m.png").read_bytes())
    assert (whole.shape[1], whole.shape[0]) == (int(root.get("width", "")), int(root.get("height", "")))
    left, top = int(image.get("x", "")), int(image.get("y", ""))
    assert (whole[top : top + 8 * side, left : left + 8 * side] == shown).all()
    words = [text.text for text in root.findall(f"{space}text")]
    assert words[0] == "two-sided messages, as sent: bytes"
    assert {"0", "7", "10 B", "1000 B"} <= set(words)


def test_letters_of_pictures_are_all_different() -> None:
    assert len(set(LETTERS.values())) == len(LETTERS)
    assert all(len(bytes.fromhex(code)) == 7 and max(bytes.fromhex(code)) < 32 for code in LETTERS.values())


@pytest.mark.parametrize("style", ["csv", "json"])
def test_a_format_goes_into_the_file_of_its_name(
    known: tuple[Path, Sums, int], tmp_path: Path, run: Run, style: str
) -> None:
    """Nothing but the name of the file is printed; a file whose name implies another format is refused."""
    output = tmp_path / f"m.{style}"
    done = run("matrix", known[0], "--format", style, "--to", output)
    assert (done.exit_code, done.stdout, done.stderr) == (0, f"{output}\n", "")
    assert output.read_text() == run("matrix", known[0], "--format", style).stdout
    other = tmp_path / "m.npz"
    done = run("matrix", known[0], "--format", style, "--to", other)
    assert (done.exit_code, done.stdout) == (2, "") and not other.exists()
    assert done.stderr == (
        f"commlens: {other}: the name of a file implies its format: without --format, or FILE.{style} for {style}\n"
    )


def test_a_file_that_tells_no_format_is_refused(
    known: tuple[Path, Sums, int], tmp_path: Path, run: Run
) -> None:
    result = run("matrix", known[0], "--to", tmp_path / "m.bmp")
    assert result.exit_code == 2
    assert result.stderr.endswith("must end with one of .png, .svg, .csv, .json, .npz, .mtx, .graphml\n")
    result = run("matrix", known[0], "--to", tmp_path / "nowhere" / "m.csv")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
