# SPDX-License-Identifier: Apache-2.0
"""Where a profile goes when its name is a device or a FIFO, with which permissions, and without fsync or /proc."""

from __future__ import annotations

import errno
import os
import re
import stat
import subprocess
from pathlib import Path

import pytest
from harness import Mpi
from launches import Result, without_summary
from test_storage import CALLS, KEPT, RANKS, Place, check_complete, check_job, place

# What is written, where and by whom does not depend on the MPI library.
pytestmark = pytest.mark.dealt

__all__ = ["place"]  # the fixture

OPEN_UMASK = ["sh", "-c", 'umask 0; exec "$0" "$@"']
# commlens-run and a linked program in a mount namespace where nothing is in /proc.
NO_PROC = 'mount -t tmpfs none /proc || exit 99; for program in "$@"; do $program; done'


def run_to(
    mpi: Mpi, place: Place, output: Path | str, steps: list[object], env: dict[str, str] | None = None
) -> Result:
    """Run programs/storage.c as Place.run does, with another output."""
    return place.run(mpi, steps, env={"COMMLENS_OUTPUT": str(output), **(env or {})})


def devices() -> set[str]:
    """Return the files in /dev that were added to or replaced the devices of these tests."""
    names = (path.name for path in Path("/dev").iterdir())
    return {name for name in names if name.startswith(("null", "zero", ".commlens", "commlens"))}


@pytest.mark.parametrize(
    "env",
    [{}, {"COMMLENS_AGGREGATORS": "2"}, {"COMMLENS_DETAIL": "summary"}, {"COMMLENS_FLUSH_EVERY": "1"}],
    ids=["one file", "several", "summary", "copies"],
)
def test_dev_null_means_no_profile(mpi: Mpi, place: Place, env: dict[str, str]) -> None:
    before = devices()
    steps = ["work", CALLS, *(["until", 1.5] if "COMMLENS_FLUSH_EVERY" in env else [])]
    said = check_job(run_to(mpi, place, "/dev/null", steps, env))
    assert said == ["commlens: no profile is written: COMMLENS_OUTPUT is /dev/null"]
    assert place.left() == {"out": [], "second": [], "arenas": []}
    link = place.out / "link.db"
    link.symlink_to("/dev/null")
    check_job(run_to(mpi, place, link, ["work", CALLS], {**env, "COMMLENS_QUIET": "1"}), lines=0)
    assert place.left() == {"out": ["link.db"], "second": [], "arenas": []}
    assert devices() == before


def test_ranks_that_would_meet_through_files_write_nothing_for_dev_null(mpi: Mpi, place: Place) -> None:
    before = devices()
    said = check_job(run_to(mpi, place, "/dev/null", ["work", CALLS, "alone"]))
    assert said == ["commlens: no profile is written: COMMLENS_OUTPUT is /dev/null"]
    assert place.left() == {"out": [], "second": [], "arenas": []}
    assert devices() == before


@pytest.mark.parametrize("writers", [1, 2])
@pytest.mark.parametrize("target", ["fifo", "/dev/zero"])
def test_what_is_no_file_sends_the_profile_to_tmpdir(
    mpi: Mpi, place: Place, target: str, writers: int
) -> None:
    before = devices()
    output = Path(target) if target.startswith("/") else place.out / target
    if target == "fifo":
        os.mkfifo(output)
    said = check_job(run_to(mpi, place, output, ["work", CALLS], {"COMMLENS_AGGREGATORS": str(writers)}))
    path = place.second / (output.name if writers == 1 else f"{output.name}.commlens")
    why = f"cannot write {output}: it is neither a file nor a folder"
    assert said == [f"commlens: {why}; the profile is in {path}"]
    assert place.left()["arenas"] == []
    assert set(place.left()["out"]) <= {"fifo"}
    assert devices() == before
    if writers == 1:
        check_complete(Result(0, "", "", path, 0, []).open())


@pytest.mark.parametrize("writers", [1, 2])
@pytest.mark.parametrize("error", [errno.EPERM, errno.ENOSYS, errno.EROFS])
def test_without_fsync_a_profile_is_whole(mpi: Mpi, place: Place, error: int, writers: int) -> None:
    result = place.run(
        mpi,
        ["nosync", error, "work", CALLS],
        env={"COMMLENS_AGGREGATORS": str(writers), "COMMLENS_QUIET": "1"},
    )
    check_job(result, lines=0)
    assert place.left() == {"out": ["x.db" if writers == 1 else "x.commlens"], "second": [], "arenas": []}


def test_what_fsync_says_is_lost_is_kept(mpi: Mpi, place: Place) -> None:
    said = check_job(place.run(mpi, ["nosync", errno.EIO, "work", CALLS]))
    assert said[0].endswith(f"Input/output error. {KEPT}")
    check_complete(place.recovered())


def modes(place: Place) -> dict[str, int]:
    """Return the permissions of all that a job has written."""
    return {
        str(path.relative_to(place.out)): stat.S_IMODE(path.stat().st_mode) for path in place.out.rglob("*")
    }


def run_with_umask_0(mpi: Mpi, place: Place, env: dict[str, str]) -> None:
    program: list[str | Path] = [*OPEN_UMASK, mpi.runner, mpi.compile("storage.c"), "work", str(CALLS)]
    env = {"COMMLENS_ARENA_DIR": str(place.arenas), **env}
    result = mpi.run(RANKS, program, env, profile=place.out / "x.db", mode="link", cwd=place.where)
    assert result.rc == 0, result


def test_a_umask_of_0_lets_nobody_else_write(mpi: Mpi, place: Place) -> None:
    run_with_umask_0(mpi, place, {})
    run_with_umask_0(mpi, place, {"COMMLENS_AGGREGATORS": "2"})
    assert modes(place) == {
        "x.db": 0o644,
        "x.commlens": 0o755,
        "x.commlens/index.db": 0o644,
        "x.commlens/shard.0.db": 0o644,
        "x.commlens/shard.1.db": 0o644,
    }


def test_a_mode_is_that_of_all_files(mpi: Mpi, place: Place) -> None:
    run_with_umask_0(mpi, place, {"COMMLENS_MODE": "0600"})
    run_with_umask_0(mpi, place, {"COMMLENS_MODE": "0640", "COMMLENS_AGGREGATORS": "2"})
    assert modes(place) == {
        "x.db": 0o600,
        "x.commlens": 0o750,
        "x.commlens/index.db": 0o640,
        "x.commlens/shard.0.db": 0o640,
        "x.commlens/shard.1.db": 0o640,
    }


def test_a_mode_that_lets_others_write_is_refused(mpi: Mpi) -> None:
    result = mpi.run(1, [mpi.compile("listing1.c")], env={"COMMLENS_MODE": "0666"})
    assert result.said[0] == (
        "commlens: COMMLENS_MODE: '0666' is invalid; use a mode from 0600 to 0644 without write permission for "
        "group and others; the default is used instead"
    )
    assert stat.S_IMODE(result.profile.stat().st_mode) & 0o022 == 0


def without_ucx(printed: str) -> list[str]:
    """Return the lines of the program: newer UCX says that it misses the file with the number of the boot."""
    return [line for line in printed.splitlines() if "UCX  ERROR failed to get boot id" not in line]


def test_without_proc(mpi: Mpi, tmp_path: Path) -> None:
    """commlens-run took Open MPI for one it was not built for."""
    if os.geteuid() != 0:
        pytest.fail("only root can take /proc away: run this test as root")
    source = "listing1.c"
    plain, ours = mpi.compile(source), mpi.compile(source, link=True)
    env = {
        "PATH": os.environ["PATH"],
        "HOME": "/tmp",
        "COMMLENS_OUTPUT": f"{tmp_path}/%p.db",
        **mpi.environment,
    }

    def run(*programs: str) -> subprocess.CompletedProcess[str]:
        command = ["unshare", "-m", "bash", "-c", NO_PROC, "bash", *programs]
        return subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60)

    if run(str(plain)).returncode != 0:
        assert "commlens: " not in run(f"{mpi.runner} {plain}").stderr  # what it says of its own is another's
        pytest.skip(f"{mpi.name} does not start without /proc")
    done = run(f"{mpi.runner} {plain}", str(ours))
    print(done.stderr)
    assert without_ucx(done.stdout) == ["130", "130"], done
    assert without_summary(done.stderr) == [
        f"commlens: profile of 1 rank in {tmp_path}/{name}.db" for name in (plain.name, ours.name)
    ]
    # Neither /proc nor the name it was started by says where it lies.
    lost = tmp_path / "commlens-run"
    lost.write_bytes(mpi.runner.read_bytes())
    lost.chmod(0o755)
    code = (
        "import os; f = os.open('commlens-run', os.O_PATH); os.unlink('commlens-run'); "
        f"os.execve(f, ['commlens-run', '{plain}'], os.environ)"
    )
    done = subprocess.run(
        ["unshare", "-m", "bash", "-c", f'mount -t tmpfs none /proc; python3 -c "{code}"'],
        env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert without_ucx(done.stdout) == ["130"], done
    assert re.fullmatch(
        "commlens: cannot find the libraries beside commlens-run: /proc is not mounted; running unprofiled\n",
        done.stderr,
    )
