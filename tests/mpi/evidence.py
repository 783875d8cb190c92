# SPDX-License-Identifier: Apache-2.0
"""Records which procedures the tests use; docs/evidence/coverage.md is written from these records.

While COMMLENS_TEST_EVIDENCE names a folder, every launch notes there which procedures its profile has calls of.

    python tests/mpi/evidence.py write FOLDER     makes tests/mpi/tested.json of the notes of a whole run
    python tests/mpi/evidence.py verify FOLDER    names what tested.json claims and this run did not do
"""

from __future__ import annotations

import glob
import json
import os
import re
import sqlite3
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from contextlib import closing
from functools import cache
from pathlib import Path

from build_once import PATIENCE

TESTED = Path(__file__).resolve().parent / "tested.json"

# Calls of a procedure.  Those that begin and end the measurement have none: there is a profile, so if the program
# imports only one of them, that was called.
CALLED = "SELECT DISTINCT op.name FROM cell JOIN key ON key.id = cell.key JOIN op ON op.id = key.op WHERE calls > 0"
BEGINS = "SELECT DISTINCT procedure FROM coverage WHERE procedure IN ('MPI_Init', 'MPI_Init_thread', 'MPI_Session_init')"
LIBRARY = "SELECT value FROM meta WHERE key = 'mpi_library'"


FAILS = " fails without commlens too"


def note(library: str, procedures: Iterable[str], what: str | None = None, *, fails: bool = False) -> None:
    """Note that the running test used these procedures of this MPI library, or that the library has them.

    fails: the library cannot do it here, and the test has seen that it is the same with and without commlens.
    """
    folder = os.environ.get("COMMLENS_TEST_EVIDENCE")
    test = what or Path(os.environ.get("PYTEST_CURRENT_TEST", "").partition("::")[0]).stem
    if folder and test:
        test += FAILS if fails else ""
        line = json.dumps({"test": test, "library": library, "procedures": sorted(procedures)})
        Path(folder).mkdir(parents=True, exist_ok=True)
        # One write: other processes append to the same file.
        with (Path(folder) / "notes.jsonl").open("ab", buffering=0) as file:
            file.write(line.encode() + b"\n")


def profiles_of(profile: Path) -> list[Path]:
    """Return the profiles of a launch: where it spawns programs, each of them has one, named as they end."""
    if "COMMLENS_TEST_EVIDENCE" not in os.environ:
        return []
    try:
        return [profile, *profile.parent.glob(f"{glob.escape(profile.stem)}.*.db")]
    except OSError:  # a test about names that are too long
        return []


def note_profile(profile: Path) -> str | None:
    """Record the procedures that a launch used, from its profile; return the MPI library's name."""
    try:
        if not profile.is_file():
            return None
    except OSError:  # a test about names that are too long
        return None
    try:
        with closing(sqlite3.connect(f"file:{profile}?mode=ro", uri=True)) as db:
            used = {name for (name,) in db.execute(CALLED)} - {"unknown"}
            begins = {name for (name,) in db.execute(BEGINS)}
            (library,) = db.execute(LIBRARY).fetchone()
    except sqlite3.DatabaseError:
        return None  # a test about files that are no profile
    if len(begins) == 1:
        used |= begins
    if begins == {"MPI_Session_init"}:
        used.add("MPI_Session_finalize")
    elif "MPI_Session_init" not in begins:
        used.add("MPI_Finalize")
    name = short_name(library)
    note(name, used)
    return name


def short_name(library: str) -> str:
    """Return name and version of an MPI library.

    >>> short_name("Open MPI v4.1.4, package: Debian OpenMPI"), short_name("Intel(R) MPI Library 2021.18 for Linux")
    ('Open MPI 4.1.4', 'Intel MPI 2021.18')
    """
    found = re.match(r"(Open MPI|MPICH|Intel)\D*(\d[\w.]*)", library)
    return f"{'Intel MPI' if found[1] == 'Intel' else found[1]} {found[2]}" if found else library[:40]


@cache
def procedures_of(path: Path) -> frozenset[str]:
    """Return the procedures that the MPI library a program is linked with defines, plain and large-count forms."""
    done = subprocess.run(
        ["ldd", str(path)], capture_output=True, text=True, check=True, timeout=60 * PATIENCE
    )
    names: set[str] = set()
    for library in re.findall(r"=> (\S*/libp?mpi[^/\s]*)", done.stdout):
        listed = subprocess.run(
            ["nm", "-D", "--defined-only", library],
            capture_output=True,
            text=True,
            check=True,
            timeout=60 * PATIENCE,
        )
        names |= set(re.findall(r"^\w+ [TW] P(MPI_\w+)", listed.stdout, re.MULTILINE))
    return frozenset(names)


def read_notes(folder: Path) -> tuple[dict[str, set[str]], dict[tuple[str, str], set[str]]]:
    """Return the procedures each library has, and the tests of each (procedure, library)."""
    has: dict[str, set[str]] = defaultdict(set)
    tests: dict[tuple[str, str], set[str]] = defaultdict(set)
    for line in (folder / "notes.jsonl").read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        if entry["test"] == "has":
            has[entry["library"]] |= set(entry["procedures"])
            continue
        for procedure in entry["procedures"]:
            tests[procedure, entry["library"]].add(entry["test"])
    return has, tests


def claims(folder: Path) -> dict[str, dict[str, list[str]]]:
    """Return, for each procedure, the libraries that have it and the tests that use it with each."""
    has, tests = read_notes(folder)
    found: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for library, names in has.items():
        for name in names:
            found[name][library] = sorted(tests.get((name, library), ()))
    return {
        "libraries": {library: [] for library in sorted(has)},
        **{name: dict(sorted(found[name].items())) for name in sorted(found)},
    }


def verify(folder: Path) -> list[str]:
    """Return a line for each claim that this run did not bear out; of libraries it did not use, none is."""
    has, tests = read_notes(folder)
    wrong = []
    for procedure, libraries in json.loads(TESTED.read_text(encoding="utf-8")).items():
        for library, names in libraries.items():
            if procedure == "libraries" or library not in has:
                continue
            missing = sorted(set(names) - tests.get((procedure, library), set()))
            if missing:
                wrong.append(f"{procedure} with {library}: no call in {', '.join(missing)}")
    return wrong


def main(arguments: list[str]) -> int:
    """Run the command; return the exit code."""
    if len(arguments) != 2 or arguments[0] not in ("write", "verify"):
        print(f"usage: {sys.argv[0]} write|verify FOLDER", file=sys.stderr)
        return 2
    folder = Path(arguments[1])
    if arguments[0] == "write":
        TESTED.write_text(json.dumps(claims(folder), indent=1) + "\n", encoding="utf-8")
        return 0
    wrong = verify(folder)
    for line in wrong:
        print(line)
    if wrong:
        print("docs/evidence/coverage.md says more than the tests do: 'make coverage' makes it anew")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
