# SPDX-License-Identifier: Apache-2.0
"""What Hatchet, Thicket and their Caliper readers see is what was counted: every node, every rank, every number."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import hatchet
import pytest
import thicket
from build_profile import ProfileBuilder
from conftest import Run, marked_builder, small_builder
from test_export_callpaths import exported
from test_shards import split

import commlens.export
from commlens.base.errors import CommlensError
from commlens.cli.exit_codes import INCOMPLETE

# Warnings of these packages about each other.
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")

Path_ = tuple[str, ...]
Numbers = tuple[int, int, int, int, int, int]
Expected = dict[Path_, dict[int, Numbers]]

# By hand: the families of the two programs of conftest.
MARKED = {0: "-", 1: "W0.0", 2: "s*.1"}
SMALL = {0: "-", 1: "W0.0", 2: "s*.1", 4: 'a0.2 "halo grid"', 5: "{W0.0,s0.1}"}


def expected(
    build: ProfileBuilder, names: dict[int, str], unfold: bool = False, mpi: bool = True
) -> Expected:
    """Return calls, exclusive, inclusive and MPI time and bytes of each path and rank, from the rows themselves."""
    paths: dict[int, Path_] = {}
    for region in build.regions.values():
        around = () if region.parent is None else paths[region.parent]
        paths[region.id] = (*around, region.name or build.meta["program"])
    zero = dict.fromkeys(range(build.ranks), (0, 0, 0, 0, 0, 0))
    found: Expected = {path: dict(zero) for path in paths.values()}

    def add(path: Path_, rank: int, *numbers: int) -> None:
        of_rank = found.setdefault(path, dict(zero))
        of_rank[rank] = tuple(a + b for a, b in zip(of_rank[rank], numbers))  # type: ignore[assignment]

    for rank in range(build.ranks):
        in_mpi = sum(cell.time_ns for cell in build.cells if cell.rank == rank)
        add(paths[0], rank, 1, build.app_ns, build.app_ns, in_mpi, 0, 0)
    for row in build.region_times:
        add(
            paths[row.region], row.rank, row.calls, row.time_ns - row.nested_ns, row.time_ns, row.mpi_ns, 0, 0
        )
        if build.regions[row.region].parent == 0:
            add(paths[0], row.rank, 0, -row.time_ns, 0, 0, 0, 0)
    for cell in build.cells if mpi else ():
        comm = build.comms[cell.comm]
        communicator = (*paths[cell.region], comm.name if unfold else names[comm.family])
        ns = cell.time_ns
        add((*communicator, cell.op), cell.rank, cell.calls, ns, ns, ns, cell.sent, cell.received)
        add(communicator, cell.rank, 0, 0, ns, ns, 0, 0)
        add(paths[cell.region], cell.rank, 0, -ns, 0, 0, 0, 0)
    return found


def seen(graphframe: Any) -> Expected:
    """Return the same of what a reader has made."""
    metrics = ("calls", "time", "time (inc)", "mpi time (inc)", "bytes sent", "bytes received")
    found: Expected = {}
    # From the roots down: Hatchet's Caliper reader does not tell nodes their parents.
    paths: dict[int, Path_] = {}
    pending: list[tuple[Path_, Any]] = [((), root) for root in graphframe.graph.roots]
    while pending:
        above, node = pending.pop()
        paths[id(node)] = (*above, node.frame["name"])
        pending += [(paths[id(node)], child) for child in node.children]
    for row in graphframe.dataframe.reset_index().to_dict("records"):
        path = paths[id(row["node"])]
        assert path[-1] == row["name"]
        times = {name: round(row[name] * 10**9) if "time" in name else int(row[name]) for name in metrics}
        assert row["rank"] not in found.setdefault(path, {})
        found[path][row["rank"]] = tuple(times[name] for name in metrics)  # type: ignore[assignment]
    return found


def by_hatchet_json(run: Run, profile: Path, folder: Path) -> Any:
    return hatchet.GraphFrame.from_json(exported(run, profile, "hatchet", folder).read_text(encoding="utf-8"))


def by_hatchet_caliper(run: Run, profile: Path, folder: Path) -> Any:
    return hatchet.GraphFrame.from_caliper(str(exported(run, profile, "caliper", folder)))


def by_thicket_json(run: Run, profile: Path, folder: Path) -> Any:
    return thicket.Thicket.from_json(exported(run, profile, "thicket", folder).read_text(encoding="utf-8"))


def by_thicket_caliper(run: Run, profile: Path, folder: Path) -> Any:
    return thicket.Thicket.from_caliper(str(exported(run, profile, "caliper", folder)))


def made_graphframe(_: Run, profile: Path, __: Path) -> Any:
    return commlens.export.hatchet(profile)


def made_thicket(_: Run, profile: Path, __: Path) -> Any:
    return commlens.export.thicket(profile)


READERS = [
    by_hatchet_json,
    by_hatchet_caliper,
    by_thicket_json,
    by_thicket_caliper,
    made_graphframe,
    made_thicket,
]
Reader = Callable[[Run, Path, Path], Any]


@pytest.mark.parametrize("reader", READERS)
def test_each_reader_sees_what_was_counted(reader: Reader, run: Run, marked: Path, tmp_path: Path) -> None:
    assert seen(reader(run, marked, tmp_path)) == expected(marked_builder(), MARKED)


@pytest.mark.parametrize("reader", READERS)
def test_without_regions_mpi_is_below_the_program(
    reader: Reader, run: Run, small: Path, tmp_path: Path
) -> None:
    graphframe = reader(run, small, tmp_path)
    assert seen(graphframe) == expected(small_builder(), SMALL)
    assert [root.frame["name"] for root in graphframe.graph.roots] == ["listing1"]


def test_exclusive_times_add_up_to_the_run(marked: Path) -> None:
    frame = commlens.export.hatchet(marked).dataframe
    assert round(frame["time"].sum() * 10**9) == 4 * marked_builder().app_ns


def test_calls_and_bytes_of_operations_are_those_of_the_profile(marked: Path) -> None:
    frame = commlens.export.hatchet(marked).dataframe
    cells = marked_builder().cells
    operations = frame[frame["type"] == "operation"]
    assert operations["calls"].sum() == sum(cell.calls for cell in cells)
    assert frame["bytes sent"].sum() == sum(cell.sent for cell in cells)
    assert frame["bytes received"].sum() == sum(cell.received for cell in cells)


@pytest.mark.parametrize("reader", READERS)
def test_metrics_of_the_application_are_columns(
    reader: Reader, run: Run, marked: Path, tmp_path: Path
) -> None:
    build = marked_builder()
    frame = reader(run, marked, tmp_path).dataframe.reset_index()
    for metric, (name, unit) in enumerate(build.metrics):
        label = f"{name} [{unit}]" if unit else name
        wanted: dict[tuple[str, int], list[Any]] = {}
        for row in build.metric_values:
            if row.metric == metric:
                key = (build.regions[row.region].name or "stencil", row.rank)
                wanted.setdefault(key, []).append(row)
        assert {
            (row["name"], row["rank"]): tuple(row[f"{label} {what}"] for what in ("count", "sum", "min", "max"))
            for row in frame.to_dict("records")
            if row[f"{label} count"]
        } == {
            key: (sum(r.count for r in rows), sum(r.sum for r in rows), min(r.min for r in rows), max(r.max for r in rows))
            for key, rows in wanted.items()
        }  # fmt: skip
        nothing = frame[frame[f"{label} count"] == 0]
        assert set(nothing[f"{label} sum"]) == {0.0}
        assert nothing[f"{label} min"].isna().all()


@pytest.mark.parametrize("to", ["hatchet", "caliper"])
def test_metrics_that_would_be_one_column_are_two(to: str, run: Run, tmp_path: Path) -> None:
    build = ProfileBuilder(ranks=1, meta={"program": "columns"})
    region = build.region("here")
    for value, metric in enumerate((build.metric("used", "MiB"), build.metric("used [MiB]")), 1):
        build.tell(metric, region, 0, [float(value)])
    output = tmp_path / "columns.json"
    run("export", build.write(tmp_path / "columns.db"), "--to", to, "-o", output)
    if to == "hatchet":
        frame = hatchet.GraphFrame.from_json(output.read_text()).dataframe
    else:
        frame = hatchet.GraphFrame.from_caliper(str(output)).dataframe
    row = frame[frame["name"] == "here"].iloc[0]
    assert (row["used [MiB] sum"], row["used [MiB] (2) sum"]) == (1, 2)


def test_a_metric_of_which_no_value_was_finite_is_a_column_of_numbers(tmp_path: Path) -> None:
    build = ProfileBuilder(ranks=1, meta={"program": "nan"})
    build.tell(build.metric("residual"), 0, 0, [], not_finite=3)
    frame = commlens.export.hatchet(build.write(tmp_path / "nan.db")).dataframe
    assert str(frame["residual min"].dtype) == "float64"
    assert list(frame["residual count"]) == [0]


@pytest.mark.parametrize("make", [commlens.export.hatchet, commlens.export.thicket])
def test_ranks_that_are_not_there_are_refused(make: Callable[..., Any], marked: Path) -> None:
    with pytest.raises(CommlensError, match="no rank from 7 to 9 in this profile; the highest is 3"):
        make(marked, ranks=[(0, 1), (7, 9)])


@pytest.mark.parametrize("to", ["hatchet", "thicket", "caliper"])
def test_a_sum_beyond_what_a_number_can_hold_leaves_the_file_json(to: str, run: Run, tmp_path: Path) -> None:
    build = ProfileBuilder(ranks=1, meta={"program": "large"})
    build.tell(build.metric("mass", "kg"), build.region("large"), 0, [1e308, 1e308])
    output = tmp_path / "large.json"
    run("export", build.write(tmp_path / "large.db"), "--to", to, "-o", output)
    json.loads(output.read_text(), parse_constant=pytest.fail)


def test_a_profile_of_several_files_is_exported_as_one(run: Run, marked: Path, tmp_path: Path) -> None:
    directory = tmp_path / "marked.commlens"
    split(marked, directory)
    assert seen(by_hatchet_json(run, directory, tmp_path)) == expected(marked_builder(), MARKED)
    assert seen(commlens.export.hatchet(directory)) == expected(marked_builder(), MARKED)


def test_what_can_be_read_of_a_damaged_profile_is_exported(run: Run, marked: Path, tmp_path: Path) -> None:
    directory = tmp_path / "marked.commlens"
    split(marked, directory)
    (directory / "shard.1.db").unlink()
    output = tmp_path / "half.json"
    done = run("export", directory, "--to", "hatchet", "-o", output)
    assert done.exit_code == INCOMPLETE
    assert "shard.1.db" in done.stderr
    assert seen(hatchet.GraphFrame.from_json(output.read_text(encoding="utf-8"))) == {
        path: {rank: ranks[rank] for rank in (0, 1)}
        for path, ranks in expected(marked_builder(), MARKED).items()
    }


def test_communicators_can_be_unfolded(run: Run, marked: Path, tmp_path: Path) -> None:
    file = exported(run, marked, "hatchet", tmp_path, "--unfold")
    wanted = expected(marked_builder(), MARKED, unfold=True)
    assert ("stencil", "solve", "time steps", "exchange", "s2.1", "MPI_Isend") in wanted
    assert seen(hatchet.GraphFrame.from_json(file.read_text(encoding="utf-8"))) == wanted
    assert seen(commlens.export.hatchet(marked, unfold=True)) == wanted


@pytest.mark.parametrize("to", ["hatchet", "caliper"])
def test_without_mpi_its_time_is_that_of_the_regions(to: str, run: Run, marked: Path, tmp_path: Path) -> None:
    file = exported(run, marked, to, tmp_path, "--no-mpi")
    reader = (
        hatchet.GraphFrame.from_caliper
        if to == "caliper"
        else lambda name: hatchet.GraphFrame.from_json(Path(name).read_text())
    )
    wanted = expected(marked_builder(), MARKED, mpi=False)
    assert len(wanted) == 8
    assert seen(reader(str(file))) == wanted


@pytest.mark.parametrize("reader", ["hatchet", "caliper"])
def test_single_ranks_can_be_chosen(reader: str, run: Run, marked: Path, tmp_path: Path) -> None:
    file = exported(run, marked, reader, tmp_path, "--rank", "1,3")
    if reader == "hatchet":
        found = seen(hatchet.GraphFrame.from_json(file.read_text(encoding="utf-8")))
    else:
        # This reader takes the highest rank it sees for their number, and fills in what is not there with zeros.
        found = {
            path: {rank: numbers for rank, numbers in ranks.items() if any(numbers) or rank in (1, 3)}
            for path, ranks in seen(hatchet.GraphFrame.from_caliper(str(file))).items()
        }
    assert found == {
        path: {rank: ranks[rank] for rank in (1, 3)}
        for path, ranks in expected(marked_builder(), MARKED).items()
    }


@pytest.mark.parametrize("reader", [*READERS[:2], made_graphframe])
def test_hatchet_works_on_with_it(reader: Reader, run: Run, marked: Path, tmp_path: Path) -> None:
    graphframe = reader(run, marked, tmp_path)
    assert "MPI_Allreduce" in graphframe.tree(metric_column="time (inc)")
    total = graphframe.deepcopy()
    total.drop_index_levels(sum)
    assert sorted(total.dataframe["name"]) == sorted(path[-1] for path in expected(marked_builder(), MARKED))
    assert len((graphframe - graphframe.deepcopy()).dataframe) == len(graphframe.dataframe)
    updates = graphframe.filter(lambda row: row["name"] == "update", num_procs=1, squash=True)
    assert round(updates.dataframe["time"].sum() * 10**9) == 2 * 2 * 3 * 8 * 10**6
    assert set(graphframe.exc_metrics + graphframe.inc_metrics) <= set(graphframe.dataframe.columns)


def test_hatchet_writes_and_reads_the_same_again(marked: Path) -> None:
    graphframe = commlens.export.hatchet(marked)
    assert seen(hatchet.GraphFrame.from_json(graphframe.to_json())) == seen(graphframe)


def test_the_order_of_nodes_is_that_of_the_profile_for_caliper_readers(
    run: Run, marked: Path, tmp_path: Path
) -> None:
    graphframe = by_hatchet_caliper(run, marked, tmp_path)
    names = [node.frame["name"] for node in graphframe.graph.traverse()]
    assert names[:5] == ["stencil", "-", "MPI_Comm_get_parent", "set-up", "W0.0"]
    assert "Node order" not in graphframe.dataframe.columns


def test_a_thicket_of_two_runs_has_common_nodes(marked: Path, tmp_path: Path) -> None:
    build = marked_builder()
    build.meta["start_time"] = "2026-11-23T10:00:00Z"
    for row in build.region_times:
        row.calls *= 3
    again = build.write(tmp_path / "again.db")
    both = commlens.export.thicket(marked, again)
    assert len(both.graph) == len(expected(build, MARKED))
    assert dict(both.profile_mapping) == dict(zip(both.profile, [str(marked), str(again)]))
    assert set(both.metadata["start_time"]) == {"2026-11-22T10:00:00Z", "2026-11-23T10:00:00Z"}
    numbers = dict(zip(both.profile_mapping.values(), both.profile_mapping))
    frame = both.dataframe.reset_index()
    for profile, calls in ((marked, 2), (again, 6)):
        rows = frame[(frame["profile"] == numbers[str(profile)]) & (frame["name"] == "solve")]
        assert list(rows["calls"]) == [calls] * 4


def test_files_of_two_runs_make_a_thicket(run: Run, marked: Path, small: Path, tmp_path: Path) -> None:
    files = []
    for profile in (marked, small):
        (tmp_path / profile.stem).mkdir()
        files.append(exported(run, profile, "caliper", tmp_path / profile.stem))
    both = thicket.Thicket.from_caliper([str(file) for file in files], disable_tqdm=True)
    assert len(both.profile) == 2
    assert set(both.metadata["program"]) == {"stencil", "listing1"}
    names = both.dataframe.reset_index()["name"].dropna()
    assert {"update", "MPI_Neighbor_alltoall"} <= set(names)


def test_facts_about_the_run_come_along(run: Run, marked: Path, tmp_path: Path) -> None:
    facts = {"command_line": "./stencil 256 256", "ranks": "4", "start_time": "2026-11-22T10:00:00Z"}
    for metadata in (
        commlens.export.hatchet(marked).metadata,
        by_hatchet_caliper(run, marked, tmp_path).metadata,
        json.loads(exported(run, marked, "hatchet", tmp_path).read_text(encoding="utf-8"))["metadata"],
        by_thicket_json(run, marked, tmp_path).metadata.iloc[0].to_dict(),
    ):
        assert facts.items() <= metadata.items()


def test_nodes_of_one_name_side_by_side_are_told_apart(run: Run, tmp_path: Path) -> None:
    build = ProfileBuilder(ranks=1, meta={"program": "twins"})
    region, loop = build.region("sweep"), build.region("sweep", kind="loop")
    build.spend(region, 0, 1, 100)
    build.spend(loop, 0, 2, 10)
    for _ in range(2):
        build.count(build.comm("s0.1", [0]), "MPI_Bcast", 0, 1, 7)
    profile = build.write(tmp_path / "twins.db")
    for reader in READERS:
        found = seen(reader(run, profile, tmp_path))
        for path in tmp_path.glob("*.json"):
            path.unlink()
        assert {path[1:]: numbers[0][0] for path, numbers in found.items() if len(path) > 1} == {
            ("sweep",): 1, ("sweep (2)",): 2, ("s0.1#2",): 0, ("s0.1#3",): 0,
            ("s0.1#2", "MPI_Bcast"): 1, ("s0.1#3", "MPI_Bcast"): 1,
        }  # fmt: skip


def test_names_with_any_characters_survive(run: Run, tmp_path: Path) -> None:
    names = ['quote " and \\', "line\nend", "other\rend", "Übergrößen ⚙", "a,b|c-d+e", " "]
    build = ProfileBuilder(ranks=1, meta={"program": "names"})
    for name in names:
        build.spend(build.region(name), 0, 1, 100)
    profile = build.write(tmp_path / "names.db")
    for number, reader in enumerate(READERS):
        folder = tmp_path / str(number)
        folder.mkdir()
        found = seen(reader(run, profile, folder))
        assert {path[1] for path in found if len(path) == 2} == set(names)


def test_more_time_in_threads_than_the_run_took_leaves_the_root_none(tmp_path: Path) -> None:
    build = ProfileBuilder(ranks=1, meta={"program": "threads"}, app_ns=100)
    build.spend(build.region("work"), 0, 4, 400)
    frame = commlens.export.hatchet(build.write(tmp_path / "threads.db")).dataframe.set_index("name")
    assert list(frame["time"]) == [0, 400e-9]
    assert list(frame["time (inc)"]) == [100e-9, 400e-9]


@pytest.mark.parametrize("make", [commlens.export.hatchet, commlens.export.thicket])
def test_summary_detail_is_refused(make: Callable[[Path], Any], tmp_path: Path) -> None:
    build = small_builder()
    build.meta["detail"] = "summary"
    with pytest.raises(CommlensError, match=r"single ranks.*COMMLENS_DETAIL=full"):
        make(build.write(tmp_path / "summary.db"))


def test_a_profile_from_before_there_were_regions_is_exported(run: Run, small: Path, tmp_path: Path) -> None:
    old = tmp_path / "old.db"
    old.write_bytes(small.read_bytes())
    with closing(sqlite3.connect(old)) as connection:
        for kind, name in connection.execute(
            "SELECT type, name FROM sqlite_master WHERE name LIKE 'region_%' OR name LIKE 'loop_%' OR name LIKE 'metric%' OR name LIKE 'event%' OR name = 'tag'"
        ).fetchall():
            connection.execute(f"DROP {kind} {name}")
        connection.executescript(
            "ALTER TABLE region RENAME TO r; CREATE TABLE region (id INTEGER PRIMARY KEY, parent INTEGER, name TEXT);"
            "INSERT INTO region SELECT id, parent, name FROM r; DROP TABLE r; PRAGMA user_version = 4"
        )
    for reader in READERS:
        assert seen(reader(run, old, tmp_path)) == expected(small_builder(), SMALL)
        for path in tmp_path.glob("*.json"):
            path.unlink()
