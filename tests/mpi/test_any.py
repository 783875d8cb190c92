# SPDX-License-Identifier: Apache-2.0
"""libcommlens-any.so in LD_PRELOAD of all processes: MPI programs are measured, and others stay as they are."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from build_once import PATIENCE
from harness import BUILD, Mpi
from test_languages import mpi4py_env

ANY = BUILD / "lib" / "libcommlens-any.so"
LAUNCHED = {"PMI_RANK": "0"}
"""A variable of MPICH's launcher."""


def run(*command: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program without MPI that has the library in LD_PRELOAD, and nothing else of a launcher or of commlens."""
    env = {"PATH": os.environ["PATH"], "LD_PRELOAD": str(ANY), **variables}
    return subprocess.run(
        [str(part) for part in command],
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=60 * PATIENCE,
    )


def preloaded(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Return LD_PRELOAD as `env` has printed it."""
    assert (done.returncode, done.stderr) == (0, "")
    value = next(line for line in done.stdout.splitlines() if line.startswith("LD_PRELOAD="))
    return value.removeprefix("LD_PRELOAD=").split(":")


@pytest.fixture
def printer() -> Iterator[Path]:
    """Return a program outside of the system's folders that prints its environment; every user can run it."""
    folder = Path(tempfile.mkdtemp(prefix="commlens-any-"))
    folder.chmod(0o755)
    yield Path(shutil.copy(shutil.which("env") or "/usr/bin/env", folder / "printer"))
    shutil.rmtree(folder)


def test_a_program_behind_a_shell_is_measured_and_the_shell_is_not(mpi: Mpi, tmp_path: Path) -> None:
    program = mpi.compile("listing1.c")
    script = 'case $LD_PRELOAD in */libcommlens.so*) echo measured ;; esac; exec "$0"'
    profile = tmp_path / "2 ranks" / "x.db"  # the folder does not exist
    result = mpi.run(
        2,
        ["sh", "-c", script, program],
        mode="off",
        preload=[ANY],
        profile=profile,
        env={"COMMLENS_OUTPUT": f"{tmp_path}/%n ranks/x.db"},
    )
    assert (result.rc, result.stdout) == (0, "160\n"), result
    result.open().check()


def test_a_python_program_is_measured(mpi: Mpi, tmp_path: Path) -> None:
    profile = tmp_path / "x.db"
    code = "from mpi4py import MPI; MPI.COMM_WORLD.Barrier()"
    env = {**mpi4py_env(mpi), "COMMLENS_OUTPUT": str(profile)}
    result = mpi.run(2, [sys.executable, "-c", code], mode="off", preload=[ANY], profile=profile, env=env)
    assert result.rc == 0, result
    assert (
        result.open().rows("SELECT SUM(calls) AS n FROM counter WHERE operation = 'MPI_Barrier'")[0]["n"] == 2
    )


def test_without_a_launcher_nothing_changes(printer: Path) -> None:
    for program in (printer, Path("/usr/bin/env")):
        assert preloaded(run(program)) == [str(ANY)]


def test_what_a_launcher_starts_may_load_mpi_unless_it_belongs_to_the_system(printer: Path) -> None:
    library = str(BUILD / "lib" / "mpich" / "libcommlens.so")
    assert preloaded(run(printer, **LAUNCHED)) == [library, str(ANY)]
    assert preloaded(run(printer, OMPI_COMM_WORLD_RANK="1"))[0].endswith("/openmpi/libcommlens.so")
    assert preloaded(run(printer, **LAUNCHED, COMMLENS_MPI="abi"))[0].endswith("/abi/libcommlens.so")
    assert preloaded(run("/usr/bin/env", **LAUNCHED)) == [str(ANY)]
    assert preloaded(run("sh", "-c", "env", **LAUNCHED)) == [str(ANY)]
    assert preloaded(run(printer, **LAUNCHED, COMMLENS_ENABLE="off")) == [str(ANY)]
    # What somebody else has preloaded stays, and a program that is measured already is not started again.
    assert preloaded(run(printer, **LAUNCHED, LD_PRELOAD=f"libm.so.6:{ANY}")) == [
        library,
        "libm.so.6",
        str(ANY),
    ]
    assert preloaded(run(printer, **LAUNCHED, LD_PRELOAD=f"{ANY} {library}")) == [f"{ANY} {library}"]


def test_arguments_and_standard_files_stay(printer: Path) -> None:
    shell = Path(shutil.copy(shutil.which("sh") or "/bin/sh", printer.parent / "shell"))
    script = 'printf "%s|" "$0" "$@" "$$"; cat'
    env = {"LD_PRELOAD": str(ANY), "PATH": os.environ["PATH"], **LAUNCHED}
    with subprocess.Popen(
        ["my name", "-c", script, "zero", "", "two words"],
        executable=shell,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        output, _ = process.communicate("input", timeout=60 * PATIENCE)
        assert output == f"zero||two words|{process.pid}|input"


def test_a_program_that_is_gone_or_that_the_linker_runs_runs_on(printer: Path) -> None:
    script = 'exec 9<"$0"; rm "$0"; exec /proc/self/fd/9'
    assert preloaded(run("sh", "-c", script, printer, **LAUNCHED))[0].endswith("/mpich/libcommlens.so")
    linker = next(Path(folder).glob("ld-linux*.so.*") for folder in ("/lib64", "/lib"))
    assert preloaded(run(next(linker), shutil.which("env") or "", **LAUNCHED)) == [str(ANY)]


def test_a_library_that_is_missing_costs_one_line_of_rank_0(printer: Path) -> None:
    alone = Path(shutil.copy(ANY, printer.parent))
    for rank, lines in (("0", 1), ("1", 0)):
        done = run(printer, PMI_RANK=rank, LD_PRELOAD=str(alone))
        assert done.returncode == 0
        assert done.stderr.count("\n") == lines
        assert done.stderr.startswith("commlens: printer uses MPICH, for which there is no library" * lines)
    done = run(printer, **LAUNCHED, COMMLENS_MPI="nothing")
    assert (
        done.stderr
        == "commlens: COMMLENS_MPI=nothing is invalid; use openmpi, mpich or abi; running unprofiled\n"
    )


def test_a_program_with_the_address_sanitizer_runs(tmp_path: Path) -> None:
    """It ends a program in which another library comes before its own, which every preloaded one does."""
    source, program = tmp_path / "a.c", tmp_path / "a"
    source.write_text(
        '#include <stdio.h>\n#include <stdlib.h>\nint main() { puts(getenv("ASAN_OPTIONS")); return 3; }\n'
    )
    subprocess.run(["gcc", "-fsanitize=address", source, "-o", program], check=True)
    done = run(program)
    assert (done.returncode, done.stdout, done.stderr) == (3, "verify_asan_link_order=0\n", "")
    done = run(program, **LAUNCHED, ASAN_OPTIONS="verbosity=0")
    assert (done.returncode, done.stdout) == (3, "verify_asan_link_order=0:verbosity=0\n"), done.stderr


def build(source: str, to: Path, *options: str | Path) -> Path:
    """Compile C, and return the file."""
    text = to.with_suffix(".c")
    text.write_text(source)
    subprocess.run(["gcc", text, "-o", to, *options], check=True)
    return to


def test_with_as_many_variables_as_the_kernel_takes(tmp_path: Path) -> None:
    source = (
        '#include <stdio.h>\n#include <stdlib.h>\nint main() { puts(getenv("ASAN_OPTIONS")); return 3; }\n'
    )
    program = build(source, tmp_path / "a", "-fsanitize=address")
    many = {f"V{i}": "" for i in range(9000)}
    long = "verbosity=0" + ":" * 5000
    done = run(program, **LAUNCHED, **many, ASAN_OPTIONS=long)
    assert (done.returncode, done.stdout) == (3, f"verify_asan_link_order=0:{long}\n"), done.stderr


def linker() -> Path:
    """Return the dynamic linker."""
    return next(file for folder in ("/lib64", "/lib") for file in Path(folder).glob("ld-linux*.so.*"))


def test_no_argument_is_executed_instead_of_the_program(tmp_path: Path) -> None:
    """The dynamic linker runs the program; executed again, it would run the program's first argument."""
    program = build("int main() { return 3; }\n", tmp_path / "a", "-fsanitize=address")
    other = build("int main() { return 4; }\n", tmp_path / "other")
    assert run(linker(), program, other, "x").returncode != 4
    moved = Path(shutil.copy(linker(), tmp_path / "loader"))  # whose name does not show it
    assert run(moved, program, other, "x").returncode != 4
    assert preloaded(run(moved, shutil.which("env") or "", **LAUNCHED)) == [str(ANY)]


def test_nothing_is_called_that_another_library_can_replace(tmp_path: Path) -> None:
    """Its constructor may not have run; sanitizers end the program then."""
    replaced = ("getenv", "strlen", "strcmp", "strncmp", "strchr", "strrchr", "strcspn", "strspn", "strpbrk", "memmem",
                "memcpy", "memset", "memcmp", "memmove", "strcpy", "strcat", "strncat", "stat", "readlink", "access",
                "realpath", "snprintf", "vsnprintf", "dladdr", "dl_iterate_phdr", "execve", "syscall", "write",
                "dprintf", "sigprocmask", "sigtimedwait", "__errno_location")  # fmt: skip
    traps = build(
        "".join(f"void {name}(void) {{ __builtin_trap(); }}\n" for name in replaced),
        tmp_path / "traps.so",
        "-shared",
        "-fPIC",
        "-fno-builtin",
    )
    alone = Path(shutil.copy(ANY, tmp_path))
    program = build("int main(void) { return 7; }\n", tmp_path / "a")
    (tmp_path / "mpich").mkdir()
    executed = "#include <unistd.h>\n__attribute__((constructor)) static void begin(void) { _exit(9); }\n"
    build(executed, tmp_path / "mpich" / "libcommlens.so", "-shared", "-fPIC")
    assert run(program, LD_PRELOAD=f"{alone}:{traps}").returncode == 7
    assert run(program, **LAUNCHED, LD_PRELOAD=f"{alone}:{traps}").returncode == 9
    done = run(program, OMPI_COMM_WORLD_RANK="0", LD_PRELOAD=f"{alone}:{traps}")  # which is missing
    assert (done.returncode, done.stderr.count("uses Open MPI, for which there is no library")) == (7, 1)


def test_a_program_that_contains_the_thread_sanitizer_runs(tmp_path: Path) -> None:
    source = '#include <stdio.h>\nint main(void) { puts("runs"); return 3; }\n'
    for number, options in enumerate([("-static-libtsan",), ()]):
        program = build(source, tmp_path / f"a{number}", "-fsanitize=thread", *options)
        for variables in ({}, LAUNCHED):
            done = run(program, **variables)
            assert (done.returncode, done.stdout, done.stderr) == (3, "runs\n", "")


def test_it_runs_with_an_old_libc_and_measures_nothing_there(printer: Path, tmp_path: Path) -> None:
    tool = Path(__file__).parents[2] / "tools" / "check_glibc.py"
    subprocess.run([sys.executable, tool, "--strict", "2.17", ANY], check=True)
    old = build(
        'const char* gnu_get_libc_version(void) { return "2.17"; }\n', tmp_path / "old.so", "-shared", "-fPIC"
    )
    for rank, lines in (("0", 1), ("1", 0)):
        done = run(printer, PMI_RANK=rank, LD_PRELOAD=f"{old}:{ANY}")
        assert (done.returncode, done.stdout.count("libcommlens.so")) == (0, 0)
        assert done.stderr.count("\n") == lines
        assert done.stderr.startswith(
            "commlens: this system has glibc 2.17, and commlens was built for 2." * lines
        )
    assert run(printer, LD_PRELOAD=f"{old}:{ANY}").stderr == ""


def test_a_process_keeps_the_name_by_which_it_was_executed(tmp_path: Path) -> None:
    program = Path(shutil.copy(shutil.which("cat") or "/bin/cat", tmp_path / "program"))
    link = tmp_path / "link"
    link.symlink_to(program)
    done = run(link, "/proc/self/comm", "/proc/self/environ", **LAUNCHED)
    assert done.stdout.startswith("link\n")
    assert "/mpich/libcommlens.so" in done.stdout


def test_the_profiler_of_another_mpi_is_exchanged(printer: Path, tmp_path: Path) -> None:
    """A program of MPICH that one of Open MPI has started inherits its LD_PRELOAD."""
    build("int mpi;\n", tmp_path / "libmpich.so.12", "-shared", "-fPIC", "-Wl,-soname,libmpich.so.12")
    source = '#include <stdio.h>\n#include <stdlib.h>\nextern int mpi;\nint main(void) { mpi = 1; printf("LD_PRELOAD=%s\\n", getenv("LD_PRELOAD")); }\n'
    program = build(source, tmp_path / "a", f"-Wl,-rpath,{tmp_path}", tmp_path / "libmpich.so.12")
    mpich, other = (BUILD / "lib" / name / "libcommlens.so" for name in ("mpich", "openmpi"))
    assert preloaded(run(program, LD_PRELOAD=f"{other}:{ANY}")) == [str(mpich), str(ANY)]
    assert preloaded(run(program, LD_PRELOAD=f"{mpich}:{ANY}")) == [str(mpich), str(ANY)]
    # What a user has asked for stays, and so does what is not known to be wrong.
    kept = run(program, LD_PRELOAD=f"{other}:{ANY}", COMMLENS_MPI="openmpi")
    assert preloaded(kept) == [str(other), str(ANY)]
    assert preloaded(run(printer, LD_PRELOAD=f"{other}:{ANY}", **LAUNCHED)) == [str(other), str(ANY)]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a program privileged")
def test_a_program_with_more_rights_than_its_user_is_left_alone(printer: Path) -> None:
    """The dynamic linker takes nothing of LD_PRELOAD into it, but all of /etc/ld.so.preload."""
    script = """mount -t tmpfs none /etc || exit 99
echo "$1" >/etc/ld.so.preload
exec setpriv --reuid=65534 --regid=65534 --clear-groups "$2"
"""
    library = Path(shutil.copy(ANY, printer.parent))
    shutil.copytree(BUILD / "lib" / "mpich", printer.parent / "mpich")
    for mode, expected in ((0o755, True), (0o4755, False)):
        printer.chmod(mode)
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", script, "sh", library, printer],
            env={"PATH": os.environ["PATH"], **LAUNCHED},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert ("libcommlens.so" in done.stdout) == expected, done.stdout
