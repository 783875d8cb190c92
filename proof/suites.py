# SPDX-License-Identifier: Apache-2.0
"""The suites: one declaration each, SUITES at the end names them all."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

import test_apps
from harness import Mpi

from . import fetch
from .compare import RUN, Seen
from .run import Ended, Program, Suite, ending, whole

PROGRAMS = Path(__file__).resolve().parent / "programs"

MPI4PY = "4.1.2"
PETSC4PY = "3.18.5"  # the one Debian's python3-petsc4py-real is made of
MPI4PY_SECONDS = 120  # most files take a second or two, some ten
NUMPY = "2.4.6"


def mpi4py_programs(mpi: Mpi) -> Iterable[Program]:
    """Each file of mpi4py's tests is a program of its own, so that a crash costs one file."""
    python = fetch.venv(mpi.name, [f"numpy=={NUMPY}"], [f"mpi4py=={MPI4PY}"])
    tests = fetch.sdist("mpi4py", MPI4PY) / "test"
    for file in sorted(tests.glob("test_*.py")):
        command = (python, tests / "main.py", "--no-builddir", "-v", file.stem)
        yield Program(file.stem, command, seconds=MPI4PY_SECONDS)
        # Open MPI 4.1 has one-sided communication without special hardware in one component, for one thread.
        if mpi.name == "openmpi" and ("_rma" in file.stem or "_win" in file.stem):
            yield Program(
                f"{file.stem} --no-threads",
                (*command, "--no-threads"),
                env={"OMPI_MCA_osc": "pt2pt"},
                seconds=MPI4PY_SECONDS,
            )


def unittest_cases(ended: Ended) -> dict[str, Seen]:
    """Return the test cases of Python's unittest, verbose: the outcome on all ranks; and what else was printed."""
    outcomes: dict[str, list[str]] = {}
    rest = []
    for rank, text in enumerate(ended.ranks):
        mine, other = unittest_outcomes(text)
        for name, outcome in mine.items():
            outcomes.setdefault(name, ["missing"] * rank).append(outcome)
        for seen in outcomes.values():
            seen += ["missing"] * (rank + 1 - len(seen))
        rest.append(other)
    hung = ended.code is None
    cases = {
        name: Seen("+".join(dict.fromkeys(seen)), " ".join(seen) if len(set(seen)) > 1 else "")
        for name, seen in outcomes.items()
        if not (hung and {NOT_ENDED, "missing"} & set(seen))
    }
    return {**cases, **whole(Ended(ended.code, ended.launcher, rest, ended.files))}


UNITTEST_TIME = (r"^Ran (\d+) tests? in [\d.]+s", r"Ran \1")
UNITTEST_SCRUB = (
    UNITTEST_TIME,
    (r"\[\S+:\d+\]", "[#]"),
    (r"\[\[\d+,\d+\],", "[[#],"),
    (r"h5py-test_\w+", "h5py-test_#"),
)
NOT_ENDED = "not ended"
STARTED = re.compile(r"^(\w+) \(([\w.]+)\)")
FINISHED = re.compile(
    r"(?:^|\.\.\. |\b)(ok|FAIL|ERROR|skipped ['\"].*['\"]|expected failure|unexpected success)$"
)
WORDS = {"FAIL": "fail", "ERROR": "error", "expected failure": "ok", "unexpected success": "fail"}


def unittest_outcomes(text: str) -> tuple[dict[str, str], str]:
    """Split a verbose unittest output into outcomes and the rest."""
    outcomes: dict[str, str] = {}
    rest = []
    current = None
    listing = True
    for line in text.splitlines():
        started = STARTED.match(line) if listing else None
        if started:
            name = started[2] if started[2].endswith(started[1]) else f"{started[2]}.{started[1]}"
            current = name
            outcomes[current] = NOT_ENDED
            line = line[started.end() :].removeprefix(" ... ")
        finished = FINISHED.search(line) if listing else None
        if current and finished:
            word = finished[1]
            outcomes[current] = "skip" if word.startswith("skipped") else WORDS.get(word, word)
            line = line[: finished.start()]
            current = None
        if re.match(r"={70}|-{70}", line):
            listing = False
        if line.strip():
            rest.append(line)
    return outcomes, "\n".join(rest)


MPICH_FOLDERS = (
    *(
        "attr",
        "comm",
        "group",
        "info",
        "init",
        "errhan",
        "topo",
        "pt2pt",
        "part",
        "threads",
        "spawn",
        "errors",
    ),
    *("datatype", "rma", "coll", "io", "mpi_t", "f77", "f90"),
)
MOST_RANKS = 4
NOT_WRITTEN = (("get_acc_local", "mpich", "a result"), ("rqstatus", "openmpi", "MPI_ERROR of a status"))
"""Programs of MPICH's suite that read uninitialized memory, as valgrind reports: name, MPI, and what they read. The value
depends on the code that ran before, that of commlens included."""


def mpich_programs(mpi: Mpi) -> Iterable[Program]:
    """Return the programs of MPICH's own suite, which tests any MPI, as its lists say: name, ranks, arguments."""
    source = fetch.debian_source("mpich", "bookworm") / "test" / "mpi"
    built = fetch.mpich_tests(mpi.name, source, MPICH_FOLDERS)
    for folder in MPICH_FOLDERS:
        yield from mpich_list(source, built, folder)


def mpich_list(source: Path, built: Path, folder: str) -> Iterable[Program]:
    """Return the programs of a folder of MPICH's suite, and of the folders in it."""
    lists = [top / folder / "testlist" for top in (built, source)]
    for line in next((path.read_text() for path in lists if path.is_file()), "").splitlines():
        words = line.partition("#")[0].split()
        if not words:
            continue
        if (source / folder / words[0]).is_dir():
            yield from mpich_list(source, built, f"{folder}/{words[0]}")
            continue
        program, ranks, *rest = [*words, *["2"][len(words) - 1 :]]
        options = [(key, value) for key, _, value in (word.partition("=") for word in rest)]
        arguments = [value for key, value in options if key == "arg"]
        variables = [value for key, value in options if key == "env"]
        path = built / folder / program
        yield Program(
            # The list runs some programs several times, each time with other environment variables.
            " ".join([*variables, f"{folder}/{program}", *arguments, f"on {ranks}"]),
            (f"./{path.name}", *arguments),  # some start themselves once more, by this name
            inputs=(path,),
            env=dict(variable.split("=", 1) for variable in variables),
            ranks=int(ranks),
            # Many of those that spawn hang with Open MPI 4.1: two processes connect to each other by TCP at the same time.
            seconds=40 if folder.startswith("spawn") else 180,
            not_run=mpich_obstacle(path, int(ranks), dict(options)),
        )


def mpich_obstacle(path: Path, ranks: int, options: dict[str, str]) -> str:
    """Return why a program of MPICH's suite cannot run here, if so."""
    if path.name == "timeout":
        return "never ends, on purpose"
    if "xfail" in options:
        return "known to fail, says its list"
    if "mem" in options:
        return "needs gigabytes of memory"
    if int(options.get("timeLimit", 0)) > 100:
        return "takes minutes, says its list"
    if path.name == "noalias3" and path.parents[2].name.endswith("openmpi"):
        # Open MPI begins these collectives where MPICH refuses their arguments.
        return "frees buffers that its collectives still write into: what that destroys is chance"
    for name, mpi, what in NOT_WRITTEN:
        if path.name == name and path.parents[1].name.endswith(mpi):
            return f"reads {what} before this MPI has written it: earlier code decides the value"
    if ranks > MOST_RANKS:
        return f"for more than {MOST_RANKS} ranks"
    return "" if path.is_file() else "does not compile with this MPI"


def application(name: str, app: test_apps.App) -> Suite:
    """Return a real application with the input that tests/mpi/test_apps.py has for it."""

    def programs(mpi: Mpi) -> Iterable[Program]:
        del mpi
        program, *arguments = app.command.split()
        yield Program(
            name,
            (test_apps.installed(program, app.package), *arguments),
            env={"OMP_NUM_THREADS": "1"},
            inputs=tuple(test_apps.INPUTS / file for file in app.inputs),
            prepare=tuple(app.prepare.split()),
            results=app.results,
        )

    def cases(ended: Ended) -> dict[str, Seen]:
        text = "\n".join([*ended.ranks, *ended.files.values()])
        lines = test_apps.steady(app, text)
        return {RUN: Seen(ending(ended), "\n".join(lines) if ended.code is not None else "")}

    return Suite(name, app.package, "Debian", programs, ranks=(app.ranks,), cases=cases, mpis=(app.mpi,))


SCALAPACK = Path("/usr/lib/x86_64-linux-gnu/scalapack")


def scalapack_programs(mpi: Mpi) -> Iterable[Program]:
    """Return ScaLAPACK's test programs; Debian has them for both MPIs."""
    tests = SCALAPACK / f"{mpi.name}-tests"
    # Two of them are also in the folder above, without their input.
    found = {
        path.name: path
        for folder in (tests, tests / "PBLAS", tests / "BLACS")
        for path in sorted(folder.iterdir())
        if path.is_file() and os.access(path, os.X_OK)
    }
    for name, path in found.items():
        single = re.match(r"x?[sc](?!btest)", name)
        yield Program(
            name,
            (path,),
            inputs=tuple(sorted(path.parent.glob("*.dat"))),
            seconds=100,
            not_run="the same in single precision" if single else "",
        )


def h5py_programs(mpi: Mpi) -> Iterable[Program]:
    """Return the files of h5py's tests, with MPI initialised, and a program in which the ranks share files."""
    python = fetch.venv(mpi.name, ["pytest==8.4.2"], [], system=True)
    package = Path("/usr/lib/python3/dist-packages/h5py/_debian_h5py_mpi/tests")
    for file in sorted(package.glob("test_*.py")):
        module = f"h5py._debian_h5py_mpi.tests.{file.stem}"
        yield Program(
            file.stem,
            (python, "-c", "import mpi4py.MPI, unittest; unittest.main(module=None)", "-v", module),
        )
    yield Program("hdf5", (python, PROGRAMS / "hdf5.py"))


def petsc_programs(mpi: Mpi) -> Iterable[Program]:
    """Return the files of petsc4py's tests, which go over PETSc's vectors, matrices, grids, solvers and optimisers."""
    del mpi
    tests = fetch.sdist("petsc4py", PETSC4PY) / "test"
    (package,) = Path("/usr/lib/petscdir").glob("petsc3.18/*-real/lib/python3/dist-packages")
    for file in sorted(tests.glob("test_*.py")):
        run = ("/usr/bin/python3", tests / "runtests.py", "--no-builddir", "--path", package, "-v")
        yield Program(file.stem, (*run, "-i", f"^{file.stem}$"))


def fftw_programs(mpi: Mpi) -> Iterable[Program]:
    """Return transforms by FFTW with MPI, one after the other and checked against each other."""
    yield Program("fftw", (mpi.compile(PROGRAMS / "fftw.c", None, "-lfftw3_mpi", "-lfftw3", "-lm"),))


def boost_programs(mpi: Mpi) -> Iterable[Program]:
    """Return a program with what Boost.MPI makes of MPI: serialised objects, packed messages, its own operators."""
    yield Program(
        "boost", (mpi.compile(PROGRAMS / "boost.cpp", None, "-lboost_mpi", "-lboost_serialization"),)
    )


def mumps_programs(mpi: Mpi) -> Iterable[Program]:
    """Return the test of the MUMPS package in each of its four number types."""
    del mpi
    for kind in "sdcz":
        data = f"/usr/lib/mumps/input_simpletest_{'real' if kind in 'sd' else 'cmplx'}"
        yield Program(f"{kind}simpletest", ("/bin/sh", "-c", f"exec /usr/lib/mumps/{kind}simpletest <{data}"))


SUITES = {
    suite.name: suite
    for suite in [
        Suite(
            "mpi4py",
            MPI4PY,
            "PyPI, source distribution, compiled here",
            mpi4py_programs,
            ranks=(1, 2, 3, 4),
            cases=unittest_cases,
            scrub=(UNITTEST_TIME,),
        ),
        Suite(
            "mpich-tests",
            "4.0.2",
            "Debian, source of mpich, compiled here",
            mpich_programs,
            ranks=(0,),
            # MPICH numbers its errors as they come.  Programs that are wrong by chance say how often.
            scrub=(
                (r"\b\d{6,10}\b", "#"),
                (r"^( *Found) \d+ errors", r"\1 # errors"),
                (r"^(Expected|Wrong) results\b.*\n?", ""),
                (r"^\d+->\d+ -- ALL-TO-ALL .*\n?", ""),
            ),
            sort=True,
        ),
        # What ScaLAPACK and mpi4py have of their own is above and below.
        *(
            application(name, app)
            for name, app in test_apps.APPS.items()
            if app.package not in ("python3-mpi4py", "scalapack-mpi-test")
        ),
        Suite(
            "scalapack",
            "scalapack-mpi-test",
            "Debian",
            scalapack_programs,
            ranks=(4,),
            scrub=(test_apps.NUMBERS, test_apps.SPACES),
        ),
        Suite(
            "h5py",
            "python3-h5py-mpi",
            "Debian",
            h5py_programs,
            ranks=(1, 2),
            cases=unittest_cases,
            scrub=UNITTEST_SCRUB,
            mpis=("openmpi",),
        ),
        Suite(
            "petsc4py",
            PETSC4PY,
            "PyPI, source distribution, run with Debian's PETSc",
            petsc_programs,
            ranks=(1, 2, 3),
            cases=unittest_cases,
            scrub=UNITTEST_SCRUB,
            mpis=("openmpi",),
        ),
        Suite("fftw", "libfftw3-mpi3", "Debian", fftw_programs, ranks=(2, 4), mpis=("openmpi",)),
        Suite("boost.mpi", "libboost-mpi1.74.0", "Debian", boost_programs, ranks=(2, 4), mpis=("openmpi",)),
        Suite(
            "mumps",
            "mumps-test",
            "Debian",
            mumps_programs,
            ranks=(2, 4),
            scrub=((r"^.*[Tt]ime .*= *[\d.E-]+$", "time"),),
            mpis=("openmpi",),
        ),
    ]
}
