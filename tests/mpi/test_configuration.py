# SPDX-License-Identifier: Apache-2.0
"""An invalid configuration file: commlens prints one line, and the application runs as without commlens."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from harness import Mpi
from launches import without_summary

# What is written, where and by whom does not depend on the MPI library.
pytestmark = pytest.mark.dealt

# As another user, with an /etc of its own that has a configuration this user may not read.
HIDDEN = """cp -a /etc "$1/etc" && mount --bind "$1/etc" /etc || exit 99
echo 'quiet = 1' >/etc/commlens.conf
chmod 600 /etc/commlens.conf
exec setpriv --reuid=65534 --regid=65534 --clear-groups "$1/program"
"""


def check(mpi: Mpi, config: str | Path, *expected: str) -> None:
    """Assert that a job with this configuration prints these lines, and is measured."""
    result = mpi.run(2, [mpi.compile("listing1.c")], env={"COMMLENS_CONFIG": str(config)})
    assert (result.rc, result.stdout) == (0, "160\n"), result
    assert result.said[:-1] == [f"commlens: {line}" for line in expected]
    assert result.said[-1].startswith("commlens: profile of 2 ranks in ")
    result.open().check()


def test_what_is_no_regular_file(mpi: Mpi, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    check(mpi, fifo, f"configuration {fifo} is not used: it is a FIFO, not a regular file")
    check(mpi, "/dev/zero", "configuration /dev/zero is not used: it is not a regular file")
    check(mpi, tmp_path, f"configuration {tmp_path} is not used: it is a directory")
    check(mpi, "/dev/null")


def test_garbage(mpi: Mpi, tmp_path: Path) -> None:
    large, small = tmp_path / "large", tmp_path / "small"
    large.write_bytes(random.Random(18).randbytes(1 << 20) * 40)
    check(mpi, large, f"configuration {large} is not used: it is larger than 64 KiB")
    small.write_bytes(b"\x1b]0;title\x07\n" * 100)
    lines = [f"{small}:{n}: '?]0;title?' is not an option and is ignored" for n in range(1, 6)]
    check(mpi, small, *lines, f"{small}: and 95 more invalid lines")


@pytest.mark.parametrize("name", ["/dev/stdin", "/proc/self/fd/0"])
@pytest.mark.parametrize("kind", ["file", "pipe"])
def test_the_input_of_the_application_is_its_own(mpi: Mpi, tmp_path: Path, name: str, kind: str) -> None:
    """A file would not be used up, but its lines would be said; a pipe would be."""
    (tmp_path / "input").write_text("a secret line\n" * 100)
    env = {k: v for k, v in os.environ.items() if not k.startswith("COMMLENS_")}
    env |= {**mpi.environment, "COMMLENS_CONFIG": name, "COMMLENS_OUTPUT": str(tmp_path / "x.db")}
    command = [str(mpi.runner), str(mpi.compile("reads_input.c"))]
    if kind == "file":
        with (tmp_path / "input").open() as file:
            done = subprocess.run(command, env=env, stdin=file, capture_output=True, text=True, timeout=60)
    else:
        text = (tmp_path / "input").read_text()
        done = subprocess.run(command, env=env, input=text, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "read 1400\n"), done
    why = "it is the standard input" if kind == "file" else "it is a FIFO, not a regular file"
    assert without_summary(done.stderr) == [
        f"commlens: configuration {name} is not used: {why}",
        f"commlens: profile of 1 rank in {tmp_path / 'x.db'}",
    ]


def test_a_default_configuration_that_cannot_be_read_is_said(mpi: Mpi) -> None:
    if os.geteuid() != 0:
        pytest.fail("only root can have an /etc of its own: run this test as root")
    place = Path(tempfile.mkdtemp(prefix="commlens-configuration-"))
    try:
        place.chmod(0o777)
        library = shutil.copy(mpi.library, place)
        built = mpi.compile("listing1.c", None, "-Wl,--no-as-needed", library, f"-Wl,-rpath,{place}")
        shutil.copy(built, place / "program")
        done = subprocess.run(
            ["unshare", "-m", "bash", "-c", HIDDEN, "bash", str(place)],
            env={"PATH": os.environ["PATH"], "HOME": "/tmp", "COMMLENS_OUTPUT": str(place / "x.db")},
            cwd=place, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (0, "130\n"), done
        assert without_summary(done.stderr) == [
            "commlens: configuration /etc/commlens.conf is not used: Permission denied",
            f"commlens: profile of 1 rank in {place / 'x.db'}",
        ]
    finally:
        shutil.rmtree(place)
