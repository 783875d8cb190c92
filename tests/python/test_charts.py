# SPDX-License-Identifier: Apache-2.0
"""`commlens chart`: the numbers of each kind, the drawing with characters, and files by matplotlib."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from statistics import median, quantiles
from typing import Any
from xml.etree import ElementTree

import pytest
from build_profile import ProfileBuilder
from conftest import MS, Run, small_builder
from rich.cells import cell_len
from tests.needs import need_modules

from commlens.charts import bars, figures, points, spread, terminal
from commlens.charts.files import Chart
from commlens.charts.palette import COLOURS, GLYPHS, MOST, OTHER, colour
from commlens.compare.correlate import Source, Wanted, correlate, read_source
from commlens.render import plot
from commlens.render.screen import Screen
from commlens.reports.query import Selection

HOSTILE = (
    "$\\frac{a}{b}$ <script>alert(1)</script>",
    "a\x1b[31mred\u202e",
    "数值模拟通信子群组甲很长很长的名字",
    '&amp; "quoted"',
    "x" * 300,
    "$$",
)
ELAPSED = (1000, 1100, 1050, 1900, 1020, 2000, 2200, 2100, 2050, 3000)
KINDS = ("operations", "sizes", "distribution", "correlation")


def sources(paths: Sequence[Path], *by: str) -> list[Source]:
    """Return runs with their times by some columns."""
    return [read_source(str(path), Wanted(by, Selection())) for path in paths]


def source(path: Path, *by: str) -> Source:
    """Return one run with its times by some columns."""
    return sources([path], *by)[0]


def runs_of(folder: Path) -> list[Path]:
    """Return ten runs of two algorithms; the time of MPI_Allreduce on the world follows the run time."""
    paths = []
    for i, elapsed in enumerate(ELAPSED):
        build = small_builder()
        build.meta["elapsed_ns"] = str(elapsed * MS)
        build.settings = [("label", "alg", "ring" if i < 5 else "linear", 4)] if i < 9 else []
        for cell in build.cells:
            if (cell.comm, cell.op) == (1, "MPI_Allreduce"):
                cell.time_ns += elapsed * MS // 10
        paths.append(build.write(folder / f"run{i}.db"))
    return paths


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return the paths of ten runs."""
    return runs_of(tmp_path_factory.mktemp("runs"))


def hostile_builder() -> ProfileBuilder:
    """Return a profile with names that a drawing could interpret."""
    build = small_builder()
    build.meta["command_line"] = "./app $x$ <b>\x1b[31m " + "long " * 60
    for i, name in enumerate(HOSTILE):
        comm = build.comm(f"d0.{i + 3}", [0, 1, 2, 3], parent=1, creator="MPI_Comm_dup", user_name=name)
        for j, op in enumerate(
            ("MPI_Bcast", "MPI_Reduce", "MPI_Alltoall", "MPI_Reduce_scatter_block", "MPI_Scan")
        ):
            build.count(comm, op, 0, 1, (100 + 3 * i + j * j) * MS, size=8 << j)
    return build


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of a profile with such names."""
    return hostile_builder().write(tmp_path_factory.mktemp("hostile") / "hostile.db")


def charts(runs: list[Path], hostile: Path) -> dict[str, Chart]:
    """Return a chart of each kind, of hostile names where the kind has names."""
    return {
        "operations": bars.operations(source(hostile, "family", "op"), None),
        "sizes": bars.sizes(source(hostile, "family", "size"), "family"),
        "distribution": spread.distribution(sources(runs, "comm-size"), ("alg", "comm-size"), "mpi"),
        "correlation": points.correlation(correlate(sources(runs, "family", "op"), ("family", "op"))),
        "one bar": bars.operations(source(hostile, "family", "op"), 0),
        "one box": spread.distribution(sources(runs), (), "elapsed"),
    }


# The numbers.


@pytest.mark.parametrize(
    ("calls", "parts"),
    [
        (2, ["MPI_Bcast", "MPI_Barrier", "2 other operations"]),
        (1, ["MPI_Bcast", "MPI_Barrier", "MPI_Isend"]),
    ],
)
def test_operations_that_no_bar_shows_are_one_part_if_there_are_several(
    tmp_path: Path, calls: int, parts: list[str]
) -> None:
    """A bar of 1 s on a terminal or a page shows no part of 1 ms; the second bar is as short."""
    build = ProfileBuilder(ranks=1)
    half = build.comm("s0.1", [0], parent=1, creator="MPI_Comm_dup")
    build.count(1, "MPI_Bcast", 0, 1, 990 * MS)
    build.count(half, "MPI_Barrier", 0, 1, 10 * MS)
    for operation in ("MPI_Isend", "MPI_Irecv")[:calls]:
        build.count(half, operation, 0, 1, 1 * MS)
    chart = bars.operations(source(build.write(tmp_path / "x.db"), "family", "op"), None)
    assert chart.parts == parts
    assert [sum(bar.times) for bar in chart.bars] == [990 * MS, (10 + calls) * MS]
    assert chart.whole_ns == (1000 + calls) * MS


def test_bars_of_operations_have_the_times_of_the_cells(small: Path) -> None:
    chart = bars.operations(source(small, "family", "op"), None)
    build = small_builder()
    names = {
        1: "W0.0 MPI_COMM_WORLD",
        2: "s*.1 x2",
        4: "a0.2 halo grid",
        5: "{W0.0,s0.1}",
        0: "- without communicator",
    }
    assert chart.parts[:2] == ["MPI_Allreduce", "MPI_Waitall"]
    assert chart.parts[-1] == "3 other operations"
    for bar in chart.bars:
        mine = [cell for cell in build.cells if names[build.comms[cell.comm].family] == bar.name]
        expected = [sum(cell.time_ns for cell in mine if cell.op == part) for part in chart.parts[:-1]]
        rest = [cell.time_ns for cell in mine if cell.op not in chart.parts]
        assert bar.times == [*expected, sum(rest)]
    assert [bar.name for bar in chart.bars] == [names[family] for family in (2, 1, 5, 4, 0)]
    assert chart.whole_ns == sum(cell.time_ns for cell in build.cells)


def test_families_beyond_the_top_share_a_bar(small: Path) -> None:
    chart = bars.operations(source(small, "family", "op"), 2)
    assert [(bar.name, bar.total) for bar in chart.bars[2:]] == [("3 other families", 44 * MS + 4000)]
    assert sum(bar.total for bar in chart.bars) == chart.whole_ns
    # A single one has its own name, which needs no more room.
    assert bars.operations(source(small, "family", "op"), 4).bars[-1].name == "- without communicator"


def test_bars_of_sizes_include_empty_sizes_and_end_with_those_that_vary(small: Path) -> None:
    chart = bars.sizes(source(small, "op", "size"), "op")
    names = [bar.name for bar in chart.bars]
    assert names[:3] == ["0 B", "1 B", "2-3 B"]
    assert names[-2:] == ["64-128 KiB", "varies"]
    totals = {bar.name: bar.total for bar in chart.bars}
    assert (totals["8-15 B"], totals["16-31 B"], totals["1-2 KiB"], totals["varies"]) == (
        46 * MS,
        0,
        340 * MS,
        2 * MS,
    )
    families = bars.sizes(source(small, "family", "size"), "family")
    assert {bar.name: bar.total for bar in families.bars} == totals
    assert families.parts[0] == "s*.1 x2"


def test_an_operation_has_the_same_colour_in_all_bars_and_only_the_rest_is_grey(hostile: Path) -> None:
    chart = bars.operations(source(hostile, "family", "op"), None)
    assert [colour(chart.place(part)) for part in range(len(chart.parts))] == [*COLOURS, OTHER]
    assert len(set(GLYPHS)) == len(set(COLOURS)) == MOST
    seven = bars.stacked(
        "t",
        "a",
        source(hostile, "family", "op"),
        {"row": {f"op{i}": 1 for i in range(6)}},
        [("row", ["row"])],
        str,
        "o",
    )
    assert (seven.has_other, len(seven.parts)) == (False, 6)


def test_groups_have_the_quartiles_and_whiskers_of_their_runs(runs: list[Path]) -> None:
    chart = spread.distribution(sources(runs), ("alg",), "elapsed")
    assert [(group.name, len(group.values)) for group in chart.groups] == [
        ("linear", 4),
        ("ring", 5),
        ("not set", 1),
    ]
    ring = chart.groups[1]
    values = [elapsed * MS for elapsed in ELAPSED[:5]]
    lower, middle, upper = quantiles(values, n=4, method="inclusive")
    assert (
        (ring.lower, ring.median, ring.upper) == (lower, middle, upper) == (1020 * MS, 1050 * MS, 1100 * MS)
    )
    assert (ring.low, ring.high, ring.outside) == (1000 * MS, 1100 * MS, [1900 * MS])
    assert chart.groups[2][2:] == (3000 * MS,) * 5


def test_groups_of_a_number_are_in_its_order(tmp_path: Path) -> None:
    paths = []
    for n in (8, 16, 128, 4):
        build = small_builder()
        build.settings = [("label", "n", str(n), 4)]
        paths.append(build.write(tmp_path / f"{n}.db"))
    chart = spread.distribution(sources(paths), ("n",), "mpi")
    assert [group.name for group in chart.groups] == ["4", "8", "16", "128"]


def test_mpi_times_by_communicator_size_are_those_of_the_slowest_rank(runs: list[Path]) -> None:
    chart = spread.distribution(sources(runs, "comm-size"), ("comm-size",), "mpi")
    assert [group.name for group in chart.groups] == ["2 ranks", "4 ranks", "no single communicator"]
    slowest = []
    for elapsed in ELAPSED:
        cells = [cell for cell in small_builder().cells if cell.comm == 1]
        each = [
            sum(cell.time_ns for cell in cells if cell.rank == rank) + elapsed * MS // 10 for rank in range(4)
        ]
        slowest.append(max(each))
    assert chart.groups[1].values == sorted(slowest)
    assert chart.groups[1].median == median(slowest)


def test_points_are_those_of_the_strongest_row(runs: list[Path]) -> None:
    chart = points.correlation(correlate(sources(runs, "family", "op"), ("family", "op")))
    assert chart.title == "Run time and MPI_Allreduce on W0.0"
    assert chart.x == [13 * MS + elapsed * MS // 10 for elapsed in ELAPSED]
    assert chart.y == [elapsed * MS for elapsed in ELAPSED]
    assert chart.about.startswith("10 runs: rises with the run time; Spearman +1.00 (")


# With characters.


def test_bars_in_a_pipe(run: Run, small: Path) -> None:
    assert run("chart", "operations", small).stdout.splitlines() == [
        "MPI time by communicator and operation",
        "./listing1 --steps 30; 4 ranks, 0 ns; times are summed over the ranks",
        "",
        "s*.1 x2                " + "#" * 61 + " 340 ms  76.6 %",
        "W0.0 MPI_COMM_WORLD    ########+o. 60.0 ms  13.5 %",
        "{W0.0,s0.1}            ======= 40.0 ms  9.0 %",
        "a0.2 halo grid         x 4.00 ms  0.9 %",
        "- without communicator | 4.00 µs  <0.1 %",
        "",
        "## MPI_Allreduce   == MPI_Waitall   ++ MPI_Isend   oo MPI_Comm_split   xx MPI_Neighbor_alltoall",
        "%% MPI_Irecv   .. 3 other operations",
    ]


def test_a_selection_is_named(run: Run, small: Path) -> None:
    lines = run("chart", "sizes", small, "--class", "p2p", "--comm", "W0.0").stdout.splitlines()
    assert lines[1].endswith("; only communicator W0.0, class p2p")
    assert lines[3].startswith("64-128 KiB " + "#" * 45 + "=" * 27)


def test_boxes_in_a_pipe(run: Run, runs: list[Path]) -> None:
    lines = run("chart", "distribution", *runs, "--by", "alg").stdout.splitlines()
    assert lines[0] == "Run time by alg"
    assert [line.split()[-4:] for line in lines[3:6]] == [
        ["2.08", "s", "4", "runs"],
        ["1.05", "s", "5", "runs"],
        ["3.00", "s", "1", "run"],
    ]
    assert re.fullmatch(r"ring    │▒█▒▒ {2,}o .*", lines[4])
    assert lines[6].split() == ["1.00", "s", "3.00", "s", "median"]


def test_a_scatter_plot_in_a_pipe(run: Run, runs: list[Path]) -> None:
    lines = run("chart", "correlation", *runs, runs[0], "--op", "allreduce").stdout.splitlines()
    assert lines[4].startswith("3.00 s │") and lines[4].rstrip().endswith("o")
    assert lines[23].startswith("1.00 s │2")
    assert sum(line.count("o") for line in lines[4:24]) + 2 <= 11
    assert lines[25].split() == ["113", "ms", "313", "ms"]
    assert lines[-1].endswith("slowest rank; o: a run; a digit: so many runs, +: more")


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize("kind", [*KINDS, "one bar", "one box"])
def test_no_line_is_wider_than_the_terminal(runs: list[Path], hostile: Path, kind: str, width: int) -> None:
    screen = Screen()
    screen.width = width
    lines = terminal.draw(charts(runs, hostile)[kind], screen)
    assert max(line.cell_len for line in lines) <= width
    assert not any(character in line.plain for line in lines for character in "\x1b\u202e")


def test_colours_of_a_terminal_are_blocks_and_those_of_the_files(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "has_blocks", lambda _: True)
    lines = terminal.draw(bars.operations(source(small, "family", "op"), None), Screen())
    first = next(line for line in lines if line.plain.startswith("s*.1"))
    assert (first.plain.count("█"), [str(span.style) for span in first.spans][:1]) == (61, [COLOURS[0]])


# Files.


class Tags(HTMLParser):
    """Collects the elements of a page, and their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)
        self.attributes |= {name for name, _ in attrs}


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_drawn_in_every_format_twice_the_same(
    run: Run, runs: list[Path], hostile: Path, tmp_path: Path, kind: str
) -> None:
    need_modules("matplotlib")
    profiles = [hostile] if kind in ("operations", "sizes") else runs
    contents = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        names = [folder / f"chart.{ending}" for ending in ("svg", "png", "html")]
        result = run("chart", kind, *profiles, *(word for name in names for word in ("--to", name)))
        assert (result.exit_code, result.stderr) == (0, "")
        assert result.stdout.splitlines() == [str(name) for name in names]
        contents.append([name.read_bytes() for name in names])
    assert contents[0] == contents[1]
    svg, png, page = contents[0]
    ElementTree.fromstring(svg)
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(png[16:20], "big") == 1350
    text = page.decode()
    tags = Tags(text)
    assert tags.found >= {"svg", "table", "h1", "title"}
    assert not tags.found & {"script", "img", "link", "iframe", "image", "b"}
    assert not any(name.startswith("on") or name in ("src", "href") for name in tags.attributes)
    assert set(re.findall(r"https?://[^\"' <]*", text)) <= {
        "http://www.w3.org/1999/xlink",
        "http://www.w3.org/2000/svg",
    }
    assert "prefers-color-scheme: dark" in text
    picture = text[text.index("<svg") : text.index("</svg>")]
    assert not any(fixed in picture for fixed in (plot.INK, plot.PAPER, plot.RULE))


def test_hostile_names_are_text_in_files(run: Run, hostile: Path, tmp_path: Path) -> None:
    need_modules("matplotlib")
    names = [tmp_path / f"chart.{ending}" for ending in ("svg", "html")]
    run("chart", "operations", hostile, "--top", 0, *(word for name in names for word in ("--to", name)))
    svg, page = (name.read_text(encoding="utf-8") for name in names)
    labels = [
        "".join(element.itertext())
        for element in ElementTree.fromstring(svg).iter()
        if element.tag.endswith("}text")
    ]
    assert "d0.8 $$" in labels and "d0.4 a\\x1b[31mred\\u202e" in labels and 'd0.6 &amp; "quoted"' in labels
    assert "d0.3 $\\frac{a}{b}$…alert(1)</script>" in labels
    assert "<td>d0.3 $\\frac{a}{b}$ &lt;script&gt;alert(1)&lt;/script&gt;</td>" in page
    assert f"<td>d0.7 {'x' * 300}</td>" in page
    for text in (svg, page):
        assert not any(character in text for character in "\x1b\u202e")


@pytest.mark.long
@pytest.mark.parametrize("kind", [*KINDS, "one bar", "one box"])
def test_labels_are_within_the_picture_and_do_not_overlap(runs: list[Path], hostile: Path, kind: str) -> None:
    need_modules("matplotlib")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    with plot.settings():
        figure = figures.draw(charts(runs, hostile)[kind])
        canvas: Any = FigureCanvasAgg(figure)
        canvas.draw()
        texts = [text for text in figure.findobj(Text) if text.get_text().strip() and text.get_visible()]
        boxes = [text.get_window_extent(canvas.get_renderer()) for text in texts]
        axes = figure.axes[0]
        # Ticks beyond the ends of an axis are not drawn.
        hidden = [
            label
            for axis, (low, high) in (
                (axes.xaxis, sorted(axes.get_xlim())),
                (axes.yaxis, sorted(axes.get_ylim())),
            )
            for tick in axis.get_major_ticks()
            for label in (tick.label1, tick.label2)
            if not low <= tick.get_loc() <= high
        ]
        drawn = [(text, box) for text, box in zip(texts, boxes) if text not in hidden]
        assert len(drawn) >= 5
        for text, box in drawn:
            assert box.x0 >= 0 and box.x1 <= figure.bbox.x1 and box.y0 >= 0 and box.y1 <= figure.bbox.y1, text
        for i, (first, one) in enumerate(drawn):
            for second, two in drawn[i + 1 :]:
                assert {first, second} <= {figure._suptitle, *figure.texts} or not one.overlaps(two), (
                    first,
                    second,
                )


# Refusals.


def test_nothing_is_read_for_files_that_cannot_be_written(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = tmp_path / "there.svg"
    there.touch()
    for names, complaint in (
        ((there,), f"{there}: exists"),
        ((tmp_path / "a.pdf",), "--to writes .html, .png, .svg"),
        ((tmp_path / "a.svg", tmp_path / "a.svg"), "a.svg: named twice by --to"),
        ((tmp_path / "gone" / "a.svg",), "gone: cannot be written"),
    ):
        result = run("chart", "sizes", "missing.db", *(word for name in names for word in ("--to", name)))
        assert result.exit_code == 2 and complaint in result.stderr, result
        assert "missing.db" not in result.stderr
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = run("chart", "sizes", "missing.db", "--to", tmp_path / "a.svg")
    message = "commlens: charts need matplotlib, which is not installed: pip install matplotlib\n"
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", message)


@pytest.mark.parametrize(
    "arguments, complaint",
    [
        (("pie", 1), "pie"),
        (("operations", 2), "operations draws one profile"),
        (("operations", 1, "--by", "op"), "operations has no --by"),
        (("sizes", 1, "--by", "alg"), "sizes: --by is op or family"),
        (("sizes", 1, "--of", "mpi"), "--of belongs to distribution"),
        (("sizes", 1, "--size", "1M:"), "has no MPI time in this selection: nothing to draw"),
        (("distribution", 3, "--by", "alf"), "no run has a label or setting 'alf'; did you mean alg?"),
        (
            ("distribution", 3, "--of", "elapsed", "--op", "allreduce"),
            "the run time has no parts: use --of mpi",
        ),
        (("distribution", 3, "--size", "1M:"), "no run has MPI time in this selection: nothing to draw"),
        (("correlation", 2), "a correlation needs at least 3 runs"),
        (
            ("correlation", 3, "--by", "alg"),
            "correlation: --by: 'alg' is none of family, comm-size, op, size, region",
        ),
        (
            ("correlation", 3, "--op", "irecv"),
            "no time in this selection differs between the runs: nothing to draw",
        ),
        (("correlation", 3, "--op", "zz"), "no operation 'zz'"),
    ],
)
def test_a_chart_that_makes_no_sense_is_refused_in_a_line(
    run: Run, runs: list[Path], arguments: tuple[Any, ...], complaint: str
) -> None:
    kind, count, *options = arguments
    result = run("chart", kind, *runs[:count], *options)
    assert result.exit_code == 2 and complaint in result.stderr.splitlines()[-1], result
    assert result.stdout == ""


def test_an_unreadable_profile_is_one_line_and_the_others_are_drawn(
    run: Run, runs: list[Path], tmp_path: Path
) -> None:
    bad = tmp_path / "bad.db"
    bad.write_text("not a profile")
    result = run("chart", "distribution", bad, *runs)
    assert (result.exit_code, result.stdout, len(result.stderr.splitlines())) == (2, "", 1)
    result = run("chart", "distribution", "--keep-going", bad, *runs)
    assert (result.exit_code, len(result.stderr.splitlines())) == (3, 1)
    assert result.stdout.splitlines()[1].startswith("10 runs; ")
    result = run("chart", "sizes", "--keep-going", bad)
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (
        2,
        "commlens: no readable profile: nothing to draw",
    )


def test_a_name_is_shortened_in_the_middle_also_with_wide_characters() -> None:
    from commlens.charts.names import shortened

    assert [shortened(name, 8) for name in ("MPI_Send", "MPI_Isend", "数值模拟")] == [
        "MPI_Send",
        "MPI_…end",
        "数值模拟",
    ]
    assert cell_len(shortened("数值模拟通信子", 8)) <= 8
