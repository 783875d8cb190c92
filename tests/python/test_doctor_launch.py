# SPDX-License-Identifier: Apache-2.0
"""What `commlens doctor` says of the command line and the environment."""

from __future__ import annotations

import os
import shutil
from importlib.metadata import version
from pathlib import Path

import pytest
from test_doctor import APP, OURS, Said, World, found

from commlens.doctor import environment
from commlens.doctor.command import read_command


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Return a world in which all is well."""
    return World(tmp_path)


# ---- the command line ----


def test_commlens_run_is_missing(world: World) -> None:
    found(
        world.look("mpirun", "-n", "4", "--bind-to", "core", world.app(), "-n"),
        Said("loading", "problem", "not on the command line", f"mpirun -n 4 --bind-to core commlens-run {world.root}/work/app -n"),
    )  # fmt: skip


@pytest.mark.parametrize(
    "line",
    [
        "srun -l -n 4 commlens-run ./app",
        "srun -l ./app data",
        "srun -A proj -q normal -C gpu commlens-run ./app",
        "srun --partition test --job-name cat ./app",
        "mpirun --oversubscribe commlens-run ./app",
        "mpirun --wdir /tmp --rankfile ./ranks -n 2 ./app",
        "jsrun -n 4 -l cpu-cpu ./app",
        "lrun -n 4 ./app",
        "flux run -n 4 commlens-run ./app",
        "flux mini run -n 4 ./app",
        "commlens-run numactl -i all ./app",
        "commlens-run numactl --membind 0 -l ./app",
        "commlens-run stdbuf -o L ./app",
        "commlens-run setarch -R ./app",
        "commlens-run setarch x86_64 -R ./app",
        "commlens-run taskset -c 0-3 ./app",
        "commlens-run timeout -k 5 10 ./app",
    ],
)
def test_options_of_launchers_and_wrappers_are_not_the_program(line: str) -> None:
    command = read_command(line.split(), os.environ)
    assert command.program[0] == "./app"
    assert command.runner == ("commlens-run" if "commlens-run" in line else None)


def test_a_program_alone_would_not_be_profiled(world: World) -> None:
    """Neither commlens-run nor LD_PRELOAD is there, and the program is not linked with the library."""
    app = world.app()
    found(
        world.look(app, "-n", "3"),
        Said(
            "loading",
            "problem",
            "commlens-run is not on the command line, and the program is not linked with libcommlens.so",
            f"mpirun -n 4 commlens-run {app} -n 3",
        ),
    )
    found(world.look("commlens-run", app), Said("loading", "ok", f"commlens-run {app}"))
    ours = str(world.root / "lib/openmpi/libcommlens.so")
    found(world.look(app, env={"LD_PRELOAD": ours}), Said("loading", "ok", "LD_PRELOAD"))


def test_an_option_of_the_launcher_after_commlens_run(world: World) -> None:
    found(
        world.look("commlens-run", "-n", "2", world.app()),
        Said("program", "problem", "commlens-run has no option -n", "mpirun -n 2 commlens-run ./a"),
    )


def test_a_second_program_of_the_launch(world: World) -> None:
    app = str(world.app())
    found(
        world.look("mpirun", "-n", "1", "commlens-run", app, ":", "-n", "2", app),
        Said("loading 2", "problem", "not on the command line", f"mpirun -n 2 commlens-run {app}"),
    )
    found(world.look("mpirun", "-n", "1", "commlens-run", app, ":", "-n", "2", "commlens-run", app))


def test_commlens_run_in_a_script_or_before_a_shell(world: World) -> None:
    script = world.script("job.sh", "#!/bin/sh\nexec commlens-run ./app\n")
    opaque = Said("program", "warning", "is known only at run time")
    found(world.look("mpirun", "-n", "2", script), opaque, Said("loading", "ok", "commlens-run inside"))
    found(world.look("mpirun", "commlens-run", "/bin/sh", "-c", "./app"), opaque)
    found(world.look("mpirun", "/bin/sh", "-c", "commlens-run ./app"), opaque)
    found(
        world.look("mpirun", "/bin/sh", "-c", "./app"),
        opaque,
        Said("loading", "problem", "not on the command line"),
    )


def test_commlens_run_stands_before_the_launcher(world: World) -> None:
    found(
        world.look("commlens-run", "mpirun", "-n", "4", world.app()),
        Said("loading", "problem", "stands before mpirun", "mpirun -n 4 commlens-run"),
    )


def test_a_preload_is_a_way_in(world: World) -> None:
    ours = str(world.root / "lib/openmpi/libcommlens.so")
    found(world.look("mpirun", world.app(), env={"LD_PRELOAD": ours}), Said("loading", "ok", "LD_PRELOAD"))
    found(world.look("mpirun", "env", f"LD_PRELOAD={ours}", world.app()), Said("loading", "ok", "LD_PRELOAD"))


def test_linked_with_commlens(world: World) -> None:
    ours, mpi = world.root / "lib/openmpi/libcommlens.so", world.root / "mpi/libmpi.so.40"
    world.library("openmpi", OURS % version("commlens"), "-Wl,-soname,libcommlens.so")
    rpath = f"-Wl,-rpath,{ours.parent}"
    found(
        world.look("mpirun", world.app(APP, ours, mpi, rpath)),
        Said("loading", "ok", "linked with libcommlens.so"),
    )
    behind = world.app(APP, mpi, ours, rpath, name="behind")
    found(world.look("mpirun", behind), Said("loading", "problem", "linked after libmpi.so.40"))
    found(world.look(behind), Said("loading", "problem", "linked after libmpi.so.40"))
    found(world.look("commlens-run", behind), Said("loading", "ok", f"commlens-run {behind}"))


def test_linked_with_commlens_through_a_library(world: World) -> None:
    """The loader searches breadth first: the order of the program's own libraries alone does not decide."""
    ours, mpi = world.root / "lib/openmpi/libcommlens.so", world.root / "mpi/libmpi.so.40"
    world.library("openmpi", OURS % version("commlens"), "-Wl,-soname,libcommlens.so")
    all_needed = ("-Wl,--no-as-needed", "-Wl,--unresolved-symbols=ignore-all", f"-Wl,-rpath,{ours.parent}")
    with_ours = world.shared("libtools.so", "int tools;", *all_needed, ours)
    with_mpi = world.shared("libphysics.so", "int physics;", *all_needed, mpi)
    found(
        world.look(world.app(APP, with_ours, with_mpi)), Said("loading", "ok", "linked with libcommlens.so")
    )
    found(
        world.look(world.app(APP, with_mpi, with_ours)),
        Said("loading", "problem", "linked after libmpi.so.40"),
    )
    found(
        world.look(world.app(APP, with_ours, mpi)),
        Said("loading", "problem", "libcommlens.so is linked after libmpi.so.40: calls bypass it"),
    )


def test_a_library_that_the_linker_dropped(world: World) -> None:
    """With --as-needed the linker drops what stands behind the library that defines everything."""
    ours, mpi = world.root / "lib/openmpi/libcommlens.so", world.root / "mpi/libmpi.so.40"
    world.library("openmpi", OURS % version("commlens"), "-Wl,-soname,libcommlens.so")
    app = world.app(APP, "-Wl,--as-needed", mpi, ours, f"-Wl,-rpath,{ours.parent}")
    found(
        world.look(app),
        Said(
            "loading",
            "problem",
            f"The program searches {ours.parent} for libraries but does not need libcommlens.so",
            f"put -lcommlens before the MPI library, or run mpirun -n 4 commlens-run {app}",
        ),
    )


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


@pytest.mark.parametrize("share", ["0", "0.1", "0.123456789", "0."])
def test_a_share_of_the_jobs(world: World, share: str) -> None:
    found(
        world.look(env={"COMMLENS_SAMPLE": share}),
        Said("settings", "warning", f"{share} of the jobs are measured", "set COMMLENS_SAMPLE=1"),
    )


@pytest.mark.parametrize("share", ["", "2", "1.1", "10%", ".5", "0,5", "0.1234567890", "1e-3", "-0.1"])
def test_a_share_that_is_none(world: World, share: str) -> None:
    """The unit test of core/base/share.h has the same list."""
    text = f"COMMLENS_SAMPLE: '{share}' is invalid; use a number from 0 to 1, such as 0.25; 1 is used instead"
    found(world.look(env={"COMMLENS_SAMPLE": share}), Said("settings", "warning", text))


def test_a_configuration_file_that_is_wrong(world: World) -> None:
    file = world.root / "commlens.conf"
    file.write_text(
        "# mine\nquiet = 2\noutput = %p.db # fine\nColour = red\nmpi = mpich\noutptu = x\nCOMMLENS_QUIET = 1\n"
    )
    found(
        world.look(env={"COMMLENS_CONFIG": str(file)}),
        Said("settings", "warning", f"{file}:2: '2' is invalid; use 1 or 0"),
        Said("settings", "warning", f"{file}:4: 'Colour = red' is not an option"),
        Said(
            "settings",
            "warning",
            f"{file}:5: 'mpi = mpich' is not an option",
            "only the environment can set COMMLENS_MPI",
        ),
        Said("settings", "warning", f"{file}:6: 'outptu = x' is not an option", "did you mean output?"),
        Said(
            "settings", "warning", f"{file}:7: 'COMMLENS_QUIET = 1' is not an option", "did you mean quiet?"
        ),
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
        Said("output", "warning", "%, %P is not replaced", "%p, %h, %j, %n, %u, %Y, %m, %d or %%"),
    )
    found(  # commlens makes the folders that have a field in their names, and those below
        world.look(env={"COMMLENS_OUTPUT": f"{world.root}/%u/%Y-%m/x/"}), Said("output", "ok", "/%u/%Y-%m/x")
    )
    found(
        world.look(env={"COMMLENS_OUTPUT": "/no/such/%u/%Y-%m/x.db"}),
        Said("output", "warning", f"/no/such does not exist: {second}"),
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
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
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


@pytest.mark.usefixtures("world")
def test_clocks_of_other_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert (environment.clock().state, environment.clock().text) == ("ok", "the counter of the processor")
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    assert environment.clock().state == "warning"
    assert "commlens has no assembly for riscv64" in environment.clock().text
