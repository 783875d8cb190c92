# SPDX-License-Identifier: Apache-2.0
"""`commlens doctor`: every finding, in a situation made for it.

MPI, launchers and commlens itself are played by tiny libraries and scripts, so that none of them must be there.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import Run

from commlens.doctor import examine, program
from commlens.doctor.finding import Finding
from commlens.doctor.loader import Loader

MPI = "int MPI_Init(void){return 0;} int PMPI_Init(void){return 0;} int MPI_Send(void){return 0;} int PMPI_Barrier(void){return 0;}"
APP = "int MPI_Init(void), MPI_Send(void); int main(void) { return MPI_Init() + MPI_Send(); }"
OURS = 'const char* commlens_version(void) { return "%s"; }'


class World:
    """A folder with an installation of commlens and libraries of MPI."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.bin = root / "bin"
        for folder in ("bin", "mpi", "work", "tmp", "lib/openmpi"):
            (root / folder).mkdir(parents=True)
        self.script("commlens-run", "#!/bin/sh\n")
        self.library("openmpi", OURS % version("commlens"))
        self.env = {
            "PATH": f"{self.bin}:/usr/bin:/bin",
            "LD_LIBRARY_PATH": str(root / "mpi"),
            "TMPDIR": str(root / "tmp"),
            "COMMLENS_OUTPUT": f"{root}/work/",
        }
        self.shared("libmpi.so.40", MPI)

    def build(self, target: Path, code: str, *flags: str | Path) -> Path:
        """Compile a few lines."""
        target.parent.mkdir(parents=True, exist_ok=True)
        command = ["cc", "-w", "-x", "c", "-", "-x", "none", *map(str, flags), "-o", str(target)]
        subprocess.run(command, input=code, text=True, check=True, capture_output=True)
        return target

    def shared(self, name: str, code: str, *flags: str | Path) -> Path:
        """Make a shared object beside the MPI library."""
        return self.build(self.root / "mpi" / name, code, "-shared", "-fPIC", f"-Wl,-soname,{name}", *flags)

    def library(self, family: str, code: str, *flags: str | Path) -> Path:
        """Make a library of commlens."""
        return self.build(self.root / "lib" / family / "libcommlens.so", code, "-shared", "-fPIC", *flags)

    def app(self, code: str = APP, *flags: str | Path, name: str = "app") -> Path:
        """Make a program, by default one that uses MPI."""
        needs = flags or (self.root / "mpi" / "libmpi.so.40",)
        unresolved = ("-Wl,--unresolved-symbols=ignore-all", "-Wl,--no-as-needed", "-g")
        return self.build(self.root / "work" / name, code, *unresolved, *needs)

    def script(self, name: str, text: str) -> Path:
        """Make an executable script."""
        path = self.bin / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def look(
        self, *arguments: str | Path, env: Mapping[str, str] | None = None, runner: str | None = None
    ) -> list[Finding]:
        """Return all that is found."""
        return examine([str(a) for a in arguments], {**self.env, **(env or {})}, runner)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Return a world in which all is well."""
    return World(tmp_path)


class Said(NamedTuple):
    """What must be among the findings."""

    check: str
    state: str
    text: str
    advice: str = ""


def found(findings: list[Finding], *wanted: Said) -> None:
    """Assert that each wanted finding is there, and no other warning or problem."""
    rest = [f for f in findings if f.state != "ok"]
    for said in wanted:
        hits = [
            f
            for f in findings
            if (f.check, f.state) == said[:2] and said.text in f.text and said.advice in f.advice
        ]
        assert len(hits) == 1, (said, findings)
        rest = [f for f in rest if f not in hits]
    assert rest == []


def test_where_all_is_well_everything_is_ok(world: World) -> None:
    findings = world.look("mpirun", "-n", "2", "commlens-run", world.app(), "-x")
    found(
        findings,
        Said("commlens-run", "ok", str(world.bin / "commlens-run")),
        Said("library openmpi", "ok", f"version {version('commlens')}"),
        Said("program", "ok", str(world.root / "work/app")),
        Said("MPI", "ok", f"Open MPI: {world.root}/mpi/libmpi.so.40"),
        Said("MPI", "ok", "2 MPI procedures"),
        Said("build", "ok", str(world.root / "lib/openmpi/libcommlens.so")),
        Said("loading", "ok", "commlens-run"),
        Said("call sites", "ok", "file and line"),
        Said("output", "ok", f"{world.root}/work"),
    )


# ---- the installation ----


def test_no_commlens_run(world: World) -> None:
    found(
        world.look(runner="/nowhere/commlens-run"),
        Said("commlens-run", "problem", "/nowhere/commlens-run: missing, or not executable"),
    )


def test_no_library(world: World) -> None:
    shutil.rmtree(world.root / "lib")
    found(world.look(), Said("library", "problem", "no libcommlens.so beside"))


def test_a_library_that_needs_what_is_not_there(world: World) -> None:
    other = world.shared("libother.so", "int other(void) { return 0; }")
    world.library("openmpi", OURS % "1", "-Wl,--no-as-needed", other)
    other.unlink()
    found(world.look(), Said("library openmpi", "problem", "needs libother.so, which is not found here"))


def test_a_library_the_loader_refuses(world: World) -> None:
    (world.root / "lib/openmpi/libcommlens.so").write_bytes(b"\x7fELF garbage")
    found(
        world.look(),
        Said("library openmpi", "problem", "cannot be preloaded", "build commlens on this system"),
    )


def test_a_library_in_a_folder_with_a_blank(tmp_path: Path) -> None:
    found(World(tmp_path / "a folder").look(), Said("library openmpi", "problem", "space or a colon"))


def test_a_library_of_another_version(world: World) -> None:
    world.library("openmpi", OURS % "9.9.9")
    found(
        world.look(), Said("library openmpi", "warning", f"version 9.9.9, this command {version('commlens')}")
    )


def test_a_library_that_is_none_of_ours(world: World) -> None:
    world.library("openmpi", "int nothing;")
    found(world.look(), Said("library openmpi", "warning", "could not read its version"))


# ---- the program ----


def test_no_program(world: World) -> None:
    found(world.look("mpirun", "-n", "2"), Said("program", "problem", "contains no program"))


def test_a_program_that_is_not_there(world: World) -> None:
    found(world.look("./nowhere"), Said("program", "problem", "./nowhere: not found"))


def test_a_program_that_may_not_be_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    app = world.app()
    real = os.access
    monkeypatch.setattr("os.access", lambda path, mode: path != app and real(path, mode))
    found(world.look("commlens-run", app), Said("program", "warning", "is not readable"))


def test_a_file_that_is_no_program(world: World) -> None:
    found(
        world.look(world.script("data", "hello")),
        Said("program", "problem", "neither an executable of this system"),
    )


def test_a_program_for_another_processor(world: World) -> None:
    app = world.app()
    data = bytearray(app.read_bytes())
    data[18:20] = struct.pack("<H", 8)  # EM_MIPS
    app.write_bytes(data)
    found(
        world.look("commlens-run", app),
        Said("program", "problem", "not built for the processor of this system"),
    )


def test_a_static_program(world: World) -> None:
    found(
        world.look("commlens-run", world.app("int main;", "-static")),
        Said("program", "problem", "statically linked"),
    )


def test_a_program_with_the_rights_of_another(world: World) -> None:
    app = world.app()
    app.chmod(0o4755)
    found(world.look("commlens-run", app), Said("program", "problem", "is set-user-ID or set-group-ID"))


def test_a_program_with_capabilities(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getxattr", lambda *_: b"\x01")
    found(world.look("commlens-run", world.app()), Said("program", "problem", "has file capabilities"))


def test_a_library_that_is_not_found(world: World) -> None:
    physics = world.shared("libphysics.so", "int physics(void) { return 0; }")
    app = world.app(APP, world.root / "mpi/libmpi.so.40", physics)
    physics.unlink()
    found(
        world.look("commlens-run", app),
        Said("program", "warning", "libphysics.so, which app needs, is not found"),
    )


def test_no_mpi(world: World) -> None:
    found(
        world.look("commlens-run", world.app("int main(void) { return 0; }", "-g")),
        Said("MPI", "problem", "neither the program nor"),
    )


def test_mpi_through_a_library_of_the_application(world: World) -> None:
    inner = world.shared(
        "libsolver.so",
        "int MPI_Send(void); int s(void) { return MPI_Send(); }",
        world.root / "mpi/libmpi.so.40",
    )
    app = world.app("int s(void); int main(void) { return s(); }", inner)
    found(world.look("commlens-run", app), Said("MPI", "ok", "Open MPI: "))


def test_mpi_linked_in_statically(world: World) -> None:
    app = world.app(f"{MPI} int main(void) {{ return 0; }}", "-rdynamic")
    found(
        world.look("commlens-run", app), Said("MPI", "problem", "linked statically", "or with libcommlens.a")
    )


@pytest.mark.parametrize("flags", [("-rdynamic",), ("-s", "-static-libgcc")])
def test_commlens_linked_in_statically(world: World, flags: tuple[str, ...]) -> None:
    """With the MPI library; the long text puts the name of the archive across the end of what is read at a time."""
    text = f'char long_text[{(1 << 20) - 16400}] = "x"; const char* volatile name = "commlens_stand_aside";'
    app = world.app(f"{MPI} {text} int main(void) {{ return 0; }}", *flags)
    for line in ([app], ["mpirun", "-n", "2", "commlens-run", app]):
        findings = [one for one in world.look(*line) if one.check != "call sites"]
        found(
            findings,
            Said("MPI", "ok", "linked statically"),
            Said("loading", "ok", "linked with libcommlens.a"),
        )


def test_commlens_linked_in_beside_a_shared_mpi_library(world: World) -> None:
    app = world.app('const char* volatile name = "commlens_stand_aside"; int main(void) { return 0; }')
    found(
        world.look(app), Said("MPI", "ok", "Open MPI: "), Said("loading", "ok", "linked with libcommlens.a")
    )


def test_two_mpi_libraries(world: World) -> None:
    mpich = world.shared("libmpich.so.12", MPI)
    solver = world.shared("libsolver.so", "int s;", "-Wl,--no-as-needed", mpich)
    app = world.app(APP, world.root / "mpi/libmpi.so.40", solver)
    found(
        world.look("commlens-run", app),
        Said("MPI", "problem", "libmpi.so.40 (needed by app) and libmpich.so.12 (needed by libsolver.so)"),
    )


def test_an_mpi_library_of_no_family(world: World) -> None:
    found(
        world.look("commlens-run", world.app(APP, world.shared("libmympi.so.1", MPI))),
        Said("MPI", "problem", "libmympi.so.1 belongs to no MPI family"),
    )


def test_an_mpi_for_which_there_is_no_commlens(world: World) -> None:
    app = world.app(APP, world.shared("libmpich.so.12", MPI))
    found(
        world.look("commlens-run", app),
        Said("build", "problem", "no commlens for MPICH; there is one for: Open MPI", "make build"),
    )


def test_commlens_mpi_says_another(world: World) -> None:
    found(
        world.look("commlens-run", world.app(), env={"COMMLENS_MPI": "mpich"}),
        Said("build", "problem", "COMMLENS_MPI=mpich, but the program uses Open MPI"),
    )


def test_fortran_procedures_that_never_reach_c(world: World) -> None:
    mpi = world.root / "mpi/libmpi.so.40"
    binding = world.shared(
        "libmpi_mpifh.so.40",
        "int PMPI_Barrier(void); int mpi_barrier_(void) { return PMPI_Barrier(); } int mpi_comm_get_attr_(void) { return 0; }",
        mpi,
    )
    barrier = "int mpi_barrier_(void); int main(void) { return mpi_barrier_(); }"
    found(
        world.look("commlens-run", world.app(barrier, binding, mpi)),
        Said("Fortran", "ok", "1 Fortran procedures"),
    )
    both = "int mpi_barrier_(void), mpi_comm_get_attr_(void); int main(void) { return mpi_barrier_() + mpi_comm_get_attr_(); }"
    found(
        world.look("commlens-run", world.app(both, binding, mpi, name="both")),
        Said("Fortran", "warning", "does not use the C procedures for mpi_comm_get_attr_:"),
    )


def test_a_tool_that_is_linked(world: World) -> None:
    tool = world.shared("libcount.so", "int PMPI_Send(void); int MPI_Send(void) { return PMPI_Send(); }")
    app = world.app(APP, tool, world.root / "mpi/libmpi.so.40")
    found(
        world.look("commlens-run", app),
        Said("tools", "warning", "libcount.so also measures MPI", "app needs it"),
    )


def test_call_sites(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    app = world.app()
    subprocess.run(["strip", str(app)], check=True)
    found(world.look("commlens-run", app), Said("call sites", "warning", "no line numbers", "-g"))
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert "addr2line is not installed" in program.call_sites(app).text


# ---- scripts ----


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("env -i ./app", "env -i removes LD_PRELOAD"),
        ("unset FOO LD_PRELOAD", "it unsets LD_PRELOAD"),
        ("LD_PRELOAD=libx.so ./app", "it replaces LD_PRELOAD"),
        ("srun --export=NONE ./app", "--export=NONE removes the environment"),
        ("apptainer exec --cleanenv image ./app", "--cleanenv removes LD_PRELOAD"),
        ("sudo ./app", "sudo removes LD_PRELOAD"),
    ],
)
def test_a_shell_script_that_takes_the_preload_away(world: World, line: str, said: str) -> None:
    script = world.script(
        "job.sh", f"#!/bin/bash\n# env -i is only named here, unset LD_PRELOAD too\necho\n{line}\n"
    )
    wanted = [Said("program", "warning", "is a shell script"), Said("program", "problem", said)]
    if "srun" in line:
        wanted.append(Said("program", "problem", "calls srun itself"))
    found(world.look("commlens-run", script), *wanted)


def test_a_shell_script_that_starts_ranks_itself(world: World) -> None:
    script = world.script("job.sh", '#!/bin/sh\nLD_PRELOAD="x.so:$LD_PRELOAD" true\nexec mpirun -n 4 ./app\n')
    found(
        world.look("commlens-run", script),
        Said("program", "warning", "is known only at run time"),
        Said("program", "problem", "calls mpirun itself", "mpirun … commlens-run ./program"),
    )


def test_a_shell_script_that_starts_ranks_without_commlens_run(world: World) -> None:
    script = world.script("job.sh", "#!/bin/sh\nexec mpirun -n 4 ./app\n")
    opaque = Said("program", "warning", "is known only at run time")
    found(world.look(script), opaque, Said("program", "problem", "calls mpirun itself"))
    inside = world.script("inside.sh", "#!/bin/sh\nexec mpirun -n 4 commlens-run ./app\n")
    found(world.look(inside), opaque, Said("loading", "ok", f"commlens-run inside {inside}"))


def test_a_script_of_another_interpreter(world: World) -> None:
    world.script("Rscript", "#!/bin/sh\n")
    found(
        world.look("commlens-run", world.script("a.R", "#!/usr/bin/env Rscript\n")),
        Said("MPI", "warning", "the MPI that Rscript loads"),
    )


def test_a_script_without_interpreter(world: World) -> None:
    found(
        world.look("commlens-run", world.script("a", "#!\n")),
        Said("program", "problem", "names no interpreter"),
    )
    found(
        world.look("commlens-run", world.script("a", "#!/no/such\n")),
        Said("program", "problem", "interpreter /no/such is not found"),
    )


# ---- Python ----


def package(world: World, name: str, **modules: str) -> str:
    """Make a package whose modules need these MPI libraries, and an interpreter that has it; return its folder."""
    folder = world.root / name
    for module, library in modules.items():
        file = f"{module.replace('__', '.')}.cpython-311-x86_64-linux-gnu.so"
        needs = world.shared(library, MPI)
        world.build(folder / file, "int m;", "-shared", "-fPIC", "-Wl,--no-as-needed", needs)
    folder.mkdir(exist_ok=True)
    world.script("python3", f"#!/bin/sh\necho '{json.dumps({name: str(folder)})}'\n")
    return str(folder)


def python(world: World, **more: str) -> list[Finding]:
    script = world.script("app.py", "#!/usr/bin/env python3\nimport mpi4py\n")
    return world.look("commlens-run", script, env=more)


def test_the_mpi_of_mpi4py(world: World) -> None:
    folder = package(world, "mpi4py", MPI="libmpi.so.40")
    found(
        python(world),
        Said("MPI", "ok", f"mpi4py in {folder}: Open MPI ({world.root}/mpi/libmpi.so.40)"),
        Said("build", "ok", "openmpi"),
    )


def test_an_mpi4py_for_two_families(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Loader, "cache", {})  # not the real ones
    package(world, "mpi4py", MPI__openmpi="libmpi.so.40", MPI__mpich="libmpich.so.12")
    found(python(world), Said("MPI", "warning", "which of them it loads is known only at run time"))
    found(python(world, MPI4PY_MPIABI="openmpi"), Said("MPI", "ok", "Open MPI ("))
    (world.root / "mpi/libmpi.so.40").unlink()
    found(python(world), Said("MPI", "ok", "MPICH ("), Said("build", "problem", "no commlens for MPICH"))


def test_an_mpi4py_without_mpi(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Loader, "cache", {})
    package(world, "mpi4py", MPI="libmpi.so.40")
    (world.root / "mpi/libmpi.so.40").unlink()
    found(python(world), Said("MPI", "warning", "its MPI library is not found"))


def test_the_mpi_of_another_package(world: World) -> None:
    package(world, "h5py", h5="libmpi.so.40")
    found(python(world), Said("MPI", "ok", "h5py in"))


def test_a_python_without_mpi(world: World) -> None:
    world.script("python3", "#!/bin/sh\necho '{}'\n")
    found(python(world), Said("MPI", "problem", "has no package that uses MPI", "pip install mpi4py"))


def test_a_python_that_does_not_answer(world: World) -> None:
    world.script("python3", "#!/bin/sh\nexit 1\n")
    found(python(world), Said("MPI", "warning", "does not list its packages"))


# ---- the command ----


@pytest.fixture
def surroundings(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """Let the command see the world."""
    for name, value in world.env.items():
        monkeypatch.setenv(name, value)
    for name in [n for n in os.environ if n.startswith(("COMMLENS_", "SLURM_")) and n not in world.env]:
        monkeypatch.delenv(name)
    return world


def test_the_list_has_a_line_for_each_finding_and_ends_with_the_answer(surroundings: World, run: Run) -> None:
    good = run("doctor", "--", "mpirun", "-n", "2", "commlens-run", surroundings.app(), "--format", "x")
    assert (good.exit_code, good.stderr) == (0, "")
    lines = good.stdout.splitlines()
    assert lines[0] == f"ok       commlens-run    {surroundings.bin}/commlens-run"
    assert lines[-1] == "a run would be profiled"
    bad = run("doctor", "--", "mpirun", "-n", "2", surroundings.app())
    assert bad.exit_code == 1
    said = "commlens-run is not on the command line, and the program is not linked with libcommlens.so"
    assert f"problem  loading         {said}\n" in bad.stdout
    assert f"                         → mpirun -n 2 commlens-run {surroundings.root}/work/app\n" in bad.stdout
    assert bad.stdout.endswith("\na run would not be profiled\n")


def test_findings_as_data(surroundings: World, run: Run) -> None:
    rows = json.loads(run("doctor", "--format", "json", "--", "commlens-run", surroundings.app()).stdout)
    assert {row["state"] for row in rows} == {"ok"}
    assert set(rows[0]) == {"check", "state", "text", "advice"}
    assert run("doctor", "--format", "csv").stdout.startswith("check,state,text,advice\ncommlens-run,ok,")
    assert run("doctor", "--runner", "/nowhere/x").exit_code == 1


def test_programs_that_are_no_programs_are_named(world: World) -> None:
    os.mkfifo(world.bin / "fifo")
    (world.bin / "fifo").chmod(0o755)
    for path, why in (
        (world.bin / "fifo", "cannot be read: not a regular file"),
        (world.root, "cannot be read: not a regular file"),
        (world.script("quote", "#!/bin/sh 'x\n"), "the first line names no interpreter"),
        (world.script("null", "#!\0\n"), "the first line names no interpreter"),
    ):
        findings = world.look(path)
        assert [f.text for f in findings if f.check == "program"] == [f"{path}: {why}"]


def test_other_programs_may_say_what_is_no_text(world: World) -> None:
    world.library("openmpi", 'const char* commlens_version(void) { return "\\xff\\x1b"; }')
    world.script("python3", "#!/bin/sh\nprintf '\\377\\033'\n")
    findings = world.look("commlens-run", world.script("app.py", f"#!{world.bin}/python3\n"))
    assert any("does not list its packages" in finding.text for finding in findings)
