# SPDX-License-Identifier: Apache-2.0
"""A program with more rights than its user, linked with commlens: the environment is a stranger's and does not count.

Nothing is measured, written or said, whatever the variables ask for.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import BUILD, ROOT, Mpi

NOBODY = 65534
# Of an own /dev/shm, where the arenas of other jobs are not; then the program as another user, and what it has left.
RUN = """mount -t tmpfs -o mode=1777 none /dev/shm || exit 99
setpriv --reuid=$1 --regid=$1 --clear-groups "$2"
echo "rc $?"
ls -A /dev/shm | grep commlens
"""


def _set_user_id(program: Path) -> None:
    program.chmod(0o4755)


def _set_group_id(program: Path) -> None:
    program.chmod(0o2755)


def _capability(program: Path) -> None:
    """Give it CAP_NET_RAW: struct vfs_cap_data of linux/capability.h, effective at once."""
    os.setxattr(program, "security.capability", struct.pack("<5I", 0x02000001, 1 << 13, 0, 0, 0))


@pytest.fixture
def place() -> Iterator[Path]:
    """Return a folder that every user can reach; the one of pytest is for its user only."""
    if os.geteuid() != 0:
        pytest.fail("only root can make a program privileged: run this test as root")
    path = Path(tempfile.mkdtemp(prefix="commlens-privileged-"))
    path.chmod(0o755)
    (path / "out").mkdir()
    (path / "out").chmod(0o777)
    yield path
    shutil.rmtree(path)


def linked(mpi: Mpi, place: Path, *libraries: Path) -> Path:
    """Return the program, linked with copies of libraries that every user can read."""
    copies = [Path(shutil.copy(library, place)) for library in libraries]
    flags = [f"-I{ROOT / 'include'}"]
    built = mpi.compile(
        "privileged.c", None, "-Wl,--no-as-needed", *copies, f"-Wl,-rpath,{place}", flags=flags
    )
    program = place / "program"
    shutil.copy(built, program)
    program.chmod(0o755)
    return program


def run(program: Path, place: Path) -> subprocess.CompletedProcess[str]:
    (place / "secret").write_text("the secret of root\n")
    (place / "secret").chmod(0o600)
    env = {
        "PATH": os.environ["PATH"],
        "HOME": "/tmp",
        "COMMLENS_CONFIG": str(place / "secret"),
        "COMMLENS_OUTPUT": str(place / "out" / "x.db"),
        "COMMLENS_ADOPT": "nonsense",
        "COMMLENS_NONSENSE": "1",
        "STOPWATCH_OF_COMMLENS": str(place / "out"),
    }
    return subprocess.run(
        ["unshare", "-m", "bash", "-c", RUN, "bash", str(NOBODY), str(program)],
        env=env, cwd=place / "out", capture_output=True, text=True, timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize("rights", [_set_user_id, _set_group_id, _capability])
def test_a_privileged_program_is_not_measured(mpi: Mpi, place: Path, rights: object) -> None:
    program = linked(mpi, place, mpi.library)
    assert callable(rights)
    rights(program)
    done = run(program, place)
    assert (done.stdout, done.stderr) == ("sum 1 secure 1 active 0\nrc 0\n", "")
    assert list((place / "out").iterdir()) == []


def test_the_same_program_is_measured_without_these_rights(mpi: Mpi, place: Path) -> None:
    """What the tests above would be worth nothing without."""
    done = run(linked(mpi, place, mpi.library), place)
    assert done.stdout.startswith("sum 1 secure 0 active 1\n")
    assert "is not used: Permission denied" in done.stderr
    assert "unknown variable COMMLENS_NONSENSE" in done.stderr
    assert (place / "out" / "x.db").stat().st_uid == NOBODY


def test_a_privileged_program_writes_no_times_for_commlens_overhead(mpi: Mpi, place: Path) -> None:
    program = linked(mpi, place, BUILD / "lib" / "libcommlens-stopwatch.so", mpi.library)
    done = run(program, place)
    assert len(list((place / "out").glob("*.[0-9]*"))) > 0, done
    for path in (place / "out").iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    _set_user_id(program)
    done = run(program, place)
    assert (done.stdout, done.stderr) == ("sum 1 secure 1 active 0\nrc 0\n", "")
    assert list((place / "out").iterdir()) == []
