# SPDX-License-Identifier: Apache-2.0
"""Bring in test programs from PyPI and Debian, once, into build/proof."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

BELOW = Path(__file__).resolve().parents[1] / "build" / "proof"
COMPILERS = {"CC": "mpicc", "CXX": "mpicxx", "F77": "mpif77", "FC": "mpifort"}
REMOVED = Path(__file__).resolve().parent / "programs" / "removed.h"
DEBIAN = "http://deb.debian.org/debian"


def do(*command: str | Path, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> None:
    """Run a command that must succeed; what it prints is kept, and shown when it fails."""
    done = subprocess.run(
        list(map(str, command)),
        env={**os.environ, **(env or {})},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        sys.exit(f"proof: failed: {' '.join(map(str, command))}\n{done.stdout[-4000:]}")


def sdist(name: str, version: str) -> Path:
    """Return the unpacked source distribution of a PyPI package."""
    target = BELOW / "src" / f"{name}-{version}"
    if not target.is_dir():
        print(f"proof   fetches {name} {version} from PyPI", flush=True)
        archives = BELOW / "archives"
        do(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", name, "-d", archives, f"{name}=={version}")  # fmt: skip
        unpack(archives / f"{name}-{version}.tar.gz", target)
    return target


def unpack(archive: Path, target: Path) -> None:
    """Unpack an archive with one folder in it, as `target`."""
    scratch = target.with_name(target.name + ".new")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    do("tar", "-xf", archive, "-C", scratch)
    (inner,) = scratch.iterdir()
    inner.rename(target)
    scratch.rmdir()


def debian_source(package: str, suite: str) -> Path:
    """Return the unpacked upstream source of a Debian package; the machine's own package lists stay as they are."""
    below = BELOW / "src" / f"debian-{package}-{suite}"
    if not below.is_dir():
        print(f"proof   fetches the source of Debian's {package}", flush=True)
        apt = BELOW / "apt"
        (apt / "lists" / "partial").mkdir(parents=True, exist_ok=True)
        (apt / "cache" / "archives" / "partial").mkdir(parents=True, exist_ok=True)
        key = "/usr/share/keyrings/debian-archive-keyring.gpg"
        (apt / "sources.list").write_text(f"deb-src [signed-by={key}] {DEBIAN} {suite} main\n")
        options = [
            *("-o", f"Dir::Etc::sourcelist={apt}/sources.list", "-o", "Dir::Etc::sourceparts=/dev/null"),
            *("-o", f"Dir::State::lists={apt}/lists", "-o", f"Dir::Cache={apt}/cache"),
            *("-o", "APT::Sandbox::User=root"),
        ]
        archives = BELOW / "archives" / package
        archives.mkdir(parents=True, exist_ok=True)
        do("apt-get", *options, "update")
        do("apt-get", *options, "source", "--download-only", package, cwd=archives)
        unpack(next(archives.glob("*.orig.tar.*[z2]")), below)
    return below


def venv(mpi: str, packages: Sequence[str], build: Sequence[str], *, system: bool = False) -> Path:
    """Return the python of an environment for one MPI; packages in `build` are compiled here, against it.

    system : with what the distribution has for Python
    """
    target = BELOW / f"python-{mpi}{'-system' if system else ''}"
    stamp, wanted = target / "proof-stamp", " ".join([*packages, "|", *build])
    if not stamp.is_file() or stamp.read_text() != wanted:
        print(f"proof   Python with {' '.join([*build, *packages])} for {mpi}", flush=True)
        shutil.rmtree(target, ignore_errors=True)
        do("/usr/bin/python3", "-m", "venv", *(["--system-site-packages"] if system else []), target)
        pip: list[str | Path] = [target / "bin" / "pip", "install", "-q", "--no-cache-dir"]
        compiler = {"MPI4PY_BUILD_MPICC": f"mpicc.{mpi}", "CC": f"mpicc.{mpi}"}
        if packages:
            do(*pip, *packages)
        for package in build:
            do(*pip, "--no-binary", package.partition("==")[0], package, env=compiler)
        stamp.write_text(wanted)
    return target / "bin" / "python"


def mpich_tests(mpi: str, source: Path, folders: Sequence[str]) -> Path:
    """Return where MPICH's own tests are, compiled for an MPI; what does not compile is missing there."""
    target = BELOW / f"mpich-tests-{mpi}"
    if not (target / "proof-stamp").is_file():
        print(f"proof   compiles MPICH's tests for {mpi}", flush=True)
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        compilers = [f"MPI{what}={tool}.{mpi}" for what, tool in COMPILERS.items()]
        # The same procedure is called with arguments of several types, as MPI's are.
        fortran = "-O0 -fallow-argument-mismatch"
        flags = [f"CFLAGS=-O0 -include {REMOVED}", f"FFLAGS={fortran}", f"FCFLAGS={fortran}"]
        # Strict: without what only MPICH has.
        do(
            source / "configure",
            "-q",
            "--enable-strictmpi",
            "--disable-ft-tests",
            "--disable-cxx",
            *compilers,
            *flags,
            cwd=target,
        )
        do("make", *flags, "-C", "dtpools", cwd=target)
        do("make", *flags, "-C", "util", cwd=target)
        for folder in folders:
            subprocess.run(
                ["make", "-k", "-s", f"-j{os.cpu_count()}", *flags, "-C", folder, "check", "TESTS="],
                cwd=target,
                stdin=subprocess.DEVNULL,
                capture_output=True,
            )
        (target / "proof-stamp").touch()
    return target
