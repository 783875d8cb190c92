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

from commlens.doctor import environment, examine, program
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
        Said("way in", "ok", "commlens-run"),
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
    found(world.look(app), Said("program", "warning", "is not readable"))


def test_a_file_that_is_no_program(world: World) -> None:
    found(
        world.look(world.script("data", "hello")),
        Said("program", "problem", "neither an executable of this system"),
    )


def test_a_program_for_another_processor(world: World) -> None:
    app = world.app()
    data = bytearray(app.read_bytes())
    data[18:20] = struct.pack("<H", 183)  # EM_AARCH64
    app.write_bytes(data)
    found(world.look(app), Said("program", "problem", "not built for x86-64"))


def test_a_static_program(world: World) -> None:
    found(world.look(world.app("int main;", "-static")), Said("program", "problem", "statically linked"))


def test_a_program_with_the_rights_of_another(world: World) -> None:
    app = world.app()
    app.chmod(0o4755)
    found(world.look(app), Said("program", "problem", "is set-user-ID or set-group-ID"))


def test_a_program_with_capabilities(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getxattr", lambda *_: b"\x01")
    found(world.look(world.app()), Said("program", "problem", "has file capabilities"))


def test_a_library_that_is_not_found(world: World) -> None:
    physics = world.shared("libphysics.so", "int physics(void) { return 0; }")
    app = world.app(APP, world.root / "mpi/libmpi.so.40", physics)
    physics.unlink()
    found(world.look(app), Said("program", "warning", "libphysics.so, which app needs, is not found"))


def test_no_mpi(world: World) -> None:
    found(
        world.look(world.app("int main(void) { return 0; }", "-g")),
        Said("MPI", "problem", "neither the program nor"),
    )


def test_mpi_through_a_library_of_the_application(world: World) -> None:
    inner = world.shared(
        "libsolver.so",
        "int MPI_Send(void); int s(void) { return MPI_Send(); }",
        world.root / "mpi/libmpi.so.40",
    )
    app = world.app("int s(void); int main(void) { return s(); }", inner)
    found(world.look(app), Said("MPI", "ok", "Open MPI: "))


def test_mpi_linked_in_statically(world: World) -> None:
    app = world.app(f"{MPI} int main(void) {{ return 0; }}", "-rdynamic")
    found(world.look(app), Said("MPI", "problem", "linked statically"))


def test_two_mpi_libraries(world: World) -> None:
    mpich = world.shared("libmpich.so.12", MPI)
    solver = world.shared("libsolver.so", "int s;", "-Wl,--no-as-needed", mpich)
    app = world.app(APP, world.root / "mpi/libmpi.so.40", solver)
    found(
        world.look(app),
        Said("MPI", "problem", "libmpi.so.40 (needed by app) and libmpich.so.12 (needed by libsolver.so)"),
    )


def test_an_mpi_library_of_no_family(world: World) -> None:
    found(
        world.look(world.app(APP, world.shared("libmympi.so.1", MPI))),
        Said("MPI", "problem", "libmympi.so.1 belongs to no MPI family"),
    )


def test_an_mpi_for_which_there_is_no_commlens(world: World) -> None:
    app = world.app(APP, world.shared("libmpich.so.12", MPI))
    found(
        world.look(app),
        Said("build", "problem", "no commlens for MPICH; there is one for: Open MPI", "make build"),
    )


def test_commlens_mpi_says_another(world: World) -> None:
    found(
        world.look(world.app(), env={"COMMLENS_MPI": "mpich"}),
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
    found(world.look(world.app(barrier, binding, mpi)), Said("Fortran", "ok", "1 Fortran procedures"))
    both = "int mpi_barrier_(void), mpi_comm_get_attr_(void); int main(void) { return mpi_barrier_() + mpi_comm_get_attr_(); }"
    found(
        world.look(world.app(both, binding, mpi, name="both")),
        Said("Fortran", "warning", "does not use the C procedures for mpi_comm_get_attr_:"),
    )


def test_a_tool_that_is_linked(world: World) -> None:
    tool = world.shared("libcount.so", "int PMPI_Send(void); int MPI_Send(void) { return PMPI_Send(); }")
    app = world.app(APP, tool, world.root / "mpi/libmpi.so.40")
    found(world.look(app), Said("tools", "warning", "libcount.so also measures MPI", "app needs it"))


def test_call_sites(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    app = world.app()
    subprocess.run(["strip", str(app)], check=True)
    found(world.look(app), Said("call sites", "warning", "no line numbers", "-g"))
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
    found(world.look(script), *wanted)


def test_a_shell_script_that_starts_ranks_itself(world: World) -> None:
    script = world.script("job.sh", '#!/bin/sh\nLD_PRELOAD="x.so:$LD_PRELOAD" true\nexec mpirun -n 4 ./app\n')
    found(
        world.look(script),
        Said("program", "warning", "is known only at run time"),
        Said("program", "problem", "calls mpirun itself", "mpirun … commlens-run ./program"),
    )


def test_a_script_of_another_interpreter(world: World) -> None:
    world.script("Rscript", "#!/bin/sh\n")
    found(
        world.look(world.script("a.R", "#!/usr/bin/env Rscript\n")),
        Said("MPI", "warning", "the MPI that Rscript loads"),
    )


def test_a_script_without_interpreter(world: World) -> None:
    found(world.look(world.script("a", "#!\n")), Said("program", "problem", "names no interpreter"))
    found(
        world.look(world.script("a", "#!/no/such\n")),
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
    return world.look(script, env=more)


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


# ---- the command line ----


def test_commlens_run_is_missing(world: World) -> None:
    found(
        world.look("mpirun", "-n", "4", "--bind-to", "core", world.app(), "-n"),
        Said("way in", "problem", "not on the command line", f"mpirun -n 4 --bind-to core commlens-run {world.root}/work/app -n"),
    )  # fmt: skip


def test_a_second_program_of_the_launch(world: World) -> None:
    app = str(world.app())
    found(
        world.look("mpirun", "-n", "1", "commlens-run", app, ":", "-n", "2", app),
        Said("way in 2", "problem", "not on the command line", f"mpirun -n 2 commlens-run {app}"),
    )
    found(world.look("mpirun", "-n", "1", "commlens-run", app, ":", "-n", "2", "commlens-run", app))


def test_commlens_run_in_a_script_or_before_a_shell(world: World) -> None:
    script = world.script("job.sh", "#!/bin/sh\nexec commlens-run ./app\n")
    opaque = Said("program", "warning", "is known only at run time")
    found(world.look("mpirun", "-n", "2", script), opaque, Said("way in", "ok", "commlens-run inside"))
    found(world.look("mpirun", "commlens-run", "/bin/sh", "-c", "./app"), opaque)
    found(world.look("mpirun", "/bin/sh", "-c", "commlens-run ./app"), opaque)
    found(
        world.look("mpirun", "/bin/sh", "-c", "./app"),
        opaque,
        Said("way in", "problem", "not on the command line"),
    )


def test_commlens_run_stands_before_the_launcher(world: World) -> None:
    found(
        world.look("commlens-run", "mpirun", "-n", "4", world.app()),
        Said("way in", "problem", "stands before mpirun", "mpirun -n 4 commlens-run"),
    )


def test_a_preload_is_a_way_in(world: World) -> None:
    ours = str(world.root / "lib/openmpi/libcommlens.so")
    found(world.look("mpirun", world.app(), env={"LD_PRELOAD": ours}), Said("way in", "ok", "LD_PRELOAD"))
    found(world.look("mpirun", "env", f"LD_PRELOAD={ours}", world.app()), Said("way in", "ok", "LD_PRELOAD"))


def test_linked_with_commlens(world: World) -> None:
    ours, mpi = world.root / "lib/openmpi/libcommlens.so", world.root / "mpi/libmpi.so.40"
    world.library("openmpi", OURS % version("commlens"), "-Wl,-soname,libcommlens.so")
    rpath = f"-Wl,-rpath,{ours.parent}"
    found(
        world.look("mpirun", world.app(APP, ours, mpi, rpath)),
        Said("way in", "ok", "linked with libcommlens.so"),
    )
    behind = world.app(APP, mpi, ours, rpath, name="behind")
    found(world.look("mpirun", behind), Said("way in", "problem", "linked after libmpi.so.40"))


def test_the_launcher_of_another_mpi(world: World) -> None:
    hydra = world.script("mpiexec.hydra", "#!/bin/sh\n")
    (world.bin / "mpirun").symlink_to(hydra)
    found(
        world.look("mpirun", "commlens-run", world.app()),
        Said("launch", "warning", "mpirun belongs to MPICH: it would start separate jobs of one rank each"),
    )


@pytest.mark.parametrize(
    "between", [["env", "-i"], ["env", "-u", "LD_PRELOAD"], ["env", "LD_PRELOAD=x.so"], ["sudo"]]
)
def test_what_takes_the_preload_away_behind_commlens_run(world: World, between: list[str]) -> None:
    findings = world.look("mpirun", "commlens-run", *between, world.app())
    assert [f.check for f in findings if f.state == "problem"] == ["launch"]
    assert any(f"{' '.join(between)} after commlens-run removes LD_PRELOAD" in f.text for f in findings)
    found(world.look("mpirun", "env", "A=1", "commlens-run", "nice", "-n", "3", "timeout", "9", world.app()))


def test_a_container(world: World) -> None:
    found(
        world.look("srun", "commlens-run", "apptainer", "exec", "image", "./app"),
        Said("launch", "problem", "apptainer starts the program in a container"),
    )


def test_srun_that_exports_nothing(world: World) -> None:
    app = world.app()
    lost = Said(
        "launch", "warning", "--export=NONE: COMMLENS_OUTPUT will not reach the ranks", "--export=ALL"
    )
    found(world.look("srun", "--export=NONE", "commlens-run", app), lost)
    found(world.look("srun", "--export=ALL,A=1", "commlens-run", app))
    by_variable = {"SLURM_EXPORT_ENV": "PATH"}
    found(
        world.look("srun", "commlens-run", app, env=by_variable),
        Said("launch", "warning", "SLURM_EXPORT_ENV=PATH: COMMLENS_OUTPUT will not reach"),
    )
    found(
        world.look("srun", "--export=COMMLENS_OUTPUT", "commlens-run", app),
        Said("launch", "ok", "needs nothing from the environment"),
    )
    found(
        world.look(
            "srun", "--export=NONE", app, env={"LD_PRELOAD": str(world.root / "lib/openmpi/libcommlens.so")}
        ),
        Said("launch", "problem", "LD_PRELOAD does not reach the ranks"),
    )
    found(
        world.look("mpiexec", "-genvnone", "commlens-run", app),
        Said("launch", "warning", "-genvnone: COMMLENS_OUTPUT will not reach the ranks"),
    )


def test_several_nodes_with_open_mpi(world: World) -> None:
    nodes = {"SLURM_JOB_NUM_NODES": "2"}
    found(
        world.look("mpirun", "commlens-run", world.app(), env=nodes),
        Said("launch", "warning", "passes COMMLENS_OUTPUT only to ranks on this node", "-x COMMLENS_OUTPUT"),
    )
    found(world.look("mpirun", "-x", "COMMLENS_OUTPUT", "commlens-run", world.app(), env=nodes))


# ---- the environment ----


def test_settings_that_are_wrong(world: World) -> None:
    found(
        world.look(env={"COMMLENS_OUTPT": "x", "COMMLENS_QUIET": "perhaps", "COMMLENS_PATIENCE": "-1"}),
        Said("settings", "warning", "COMMLENS_OUTPT is not an option", "did you mean COMMLENS_OUTPUT"),
        Said("settings", "warning", "COMMLENS_QUIET: 'perhaps' is invalid; use 1 or 0; 0 is used instead"),
        Said("settings", "warning", "COMMLENS_PATIENCE: '-1' is not a whole number; 3600 is used instead"),
    )


def test_a_configuration_file_that_is_wrong(world: World) -> None:
    file = world.root / "commlens.conf"
    file.write_text("# mine\nquiet = 2\noutput = %p.db # fine\nColour = red\nmpi = mpich\n")
    found(
        world.look(env={"COMMLENS_CONFIG": str(file)}),
        Said("settings", "warning", f"{file}:2: '2' is invalid; use 1 or 0"),
        Said("settings", "warning", f"{file}:4: 'Colour = red' is not an option"),
        Said("settings", "warning", f"{file}:5: 'mpi = mpich' is not an option"),
    )
    found(
        world.look(env={"COMMLENS_CONFIG": "/no/such/file"}),
        Said("settings", "warning", "configuration /no/such/file is not used: No such file or directory"),
    )


def test_a_configuration_that_is_none(world: World) -> None:
    """Nothing hangs, and nothing large is read."""
    fifo, large = world.root / "fifo", world.root / "large"
    os.mkfifo(fifo)
    with large.open("wb") as file:
        file.truncate(40 << 30)
    for path, why in (
        (fifo, "it is a FIFO, not a regular file"),
        (Path("/dev/zero"), "it is not a regular file"),
        (world.root, "it is a directory"),
        (large, "it is larger than 64 KiB"),
    ):
        found(
            world.look(env={"COMMLENS_CONFIG": str(path)}),
            Said("settings", "warning", f"configuration {path} is not used: {why}"),
        )
    found(world.look(env={"COMMLENS_CONFIG": "/dev/null"}))


def test_of_many_bad_lines_of_a_configuration_a_handful_is_named(world: World) -> None:
    file = world.root / "commlens.conf"
    file.write_bytes(b"\x1b]0;title\x07" * 100 + b"\n" + b"x = y\n" * 99)
    findings = world.look(env={"COMMLENS_CONFIG": str(file)})
    found(
        findings,
        Said("settings", "warning", f"{file}:1: '{'?]0;title?' * 6}...' is not an option"),
        *(Said("settings", "warning", f"{file}:{n}: 'x = y' is not an option") for n in range(2, 6)),
        Said("settings", "warning", f"{file}: and 95 more invalid lines"),
    )


def test_modes(world: World) -> None:
    for mode in ("", "0600", "640"):
        found(world.look(env={"COMMLENS_MODE": mode}))
    for mode in ("0666", "0700", "rw"):
        found(
            world.look(env={"COMMLENS_MODE": mode}),
            Said("settings", "warning", f"COMMLENS_MODE: '{mode}' is invalid; use a mode from 0600 to 0644"),
        )


def test_places_that_are_no_files(world: World) -> None:
    fifo = world.root / "fifo"
    os.mkfifo(fifo)
    found(
        world.look(env={"COMMLENS_OUTPUT": "/dev/null"}),
        Said("output", "warning", "/dev/null is /dev/null: no profile is written"),
    )
    found(
        world.look(env={"COMMLENS_OUTPUT": str(fifo)}),
        Said("output", "warning", f"{fifo} is neither a file nor a folder: the profile would be written to"),
    )


def test_switched_off(world: World) -> None:
    found(world.look(env={"COMMLENS_ENABLE": "off"}), Said("settings", "problem", "commlens is switched off"))


def test_what_else_is_preloaded(world: World) -> None:
    memory = world.shared("libjemalloc.so.2", "int j;")
    found(
        world.look(env={"LD_PRELOAD": f"/opt/libgone.so:{memory} libmpiP.so"}),
        Said("preload", "warning", "/opt/libgone.so, which does not exist"),
        Said("preload", "ok", "libjemalloc.so.2 stays in LD_PRELOAD"),
        Said("preload", "warning", "libmpiP.so also measures MPI"),
    )


def test_places_for_the_profile(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    second = f"the profile would be written to {world.root}/tmp"
    found(
        world.look(env={"COMMLENS_OUTPUT": "/no/such/x.db"}),
        Said("output", "warning", f"/no/such does not exist: {second}"),
    )
    file = world.root / "file"
    file.write_text("")
    found(
        world.look(env={"COMMLENS_OUTPUT": f"{file}/x.db"}), Said("output", "warning", "is not a directory")
    )
    found(
        world.look(env={"COMMLENS_OUTPUT": "/no/such/x.db", "TMPDIR": "/none"}),
        Said(
            "output", "problem", "/no/such does not exist, and the profile cannot be written to /none either"
        ),
    )
    found(
        world.look(env={"COMMLENS_OUTPUT": f"{world.root}/%P-%j-%"}),
        Said("output", "warning", "%, %P is not replaced", "%p, %h, %j, %n or %%"),
    )
    real = os.access
    monkeypatch.setattr("os.access", lambda path, mode: path != world.root / "work" and real(path, mode))
    found(world.look(), Said("output", "warning", "work is not writable"))


def test_no_space_for_the_profile(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage("/")
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage._replace(free=1 << 20))
    found(world.look(), Said("output", "problem", "has only 1 MiB left"))


def test_clocks(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    cpus, clocks = world.root / "cpuinfo", world.root / "clocks"
    monkeypatch.setattr(environment, "CPUS", cpus)
    monkeypatch.setattr(environment, "CLOCKS", clocks)
    clocks.write_text("tsc hpet acpi_pm\n")
    cpus.write_text("flags\t\t: fpu constant_tsc nonstop_tsc\n")
    assert environment.clock().state == "ok"
    clocks.write_text("hpet acpi_pm\n")
    assert environment.clock().state == "warning"
    clocks.unlink()
    assert environment.clock().state == "ok"
    cpus.write_text("flags\t\t: fpu constant_tsc\n")
    assert environment.clock().state == "warning"


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
    assert "problem  way in          commlens-run is not on the command line\n" in bad.stdout
    assert f"                         → mpirun -n 2 commlens-run {surroundings.root}/work/app\n" in bad.stdout
    assert bad.stdout.endswith("\na run would not be profiled\n")


def test_findings_as_data(surroundings: World, run: Run) -> None:
    rows = json.loads(run("doctor", "--format", "json", "--", surroundings.app()).stdout)
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
    findings = world.look(world.script("app.py", f"#!{world.bin}/python3\n"))
    assert any("does not list its packages" in finding.text for finding in findings)
