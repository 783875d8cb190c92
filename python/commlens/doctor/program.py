# SPDX-License-Identifier: Apache-2.0
"""Checks the application: its type, its MPI library, and whether commlens can be loaded into it."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import stat
import subprocess
from pathlib import Path

from commlens.base.inputs import open_regular, read_regular
from commlens.base.processor import processor
from commlens.doctor.archive import ARCHIVE, is_linked_in
from commlens.doctor.command import CONTAINERS, Command
from commlens.doctor.environment import TOOLS
from commlens.doctor.families import TITLES, family_of_launcher, family_of_library
from commlens.doctor.finding import Finding, ok, problem, warning
from commlens.doctor.installation import LIBRARY, Install
from commlens.doctor.loader import Loader, Object
from commlens.symbols.elf import has_line_numbers, read_dynamic

LARGEST_SCRIPT = 16 << 20  # bytes; some installers have their archive in the script
FORTRAN = re.compile(r"p?mpi_[a-z0-9_]+_|P?MPI_[A-Z0-9_]+")
C_NAME = re.compile(r"P?MPI_[A-Z][a-z0-9]\w*")
BINDING = re.compile(r"lib(mpi_mpifh|mpi_usempi|mpifort|mpichfort|mpichf90)")
PYTHON = re.compile(r"python[\d.]*")
SHELLS = ("sh", "bash", "dash", "ksh", "zsh", "csh", "tcsh")
# Python packages that use MPI.
PACKAGES = ("mpi4py", "h5py", "petsc4py", "netCDF4", "adios2")
FIND_PACKAGES = """
import importlib.util, json
found = {}
for name in %r:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        spec = None
    if spec is not None and spec.submodule_search_locations:
        found[name] = list(spec.submodule_search_locations)[0]
print(json.dumps(found))
"""
MOST_FILES = 200
# Commands that keep commlens out if a script runs them between commlens-run and the program.
STRIPS = (
    (r"\benv\s+(-i|-)\s", "env -i removes LD_PRELOAD"),
    (r"\bunset\s+[^\n;]*\bLD_PRELOAD\b", "it unsets LD_PRELOAD"),
    (r"\bLD_PRELOAD=(?![^\n;]*\$\{?LD_PRELOAD)", "it replaces LD_PRELOAD"),
    (r"--export=NONE\b", "--export=NONE removes the environment"),
    (r"--cleanenv\b", "--cleanenv removes LD_PRELOAD"),
    (r"\bsudo\s", "sudo removes LD_PRELOAD"),
)
STARTS_RANKS = re.compile(r"^\s*(?:exec\s+)?(mpirun|mpiexec|srun|aprun|jsrun|prun)\s", re.MULTILINE)


def examine(command: Command, install: Install, loader: Loader) -> list[Finding]:
    """Return the findings about the program of a command line."""
    if not command.program:
        return [problem("program", "the command line contains no program")]
    if Path(command.program[0]).name in CONTAINERS:
        return loading(command, None)
    path = command.path
    if path is None and command.runner and command.program[0].startswith("-"):
        advice = "put options of the launcher before it: mpirun -n 2 commlens-run ./a"
        return [problem("program", f"commlens-run has no option {command.program[0]}", advice)]
    if path is None:
        return [problem("program", f"{command.program[0]}: not found")]
    if path.name in SHELLS and "-c" in command.program[1:]:
        return shell(command, f"{path.name} -c", " ".join(command.program[1:]))
    if not os.access(path, os.R_OK):
        return [warning("program", f"{path} is not readable, so it cannot be checked")]
    try:
        with open_regular(path) as file:
            head = file.read(256)
    except OSError as error:
        return [problem("program", f"{path}: cannot be read: {error.strerror}")]
    if head.startswith(b"#!"):
        return script(command, path, head, install, loader)
    return binary(command, path, install, loader)


def script(command: Command, path: Path, head: bytes, install: Install, loader: Loader) -> list[Finding]:
    """Return the findings about a script."""
    try:
        words = shlex.split(re.split(rb"[\n\0]", head[2:])[0].decode(errors="surrogateescape"))
    except ValueError:  # a quote without its end
        words = []
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    if not words:
        return [problem("program", f"{path}: the first line names no interpreter")]
    name = Path(words[0]).name
    found = shutil.which(words[0], path=command.env.get("PATH"))
    if found is None:
        return [problem("program", f"{path}: its interpreter {words[0]} is not found")]
    if PYTHON.fullmatch(name):
        return [ok("program", f"{path}, read by {found}"), *python(command, Path(found), install, loader)]
    if name in SHELLS:
        try:
            text = read_regular(path, LARGEST_SCRIPT).decode(errors="surrogateescape")
        except OSError as error:
            return [warning("program", f"{path}: cannot be read: {error.strerror}")]
        return shell(command, str(path), re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE))
    return [
        ok("program", f"{path}, read by {found}"),
        warning(
            "MPI",
            f"the MPI that {name} loads is known only at run time",
            "commlens-run then chooses by the launcher",
        ),
        *loading(command, None),
    ]


def shell(command: Command, path: str, text: str) -> list[Finding]:
    """Return the findings about shell commands, without running them."""
    found = [
        warning(
            "program",
            f"{path} is a shell script: which program it starts, and whether that uses MPI, is known only at run time",
            "check the program itself: commlens doctor -- commlens-run ./program",
        )
    ]
    for pattern, why in STRIPS:
        if re.search(pattern, text):
            found.append(
                problem(
                    "program",
                    f"{path}: {why}",
                    "put commlens-run into the script, directly before the program",
                )
            )
    starts = STARTS_RANKS.search(text)
    is_inside = command.runner is None and re.search(r"(^|[\s/])commlens-run\s", text)
    if starts and not is_inside:
        found.append(
            problem(
                "program",
                f"{path} calls {starts[1]} itself",
                f"put commlens-run into the script: {starts[1]} … commlens-run ./program",
            )
        )
    if is_inside:
        return [*found, ok("loading", f"commlens-run inside {path}")]
    if starts and command.runner is None:
        return found  # commlens-run before the script would not help
    return [*found, *loading(command, None)]


def binary(command: Command, path: Path, install: Install, loader: Loader) -> list[Finding]:
    """Return the findings about a binary program."""
    dynamic = read_dynamic(path)
    if dynamic is None:
        return [problem("program", f"{path} is neither an executable of this system nor a script")]
    if not dynamic.wide or dynamic.machine != processor().elf:
        return [
            problem("program", f"{path} is not built for the processor of this system ({processor().name})")
        ]
    if dynamic.static:
        return [
            problem(
                "program",
                f"{path} is statically linked: no library can be preloaded",
                "link it with the shared MPI library",
            )
        ]
    found = [ok("program", str(path)), *privileges(path)]
    if PYTHON.fullmatch(path.name):
        return [*found, *python(command, path, install, loader)]
    objects = loader.load(path)
    for missing in (one for one in objects if one.path is None):
        found.append(
            warning(
                "program",
                f"{missing.name}, which {missing.by} needs, is not found: the program would not start",
                "load the module it was built with, or set LD_LIBRARY_PATH",
            )
        )
    found += mpi_of(command, objects, install)
    found += fortran(objects)
    found += tools(objects)
    found.append(call_sites(path))
    return found


def privileges(path: Path) -> list[Finding]:
    """Return a problem if the system ignores LD_PRELOAD, because the program has more rights than its user."""
    mode = path.stat().st_mode
    try:
        raised = bool(os.getxattr(path, "security.capability"))
    except OSError:
        raised = False
    what = "has file capabilities" if raised else "is set-user-ID or set-group-ID"
    if raised or mode & (stat.S_ISUID | stat.S_ISGID):
        return [
            problem(
                "program",
                f"{path} {what}: the loader ignores LD_PRELOAD",
                "run a copy of it without these rights",
            )
        ]
    return []


def mpi_of(command: Command, objects: list[Object], install: Install) -> list[Finding]:
    """Return the findings about the MPI library of a program, and the commlens library for it."""
    program = objects[0]
    if program.path and is_linked_in(program.path):
        return [
            *mpi_beside_archive(objects),
            ok("loading", f"linked with {ARCHIVE}, which needs no commlens-run"),
        ]
    if program.defines & {"MPI_Init", "PMPI_Init"}:
        return [
            problem("MPI", "the MPI library is linked statically: its calls stay inside the program",
                    f"link it with the shared MPI library, or with {ARCHIVE}")
        ]  # fmt: skip
    families: dict[str, Object] = {}
    unknown = []
    for one in objects[1:]:
        family = family_of_library(one.name)
        if family is not None:
            families.setdefault(family, one)
        elif {"MPI_Init", "PMPI_Init"} <= one.defines and one.name != LIBRARY:
            unknown.append(one.name)
    if unknown and not families:
        return [
            problem(
                "MPI",
                f"{unknown[0]} belongs to no MPI family that commlens supports",
                "use Open MPI or MPICH",
            )
        ]
    if not families:
        return [
            problem(
                "MPI",
                "neither the program nor its libraries are linked with an MPI library",
                "this is fine if the program loads MPI at run time: commlens-run then chooses by the launcher",
            )
        ]
    if len(families) > 1:
        named = " and ".join(f"{one.name} (needed by {one.by})" for one in families.values())
        return [
            problem(
                "MPI",
                f"two MPI libraries in one program: {named}",
                "link everything with the same MPI library",
            )
        ]
    ((family, library),) = families.items()
    # Prefers the library of the C procedures to a Fortran binding.
    where = next((one.path for one in objects[1:] if "PMPI_Init" in one.defines), library.path)
    found = [ok("MPI", f"{TITLES[family]}: {where or library.name}")]
    imported = {name for one in application(objects) for name in one.imports if C_NAME.fullmatch(name)}
    if imported:
        found.append(ok("MPI", f"{len(imported)} MPI procedures are imported"))
    return [*found, *build(command, family, install), *loading(command, objects)]


def mpi_beside_archive(objects: list[Object]) -> list[Finding]:
    """Return the MPI library of a program with libcommlens.a, which has its own definitions of the C procedures."""
    for one in objects[1:]:
        family = family_of_library(one.name)
        if family is not None:
            return [ok("MPI", f"{TITLES[family]}: {one.path or one.name}")]
    return [ok("MPI", "linked statically")]


def application(objects: list[Object]) -> list[Object]:
    """Return the program and its libraries without MPI, its parts, and commlens."""
    return [
        one
        for one in objects
        if family_of_library(one.name) is None
        and one.name != LIBRARY
        and not re.match(r"lib(open-|mca_|mpi[_.]|mpich|mpifort|pmpi)", one.name)
    ]


def build(command: Command, family: str, install: Install) -> list[Finding]:
    """Return whether commlens has a library for a family, and whether commlens-run selects it."""
    title, found = TITLES[family], []
    if family not in install.libraries:
        have = ", ".join(TITLES[f] for f in install.libraries) or "none"
        found.append(
            problem(
                "build",
                f"no commlens for {title}; there is one for: {have}",
                "run make build, which builds commlens for each interface",
            )
        )
    else:
        found.append(ok("build", f"{install.libraries[family]}"))
    wanted = command.env.get("COMMLENS_MPI", "auto")
    if wanted not in ("auto", "", family):
        found.append(
            problem("build", f"COMMLENS_MPI={wanted}, but the program uses {title}", "unset COMMLENS_MPI")
        )
    if command.launcher is not None:
        path = shutil.which(command.launcher, path=command.env.get("PATH"))
        theirs = family_of_launcher(str(Path(path).resolve())) if path else None
        if theirs is not None and theirs != family:
            found.append(
                warning(
                    "launch",
                    f"{command.launcher} belongs to {TITLES[theirs]}: it would start separate jobs of one rank each",
                    f"start the program with the launcher of {title}",
                )
            )
    return found


def loading(command: Command, objects: list[Object] | None) -> list[Finding]:
    """Return whether this command line loads commlens into the program, before the MPI library."""
    program = shlex.join(command.program)
    is_preloaded = command.runner is not None or LIBRARY in command.env.get("LD_PRELOAD", "")
    names = [one.name for one in objects or ()]
    if LIBRARY in names:
        first = next((name for name in names if name == LIBRARY or family_of_library(name)), LIBRARY)
        if first == LIBRARY:
            return [ok("loading", f"linked with {LIBRARY}")]
        if not is_preloaded:
            return [
                problem("loading", f"{LIBRARY} is linked after {first}: calls bypass it",
                        "put -lcommlens before the MPI library, or use commlens-run")
            ]  # fmt: skip
    if not is_preloaded:
        return [not_loaded(command, objects)]
    if command.runner_first:
        line = shlex.join(
            [command.launcher or "", *command.launcher_options, command.runner or "", *command.program]
        )
        return [problem("loading", f"commlens-run stands before {command.launcher}", line)]
    return [ok("loading", f"commlens-run {program}" if command.runner else "LD_PRELOAD")]


def not_loaded(command: Command, objects: list[Object] | None) -> Finding:
    """Return the problem that nothing on the command line, in LD_PRELOAD or in the program loads commlens."""
    launcher = [command.launcher, *command.launcher_options] if command.launcher else ["mpirun", "-n", "4"]
    line = shlex.join([*launcher, "commlens-run", *command.program])
    if objects is None:
        return problem("loading", "commlens-run is not on the command line", line)
    dynamic = objects[0].dynamic
    folders = (*dynamic.runpath, *dynamic.rpath) if dynamic else ()
    dropped = next((folder for folder in folders if (Path(folder) / LIBRARY).exists()), None)
    if dropped is not None:
        return problem(
            "loading",
            f"commlens-run is not on the command line. The program searches {dropped} for libraries but does not need "
            f"{LIBRARY}: the linker drops a library of which it needs nothing",
            f"put -lcommlens before the MPI library, or run {line}",
        )
    return problem(
        "loading",
        f"commlens-run is not on the command line, and the program is not linked with {LIBRARY}",
        line,
    )


def fortran(objects: list[Object]) -> list[Finding]:
    """Return the Fortran procedures of the program that do not call their C procedure."""
    names = {
        name for one in application(objects) for name in one.imports
        if FORTRAN.fullmatch(name) and not C_NAME.fullmatch(name)
    }  # fmt: skip
    bindings = [one for one in objects if BINDING.match(one.name)]
    if not names or not bindings:
        return []
    reached = {
        name.lower().removeprefix("p") for one in bindings for name in one.imports if C_NAME.fullmatch(name)
    }
    defined = set().union(*(one.defines for one in bindings))
    lost = sorted(
        name for name in names & defined
        if not name.endswith("_fn_") and re.sub(r"(_cptr|_f08(ts)?)?_+$", "", name.lower().removeprefix("p")) not in reached
    )  # fmt: skip
    text = f"{len(names & defined)} Fortran procedures are called through {bindings[0].name}"
    if not lost:
        return [ok("Fortran", text)]
    return [
        warning(
            "Fortran",
            f"{text}, which does not use the C procedures for {', '.join(lost)}: commlens does not see them",
        )
    ]


def tools(objects: list[Object]) -> list[Finding]:
    """Return the tools linked into the program that define MPI procedures themselves."""
    found = []
    for one in application(objects)[1:]:
        wraps = any(C_NAME.fullmatch(name) and not name.startswith("PMPI_") for name in one.defines)
        is_mpi = "PMPI_Init" in one.defines
        if (wraps and not is_mpi) or TOOLS.match(one.name):
            found.append(
                warning(
                    "tools",
                    f"{one.name} also measures MPI: both tools see every call, and the times of each include the other",
                    f"for exact times, run without it ({one.by} needs it)",
                )
            )
    return found


def call_sites(path: Path) -> Finding:
    """Return a finding about how precisely call sites can be shown."""
    if shutil.which("addr2line") is None:
        return warning(
            "call sites",
            "addr2line is not installed: call sites are shown as addresses",
            "install binutils on the machine where you read the profile",
        )
    if has_line_numbers(path):
        return ok("call sites", "function, file and line")
    return warning(
        "call sites",
        f"{path.name} has no line numbers: call sites are shown as functions at best",
        "compile with -g, which costs no run time",
    )


def python(command: Command, interpreter: Path, install: Install, loader: Loader) -> list[Finding]:
    """Return the MPI libraries of an interpreter's packages.  Runs the interpreter, not the application."""
    # Uses the environment of the run, for its PYTHONPATH, but without LD_PRELOAD.
    env = {name: value for name, value in command.env.items() if name != "LD_PRELOAD"}
    done = subprocess.run(
        [str(interpreter), "-c", FIND_PACKAGES % (PACKAGES,)],
        capture_output=True,
        encoding="utf-8",
        errors="surrogateescape",
        check=False,
        env=env,
    )
    try:
        packages: dict[str, str] = json.loads(done.stdout)
    except ValueError:
        return [warning("MPI", f"{interpreter} does not list its packages"), *loading(command, None)]
    found, families = [], set()
    for name, folder in packages.items():
        variants = variants_of(Path(folder), loader, env.get("MPI4PY_MPIABI", ""))
        families |= set(variants)
        if variants:
            named = " or ".join(f"{TITLES[family]} ({path})" for family, path in variants.items())
            found.append(ok("MPI", f"{name} in {folder}: {named}"))
        elif name == "mpi4py":
            advice = "load the module of your MPI, or set LD_LIBRARY_PATH"
            found.append(warning("MPI", f"mpi4py in {folder}: its MPI library is not found", advice))
    if not packages.keys() & {"mpi4py", "petsc4py"} and not families:
        advice = f"{interpreter} -m pip install mpi4py"
        found.append(problem("MPI", f"{interpreter} has no package that uses MPI", advice))
    if len(families) > 1:
        found.append(
            warning(
                "MPI",
                "which of them it loads is known only at run time",
                "commlens-run then chooses by the launcher",
            )
        )
    for family in sorted(families):
        found += build(command, family, install) if len(families) == 1 else []
    return [*found, *loading(command, None)]


def variants_of(folder: Path, loader: Loader, wanted: str) -> dict[str, Path]:
    """Return the MPI libraries that the modules of a package need, by family."""
    found: dict[str, Path] = {}
    for file in sorted(folder.rglob("*.so"))[:MOST_FILES]:
        variant = re.match(r"MPI\.(openmpi|mpich|impi|mpiabi)\.", file.name)
        if wanted and variant and variant[1] != wanted:
            continue
        for one in loader.load(file)[1:]:
            family = family_of_library(one.name)
            if family is not None and one.path is not None:
                found.setdefault(family, one.path)
        if found and not variant:
            break
    return found
