# SPDX-License-Identifier: Apache-2.0
"""Tables and views leave as they are: CSV, Parquet, data frames, and TinyProf's compact layout."""

from __future__ import annotations

import csv
import errno
import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pandas
import polars
import pyarrow.parquet
import pytest
from build_profile import LoopTime, ProfileBuilder, RegionTime
from conftest import Run, marked_builder, small_builder

import commlens
import commlens.export
from commlens.base.errors import CommlensError
from commlens.base.outputs import new
from commlens.profile import _schema

WRITTEN = [name for name, relation in _schema.RELATIONS.items() if not relation.added_by]
NAMES = sorted(WRITTEN)
Rows = list[tuple[Any, ...]]


def rows_of(profile: Path, name: str) -> Rows:
    with closing(sqlite3.connect(profile)) as connection:
        return connection.execute(f"SELECT * FROM {name}").fetchall()


def types_of(name: str) -> dict[str, str]:
    return {column.name: column.type for column in _schema.RELATIONS[name].columns}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, marked: Path) -> Path:
    """Return a folder with all tables and views as CSV and as Parquet."""
    place = tmp_path_factory.mktemp("tables")
    for to in ("csv", "parquet"):
        done = subprocess.run(
            [sys.executable, "-m", "commlens", "export", marked, "--to", to, "-o", place / to],
            capture_output=True, text=True,
        )  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{place / to}\n", "")
    return place


@pytest.mark.long
@pytest.mark.parametrize("to", ["csv", "parquet"])
def test_every_table_and_view_is_a_file(folders: Path, to: str) -> None:
    assert sorted(path.name for path in (folders / to).iterdir()) == [f"{name}.{to}" for name in NAMES]


@pytest.mark.parametrize("name", NAMES)
def test_csv_has_all_rows(folders: Path, marked: Path, name: str) -> None:
    with (folders / "csv" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        heading, *found = list(csv.reader(file))
    assert heading == list(types_of(name))
    assert found == [["" if value is None else str(value) for value in row] for row in rows_of(marked, name)]


@pytest.mark.parametrize("to", ["csv", "tinyprof"])
def test_ends_of_lines_in_names_end_no_line(run: Run, tmp_path: Path, to: str) -> None:
    names = ["one\rend", "other\nend", "both\r\n"]
    build = ProfileBuilder(ranks=1)
    for name in names:
        build.spend(build.region(name), 0, 1, 100)
    output = tmp_path / "names.csv"
    one = ["--table", "region_path"] if to == "csv" else []
    profile = build.write(tmp_path / "names.db")
    assert run("export", profile, "--to", to, *one, "-o", output).exit_code == 0
    printed = run("sql", profile, "SELECT name FROM region", "--format", "csv").stdout
    shown = [r"one\rend", r"other\nend", r"both\r\n"]
    text = output.read_bytes().decode()
    assert "\r" not in text + printed
    records = [line.split(",") for line in text.splitlines()]
    at = records[0].index("path" if to == "csv" else "region")
    assert {record[at] for record in records[1:]} == {"", *shown}
    assert printed.splitlines()[2:] == shown
    exact = json.loads(run("sql", profile, "SELECT name FROM region", "--format", "json").stdout)
    assert [row["name"] for row in exact][1:] == names


def test_the_name_of_a_parquet_file_is_no_address(
    run: Run, marked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("export", marked, "--to", "parquet", "--table", "rank", "-o", "run:1.parquet").exit_code == 0
    with Path("run:1.parquet").open("rb") as file:
        assert pyarrow.parquet.read_table(file).num_rows == 4


@pytest.mark.parametrize("name", NAMES)
def test_parquet_has_all_rows_types_and_units(folders: Path, marked: Path, name: str) -> None:
    table = pyarrow.parquet.read_table(folders / "parquet" / f"{name}.parquet")
    kinds = {"INTEGER": "int64", "REAL": "double", "TEXT": "string"}
    assert {field.name: str(field.type) for field in table.schema} == {
        column: kinds[type] for column, type in types_of(name).items()
    }
    assert [tuple(row.values()) for row in table.to_pylist()] == rows_of(marked, name)
    for column in _schema.RELATIONS[name].columns:
        metadata = table.schema.field(column.name).metadata
        assert (metadata[b"unit"].decode(), metadata[b"doc"].decode()) == (column.unit, column.doc)


@pytest.mark.parametrize("name", NAMES)
def test_pandas_has_all_rows_and_types(marked: Path, name: str) -> None:
    frame = commlens.open(marked).pandas(name)
    kinds = {"INTEGER": "Int64", "REAL": "Float64", "TEXT": "string"}
    assert {column: str(type) for column, type in frame.dtypes.items()} == {
        column: kinds[type] for column, type in types_of(name).items()
    }
    found = [
        tuple(None if v is pandas.NA else v for v in row) for row in frame.itertuples(index=False, name=None)
    ]
    assert found == rows_of(marked, name)
    assert list(frame.index) == list(range(len(frame)))


@pytest.mark.parametrize("name", NAMES)
def test_polars_has_all_rows_and_types(marked: Path, name: str) -> None:
    frame = commlens.open(marked).polars(name)
    kinds = {"INTEGER": polars.Int64, "REAL": polars.Float64, "TEXT": polars.String}
    assert dict(frame.schema) == {column: kinds[type] for column, type in types_of(name).items()}
    assert frame.rows() == rows_of(marked, name)


def test_frames_have_the_totals_of_the_rows_that_were_counted(marked: Path) -> None:
    build = marked_builder()
    assert commlens.open(marked).names() == WRITTEN
    job = commlens.open(marked)
    for make in (job.pandas, job.polars):
        assert make("cell")["time_ns"].sum() == sum(cell.time_ns for cell in build.cells)
        assert make("cell")["bytes_sent"].sum() == sum(cell.sent for cell in build.cells)
        assert make("region_time")["time_ns"].sum() == sum(row.time_ns for row in build.region_times)
        assert make("region_slice")["exclusive_ns"].sum() == sum(s.exclusive_ns for s in build.region_slices)


def test_a_table_of_many_parts_is_whole(
    monkeypatch: pytest.MonkeyPatch, run: Run, marked: Path, tmp_path: Path
) -> None:
    monkeypatch.setattr("commlens.export.relations.ROWS_AT_ONCE", 7)
    wanted = rows_of(marked, "region_time")
    assert len(wanted) > 70
    assert commlens.open(marked).polars("region_time").rows() == wanted
    assert list(commlens.open(marked).pandas("region_time").itertuples(index=False, name=None)) == wanted
    for to in ("csv", "parquet"):
        assert run("export", marked, "--to", to, "--table", "region_time", "-o", tmp_path / to).exit_code == 0
    assert pyarrow.parquet.ParquetFile(tmp_path / "parquet").metadata.num_rows == len(wanted)
    assert pandas.read_csv(tmp_path / "csv").to_numpy().tolist() == [list(row) for row in wanted]


def test_one_table_is_a_file_and_several_are_a_folder(run: Run, marked: Path, tmp_path: Path) -> None:
    assert run("export", marked, "--to", "csv", "--table", "tag", "-o", tmp_path / "tag.csv").exit_code == 0
    assert (tmp_path / "tag.csv").read_text().splitlines()[:2] == ["region,name,value", "1,kind,IO"]
    two = ("--table", "tag", "--table", "metric")
    assert run("export", marked, "--to", "csv", *two, "-o", tmp_path / "two").exit_code == 0
    assert sorted(path.name for path in (tmp_path / "two").iterdir()) == ["metric.csv", "tag.csv"]


# ---- TinyProf ----


def parse(field: str) -> dict[tuple[int, int, int], int]:
    """Return the values of a field by process, execution and iteration: all there is to know of the layout."""
    return {
        (process, execution, iteration): int(value)
        for process, of_process in enumerate(field.split("|"))
        for execution, of_execution in enumerate(of_process.split("-"))
        for iteration, value in enumerate(of_execution.split("+"))
        if value
    }


def read_tinyprof(path: Path) -> dict[tuple[str, str], dict[str, dict[tuple[int, int, int], int]]]:
    """Return every line: region and kind of line -> name of a value -> the values."""
    csv.field_size_limit(1 << 30)
    with path.open(encoding="utf-8", newline="") as file:
        heading, *lines = list(csv.reader(file))
    assert heading[:2] == ["region", "line"]
    assert heading[9:] == ["tag", "metric", "count", "sum", "min", "max", "last"]
    return {
        (line[0], line[1]): dict(zip(heading[2:9], map(parse, line[2:9])))
        for line in lines
        if not line[1].startswith("metric")
    }


def tinyprof_rows(path: Path) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Return the rows of region_time and loop_time that the file has, with paths in place of regions."""
    regions, loops = [], []
    for (region, line), values in read_tinyprof(path).items():
        for (process, execution, iteration), calls in values["calls"].items():
            if line == "program":
                continue
            place = (process, execution, iteration)
            key = (region, execution, iteration if line.endswith("+") else -1, process, calls)
            times = [
                values[name][place]
                for name in ("time_ns", "time_min_ns", "time_max_ns", "nested_ns", "mpi_ns")
            ]
            if line.startswith("region"):
                regions.append((*key, values["open"][place], *times))
            else:
                assert values["open"] == {}
                loops.append((*key, *times))
    return regions, loops


def with_paths(build: ProfileBuilder, rows: list[RegionTime] | list[LoopTime]) -> list[tuple[Any, ...]]:
    paths: dict[int, str] = {0: ""}
    for region in list(build.regions.values())[1:]:
        above = paths[region.parent or 0]
        paths[region.id] = f"{above}/{region.name}" if above else region.name
    return sorted((paths[row.region], *astuple(row)[1:]) for row in rows)


def in_tinyprof(run: Run, build: ProfileBuilder, folder: Path) -> Path:
    output = folder / "regions.csv"
    done = run("export", build.write(folder / "profile.db"), "--to", "tinyprof", "-o", output)
    assert (done.exit_code, done.stderr) == (0, "")
    return output


def test_tinyprof_parses_back_to_the_same_rows(run: Run, tmp_path: Path) -> None:
    build = marked_builder()
    regions, loops = tinyprof_rows(in_tinyprof(run, build, tmp_path))
    assert sorted(regions) == with_paths(build, build.region_times)
    assert sorted(loops) == with_paths(build, build.loop_times)


def test_tinyprof_has_the_whole_program_first(run: Run, tmp_path: Path) -> None:
    for build in (marked_builder(), small_builder()):
        output = in_tinyprof(run, build, tmp_path)
        (region, line), values = next(iter(read_tinyprof(output).items()))
        assert (region, line) == ("", "program")
        assert values["time_ns"] == {(rank, 0, 0): build.app_ns for rank in range(4)}
        assert sum(values["mpi_ns"].values()) == sum(cell.time_ns for cell in build.cells)
        for path in tmp_path.iterdir():
            path.unlink()


def test_tinyprof_has_the_metrics_and_tags_of_each_region(run: Run, tmp_path: Path) -> None:
    build = ProfileBuilder(ranks=3)
    solve, step = build.region("solve"), build.region("step", 1)
    build.spend(solve, 0, 1, 100)
    build.spend(step, 2, 1, 50, execution=1, iteration=2)
    build.tags += [(solve, "tag", "COMP"), (solve, "kind", "IO"), (0, "tag", "ALL")]
    heat, loss = build.metric("heat", "K"), build.metric("loss", "1")
    build.tell(heat, 0, 1, [2.0, -4.5])
    build.tell(loss, step, 2, [1e21], execution=1, iteration=2)
    build.tell(loss, step, 0, [1e-7, -1e-7], execution=0, iteration=-1)
    build.tell(loss, step, 1, [], not_finite=1)
    with in_tinyprof(run, build, tmp_path).open(encoding="utf-8", newline="") as file:
        lines = [
            [line[name] for name in ("region", "line", "tag", "metric", "count", "sum", "min", "max", "last")]
            for line in csv.DictReader(file)
        ]
    assert lines == [
        ["", "program", "ALL", "", *[""] * 5],
        ["", "metric", "ALL", "heat [K]", "|2|", "|~2.5|", "|~4.5|", "|2.0|", "|~4.5|"],
        ["solve", "region", "kind=IO;COMP", "", *[""] * 5],
        ["solve/step", "region+", "", "", *[""] * 5],
        ["solve/step", "metric", "", "loss", "2|0|", "0.0|0.0|", "~1e~07||", "1e~07||", "~1e~07||"],
        ["solve/step", "metric+", "", "loss", "||-++1", "||-++1e21", "||-++1e21", "||-++1e21", "||-++1e21"],
    ]


def test_tinyprof_leaves_fields_of_ranks_without_an_event_empty(run: Run, tmp_path: Path) -> None:
    text = in_tinyprof(run, marked_builder(), tmp_path).read_text()
    assert "solve/time steps/update,region+,|1+1+1-1+1+1||1+1+1-1+1+1," in text


def test_tinyprof_has_a_path_for_every_region(run: Run, tmp_path: Path) -> None:
    build = ProfileBuilder(ranks=1)
    alone, around = build.region("a/b"), build.region("a")
    within, loop = build.region("b", around), build.region("a/b", kind="loop")
    for calls, region in enumerate((alone, around, within, loop), 1):
        build.spend(region, 0, calls, 100)
    lines = read_tinyprof(in_tinyprof(run, build, tmp_path))
    assert {region: values["calls"][0, 0, 0] for (region, line), values in lines.items() if line == "region"} == {
        "a": 2, "a/b": 1, "a/b (2)": 3, "a/b (3)": 4
    }  # fmt: skip


def test_tinyprof_keeps_places_of_what_is_missing(run: Run, tmp_path: Path) -> None:
    build = ProfileBuilder(ranks=3, meta={"program": "gaps"})
    gaps = build.region("a,b|c-d+e")
    build.spend(gaps, 2, 1, 70, execution=1, iteration=3)
    build.spend(gaps, 2, 5, 50, execution=1, iteration=-1)
    build.spend(gaps, 0, 1, 30, execution=2, iteration=0)
    build.iterate(gaps, 0, 9, 90, execution=1)
    output = in_tinyprof(run, build, tmp_path)
    lines = csv.reader(output.read_text(encoding="utf-8").splitlines())
    fields = {(region, line): calls for region, line, calls, *_ in lines}
    assert fields["a,b|c-d+e", "region+"] == "--1||-+++1"
    assert fields["a,b|c-d+e", "region"] == "||-5"
    assert fields["a,b|c-d+e", "loop"] == "-9||"
    regions, loops = tinyprof_rows(output)
    assert sorted(regions) == with_paths(build, build.region_times)
    assert sorted(loops) == with_paths(build, build.loop_times)


# ---- what is refused ----


@pytest.mark.parametrize("to", commlens.export.FORMATS)
def test_what_exists_is_never_overwritten(run: Run, marked: Path, tmp_path: Path, to: str) -> None:
    output = tmp_path / "there"
    output.write_text("mine")
    done = run("export", marked, "--to", to, "-o", output)
    assert (done.exit_code, done.stdout, done.stderr) == (2, "", f"commlens: {output}: exists\n")
    assert output.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


@pytest.mark.parametrize("error", [errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK])
def test_a_file_system_without_hard_links_takes_files_too(
    run: Run, marked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    def no_link(_from: object, to: object) -> None:
        raise OSError(error, os.strerror(error), str(to))

    with_links, without = tmp_path / "with.csv", tmp_path / "without.csv"
    assert run("export", marked, "--to", "tinyprof", "-o", with_links).exit_code == 0
    monkeypatch.setattr(os, "link", no_link)
    done = run("export", marked, "--to", "tinyprof", "-o", without)
    assert (done.exit_code, done.stderr) == (0, "")
    assert without.read_bytes() == with_links.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["with.csv", "without.csv"]


def test_a_file_that_somebody_made_faster_stays_without_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out"

    def others_are_faster(_from: object, _to: object) -> None:
        output.write_text("theirs")
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", others_are_faster)
    with pytest.raises(CommlensError, match="cannot be written: File exists"), new(output) as temporary:
        temporary.write_text("mine")
    assert output.read_text() == "theirs"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("to", commlens.export.FORMATS)
def test_a_folder_that_is_not_there_is_one_line(run: Run, marked: Path, tmp_path: Path, to: str) -> None:
    output = tmp_path / "nowhere" / "file"
    done = run("export", marked, "--to", to, "-o", output)
    line = f"commlens: {output}: cannot be written: No such file or directory\n"
    assert (done.exit_code, done.stdout, done.stderr) == (2, "", line)


@pytest.mark.parametrize("to", sorted({*commlens.export.FORMATS} - {"speedscope", "folded"}))
def test_a_file_that_cannot_grow_is_one_line_and_leaves_nothing(
    marked: Path, tmp_path: Path, to: str
) -> None:
    """The limit of file sizes stands for a full disk, which only root can make."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))

    output = tmp_path / "out"
    done = subprocess.run(
        [sys.executable, "-B", "-m", "commlens", "export", marked, "--to", to, "-o", output],
        capture_output=True, text=True, preexec_fn=limit,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"commlens: {output}: cannot be written: ")
    assert "File too large" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_format_is_refused_with_those_there_are(run: Run, marked: Path, tmp_path: Path) -> None:
    done = run("export", marked, "--to", "otf2", "-o", tmp_path / "x")
    assert done.exit_code == 2
    assert all(to in done.stderr for to in commlens.export.FORMATS)


def test_an_unknown_table_is_refused(run: Run, marked: Path, tmp_path: Path) -> None:
    done = run("export", marked, "--to", "csv", "--table", "regoin", "-o", tmp_path / "x")
    assert (done.exit_code, done.stderr) == (2, "commlens: no table or view 'regoin'; did you mean region?\n")
    job = commlens.open(marked)
    for make in (job.pandas, job.polars):
        with pytest.raises(CommlensError, match="no table or view 'meta; DROP TABLE meta'"):
            make("meta; DROP TABLE meta")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "to, option",
    [("csv", "--unfold"), ("parquet", "--no-mpi"), ("tinyprof", "--rank=1"), ("hatchet", "--table=cell")],
)
def test_an_option_of_another_format_is_refused(
    run: Run, marked: Path, tmp_path: Path, to: str, option: str
) -> None:
    done = run("export", marked, "--to", to, option, "-o", tmp_path / "x")
    assert done.exit_code == 2
    assert done.stderr.startswith(f"commlens: {option.split('=')[0]} does not apply to {to}, only to ")
    assert list(tmp_path.iterdir()) == []


def test_ranks_that_are_not_there_are_refused(run: Run, marked: Path, tmp_path: Path) -> None:
    done = run("export", marked, "--to", "chrome", "--rank", "9", "-o", tmp_path / "x")
    assert (done.exit_code, done.stderr) == (2, "commlens: no rank 9 in this profile; the highest is 3\n")


@pytest.mark.parametrize("to", [to for to in commlens.export.FORMATS if to not in ("csv", "parquet")])
def test_summary_detail_has_no_single_ranks_to_export(run: Run, tmp_path: Path, to: str) -> None:
    build = small_builder()
    build.meta["detail"] = "summary"
    done = run("export", build.write(tmp_path / "summary.db"), "--to", to, "-o", tmp_path / "x")
    assert done.exit_code == 2
    assert done.stderr.startswith(
        f"commlens: the format {to} needs data of single ranks, but this profile has summary detail"
    )


MISSING: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "hatchet": ("llnl-hatchet", commlens.export.hatchet),
    "thicket": ("llnl-thicket", commlens.export.thicket),
    "pandas": ("pandas", lambda profile: commlens.open(profile).pandas("rank")),
    "polars": ("polars", lambda profile: commlens.open(profile).polars("rank")),
}


@pytest.mark.parametrize("module", MISSING)
def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, marked: Path, module: str) -> None:
    package, make = MISSING[module]
    for name in [name for name in sys.modules if name == module or name.startswith(f"{module}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(CommlensError) as refused:
        make(marked)
    assert refused.value.message == f"the package {package} is missing; try: pip install {package}"


def test_parquet_without_pyarrow_is_one_line(
    monkeypatch: pytest.MonkeyPatch, run: Run, marked: Path, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    done = run("export", marked, "--to", "parquet", "-o", tmp_path / "x")
    assert (done.exit_code, done.stderr) == (
        2,
        "commlens: the package pyarrow is missing; try: pip install pyarrow\n",
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_nothing_but_the_reader_is_needed_for_files(marked: Path, tmp_path: Path) -> None:
    """The package itself imports none of the others, nor does any format but parquet."""
    blocked = ("hatchet", "thicket", "pandas", "polars", "pyarrow", "numpy")
    program = (
        "import sys\n"
        f"for name in {blocked}: sys.modules[name] = None\n"
        "import commlens.frames\n"
        "from commlens.cli import commlens\n"
        "commlens(sys.argv[1:])\n"
    )
    for to in commlens.export.FORMATS:
        done = subprocess.run(
            [sys.executable, "-c", program, "export", marked, "--to", to, "-o", tmp_path / to],
            capture_output=True, text=True,
        )  # fmt: skip
        assert (done.returncode == 0) == (to != "parquet"), done.stderr
