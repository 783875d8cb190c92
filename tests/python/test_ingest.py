# SPDX-License-Identifier: Apache-2.0
"""`commlens ingest`: each profile once, all versions, past damaged ones, with tokens for personal data."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from build_profile import ProfileBuilder
from conftest import Run, marked_builder, small_builder
from fleet_cases import answers, builder, content, doubled, rows_of, write_jobs

from commlens.fleet import dataset as dataset_module
from commlens.fleet._dataset import CODES, TABLES, Code
from commlens.fleet.codes import code_of
from commlens.fleet.dataset import Dataset
from commlens.fleet.files import write_rows
from commlens.fleet.log import Log
from commlens.fleet.pseudonyms import Pseudonyms

pytestmark = pytest.mark.usefixtures("without_fsync")

PROFILES = Path(__file__).resolve().parents[1] / "profiles"
MS = 10**6


def test_a_profile_becomes_the_rows_of_its_job(tmp_path: Path, run: Run) -> None:
    builder(0).write(tmp_path / "job.db")
    done = run("ingest", tmp_path / "job.db", "--into", tmp_path / "set", "--cluster", "demo")
    assert (done.exit_code, done.stdout) == (0, "profiles: 1 new, 0 known before, 0 refused\n")
    (job,) = rows_of(tmp_path / "set", "job")
    expected = {
        "cluster": "demo",
        "month": "2026-01",
        "code": "LAMMPS",
        "program": "lmp",
        "ranks": 4,
        "nodes": 2,
        "mpi_ns": (10 + 11 + 12 + 13 + 4 * 5) * MS,
        "sub_ns": 20 * MS,
        "calls": 4 * 30,
        "bytes_sent": 4 * 80 + 2 * 20480,
        "job_id": "1000",
        "rows_left_out": 0,
        "complaints": 0,
    }
    assert {key: job[key] for key in expected} == expected
    operations = {row["op"]: row for row in rows_of(tmp_path / "set", "operation")}
    assert set(operations) == {"MPI_Allreduce", "MPI_Bcast"}
    allreduce = operations["MPI_Allreduce"]
    quantiles = [allreduce[f"rank_{q}_ns"] // MS for q in ("min", "p25", "p50", "p75", "max")]
    assert (quantiles, allreduce["size"], allreduce["is_sub"], allreduce["bin"]) == (
        [10, 10, 11, 12, 13],
        4,
        0,
        4,
    )
    assert (operations["MPI_Bcast"]["size"], operations["MPI_Bcast"]["is_sub"]) == (2, 1)
    families = {row["family"]: row for row in rows_of(tmp_path / "set", "comm_family")}
    assert families[2]["lineage"] == "MPI_COMM_WORLD > MPI_Comm_split at lmp+0x1234"
    assert (families[2]["communicators"], families[2]["time_ns"]) == (2, 20 * MS)


@pytest.mark.parametrize("build", [small_builder, marked_builder])
def test_the_rows_add_up_to_those_of_the_profile(build: Any, tmp_path: Path, run: Run) -> None:
    path = build().write(tmp_path / "one.db")
    assert run("ingest", path, "--into", tmp_path / "set").exit_code == 0
    with closing(sqlite3.connect(path)) as db:
        sql = "SELECT SUM(calls), SUM(time_ns), SUM(bytes_sent), SUM(bytes_received) FROM cell"
        expected = db.execute(sql).fetchone()
    for table in ("operation", "comm_family", "site"):
        rows = rows_of(tmp_path / "set", table)
        sums = tuple(
            sum(row[key] for row in rows) for key in ("calls", "time_ns", "bytes_sent", "bytes_received")
        )
        assert sums == expected, table


def test_every_schema_version_goes_in(tmp_path: Path, run: Run) -> None:
    done = run("ingest", PROFILES, "--into", tmp_path / "set")
    assert done.exit_code == 3
    assert "version1.db: has schema version 1, but this commlens reads 2 and later" in done.stderr
    versions = {row["schema_version"] for row in rows_of(tmp_path / "set", "job")}
    assert versions >= {2, 3, *range(6, 17)}
    found = [path for path in PROFILES.rglob("*") if path.suffix in (".db", ".commlens")]
    whole = [path for path in found if path.parent.suffix != ".commlens" and path.name != "version1.db"]
    assert len(rows_of(tmp_path / "set", "job")) == len(whole)
    (refused,) = rows_of(tmp_path / "set", "refused")
    assert refused["reason"].startswith("has schema version 1")
    assert doubled(tmp_path / "set") == []


def test_the_same_profile_twice_changes_nothing(tmp_path: Path, run: Run) -> None:
    write_jobs(tmp_path / "jobs", range(4))
    run("ingest", tmp_path / "jobs", "--into", tmp_path / "set")
    before, commits = content(tmp_path / "set"), Log(tmp_path / "set").read().number
    shutil.copy(tmp_path / "jobs" / "job0.db", tmp_path / "jobs" / "copy.db")
    with closing(sqlite3.connect(tmp_path / "jobs" / "job1.db")) as db:
        db.execute("VACUUM")
    os.utime(tmp_path / "jobs" / "job1.db", (1, 1))
    done = run("ingest", tmp_path / "jobs", tmp_path / "jobs" / "job2.db", "--into", tmp_path / "set")
    assert done.stdout == "profiles: 0 new, 6 known before, 0 refused\n"
    assert (content(tmp_path / "set"), Log(tmp_path / "set").read().number) == (before, commits)


def test_damaged_profiles_go_to_a_list_and_the_rest_goes_on(tmp_path: Path, run: Run) -> None:
    good = write_jobs(tmp_path / "jobs", range(3))
    whole = good[1].read_bytes()
    (tmp_path / "jobs" / "a_truncated.db").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "jobs" / "b_empty.db").write_bytes(b"")
    (tmp_path / "jobs" / "c_other.db").write_bytes(b"not SQLite" * 100)
    with closing(sqlite3.connect(tmp_path / "jobs" / "d_foreign.db")) as db:
        db.execute("CREATE TABLE t (x)")
    (tmp_path / "jobs" / "e_noise.db").write_bytes(whole[:100] + bytes(reversed(whole[100:])))
    (tmp_path / "jobs" / "f\x1b[31m.db").write_bytes(whole[: len(whole) // 2])
    shards = tmp_path / "jobs" / "g.commlens"
    shards.mkdir()
    (shards / "shard.0.db").write_bytes(b"noise")
    done = run("ingest", tmp_path / "jobs", tmp_path / "missing.db", "--into", tmp_path / "set")
    assert (done.exit_code, done.stdout.split(" refused")[0]) == (3, "profiles: 3 new, 0 known before, 8")
    refused = {Path(row["profile"]).name: row["reason"] for row in rows_of(tmp_path / "set", "refused")}
    assert {name[0] for name in refused} == set("abcdefg")
    assert refused["b_empty.db"] == "not a profile: the file is empty"
    assert all(str(tmp_path) not in reason for reason in refused.values())
    again = run("ingest", tmp_path / "jobs", "--into", tmp_path / "set")
    assert (again.exit_code, len(rows_of(tmp_path / "set", "refused"))) == (0, 7)


def test_a_profile_without_some_tables_goes_in_with_a_complaint(tmp_path: Path, run: Run) -> None:
    path = builder(0).write(tmp_path / "job.db")
    with closing(sqlite3.connect(path)) as db:
        for table in (
            "peer",
            "setting",
            "waiting",
            "overhead",
            "callsite",
            "scope",
            "spread",
            "region",
            "comm_set",
        ):
            db.execute(f"DROP TABLE {table}")
        db.commit()
    os.utime(path, (1, 1))
    assert run("ingest", path, "--into", tmp_path / "set").exit_code == 0
    (job,) = rows_of(tmp_path / "set", "job")
    assert job["complaints"] >= 8
    assert job["calls"] == 120


def test_huge_and_hostile_names_go_in_and_come_out(tmp_path: Path, run: Run) -> None:
    program = "\x1b[31mx" * 500
    meta = {"program": program, "command_line": f"{'a' * 100_000} '", "start_time": "9999-99-99T99:99:99Z"}
    build = builder(0, **meta)
    path = build.write(tmp_path / "job.db")
    done = run("ingest", path, "--into", tmp_path / "set", "--cluster", "../../up and 'away'")
    assert done.exit_code == 0
    (job,) = rows_of(tmp_path / "set", "job")
    assert (job["cluster"], job["month"], job["start"]) == ("../../up and 'away'", "", None)
    assert len(job["command_line"]) == 4096 and len(job["code"]) == 200
    inside = {
        path.relative_to(tmp_path / "set").parts[1] for path in (tmp_path / "set").glob("*/*/*/*.parquet")
    }
    assert inside == {"%2E%2E%2F%2E%2E%2Fup%20and%20%27away%27"}


def many_regions(number: int) -> ProfileBuilder:
    build = builder(number)
    for i in range(1200):
        region = build.region(f"region {i}")
        build.spend(region, 0, 1, (i + 1) * MS)
    return build


def test_a_job_with_more_rows_than_a_table_takes_keeps_the_largest(tmp_path: Path, run: Run) -> None:
    path = many_regions(0).write(tmp_path / "job.db")
    run("ingest", path, "--into", tmp_path / "set")
    rows = rows_of(tmp_path / "set", "region")
    (job,) = rows_of(tmp_path / "set", "job")
    assert (len(rows), job["rows_left_out"]) == (1000, 201)
    assert min(row["time_ns"] for row in rows if row["region"]) > 200 * MS


def test_call_sites_left_out_are_counted(tmp_path: Path, run: Run) -> None:
    build = builder(1)
    sites = len({(cell.callsite, cell.op) for cell in build.cells})
    for site in range(1000, 1150):
        build.sites[site] = ("/opt/app/x", "", site)
        build.count(1, "MPI_Barrier", 0, 1, MS, callsite=site)
    build.write(tmp_path / "sites.db")
    assert run("ingest", tmp_path / "sites.db", "--into", tmp_path / "set").exit_code == 0
    (job,) = rows_of(tmp_path / "set", "job")
    assert len(rows_of(tmp_path / "set", "site")) == 100
    assert job["rows_left_out"] == sites + 150 - 100


def test_personal_data_become_tokens_that_are_equal_for_equal_values(tmp_path: Path, run: Run) -> None:
    write_jobs(tmp_path / "jobs", range(2))
    key = tmp_path / "key"
    for name in ("one", "two"):
        run("ingest", tmp_path / "jobs", "--into", tmp_path / name, "--pseudonymise", key)
    jobs = rows_of(tmp_path / "one", "job")
    assert key.stat().st_mode & 0o777 == 0o600
    assert content(tmp_path / "one") == content(tmp_path / "two")
    assert len({job["directory"] for job in jobs}) == 1 and jobs[0]["directory"].startswith("path-")
    assert len({job["owner"] for job in jobs}) == 1 and jobs[0]["owner"].startswith("user-")
    assert all(job["command_line"].startswith("command-") for job in jobs)
    text = str(content(tmp_path / "one"))
    assert "alice" not in text and str(tmp_path) not in text
    other = Pseudonyms(b"another key of a centre").token("path", "/home/alice/run")
    assert other != jobs[0]["directory"]
    key.chmod(0o644)
    done = run("ingest", tmp_path / "jobs", "--into", tmp_path / "one", "--pseudonymise", key)
    assert (done.exit_code, done.stderr) == (
        2,
        f"commlens: {key}: other users can read this key: chmod 600 {key}\n",
    )


def test_a_code_is_recognised_by_its_build_id_whatever_its_name_is() -> None:
    known = (Code("Solver", ("solve*",), ("beef",)), *CODES)
    names = [
        code_of(program, build_id, [], known) for program, build_id in (("a.out", "beef"), ("lmp", "beef"))
    ]
    names += [code_of(program, "f00d", [], known) for program in ("a.out", "lmp", "solver.x")]
    assert names == ["Solver", "Solver", "a.out", "LAMMPS", "Solver"]


def test_a_centre_adds_its_own_codes(tmp_path: Path, run: Run) -> None:
    (tmp_path / "codes.toml").write_text('[[code]]\nname = "Our MD"\nprograms = ["lm*"]\n', encoding="utf-8")
    path = builder(0).write(tmp_path / "job.db")
    run("ingest", path, "--into", tmp_path / "set", "--codes", tmp_path / "codes.toml")
    assert rows_of(tmp_path / "set", "job")[0]["code"] == "Our MD"
    (tmp_path / "codes.toml").write_text('[[code]]\nname = "Our MD"\nprogram = "lm*"\n', encoding="utf-8")
    done = run("ingest", path, "--into", tmp_path / "set", "--codes", tmp_path / "codes.toml")
    assert (done.exit_code, "unknown program;" in done.stderr) == (2, True)


def test_small_files_are_put_together_and_no_row_changes(tmp_path: Path, run: Run) -> None:
    paths = write_jobs(tmp_path / "jobs", range(0, 30, 3))
    for path in paths:
        run("ingest", path, "--into", tmp_path / "set")
    state = Log(tmp_path / "set").read()
    assert len(rows_of(tmp_path / "set", "job")) == 10
    assert len(state.of("operation")) == 3, "eight of ten were put together"
    before = content(tmp_path / "set")
    run("ingest", "--into", tmp_path / "set", "--compact")
    state = Log(tmp_path / "set").read()
    assert {table: len(state.of(table)) for table in ("job", "operation")} == {"job": 1, "operation": 1}
    assert content(tmp_path / "set") == before
    assert all((tmp_path / "set" / path).exists() for path in state.removed), "someone may be reading them"


def test_replaced_and_abandoned_files_are_deleted_after_a_time(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in write_jobs(tmp_path / "jobs", range(0, 6, 3)):
        run("ingest", path, "--into", tmp_path / "set")
    lost = tmp_path / "set" / "job" / "x" / "2026-01" / "lost.parquet"
    lost.parent.mkdir(parents=True)
    lost.write_bytes(b"half")
    os.utime(lost, (1, 1))
    before = content(tmp_path / "set")
    monkeypatch.setattr(dataset_module, "GRACE_S", -1)
    run("ingest", "--into", tmp_path / "set", "--compact")
    files = {str(path.relative_to(tmp_path / "set")) for path in (tmp_path / "set").glob("*/*/*/*.parquet")}
    assert files == set(Log(tmp_path / "set").read().files)
    assert content(tmp_path / "set") == before


def test_two_writers_at_once_add_each_job_once(tmp_path: Path, run: Run) -> None:
    """Both have read the same state; the second one finds the number of its commit taken."""
    write_jobs(tmp_path / "jobs", range(4))
    for name in ("one", "two"):
        run("ingest", tmp_path / "jobs", "--into", tmp_path / name)
    rows = {table: [tuple(row.values()) for row in rows_of(tmp_path / "one", table)] for table in TABLES}
    only = {job[0] for job in rows["job"][:3]}
    part = {table: [row for row in some if row[0] in only] for table, some in rows.items()}
    one, other = Dataset(tmp_path / "set"), Dataset(tmp_path / "set")
    one.add(part)
    assert other.add(rows)["job"] == 1
    assert doubled(tmp_path / "set") == []
    assert content(tmp_path / "set") == content(tmp_path / "two")
    # The race proper: the other writer commits after this one has looked.
    third, fourth = Dataset(tmp_path / "third"), Dataset(tmp_path / "third")
    files = write_rows(third.root, part)
    fourth.add(rows)
    rest = third._commit(files, part)
    assert rest is not None and not any(rest.values())


def test_a_full_disk_loses_nothing_and_is_named(tmp_path: Path, run: Run) -> None:
    """A file that grows beyond a limit fails as on a full disk: the first one, or one after others that are complete."""
    write_jobs(tmp_path / "jobs", range(3))
    run("ingest", tmp_path / "jobs" / "job0.db", "--into", tmp_path / "set")
    before = content(tmp_path / "set")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    for most in (100, 600, 4000, 8000):
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, limits[1]))
        try:
            done = run("ingest", tmp_path / "jobs", "--into", tmp_path / "set")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert (done.exit_code, "cannot be written: File too large" in done.stderr) == (2, True), most
        files = {str(p.relative_to(tmp_path / "set")) for p in (tmp_path / "set").glob("*/*/*/*.parquet")}
        assert files == set(Log(tmp_path / "set").read().files)
        assert content(tmp_path / "set") == before
    assert run("ingest", tmp_path / "jobs", "--into", tmp_path / "set").exit_code == 0
    run("ingest", tmp_path / "jobs", "--into", tmp_path / "clean")
    assert content(tmp_path / "set") == content(tmp_path / "clean")


def test_a_folder_of_others_is_not_made_a_dataset(tmp_path: Path, run: Run) -> None:
    path = builder(0).write(tmp_path / "job.db")
    done = run("ingest", path, "--into", tmp_path)
    assert (done.exit_code, done.stderr) == (
        2,
        f"commlens: {tmp_path}: neither a dataset nor an empty folder\n",
    )


def test_a_damaged_log_is_named_and_a_newer_dataset_refused(tmp_path: Path, run: Run) -> None:
    path = builder(0).write(tmp_path / "job.db")
    run("ingest", path, "--into", tmp_path / "set")
    commit = tmp_path / "set" / "_log" / "000000000001.json"
    kept = commit.read_text(encoding="utf-8")
    for text in ("{", '{"added": [["../../etc/passwd", 1, 1]]}', "[]", '{"added": 5}'):
        commit.write_text(text, encoding="utf-8")
        done = run("ingest", path, "--into", tmp_path / "set")
        assert (done.exit_code, done.stderr) == (2, f"commlens: {commit}: damaged\n")
    commit.write_text(kept, encoding="utf-8")
    (tmp_path / "set" / "commlens-dataset.json").write_text('{"version": 99}', encoding="utf-8")
    done = run("ingest", path, "--into", tmp_path / "set")
    assert (done.exit_code, "a dataset of version 99" in done.stderr) == (2, True)


def test_many_commits_are_read_from_a_checkpoint(tmp_path: Path) -> None:
    one = Dataset(tmp_path / "set")
    for number in range(70):
        row = (number, "c", "2026-01", None, "1", "u", "q", "n", "COMPLETED", 1, 1)
        assert one.add({"batch_job": [row]}) == {"batch_job": 1}
    assert (tmp_path / "set" / "_log" / "000000000064.checkpoint").exists()
    for path in (tmp_path / "set" / "_log").glob("*.json"):
        if int(path.stem) <= 64:
            path.unlink()
    assert Log(tmp_path / "set").read() == one.state
    assert sorted(row["id"] for row in rows_of(tmp_path / "set", "batch_job")) == list(range(70))


ACCOUNTING = """\
JobID|JobIDRaw|JobName|User|Partition|Cluster|State|Start|AllocCPUS|CPUTimeRAW
990_7|1000|md|alice|main|demo|COMPLETED|2026-01-01T00:00:00|4|40
990_7.0|1000.0|lmp|alice|main|demo|COMPLETED|2026-01-01T00:00:00|4|40
2000||x|bob|main|demo|CANCELLED by 7|Unknown|junk|1e99
"""


def test_jobs_of_the_batch_system_go_in_once(tmp_path: Path, run: Run) -> None:
    (tmp_path / "jobs.txt").write_text(ACCOUNTING, encoding="utf-8")
    for expected in (2, 0):
        done = run("ingest", "--accounting", tmp_path / "jobs.txt", "--into", tmp_path / "set")
        assert done.stdout.splitlines()[0] == f"{expected} new jobs of the batch system"
    rows = {row["job_id"]: row for row in rows_of(tmp_path / "set", "batch_job")}
    assert (rows["1000"]["cpu_ns"], rows["1000"]["tasks"]) == (40 * 10**9, 4)
    assert (rows["2000"]["state"], rows["2000"]["start"], rows["2000"]["cpu_ns"]) == ("CANCELLED", None, 0)


def account(path: Path, *lines: str) -> Path:
    """Write jobs of the batch system: job id, cluster, state and start of each."""
    path.write_text("\n".join(["JobID|Cluster|State|Start", *lines, ""]), encoding="utf-8")
    return path


def test_the_name_that_the_user_gives_a_cluster_is_that_of_its_accounting(tmp_path: Path, run: Run) -> None:
    """The batch system has its own name for the cluster: with it, no job would match a profile."""
    builder(0).write(tmp_path / "job.db")
    jobs = account(tmp_path / "jobs.txt", "1000|slurm|COMPLETED|2026-01-01T00:00:00")
    command = ("ingest", "--into", tmp_path / "set", "--accounting", jobs)
    done = run(*command, tmp_path / "job.db", "--cluster", "mare")
    assert (done.exit_code, done.stderr) == (0, "")
    assert [row["cluster"] for row in rows_of(tmp_path / "set", "batch_job")] == ["mare"]
    assert answers(tmp_path / "set", "missing") == []
    # Without --cluster, the column names it.
    assert run(*command).stderr == (
        "commlens: the dataset has no profile of cluster slurm, but of mare: question missing matches equal names only; "
        "use the same --cluster for the profiles and for --accounting\n"
    )
    assert {row["cluster"] for row in rows_of(tmp_path / "set", "batch_job")} == {"mare", "slurm"}


def test_accounting_before_the_first_profile_is_no_mistake(tmp_path: Path, run: Run) -> None:
    jobs = account(tmp_path / "jobs.txt", "1|slurm|COMPLETED|2026-01-01T00:00:00")
    done = run("ingest", "--accounting", jobs, "--into", tmp_path / "set")
    assert (done.exit_code, done.stderr) == (0, "")


def test_one_name_for_several_clusters_is_refused(tmp_path: Path, run: Run) -> None:
    """Two of their jobs may have the same id."""
    lines = [f"1|{name}|COMPLETED|2026-01-01T00:00:00" for name in ("a", "b")]
    jobs = account(tmp_path / "jobs.txt", *lines)
    done = run("ingest", "--accounting", jobs, "--into", tmp_path / "set", "--cluster", "mare")
    assert (done.exit_code, done.stderr) == (
        2,
        f"commlens: {jobs}: has jobs of 2 clusters (a, b), and --cluster mare names one: write one file per cluster "
        "with sacct --clusters=NAME\n",
    )
    assert run("ingest", "--accounting", jobs, "--into", tmp_path / "set").exit_code == 0
    assert {row["cluster"] for row in rows_of(tmp_path / "set", "batch_job")} == {"a", "b"}


def test_a_job_of_the_batch_system_goes_in_when_it_has_ended(tmp_path: Path, run: Run) -> None:
    """A row never changes: one of a running job would stay."""
    states = ("PENDING", "RUNNING", "SUSPENDED", "REQUEUED", "RESIZING")
    first = [f"{i}|c|{state}|Unknown" for i, state in enumerate(states)]
    command = ("ingest", "--into", tmp_path / "set", "--accounting")
    done = run(*command, account(tmp_path / "jobs.txt", *first))
    assert done.stdout.splitlines()[0] == "0 new jobs of the batch system; skipped 5 jobs not ended yet"
    assert rows_of(tmp_path / "set", "batch_job") == []
    later = [f"{i}|c|COMPLETED|2026-01-01T00:00:00" for i in range(5)]
    assert run(*command, account(tmp_path / "jobs.txt", *later)).stdout.startswith(
        "5 new jobs of the batch system\n"
    )
    assert [row["state"] for row in rows_of(tmp_path / "set", "batch_job")] == ["COMPLETED"] * 5


def test_profiles_that_appear_in_a_folder_are_read_until_the_command_is_ended(tmp_path: Path) -> None:
    folder = tmp_path / "jobs"
    first = write_jobs(folder, range(2))
    for path in first:
        os.utime(path, (10**9, 10**9))
    command = [
        sys.executable,
        "-m",
        "commlens",
        "ingest",
        "--watch",
        folder,
        "--into",
        tmp_path / "set",
        "--every",
        "0.1",
    ]
    with subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, text=True) as watching:
        try:
            for number in (2, 3):
                wait_for(tmp_path / "set", number)
                late = builder(number).write(tmp_path / "late.db")
                os.utime(late, (10**9, 10**9))
                late.rename(folder / f"job{number}.db")
            wait_for(tmp_path / "set", 4)
            watching.terminate()
            assert watching.stdout is not None
            assert watching.stdout.read() == "profiles: 4 new, 0 known before, 0 refused\n"
        finally:
            watching.kill()  # where an assertion fails; otherwise it has ended
    assert watching.returncode == 0


def test_a_copy_in_one_call_and_an_idle_writer_add_nothing_twice_and_lose_nothing(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = builder(1).write(tmp_path / "a.db")
    (tmp_path / "b.db").write_bytes(one.read_bytes())
    done = run("ingest", tmp_path / "a.db", tmp_path / "b.db", "--into", tmp_path / "set")
    assert done.stdout == "profiles: 1 new, 1 known before, 0 refused\n"
    once = run("ingest", tmp_path / "a.db", "--into", tmp_path / "single")
    assert once.exit_code == 0
    for table in ("operation", "comm_family", "job"):
        assert len(rows_of(tmp_path / "set", table)) == len(rows_of(tmp_path / "single", table)), table
    # The commits that an idle writer has not seen are gone; the checkpoint has them.
    monkeypatch.setattr("commlens.fleet.log.CHECKPOINT_EVERY", 2)
    monkeypatch.setattr("commlens.fleet.log.KEPT_COMMITS", 0)
    monkeypatch.setattr("commlens.fleet.log.KEPT_S", -1)
    idle = Log.create(tmp_path / "set")
    state = idle.read()
    for number in range(2, 7):
        assert (
            run(
                "ingest", builder(number).write(tmp_path / f"{number}.db"), "--into", tmp_path / "set"
            ).exit_code
            == 0
        )
    idle.follow(state)
    assert (state.number, set(state.files)) == (idle.read().number, set(idle.read().files))
    assert state.number > 4


def wait_for(dataset: Path, jobs: int) -> None:
    """Wait until a dataset has so many jobs; a test that hangs is ended from outside."""
    import time

    for _ in range(1200):
        if (dataset / "commlens-dataset.json").exists() and len(rows_of(dataset, "job")) >= jobs:
            return
        time.sleep(0.1)
    raise AssertionError(f"no {jobs} jobs within two minutes")


def test_without_pyarrow_the_command_names_it(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    done = run("ingest", tmp_path / "x.db", "--into", tmp_path / "set")
    assert (done.exit_code, "try: pip install pyarrow" in done.stderr) == (2, True)
    assert not (tmp_path / "set").exists()
