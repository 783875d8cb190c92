# SPDX-License-Identifier: Apache-2.0
"""Packs what the timing parts need into one archive, for a Debian machine without network, compiler or MPI.

The archive has the built tools and applications, commlens, the compiled programs, the scripts, the files of the Debian
packages of both MPI libraries, and every library that a tool or an application is linked with. `start` in it puts missing
files where they belong, which needs root, and runs the parts:

    tar xf peers.tar.gz && peers/start --parts overhead,finalize --rounds 10 --minutes 6 --ranks 2,8 --size quick
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

from bench.apps import PROGRAMS
from bench.apps import build as build_app
from bench.peers import applications, cost, places, runs
from bench.peers.state import commit
from bench.peers.tools import MPIS

FIRST = ("openmpi-bin", "libopenmpi3", "mpich", "libsqlite3-0", "libunwind8", "libgfortran5")
BASE = re.compile(
    r"(libc6|gcc|g\+\+|cpp|libc-|perl|debconf|dpkg|python3|tzdata|adduser|passwd|libpam|openssh|automake|gfortran-|libselinux|"
    r"libsemanage|libjs-|libssl|libkrb5|libgssapi|ocl-|.*-dev$)"
)
"""Packages that every machine has, or that only a compiler needs."""
UNREAD = re.compile(r"/(doc|man|lintian|locale|info|bug)/|/include/|\.(a|h|mod|java|jar|html)$")
START = """#!/bin/sh
# Puts missing files of the MPI libraries in place and measures.  Results: build/peers/results, for --add of the other machine.
set -e
cd "$(dirname "$0")"
tar xf mpi.tar -C / --skip-old-files
ldconfig
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
exec python3 -m bench.peers --no-page "$@"
"""


def packages() -> list[str]:
    """Return the Debian packages of both MPI libraries, with what they depend on."""
    found: dict[str, None] = {}
    waiting = list(FIRST)
    while waiting:
        name = waiting.pop()
        if name in found or BASE.match(name):
            continue
        done = subprocess.run(
            ["dpkg-query", "-W", "-f", "${Depends}, ${Pre-Depends}", name],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:  # another package provides it
            continue
        found[name] = None
        waiting += [re.split(r"[ :|(]", one.strip())[0] for one in done.stdout.split(",") if one.strip()]
    return list(found)


def system_files() -> Iterator[Path]:
    """Return the files of these packages, with links that Debian's alternatives made."""
    for name in packages():
        listed = subprocess.run(["dpkg", "-L", name], capture_output=True, text=True, check=False).stdout
        for line in listed.splitlines():
            path = Path(line)
            if not UNREAD.search(line) and (path.is_symlink() or path.is_file()):
                yield path
    for folder in (Path("/etc/alternatives"), Path("/usr/bin"), Path("/usr/lib/x86_64-linux-gnu")):
        yield from (path for path in folder.glob("*mpi*") if path.is_symlink())


def linked(program: Path) -> Iterator[Path]:
    """Return the libraries that a program or library is linked with, as links and as files."""
    said = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    for found in re.findall(r"=> (/\S+)", said):
        path = Path(found)
        yield path
        yield path.resolve()


def needed_files() -> Iterator[Path]:
    """Return the programs of Debian's applications, and all libraries of tools and applications outside this tree."""
    programs = [
        Path(found) for one in applications.APPLICATIONS if (found := shutil.which(one.program or "-"))
    ]
    for program in programs:
        yield program
        yield program.resolve()
    built = [path for path in places.INSTALLED.rglob("*") if path.is_file() and os.access(path, os.X_OK)]
    for binary in (*programs, *built):
        for path in linked(binary):
            if not path.is_relative_to(places.ROOT) and not path.is_relative_to(places.HOME):
                yield path


def name_in_archive(path: Path) -> str:
    """Return where a file of this tree lies in the archive, whatever the folder of the comparison is here."""
    if path.is_relative_to(places.HOME):
        return f"peers/build/peers/{path.relative_to(places.HOME)}"
    return f"peers/{path.relative_to(places.ROOT)}"


def own_files() -> Iterator[Path]:
    """Return the files of this tree that the timing parts read."""
    root = places.ROOT
    for mpi in MPIS:
        for name in {*cost.PROGRAMS_OF_OVERHEAD, "many_comms"}:
            yield build_app(PROGRAMS[name], mpi)
        yield runs.compiled(root / "bench" / "calls.c", mpi)
    applications.pseudopotential()
    for folder in (
        *(root / name for name in ("bench", "fuzz", "python/commlens", "tests/mpi/apps_inputs")),
        places.INSTALLED,
        places.HOME / "inputs",
    ):
        yield from (path for path in folder.rglob("*") if path.is_file() or path.is_symlink())
    for pattern in (
        "VERSION",
        "tests/mpi/*.py",
        "spec/*.toml",
        "build/release/bin/*",
        "build/release/lib/*.so*",
        "build/release/lib/*/*.so*",
    ):
        yield from root.glob(pattern)
    yield from places.RESULTS.glob(f"{'build'}.json*")


def add(archive: tarfile.TarFile, name: str, data: bytes, mode: int = 0o644) -> None:
    """Add a file that is only in memory."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), mode
    archive.addfile(entry, io.BytesIO(data))


def pack(target: Path) -> None:
    """Write the archive."""
    if not places.RUNNER.exists():
        sys.exit("commlens is not built: run make build")
    inner = io.BytesIO()
    with tarfile.open(fileobj=inner, mode="w") as archive:
        for path in sorted({*system_files(), *needed_files()}):
            archive.add(path, arcname=str(path).lstrip("/"), recursive=False)
    with tarfile.open(target, "w:gz", compresslevel=6) as archive:
        for path in sorted(set(own_files())):
            if not {"__pycache__", "arena"} & set(path.parts) and not path.name.endswith((".a", ".jar")):
                archive.add(path, arcname=name_in_archive(path), recursive=False)
        add(archive, "peers/mpi.tar", inner.getvalue())
        add(archive, "peers/start", START.encode(), 0o755)
        add(archive, "peers/build/peers/commit", commit().encode())
    print(f"{target}: {target.stat().st_size / 1e6:.0f} MB")
