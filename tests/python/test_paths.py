# SPDX-License-Identifier: Apache-2.0
"""Call paths: functions from the outside in, their sums, and paths of damaged profiles."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from build_paths import add_path, compiled, recorded
from build_profile import ProfileBuilder
from conftest import MS, Run, small_builder
from summarise import summarised
from test_page_data import unpacked

from commlens.page.paths import read_paths
from commlens.page.tables import read_tables
from commlens.profile import open_profile
from commlens.reports.query import Selection, Shape
from commlens.reports.report import read_report
from commlens.symbols.callsites import callsite_frames
from commlens.symbols.paths import PathTree, distinct_labels, path_of, read_callers

EXCHANGE, SECOND = "exchange solver.c:20", "exchange solver.c:21"
WRAPPED = "hypre_MPI_Isend solver.c:18"
# What PROGRAM of build_paths does, in its order: the path of each call, and the same as functions only.
PATHS = [
    *[f"main > setup > {place}" for place in (EXCHANGE, SECOND, SECOND, WRAPPED)],
    *[f"main > solve > halo > {place}" for place in (EXCHANGE, SECOND, SECOND)],
    "main > solve > norm > inlined solver.c:25",
    f"main > solve > {WRAPPED}",
    *[f"main > setup > {place}" for place in (EXCHANGE, SECOND, SECOND, WRAPPED)],
]
RANKS = 2


def calls_of(i: int) -> tuple[str, int]:
    """Return procedure and number of calls on each rank of the i-th place."""
    return ("MPI_Allreduce" if i % 3 == 0 else "MPI_Isend"), i + 1


@pytest.fixture(scope="module")
def solver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("solver"))


def builder(solver: Path) -> tuple[ProfileBuilder, list[int]]:
    """Return a profile of the program, and the call site of each of its calls."""
    build, sites = ProfileBuilder(ranks=RANKS), []
    for i, (_, path) in enumerate(recorded(solver)):
        sites.append(add_path(build, solver, path))
        op, calls = calls_of(i)
        for rank in range(RANKS):
            time_ns = calls * MS if rank == 0 else 1000 * i + 7
            build.count(1, op, rank, calls, time_ns, 8, 8 * calls, 8 * calls, callsite=sites[-1])
    return build, sites


@pytest.fixture(scope="module")
def profile(solver: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return builder(solver)[0].write(tmp_path_factory.mktemp("paths") / "paths.db")


def answer(run: Run, *arguments: object) -> str:
    done = run(*arguments)
    assert (done.exit_code, done.stderr) == (0, ""), done.stderr
    return done.stdout


def table(run: Run, path: Path, *options: object) -> list[str]:
    """Return the names in the first column of a report, with their indentation."""
    lines = answer(run, "report", path, "--callsites", "--top", 0, *options).splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith(("communicator", "region")))
    return [line.split("  8-15 B")[0].rstrip() for line in lines[begin + 1 :]]


# Names.


def test_a_path_has_the_functions_from_the_outside_in(profile: Path, solver: Path) -> None:
    _, sites = builder(solver)
    with open_profile(str(profile)) as connection:
        tree = PathTree(connection, sites)
        assert [tree.path_text(site) for site in sites] == PATHS
        labels = {site: frames[0].label for site, frames in callsite_frames(connection, sites).items()}
        assert [labels[site] for site in sites] == [path.split(" > ")[-1] for path in PATHS]
        callers = read_callers(connection)
        for site, (_, offsets) in zip(sites, recorded(solver)):
            path = path_of(callers, site)
            stored = dict(connection.execute('SELECT id, "offset" FROM callsite').fetchall())
            assert [stored[id] for id in path] == offsets


def test_what_calls_main_is_left_out_although_the_c_library_does_not_name_it(
    solver: Path, tmp_path: Path
) -> None:
    build = ProfileBuilder(ranks=1)
    ((_, path), *_), others = recorded(solver), {}
    for library in ("/lib/libc.so.6", "/lib/libother.so.6"):
        outer = len(build.sites)
        build.sites[outer] = (library, "", 0x27744)
        others[library] = add_path(build, solver, path, outer)
        build.count(1, "MPI_Barrier", 0, 1, MS, 0, 0, 0, callsite=others[library])
    with open_profile(str(build.write(tmp_path / "paths.db"))) as connection:
        tree = PathTree(connection, others.values())
        assert tree.path_text(others["/lib/libc.so.6"]) == PATHS[0]
        assert tree.path_text(others["/lib/libother.so.6"]) == f"libother.so.6+0x27744 > {PATHS[0]}"


def test_wrappers_are_skipped_for_the_label_and_marked_in_the_path(profile: Path, solver: Path) -> None:
    _, sites = builder(solver)
    with open_profile(str(profile)) as connection:
        tree = PathTree(connection, sites, ["hypre_MPI_*"])
        assert (tree.label(sites[8]), tree.label(sites[3])) == ("solve solver.c:31", "setup solver.c:35")
        assert tree.path_text(sites[8]) == "main > solve solver.c:31 > [hypre_MPI_Isend]"
        assert tree.path_text(sites[0]) == PATHS[0]
        only_wrappers = PathTree(connection, sites, ["*"])
        assert [only_wrappers.path_text(site) for site in sites] == PATHS


def test_labels_that_read_alike_get_as_many_callers_as_needed(profile: Path, solver: Path) -> None:
    _, sites = builder(solver)
    with open_profile(str(profile)) as connection:
        of_two = distinct_labels(connection, [sites[0], sites[4]])
        assert of_two == {sites[0]: f"setup > {EXCHANGE}", sites[4]: f"halo > {EXCHANGE}"}
        by_line = distinct_labels(connection, [sites[0], sites[9]])
        assert list(by_line.values()) == [
            f"main solver.c:{line} > setup solver.c:34 > {EXCHANGE}" for line in (38, 40)
        ]
        same_line = distinct_labels(connection, [sites[1], sites[2]])
        assert same_line[sites[1]].endswith(f"{SECOND} (call site {sites[1]})")
        everything = distinct_labels(connection, sites)
        assert len(set(everything.values())) == len(sites)


# The report.


TREE = """\
W0.0 MPI_COMM_WORLD
  main
    setup
      exchange solver.c:21
        MPI_Isend
      hypre_MPI_Isend solver.c:18
        MPI_Allreduce
      exchange solver.c:20
        MPI_Allreduce
    solve
      halo
        exchange solver.c:21
          MPI_Allreduce
          MPI_Isend
        exchange solver.c:20
          MPI_Isend
      hypre_MPI_Isend solver.c:18
        MPI_Isend
      norm > inlined solver.c:25
        MPI_Isend"""


def first_words(lines: list[str]) -> list[str]:
    """Return the names without the numbers behind them."""
    return [line[: len(line) - len(line.lstrip())] + line.strip().split("   ")[0] for line in lines]


def test_the_report_shows_paths_as_a_tree(run: Run, profile: Path) -> None:
    lines = [line.split("  2 ranks")[0] for line in first_words(table(run, profile))]
    assert lines == TREE.splitlines()


def test_depth_limits_the_tree_to_the_outermost_functions(run: Run, profile: Path) -> None:
    lines = first_words(table(run, profile, "--depth", 2))[1:]
    below = ["      MPI_Isend", "      MPI_Allreduce"]
    assert lines[:2] == ["  main", "    setup"]
    assert sorted(lines[2:4]) == sorted(below)
    assert lines[4] == "    solve"
    assert sorted(lines[5:]) == sorted(below)


def names_in_page(run: Run, profile: Path, folder: Path, *options: str) -> set[str]:
    """Return the names of the nodes in the tree of a page."""
    target = folder / "page.html"
    assert run("html", profile, "-o", target, *options).exit_code == 0
    names = unpacked(target.read_text(encoding="utf-8"))[0]["path_names"]
    target.unlink()
    return set(names)


def test_the_page_skips_the_same_wrappers_as_a_report(
    run: Run, profile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, wrapper = names_in_page(run, profile, tmp_path), "solve solver.c:31 > [hypre_MPI_Isend]"
    assert WRAPPED in plain and wrapper not in plain
    option = ("--wrapper", "hypre_MPI_*")
    skipped = names_in_page(run, profile, tmp_path, *option)
    assert WRAPPED not in skipped and wrapper in skipped
    monkeypatch.setenv("COMMLENS_WRAPPERS", "hypre_MPI_*")
    assert names_in_page(run, profile, tmp_path) == skipped
    assert names_in_page(run, profile, tmp_path, "--wrapper", "") == plain


def test_a_page_without_call_paths_refuses_wrappers(run: Run, small: Path, tmp_path: Path) -> None:
    result = run("html", small, "-o", tmp_path / "x.html", "--wrapper", "f*")
    assert result.exit_code == 2
    assert "--wrapper needs call paths, and this profile has none" in result.stderr
    assert not (tmp_path / "x.html").exists()


def test_wrappers_are_in_brackets_in_the_tree(run: Run, profile: Path) -> None:
    lines = first_words(table(run, profile, "--wrapper", "hypre_MPI_*"))
    assert "    setup solver.c:35 > [hypre_MPI_Isend]" in lines
    assert "    solve solver.c:31 > [hypre_MPI_Isend]" in lines
    assert sum("hypre" in line for line in lines) == 2


def test_the_flat_form_adds_up_the_paths_to_a_place_and_tells_places_apart(run: Run, profile: Path) -> None:
    lines = table(run, profile, "--flat", "--wrapper", "hypre_MPI_*")[2::2]
    assert len(lines) == len(set(zip(lines, table(run, profile, "--flat", "--wrapper", "hypre_MPI_*")[1::2])))
    places = {line.strip() for line in lines}
    assert {EXCHANGE, "setup solver.c:35", "solve solver.c:31", "inlined solver.c:25"} < places
    assert sum(place.startswith(f"{SECOND} (solver+0x") for place in places) == 2


def sql(path: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def rows(run: Run, path: Path, *options: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(
        answer(run, "report", path, "--callsites", "--format", "json", *options)
    )["operations"]
    return found


PLACE_SQL = """
SELECT callsite."offset", op.name, SUM(cell.calls), SUM(cell.time_ns)
  FROM cell JOIN key ON key.id = cell.key JOIN op ON op.id = key.op JOIN callsite ON callsite.id = key.callsite
 GROUP BY 1, 2 ORDER BY 1, 2"""
MOST_SQL = """
SELECT "offset", name, MAX(ns) FROM (
  SELECT callsite."offset", op.name, SUM(cell.time_ns) AS ns
    FROM cell JOIN key ON key.id = cell.key JOIN op ON op.id = key.op JOIN callsite ON callsite.id = key.callsite
   GROUP BY 1, 2, cell.rank) GROUP BY 1, 2 ORDER BY 1, 2"""


def test_rows_of_the_flat_form_are_those_of_sql(run: Run, profile: Path) -> None:
    offsets = dict(sql(profile, 'SELECT id, "offset" FROM callsite'))
    found = sorted(
        (offsets[row["callsite"]], row["operation"], row["calls"], row["time_ns"], row["rank_max_ns"])
        for row in rows(run, profile, "--flat")
    )
    wanted = [(*row, most) for row, (_, _, most) in zip(sql(profile, PLACE_SQL), sql(profile, MOST_SQL))]
    assert found == wanted


# Calls and time of each call site and of all that it leads to, from column `caller`.
BELOW_SQL = """
WITH RECURSIVE above(site, caller) AS (
  SELECT id, id FROM callsite UNION SELECT site, callsite.caller FROM above JOIN callsite ON callsite.id = above.caller
   WHERE callsite.caller IS NOT NULL)
SELECT callsite."offset", SUM(cell.calls), SUM(cell.time_ns)
  FROM above JOIN callsite ON callsite.id = above.caller JOIN key ON key.callsite = above.site
       JOIN cell ON cell.key = key.id
 WHERE callsite.caller IS NULL GROUP BY 1"""


@pytest.mark.parametrize("options", [(), ("--wrapper", "hypre_MPI_*"), ("--depth", "1"), ("--depth", "3")])
def test_the_sums_of_the_tree_are_those_of_the_flat_form_and_of_sql(
    run: Run, profile: Path, options: tuple[str, ...]
) -> None:
    calls = sum(calls for _, calls, _ in sql(profile, BELOW_SQL))
    time_ns = sum(ns for _, _, ns in sql(profile, BELOW_SQL))
    for asked in (options, ("--flat",), ()):
        found = rows(run, profile, *asked)
        assert (sum(row["calls"] for row in found), sum(row["time_ns"] for row in found)) == (calls, time_ns)
    tree = list(walked(profile, options))
    wanted = Counter[str]()
    for i, path in enumerate(PATHS):
        names = path.split(" > ")
        for level in range(1, len(names)):
            wanted[" > ".join(names[:level])] += RANKS * calls_of(i)[1]
    for path, sums in tree:
        below = [row for other, row in tree if other.startswith(f"{path} > ") and "operation" in row]
        assert sums["calls"] == sum(row["calls"] for row in below) or "operation" in sums
        if path in wanted and "--wrapper" not in options:
            assert sums["calls"] == wanted[path], path
    roots = [sums for path, sums in tree if path == "main"]
    assert [(root["calls"], root["time_ns"]) for root in roots] == [(calls, time_ns)]
    collectives = sum(row["collectives"] or 0 for row in rows(run, profile))
    assert [root["collectives"] for root in roots] == [pytest.approx(collectives)]


def walked(profile: Path, options: tuple[str, ...]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield path and sums of every line of the tree."""
    named = dict(zip(options[::2], options[1::2]))
    depth, wrapper = named.get("--depth"), named.get("--wrapper")
    shape = Shape(
        callsites=True, tree=True, depth=int(depth) if depth else None, wrappers=(wrapper,) if wrapper else ()
    )
    with open_profile(str(profile)) as connection:
        report = read_report(connection, Selection(), shape)
    path: list[str] = []
    for level, item in report.sites.walk(report.operation_rows(), shape):
        assert not isinstance(item, str)
        path[level:] = [item["call_path"] if "call_path" in item else item["operation"]]
        yield " > ".join(path), item


def test_top_limits_the_rows_below_each_path(run: Run, profile: Path) -> None:
    lines = answer(run, "report", profile, "--callsites", "--top", 1).splitlines()
    more = [line.strip() for line in lines if "more row" in line]
    assert [line[:15] for line in more] == ["and 2 more rows", "and 1 more row "]


def test_single_ranks_are_below_their_rows(run: Run, profile: Path) -> None:
    lines = table(run, profile, "--all-ranks", "--op", "Allreduce")
    operations = [i for i, line in enumerate(lines) if line.strip().startswith("MPI_Allreduce")]
    assert operations
    for i in operations:
        assert [line.split()[:2] for line in lines[i + 1 : i + 3]] == [["rank", "0"], ["rank", "1"]]


@pytest.mark.parametrize("options", [("--depth", "2"), ("--wrapper", "x*")])
def test_a_profile_without_callers_has_no_paths(run: Run, small: Path, options: tuple[str, ...]) -> None:
    done = run("report", small, "--callsites", *options)
    assert done.exit_code == 2
    assert done.stderr == (
        f"commlens: {options[0]} needs call paths, and this profile has none: "
        "run the program with COMMLENS_FRAMES=8\n"
    )
    flat, today = (answer(run, "report", small, "--callsites", *more) for more in (("--flat",), ()))
    assert flat == today


@pytest.mark.parametrize(
    "options", [("--flat",), ("--depth", "1"), ("--wrapper", "x"), ("--callsites", "--flat", "--depth", "1")]
)
def test_options_of_paths_need_call_sites(run: Run, small: Path, options: tuple[str, ...]) -> None:
    assert run("report", small, *options).exit_code == 2


def test_the_queries_that_the_report_prints_give_its_rows(run: Run, profile: Path) -> None:
    for options in (("--callsites",), ("--callsites", "--flat"), ("--callsites", "--time", "0.001:")):
        printed = answer(run, "report", profile, *options, "--format", "json", "--sql")
        (query,) = (text for text in printed.split(";\n") if text.strip().startswith("-- operations"))
        with closing(sqlite3.connect(profile)) as connection:
            connection.row_factory = sqlite3.Row
            found = [dict(row) for row in connection.execute(query)]
        wanted = rows(run, profile, *options)
        assert wanted
        assert [{name: row[name] for name in wanted[0]} for row in found] == wanted


def test_operations_are_named_below_paths_in_regions(run: Run, profile: Path) -> None:
    by_region, plain = table(run, profile, "--by", "region"), table(run, profile)
    assert [line[2:] for line in first_words(by_region)[2:]] == first_words(plain)[1:]


def test_a_summary_has_the_same_sums(run: Run, profile: Path, tmp_path: Path) -> None:
    shutil.copy(profile, tmp_path / "full.db")
    summary = summarised(tmp_path / "full.db")
    for options in ((), ("--flat",), ("--depth", "2"), ("--flat", "--unfold")):
        full, found = rows(run, profile, *options), rows(run, summary, *options)
        sums = [
            [(row["operation"], row["callsite"], row["calls"], row["time_ns"]) for row in some]
            for some in (full, found)
        ]
        assert sums[0] == sums[1]
        most = [(a["rank_max_ns"], b["rank_max_ns"]) for a, b in zip(full, found)]
        assert all(b in (a, None) for a, b in most)
        assert any(b is None for _, b in most) == bool(options)  # the maximum of several paths is not stored
        assert any(b is not None for _, b in most) == (options != ("--depth", "2"))


# Other listings.


def test_findings_add_up_the_paths_to_a_place(run: Run, tmp_path: Path) -> None:
    """The same run, once with a path for every call: findings do not depend on it."""
    for op, calls, time_ns in (("MPI_Barrier", 100, 300 * MS), ("MPI_Comm_dup", 2000, 400 * MS)):
        found = []
        for with_callers in (False, True):
            build = ProfileBuilder(ranks=4, app_ns=10_000 * MS)
            build.sites[1] = ("/opt/app/solver", "", 0x100)
            for i in range(2, 6) if with_callers else ():
                build.sites[i] = ("/opt/app/solver", "", 0x100)
                build.sites[i + 10] = ("/opt/app/solver", "", 0x1000 + i)
                build.callers[i] = i + 10
            for rank in range(4):
                for i in range(4 if with_callers else 1):
                    times = 1 if with_callers else 4
                    site = 2 + i if with_callers else 1
                    build.count(1, op, rank, times * calls, times * time_ns, callsite=site)
            path = build.write(tmp_path / f"{op}{with_callers}.db")
            texts = [each["finding"] for each in json.loads(answer(run, "explain", path, "--format", "json"))]
            found.append(texts)
            assert texts
        assert found[0] == found[1]


def test_positions_at_the_end_of_a_job_are_told_apart_by_their_path(
    run: Run, solver: Path, tmp_path: Path
) -> None:
    build, sites = builder(solver)
    build.stands(0, "MPI_Allreduce", 1, 5 * MS)
    build.stands(1, "MPI_Allreduce", 1, 5 * MS)
    path = build.write(tmp_path / "killed.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        for rank, site in ((0, sites[0]), (1, sites[4])):
            connection.execute("UPDATE position SET callsite = ? WHERE rank = ?", (site, rank))
    shown = answer(run, "report", path)
    assert f"at setup > {EXCHANGE}: 0; halo > {EXCHANGE}: 1" in shown


def test_families_of_one_place_are_matched_by_their_path(run: Run, tmp_path: Path) -> None:
    paths = []
    for is_swapped in (False, True):
        build = ProfileBuilder(ranks=2)
        for i in (1, 2):
            build.sites[i] = ("/opt/app/x", "ab", 0x100)
            build.sites[i + 2] = ("/opt/app/x", "ab", 0x1000 * i)
            build.callers[i] = i + 2
        for i in (2, 1) if is_swapped else (1, 2):
            comm = build.comm(f"s0.{i}", [0, 1], parent=1, creator="MPI_Comm_split", callsite=i)
            build.count(comm, "MPI_Bcast", 0, 10 * i, MS)
        paths.append(build.write(tmp_path / f"{is_swapped}.db"))
    found = json.loads(answer(run, "compare", *paths, "--format", "json"))
    assert found["unmatched"] == []
    matched = [(row["calls_a"], row["calls_b"]) for row in found["rows"] if row["operation"] == "MPI_Bcast"]
    assert matched == [(10, 10), (20, 20)]
    shown = answer(run, "comms", paths[0])
    assert "x+0x1000 > x+0x100" in shown
    assert "x+0x2000 > x+0x100" in shown


def test_a_page_has_a_label_for_each_path_and_none_for_callers(profile: Path, solver: Path) -> None:
    _, sites = builder(solver)
    with open_profile(str(profile)) as connection:
        found = read_paths(connection, read_tables(connection, 1 << 20), 1 << 20).sites
    assert set(found) == {0, *sites}
    assert len(set(found.values())) == len(found)


# Damaged profiles.


def damaged(path: Path, *statements: str) -> Path:
    build = small_builder()
    build.sites[3] = ("/opt/app/listing1", "", 0x2000)
    build.callers[1], build.callers[2] = 3, 1
    build.write(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    return path


@pytest.mark.parametrize(
    "statement, complaint",
    [
        ("UPDATE callsite SET caller = 2 WHERE id = 3", "table callsite: 1 row have an invalid caller"),
        ("UPDATE callsite SET caller = 1 WHERE id = 1", "table callsite: 1 row have an invalid caller"),
        (
            "UPDATE callsite SET caller = 99 WHERE id = 1",
            "table callsite: an invalid value is left out in 1 row",
        ),
        (
            "UPDATE callsite SET caller = 'x' WHERE id = 1",
            "table callsite: an invalid value is left out in 1 row",
        ),
    ],
)
def test_callers_in_a_loop_and_callers_that_are_missing_are_cut(
    run: Run, tmp_path: Path, statement: str, complaint: str
) -> None:
    path = damaged(tmp_path / "damaged.db", statement)
    whole = sum(row["calls"] for row in rows(run, damaged(tmp_path / "whole.db")))
    for options in ((), ("--flat",), ("--depth", "1")):
        done = run("report", path, "--callsites", *options)
        assert done.exit_code == 3
        assert complaint in done.stderr
        found = json.loads(run("report", path, "--callsites", *options, "--format", "json").stdout)
        assert sum(row["calls"] for row in found["operations"]) == whole
    with closing(sqlite3.connect(path)) as connection:  # without the checks
        tree = PathTree(connection, [1, 2, 3])
        assert len(distinct_labels(connection, [1, 2, 3])) == 3
        assert all(len(path_of(read_callers(connection), site)) <= 3 for site in tree.leaf)


def test_a_row_that_is_left_out_is_no_caller(run: Run, tmp_path: Path) -> None:
    path = damaged(tmp_path / "damaged.db", "UPDATE callsite SET module = X'00' WHERE id = 3")
    done = run("report", path, "--callsites")
    assert done.exit_code == 3
    assert "table callsite: 1 row is invalid and left out" in done.stderr


def test_a_chain_of_ten_thousand_callers_is_read(run: Run, tmp_path: Path) -> None:
    length = 10_000
    build = ProfileBuilder(ranks=1)
    for i in range(1, length + 1):
        build.sites[i] = ("/opt/app/deep", "", i)
        if i > 1:
            build.callers[i] = i - 1
    for i in range(1, length + 1, 7):
        build.count(1, "MPI_Bcast", 0, 1, 1000, callsite=i)
    path = build.write(tmp_path / "deep.db")
    with open_profile(str(path)) as connection:
        assert path_of(read_callers(connection), length) == list(range(1, length + 1))
        tree = PathTree(connection, range(1, length + 1))
        assert tree.path_text(length).count(" > ") == 127
    assert sum(row["calls"] for row in rows(run, path)) == len(range(1, length + 1, 7))
    for options in ((), ("--flat",)):
        assert answer(run, "report", path, "--callsites", *options)


def test_many_paths_are_read_within_the_limit_for_queries(run: Run, tmp_path: Path) -> None:
    """Without an index on the call sites, these queries take minutes, and the reader gives up after seconds."""
    build = ProfileBuilder(ranks=1)
    for top in range(20):
        build.sites[caller := len(build.sites)] = ("/opt/app/wide", "", 0x100 * top)
        for place in range(500):
            build.sites[site := len(build.sites)] = ("/opt/app/wide", "", 0x10000 + place)
            build.callers[site] = caller
            build.count(1, "MPI_Bcast", 0, 1, 1000, callsite=site)
    path = build.write(tmp_path / "wide.db")
    for options, count in (((), 10_000), (("--flat",), 500), (("--flat", "--wrapper", "x"), 500)):
        found = rows(run, path, *options)
        assert (len(found), sum(row["calls"] for row in found)) == (count, 10_000)
    assert "and 10 more rows" in answer(run, "report", path, "--callsites", "--depth", 1)
