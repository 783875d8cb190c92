# SPDX-License-Identifier: Apache-2.0
"""Jobs that run, or did not come to an end: which files belong together, and what is said of them."""

from __future__ import annotations

import ctypes
import importlib
import os
import shutil
import signal
import sqlite3
import time
import tracemalloc
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from build_profile import ProfileBuilder
from conftest import Run

from commlens.base import owned
from commlens.base.errors import CommlensError
from commlens.base.outputs import new
from commlens.base.users import become
from commlens.cli.clean import is_removable
from commlens.jobs import hang, top
from commlens.jobs.arenas import Arena, Job, find, find_tool, jobs_of, owners, places, run_tool, unescaped
from commlens.jobs.history import of_run
from commlens.jobs.stored import find_profile, find_stored
from commlens.profile import open_profile
from commlens.profile.incomplete import IncompleteProfile


def arena(rank: int, size: int = 4, **more: Any) -> Arena:
    facts: dict[str, object] = {
        "file": Path(f"/dev/shm/commlens-0-{100 + rank}-7.arena"),
        "device": 1,
        "inode": 1000 + rank,
        "bytes": 262144,
        "pid": 100 + rank,
        "liveness": "gone",
        "is_of_this_boot": True,
        "error": "",
        "notice": "",
        "state": "ended",
        "rank": rank,
        "size": size,
        "launch": "aa",
        "node": "n1",
        "program": "app",
        "start_time": "2026-01-01T00:00:00Z",
        "output": "app.db",
        "app_ns": 1000,
    }
    return Arena(**{**facts, **more})


def ranks(jobs: Sequence[Job]) -> list[list[int]]:
    return [[arena.rank for arena in job.arenas] for job in jobs]


def test_processes_of_one_launch_are_one_job() -> None:
    jobs = jobs_of([arena(2), arena(0), arena(0, launch="bb"), arena(1, launch="bb"), arena(3)])
    assert ranks(jobs) == [[0, 2, 3], [0, 1]]


def test_launches_of_several_nodes_are_one_job_unless_something_speaks_against_it() -> None:
    here = [arena(0), arena(1)]
    there: dict[str, Any] = {"launch": "bb", "node": "n2"}
    assert ranks(jobs_of([*here, arena(2, **there), arena(3, **there)])) == [[0, 1, 2, 3]]
    for other in (
        {"program": "another"},
        {"size": 5},
        {"node": "n1"},
        {"rank": 1},
        {"start_time": "2026-01-01T00:02:00Z"},
    ):
        assert len(jobs_of([*here, arena(**{"rank": 2, **there, **other})])) == 2, other


def test_snapshots_of_another_run_with_the_same_process_ids_are_left_out() -> None:
    processes = [(0, "n1", 100), (1, "n1", 101), (2, "n2", 102)]
    began = "2026-01-01T00:00:00Z"
    mine = [arena(0), arena(1, start_time="2026-01-01T00:00:09Z")]
    on_another_node: dict[str, Any] = {"launch": "bb", "node": "n2", "start_time": "2026-01-01T00:00:03Z"}
    others = [arena(0, launch="cc", start_time="2026-01-01T00:00:20Z"), arena(1, launch="cc", pid=7)]
    assert of_run([*mine, *others], processes, began) == mine
    assert of_run([*mine, arena(2, **on_another_node)], processes, began) == [
        *mine,
        arena(2, **on_another_node),
    ]
    late: dict[str, Any] = {**on_another_node, "start_time": "2026-01-01T00:02:00Z"}
    assert of_run([*mine, arena(2, **late)], processes, began) == mine
    assert of_run([*mine, arena(3)], processes, "") == mine
    assert of_run([arena(1, launch="dd", start_time="")], processes, began) == []


def test_of_a_file_and_its_copy_the_later_one_counts() -> None:
    early, late = arena(0, app_ns=10), arena(0, app_ns=20, state="SIGTERM")
    for files in ([early, late], [late, early]):
        assert jobs_of(files)[0].arenas == (late,)


def test_what_cannot_be_read_belongs_to_no_job() -> None:
    assert jobs_of([arena(0, error="x: too short for an arena")]) == []


def test_only_what_no_process_can_need_is_removable() -> None:
    assert is_removable(arena(0), "n1")
    assert not is_removable(arena(0, liveness="running"), "n1")
    assert not is_removable(arena(0, liveness="unknown"), "n1"), (
        "it may run in a container that cannot be seen"
    )
    assert not is_removable(arena(0, is_of_this_boot=False), "n9"), "it may run on its own machine"
    assert is_removable(arena(0, is_of_this_boot=False), "n1"), "of this machine, before it was started again"


def test_places_and_what_is_in_them(tmp_path: Path) -> None:
    wanted, scratch = tmp_path / "wanted", tmp_path / "scratch"
    copies = scratch / "commlens-arenas-12"
    for folder in (wanted, copies):
        folder.mkdir(parents=True)
    files = [wanted / "a.arena", copies / "rank0.1.arena"]
    for file in [*files, wanted / "b.arena.flush", scratch / "c.db"]:
        file.touch()
    env = {"COMMLENS_ARENA_DIR": str(wanted), "TMPDIR": str(scratch)}
    assert places(env)[0] == wanted
    assert places(env)[-1] == scratch
    assert find([wanted, scratch]) == files
    assert find([files[1]]) == [files[1]]
    with pytest.raises(CommlensError, match="absent: no such file or directory"):
        find([tmp_path / "absent"])


def stuck(tmp_path: Path) -> sqlite3.Connection:
    """Return four ranks: 0 and 2 wait in the world for 1 and 3, 3 waits in its row for 1, which computes."""
    build = ProfileBuilder(ranks=4, app_ns=10 * 10**9)
    row = build.comm("s1.1", [1, 3], user_name="odd")
    for rank in (0, 2):
        build.stands(rank, "MPI_Bcast", 1, (4 + rank) * 10**9)
    build.stands(3, "MPI_Allreduce", row, 9 * 10**9)
    build.stands(1, "MPI_Comm_rank", 1, 10**9, inside=False)
    build.stands(1, "MPI_Bcast", 1, 10**9, inside=False, thread=1)
    build.stands(3, "MPI_Comm_rank", 1, 10**9, inside=False, thread=1)
    for rank in range(4):
        build.count(1, "MPI_Comm_rank", rank, 1, 100)
    connection = sqlite3.connect(build.write(tmp_path / "stuck.db"))
    connection.row_factory = sqlite3.Row
    return connection


def test_hang_groups_ranks_and_names_who_is_not_there(tmp_path: Path) -> None:
    with closing(stuck(tmp_path)) as profile:
        groups = hang.read_places(profile)
    inside = [(g.op, g.comm, g.size, g.ranks, g.absent) for g in groups if g.inside]
    assert inside == [
        ("MPI_Bcast", "W0.0", 4, {0: 6 * 10**9, 2: 4 * 10**9}, [1, 3]),
        ("MPI_Allreduce", "s1.1 'odd'", 2, {3: 10**9}, [1]),
    ]
    outside = [(g.op, g.ranks) for g in groups if not g.inside]
    assert outside == [("MPI_Bcast", {1: 9 * 10**9}), ("MPI_Comm_rank", {1: 9 * 10**9})], "3 is in MPI"
    text = [line.plain for line in hang.draw(groups).lines(None)]
    assert text[1].split("  ")[0] == "in MPI_Bcast"
    assert text[2].strip() == "not in this call: 1, 3"


def test_hang_says_in_which_regions_ranks_are(tmp_path: Path) -> None:
    build = ProfileBuilder(ranks=5, app_ns=10**10)
    solve = build.region("solve")
    norm = build.region("norm", solve)
    for rank in range(3):
        build.stands(rank, "MPI_Bcast", 1, 10**9, region=norm if rank < 2 else 0)
    build.stands(2, "MPI_Comm_rank", 0, 10**9, inside=False, thread=1, region=solve)
    build.stands(3, "MPI_Allreduce", 1, 10**9, region=solve)
    build.stands(4, "MPI_Comm_rank", 0, 10**9, inside=False, region=norm)
    path = build.write(tmp_path / "stuck.db")
    with open_profile(str(path)) as connection:
        text = [line.plain.strip() for line in hang.draw(hang.read_places(connection)).lines(None)]
    assert text[2:4] == ["region solve/norm: 0-1; none: 2", "not in this call: 3-4"]
    assert text[5] == "region solve"
    assert text[-1] == "region solve/norm", "rank 2 has a thread in MPI: it is not outside"


def test_hang_says_whom_calls_wait_for(tmp_path: Path) -> None:
    """Ranks of a communicator whose members are not in the order of the world, and of two groups."""
    build = ProfileBuilder(ranks=12, app_ns=10**10)
    reversed_comm = build.comm("s0.1", [3, 2, 1, 0])
    for rank in (0, 1):
        build.stands(rank, "MPI_Recv", reversed_comm, 10**9, partners=(None, None, 2 + rank, 7))
    build.stands(2, "MPI_Sendrecv", 1, 10**9, partners=(-2, 1, -1, -1))
    for rank in range(3, 12):
        build.stands(rank, "MPI_Ssend", 1, 10**9, partners=(rank - 1, 5, None, None))
    path = build.write(tmp_path / "stuck.db")
    with open_profile(str(path)) as connection:
        groups = {group.op: group.partners_text() for group in hang.read_places(connection)}
    assert groups == {
        "MPI_Recv": "from 2 (world rank 1), tag 7: 0; from 3 (world rank 0), tag 7: 1",
        "MPI_Sendrecv": "to MPI_PROC_NULL, tag 1, from any rank, any tag",
        "MPI_Ssend": "; ".join(f"to {rank - 1}, tag 5: {rank}" for rank in range(3, 11)) + "; and 1 more",
    }


def test_top_counts_a_call_under_way(tmp_path: Path) -> None:
    with closing(stuck(tmp_path)) as profile:
        look = top.look_at(profile)
    assert (look.ranks, look.app_ns, look.elapsed_ns) == (4, 40 * 10**9, 10 * 10**9)
    assert look.totals["W0.0", "MPI_Bcast"] == top.Totals(0, 0, 0, 0, 2), "its time is in the counters"
    assert look.totals["W0.0", "MPI_Comm_rank"] == top.Totals(4, 400, 0, 0, 0)
    idle = top.draw(top.between(look, look)).lines(None)
    assert len(idle) == 1, "no time went by, nothing is divided by it"


def test_a_report_says_how_ranks_ended(run: Run, tmp_path: Path) -> None:
    build = ProfileBuilder(ranks=3, states={0: "SIGTERM", 2: "aborted"})
    build.count(1, "MPI_Bcast", 0, 1, 100)
    result = run("report", build.write(tmp_path / "ended.db"))
    assert "2 ranks did not reach MPI_Finalize: 1 SIGTERM, 1 aborted" in " ".join(result.stdout.split())
    assert "from MPI_Init to the last sign of life" in result.stdout


@pytest.mark.parametrize("command", ["hang", "top", "recover"])
def test_nothing_is_there(run: Run, tmp_path: Path, command: str) -> None:
    result = run(command, tmp_path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("commlens: no")
    assert result.stderr.count("\n") == 1


def test_a_place_that_is_not_there(run: Run, tmp_path: Path) -> None:
    for command in ("hang", "top", "recover", "clean"):
        result = run(command, tmp_path / "absent")
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr == f"commlens: {tmp_path}/absent: no such file or directory\n"


def test_clean_without_anything_to_do(run: Run, tmp_path: Path) -> None:
    result = run("clean", tmp_path)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("0 files would be removed")


def test_clean_passes_over_what_goes_meanwhile(run: Run, tmp_path: Path) -> None:
    """A job that ends takes its arenas with it, also between two looks at a folder."""
    (tmp_path / "commlens-0-1-1.arena").symlink_to(tmp_path / "gone")
    result = run("clean", tmp_path)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("0 files would be removed")


def test_clean_knows_copies_that_were_never_finished(tmp_path: Path) -> None:
    folder = tmp_path / "commlens-arenas-77"
    folder.mkdir()
    names = ("rank0.1.arena", "rank0.1.arena.last", "rank1.2.arena.flush", "notes")
    for name in names:
        (folder / name).touch()
    assert sorted(path.name for path in find([tmp_path], unfinished=True)) == list(names[:3])
    assert [path.name for path in find([tmp_path])] == list(names[:1])


def test_only_files_of_this_user_in_real_folders_are_found(tmp_path: Path) -> None:
    """Of another user, in a folder that others may write to, behind a link: none is looked at."""
    shared, target = tmp_path / "shared", tmp_path / "target"
    good = shared / "commlens-arenas-1"
    for folder in (good, shared / "commlens-arenas-2", target):
        folder.mkdir(parents=True, mode=0o700)
        (folder / "rank0.1.arena").touch(mode=0o600)
    (shared / "commlens-arenas-2").chmod(0o770)
    (shared / "commlens-arenas-3").symlink_to(target)
    (shared / "link.arena").symlink_to(target / "rank0.1.arena")
    os.mkfifo(shared / "fifo.arena")
    (shared / "writable.arena").touch(mode=0o600)
    (shared / "writable.arena").chmod(0o602)
    (shared / "own.arena").touch(mode=0o600)
    with pytest.warns(IncompleteProfile) as caught:
        assert find([shared]) == [shared / "own.arena", good / "rank0.1.arena"]
    (said,) = [str(warning.message) for warning in caught]
    assert said == (
        f"{shared}/writable.arena and 1 more in {shared}: not read, because other users may write to it; "
        "run chmod go-w, or copy it to a folder of your own"
    )
    assert owners([shared]) == {os.geteuid()}


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files of other users")
def test_files_of_other_users_take_no_memory(tmp_path: Path) -> None:
    (tmp_path / "own.arena").touch(mode=0o600)
    for number in range(4000):
        os.close(os.open(tmp_path / f"commlens-{number}.arena", os.O_CREAT | os.O_WRONLY, 0o600))
        os.chown(tmp_path / f"commlens-{number}.arena", 54321 + number % 2, 54321)
    tracemalloc.start()
    try:
        assert find([tmp_path]) == [tmp_path / "own.arena"]
        assert owners([tmp_path]) == {0, 54321, 54322}
        assert tracemalloc.get_traced_memory()[1] < 200_000
    finally:
        tracemalloc.stop()


def tool_in(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a shell script take the place of commlens-arena."""
    for name, content in (("commlens-run", "#!/bin/sh\n"), ("commlens-arena", f"#!/bin/sh\n{script}\n")):
        (folder / name).write_text(content)
        (folder / name).chmod(0o755)
    monkeypatch.setattr("commlens.jobs.arenas.find_runner", lambda *_: folder / "commlens-run")


def test_the_tool_is_found_near_commlens_run_and_in_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this order; a folder of PATH that is relative belongs to whoever owns the current directory."""
    prefix, path = (tmp_path / name for name in ("prefix", "path"))
    tools = [prefix / "libexec/commlens/commlens-arena", path / "commlens-arena"]
    for program in (prefix / "bin/commlens-run", *tools):
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    monkeypatch.setattr("commlens.jobs.arenas.USUAL_PLACES", ())
    monkeypatch.setattr("commlens.jobs.arenas.find_runner", lambda *_: prefix / "bin/commlens-run")
    monkeypatch.chdir(path)
    for tool in tools:
        found = find_tool({"PATH": f".:{path}"})
        assert found is not None and found.resolve() == tool
        tool.unlink()
    assert find_tool({"PATH": f".:{path}"}) is None
    assert find_tool({}) is None


def test_a_missing_tool_is_said_in_a_line_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("commlens.jobs.arenas.find_tool", lambda _: None)
    with pytest.raises(CommlensError) as refused:
        run_tool(["list"], [])
    assert refused.value.message == (
        "commlens-arena not found, or this user may not run it: run make install and add its bin folder to PATH; or "
        "install cmake and a C++ compiler, and repeat pip install ."
    )


@pytest.mark.long
def test_a_tool_that_the_user_stops_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root runs it as that user: see users.become()."""
    tool_in(tmp_path, 'echo $$ >"$0.pid"; kill -STOP $$', monkeypatch)
    monkeypatch.setattr("commlens.base.users.has_become", lambda: True)
    monkeypatch.setattr("commlens.base.users.PATIENCE_S", 5)
    with pytest.raises(CommlensError, match="commlens-arena did not finish within 5 s"):
        run_tool(["list"], [])
    assert not Path("/proc", (tmp_path / "commlens-arena.pid").read_text().strip()).exists()


def test_a_stopped_tool_ends_with_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool_in(tmp_path, 'echo $$ >"$0.pid"; kill -STOP $$', monkeypatch)
    monkeypatch.setattr("commlens.base.users.has_become", lambda: True)
    command = os.fork()
    if command == 0:
        with suppress(BaseException):
            run_tool(["list"], [])
        os._exit(0)
    pid = tmp_path / "commlens-arena.pid"
    wait_until(lambda: pid.exists() and pid.read_text().endswith("\n"))
    process = Path("/proc", pid.read_text().strip(), "status")
    wait_until(lambda: "State:\tT" in process.read_text())
    os.kill(command, signal.SIGKILL)
    os.waitpid(command, 0)
    wait_until(lambda: has_ended(process))


def has_ended(status: Path) -> bool:
    try:
        return "State:\tZ" in status.read_text()
    except OSError:
        return True


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


KEYCTL, SESSION, JOIN, SEARCH = 250, -3, 1, 10


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_the_keys_of_roots_session_stay_with_root() -> None:
    """A ticket in the session keyring would be the user's, who may trace what root runs as this user."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(KEYCTL, JOIN, b"commlens-test") == -1:
        pytest.skip(f"no keyrings here: {os.strerror(ctypes.get_errno())}")
    assert libc.syscall(248, b"user", b"commlens-ticket", b"x", 1, SESSION) > 0  # add_key

    def finds(user: str | None) -> bool:
        child = os.fork()
        if child == 0:
            code = 2
            with suppress(BaseException):
                if user is not None:
                    become(user)
                code = int(libc.syscall(KEYCTL, SEARCH, SESSION, b"user", b"commlens-ticket", 0) > 0)
            os._exit(code)
        return {0: False, 1: True}[os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])]

    assert finds(None)
    assert not finds("nobody")


def test_a_file_is_removed_only_if_it_is_the_one_that_was_read(tmp_path: Path) -> None:
    folder, target = tmp_path / "commlens-arenas-1", tmp_path / "target"
    for place in (folder, target):
        place.mkdir(mode=0o700)
        (place / "rank0.1.arena").touch(mode=0o600)
    file = folder / "rank0.1.arena"
    facts, others = file.stat(), (target / "rank0.1.arena").stat()
    assert not owned.remove(file, facts.st_dev, others.st_ino)
    assert file.exists()
    folder.rename(tmp_path / "away")
    folder.symlink_to(target)
    with pytest.raises(OSError, match="Not a directory"):
        owned.remove(file, others.st_dev, others.st_ino)
    assert (target / "rank0.1.arena").exists()
    folder.unlink()
    (tmp_path / "away").rename(folder)
    assert owned.remove(file, facts.st_dev, facts.st_ino)
    assert not folder.exists(), "the last one takes the folder along"
    assert not owned.remove(file, facts.st_dev, facts.st_ino), "gone meanwhile"


def test_an_output_is_not_written_through_links_that_somebody_planted(tmp_path: Path) -> None:
    """Whoever may write to the folder can guess a name that has the process id in it."""
    precious = tmp_path / "precious"
    precious.write_text("mine")
    output = tmp_path / "out.json"
    for name in (f"out.json.tmp.{os.getpid()}", "out.json.tmp", f".out.json.{os.getpid()}"):
        (tmp_path / name).symlink_to(precious)
    with new(output) as path:
        assert path.parent.stat().st_mode & 0o777 == 0o700
        path.write_text("theirs")
    assert (output.read_text(), precious.read_text()) == ("theirs", "mine")
    dangling = tmp_path / "dangling"
    dangling.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CommlensError, match="exists"), new(dangling):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_a_job_that_cannot_be_merged_does_not_keep_others_from_their_profiles(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"aa": "first", "bb": "second", "cc": "third"}
    left = [arena(0, size=1, launch=launch, output=f"{name}.db") for launch, name in names.items()]
    merged: list[str] = []

    def merge(job: Job, output: Path) -> tuple[Path, list[str]]:
        merged.append(job.name)
        if job.name in broken:
            raise CommlensError(f"cannot write {output}")
        return output, []

    module = importlib.import_module("commlens.cli.recover")
    for name, replaced in (("read", lambda _: left), ("merge", merge), ("find_stored", lambda _: None)):
        monkeypatch.setattr(module, name, replaced)
    broken = {"bb"}
    result = run("recover", tmp_path)
    assert (result.exit_code, merged) == (3, ["aa", "bb", "cc"])
    assert result.stderr.startswith("commlens: job bb: app, 1 of 1 ranks, began ")
    assert result.stderr.endswith(": not recovered: cannot write second.db\n")
    broken = set(names)
    assert run("recover", tmp_path).exit_code == 2, "there is no profile"


def test_a_profile_that_was_recovered_is_found(tmp_path: Path) -> None:
    job = Job((arena(2, output=str(tmp_path / "out.db")), arena(3, output=str(tmp_path / "out.db"))))
    assert find_profile(job) is None
    path = written(tmp_path / "named otherwise.db", [2], state="ended")
    assert find_profile(job) is None, "rank 3 is not in it"
    path.unlink()
    written(path, [2, 3], state="running")
    assert find_profile(job) is None, "the job went on"
    path.unlink()
    assert find_profile(job) is None
    written(path, [2, 3], state="ended")
    assert find_profile(job) == path


def test_a_size_that_an_arena_claims_is_not_counted_up_to() -> None:
    job = Job((arena(0, size=2**31 - 1), arena(5, size=2**31 - 1)))
    assert job.missing() == "1-4, 6-2147483646"
    assert job.missing(range(1, 5)) == "6-2147483646"


def test_times_that_are_none_do_not_join_jobs() -> None:
    for start in ("", "2026-99-99T00:00:00Z"):
        there: dict[str, Any] = {"launch": "bb", "node": "n2", "start_time": start}
        assert len(jobs_of([arena(0), arena(1, **there)])) == 2


def test_fields_of_the_tool_come_back_as_they_were() -> None:
    for text in ("a\tb\nc\rd", "\\", "\\t", "\x1b[31m\x00\x7f", "\\x41", ""):
        escaped = text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
        for control in ("\x1b", "\x00", "\x7f"):
            escaped = escaped.replace(control, f"\\x{ord(control):02x}")
        assert unescaped(escaped) == text


def written(path: Path, ranks: Sequence[int], size: int = 4, state: str = "finalized") -> Path:
    """Write a profile of some ranks of the job of `arena`."""
    build = ProfileBuilder(ranks=size)
    path = build.write(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"DELETE FROM rank WHERE rank NOT IN ({', '.join(map(str, ranks))})")
        connection.execute("UPDATE rank SET node = 'n1', pid = 100 + rank, state = ?", [state])
        connection.commit()
    path.chmod(0o600)
    return path


def test_a_profile_that_the_job_had_stored_is_found(tmp_path: Path) -> None:
    job = Job((arena(2, output=str(tmp_path / "out.db")), arena(3, output=str(tmp_path / "out.db"))))
    assert find_stored(job) is None
    for state in ("running", "ended", "aborted"):
        written(tmp_path / "out.7.db", [2, 3], state=state)
        assert find_stored(job) is None, "commlens recover has made it, and the job went on perhaps"
        (tmp_path / "out.7.db").unlink()
    written(tmp_path / "out.db", [0, 1])
    assert find_stored(job) is None, "none of its processes"
    written(tmp_path / "out.2.db", [0, 1, 2])
    found = find_stored(job)
    assert found is not None
    assert (found.path, found.ranks, found.is_whole, found.replaces(job)) == (
        tmp_path / "out.2.db",
        frozenset(range(3)),
        False,
        False,
    )
    more = written(tmp_path / "out.1.db", [1, 2, 3])
    found = find_stored(job)
    assert found is not None
    assert (found.path, found.replaces(job)) == (more, True), "not whole, but more than what is left"
    everything = Job(tuple(arena(rank, output=str(tmp_path / "out.db")) for rank in range(4)))
    assert not found.replaces(everything)
    more.unlink()
    path = written(tmp_path / "out.3.db", [0, 1, 2, 3])
    found = find_stored(job)
    assert found is not None
    assert (found.path, found.is_whole, found.replaces(job)) == (path, True, True)
    for folder, is_found in (("commlens-arenas-1", True), ("phase 1", False)):
        copies = [
            arena(rank, output=str(tmp_path / "out.db"), file=tmp_path / folder / f"rank{rank}.1.arena")
            for rank in (2, 3)
        ]
        assert (find_stored(Job(tuple(copies))) is not None) == is_found
    os.utime(path, (0, 0))
    assert find_stored(job) != found, "older than the job"
    os.utime(path)
    path.chmod(0o664)
    assert find_stored(job) == found, "what a group shares is a profile, too"


def test_hang_passes_over_a_job_that_ends_meanwhile(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says where the others are, and which processes are not out of MPI_Init."""
    cli = importlib.import_module("commlens.cli.hang")
    stuck(tmp_path).close()
    early = "/x: its process was still in MPI_Init"
    arenas = [
        arena(0, liveness="running", launch="gone"),
        arena(0, liveness="running", launch="stuck", start_time="2026-01-02T00:00:00Z"),
        *(arena(-1, liveness="running", error=early, pid=pid) for pid in (31, 30)),
        arena(-1, liveness="gone", error=early, pid=32),
    ]

    def merged(job: Job, output: Path) -> tuple[Path, list[str]]:
        if job.first.launch == "gone":
            raise CommlensError("no such file")
        return Path(shutil.copy(tmp_path / "stuck.db", output)), []

    def found(files: list[Path]) -> list[Arena]:
        """Return what is there at first; who looks again at the first job finds that it has ended."""
        return arenas if len(files) != 1 else []

    monkeypatch.setattr(cli, "find", lambda _: [])
    monkeypatch.setattr(cli, "read", found)
    monkeypatch.setattr("commlens.jobs.arenas.merge", merged)
    result = run("hang", tmp_path)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("app, 1 of 4 ranks, began 2026-01-02T00:00:00Z\n")
    assert result.stdout.splitlines()[-1] == "still in MPI_Init: processes 30-31"
    arenas[:] = arenas[:1]
    result = run("hang", tmp_path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "commlens: no process of this user runs under commlens here\n"
