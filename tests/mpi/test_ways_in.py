# SPDX-License-Identifier: Apache-2.0
"""Three ways in, one profile; and commlens-run, which nobody should notice."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from build_once import PATIENCE
from harness import SANITIZER, Mpi
from launches import without_summary

FORTRAN = ("-cpp", "-DUSE_MPI_F08", "-fallow-argument-mismatch", "-w")


@pytest.mark.parametrize("language", ["c", "fortran"])
def test_run_preload_and_link_give_equal_profiles(mpi: Mpi, language: str) -> None:
    source, flags = ("tour.c", ()) if language == "c" else ("tour.F90", FORTRAN)
    programs = {
        "run": mpi.compile(source, language, flags=flags),
        "preload": mpi.compile(source, language, flags=flags),
        "link": mpi.compile(source, language, flags=flags, link=True),
    }
    shapes = {}
    for mode, program in programs.items():
        result = mpi.run(4, [program], mode=mode)
        assert (result.rc, result.stdout) == (0, "done 2\n"), result
        profile = result.open()
        profile.check()
        shapes[mode] = profile.shape()
    assert len(shapes["run"][0]) > 50
    assert shapes["run"] == shapes["preload"] == shapes["link"]

    as_needed = mpi.compile(source, language, flags=(*flags, "-Wl,--as-needed"), link=True)
    assert mpi.run(4, [as_needed], mode="link").open().shape() == shapes["run"]
    # Linked and preloaded: each call is counted once all the same.
    assert mpi.run(4, [programs["link"]], mode="run").open().shape() == shapes["run"]


def test_linked_behind_the_mpi_library_is_said(mpi: Mpi) -> None:
    """The C calls of such a program go past us: it must be told, and must run."""
    mpi_library = {"openmpi": "-lmpi", "mpich": "-lmpich"}.get(mpi.name) or mpi.libs[1]
    program = mpi.compile(
        "tour.c", "c", "-Wl,--no-as-needed", mpi_library, mpi.library, f"-Wl,-rpath,{mpi.library.parent}"
    )
    result = mpi.run(4, [program], mode="link")
    assert (result.rc, result.stdout) == (0, "done 2\n"), result
    assert len(result.said) == 1, result.said
    assert "libcommlens.so is linked after the MPI library (" in result.said[0]


def test_nothing_is_added_but_one_line(mpi: Mpi) -> None:
    plain, under = mpi.pair(4, [mpi.compile("tour.c")])
    assert (under.rc, under.stdout) == (plain.rc, plain.stdout)
    assert len(under.said) == 1
    assert str(under.profile) in under.said[0]
    assert [
        line for line in without_summary(under.stderr) if line not in under.said
    ] == plain.stderr.splitlines()
    quiet = mpi.run(4, [mpi.compile("tour.c")], env={"COMMLENS_QUIET": "1"})
    assert quiet.stderr == plain.stderr
    quiet.open().check()


def bare(
    mpi: Mpi, *argv: str | Path, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run commlens-run without a launcher."""
    _, environment = mpi.prepare(1, [], None, Path(), "off")
    environment["COMMLENS_MPI"] = mpi.family
    environment.update(env or {})
    return subprocess.run(
        [str(mpi.runner), *map(str, argv)],
        capture_output=True,
        text=True,
        timeout=30 * PATIENCE,
        env=environment,
    )


def test_exit_codes_signals_arguments_and_output_pass(mpi: Mpi) -> None:
    program = mpi.compile("plain.c")
    strange = ["", "two words", "$HOME", "*", "-n", "--help", "'\"\\"]
    done = bare(mpi, program, "exit", "42", *strange)
    assert (done.returncode, done.stderr) == (42, "err\n")
    assert done.stdout == "out\n" + "".join(f"<{argument}>\n" for argument in strange)
    for number in (signal.SIGTERM, signal.SIGSEGV, signal.SIGKILL):
        assert bare(mpi, program, "signal", str(int(number))).returncode == -number
    # through the launcher too
    plain, under = mpi.pair(1, [program, "exit", "5"])
    assert (under.rc, under.lines) == (plain.rc, plain.lines)
    assert under.rc == 5
    assert under.said == []


def test_the_program_has_the_pid_of_the_runner(mpi: Mpi) -> None:
    with subprocess.Popen(
        [str(mpi.runner), str(mpi.compile("plain.c")), "pid"], stdout=subprocess.PIPE, text=True
    ) as process:
        out, _ = process.communicate(timeout=30 * PATIENCE)
    assert int(out) == process.pid


def test_a_script_is_run_with_what_it_runs(mpi: Mpi, tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text(f'#!/bin/sh\necho before\n"{mpi.compile("listing1.c")}" || exit\necho after\n')
    script.chmod(0o755)
    plain, under = mpi.pair(2, [script])
    assert under.rc == plain.rc == 0
    assert under.lines == plain.lines == ["160", "after", "after", "before", "before"]
    assert under.open().calls("MPI_Allreduce")["W0.0"] == {0: 30, 1: 30}


def test_a_program_is_found_on_the_path(mpi: Mpi) -> None:
    program = mpi.compile("plain.c")
    done = bare(mpi, program.name, "exit", "0", env={"PATH": f"{program.parent}:/usr/bin:/bin"})
    assert (done.returncode, done.stdout) == (0, "out\n")


def test_a_static_program_runs_unprofiled_and_we_say_so(mpi: Mpi, tmp_path: Path) -> None:
    static = tmp_path / "static"
    subprocess.run(
        ["cc", "-static", "-o", str(static), str(Path(__file__).parent / "programs" / "plain.c")], check=True
    )
    done = bare(mpi, static, "exit", "7")
    assert (done.returncode, done.stdout) == (7, "out\n")
    ours = [line for line in done.stderr.splitlines() if line.startswith("commlens")]
    assert len(ours) == 1
    assert "static" in ours[0]


def test_a_missing_program_is_said_as_a_shell_says_it(mpi: Mpi, tmp_path: Path) -> None:
    done = bare(mpi, tmp_path / "absent")
    assert (done.returncode, done.stdout) == (127, "")
    assert len(done.stderr.splitlines()) == 1
    assert "absent" in done.stderr
    plain_file = tmp_path / "not-executable"
    plain_file.write_text("#!/bin/sh\n")
    done = bare(mpi, plain_file)
    assert done.returncode == 126
    assert len(done.stderr.splitlines()) == 1
    assert bare(mpi).returncode not in (0, 127), "no program given"


def test_environment_beats_file_beats_default(mpi: Mpi) -> None:
    where = mpi.fresh("config")
    config = where / "commlens.conf"
    config.write_text(f"# a comment\noutput = {where}/from-file.db\ncallsites = 0\n")
    program = mpi.compile("listing1.c")
    env = {"COMMLENS_CONFIG": str(config)}
    result = mpi.run(2, [program], mode="run", env=env, profile=where / "from-env.db", cwd=where)
    assert result.profile.is_file()
    options = result.open().meta()["options"].splitlines()
    assert f"COMMLENS_OUTPUT={where}/from-env.db" in options
    assert "COMMLENS_CALLSITES=0" in options
    assert "COMMLENS_QUIET=0" in options
    assert result.open().rows("SELECT DISTINCT callsite FROM key") == [{"callsite": 0}]

    # mode "off" sets no COMMLENS_OUTPUT, which would beat the file
    result = mpi.run(2, [mpi.runner, program], mode="off", env=env, cwd=where)
    assert result.rc == 0
    assert (where / "from-file.db").is_file(), result
    both = mpi.run(2, [program], env={**env, "COMMLENS_CALLSITES": "1"}, cwd=where, profile=where / "both.db")
    assert "COMMLENS_CALLSITES=1" in both.open().meta()["options"].splitlines()


def test_the_default_name_tells_the_program_and_takes_no_other_file(mpi: Mpi) -> None:
    where = mpi.fresh("names")
    program = mpi.compile("listing1.c")
    for _ in range(2):
        result = mpi.run(2, [mpi.runner, program], mode="off", cwd=where)
        assert result.rc == 0
    found = sorted(path.name for path in where.glob("commlens-*.db"))
    assert len(found) == 2
    assert all(name.startswith(f"commlens-{program.name}-") for name in found)
    assert sorted(path.name for path in where.iterdir() if not path.name.startswith(".")) == found, (
        "nothing else stays"
    )


def test_output_fields(mpi: Mpi) -> None:
    where = mpi.fresh("fields")
    program = mpi.compile("listing1.c")
    result = mpi.run(
        2,
        [program],
        env={"SLURM_JOB_ID": "4711"},
        cwd=where,
        profile=where / "x-%p-%n-%j-%h-100%%.db",
        mode="run",
    )
    assert result.rc == 0
    (found,) = where.glob("x-*.db")
    assert found.name == f"x-{program.name}-2-4711-{os.uname().nodename}-100%.db"


@pytest.mark.dealt
@pytest.mark.parametrize(
    ("variables", "job"),
    [
        ({"SLURM_JOB_ID": "4711"}, "4711"),
        ({"PBS_JOBID": "4712.server"}, "4712.server"),
        ({"LSB_JOBID": "4713"}, "4713"),
        ({"JOB_ID": "4714"}, "4714"),
        ({"COBALT_JOBID": "4715"}, "4715"),
        ({"SLURM_JOB_ID": "4711", "PBS_JOBID": "4712"}, "4711"),
        ({"SLURM_JOB_ID": "", "PBS_JOBID": "4712"}, "4712"),
    ],
)
def test_the_job_of_the_output_is_that_of_the_batch_system(
    mpi: Mpi, variables: dict[str, str], job: str
) -> None:
    where = mpi.fresh("job")
    program = mpi.compile("listing1.c")
    # Open MPI 5's launcher would look for the hosts of the job.
    env = {**variables, "PRTE_MCA_ras": "^pbs,slurm,lsf,gridengine"}
    result = mpi.run(2, [program], env=env, profile=where / "x-%j.db", mode="run", cwd=where)
    assert result.rc == 0, result
    assert [path.name for path in where.glob("x-*")] == [f"x-{job}.db"]


def test_the_job_of_the_output_without_a_batch_system(mpi: Mpi, tmp_path: Path) -> None:
    """Start time and process id of rank 0; the program runs for longer than the time's resolution."""
    source = tmp_path / "naps.c"
    source.write_text(
        "#include <mpi.h>\n#include <stdio.h>\n#include <unistd.h>\n"
        "int main(int n, char** words) {\n  int rank;\n  MPI_Init(&n, &words);\n"
        '  MPI_Comm_rank(MPI_COMM_WORLD, &rank);\n  if (rank == 0) printf("%d\\n", (int)getpid());\n'
        "  sleep(2);\n  MPI_Finalize();\n}\n"
    )
    where = mpi.fresh("no-job")
    result = mpi.run(2, [mpi.compile(source)], profile=where / "x-%j.db", mode="run", cwd=where)
    (found,) = where.glob("x-*")
    started = re.sub("[-:]", "", replace(result, profile=found).open().meta()["start_time"])
    assert found.name == f"x-{started}-{result.stdout.strip()}.db"


@pytest.mark.parametrize("slash", ["", "/"])
def test_output_into_a_directory(mpi: Mpi, slash: str) -> None:
    where = mpi.fresh("directory")
    target = where / "profiles"
    target.mkdir()
    program = mpi.compile("listing1.c")
    result = mpi.run(2, [program], env={"COMMLENS_OUTPUT": f"{target}{slash}"}, cwd=where)
    assert result.rc == 0
    assert [path.name for path in where.iterdir() if path.name[0] != "."] == ["profiles"]
    (found,) = target.iterdir()
    assert found.match(f"commlens-{program.name}-*.db")


def test_an_empty_output_is_the_default(mpi: Mpi) -> None:
    where = mpi.fresh("empty")
    program = mpi.compile("listing1.c")
    assert mpi.run(2, [program], env={"COMMLENS_OUTPUT": ""}, cwd=where).rc == 0
    (found,) = (path for path in where.iterdir() if path.name not in (".stdout", ".stderr"))
    assert found.match(f"commlens-{program.name}-*.db")


@pytest.mark.parametrize("mode", ["run", "preload", "link"])
def test_enable_0_turns_everything_off(mpi: Mpi, mode: str) -> None:
    program = mpi.compile("tour.c", link=mode == "link")
    plain = mpi.run(4, [mpi.compile("tour.c")], mode="off")
    result = mpi.run(4, [program], mode=mode, env={"COMMLENS_ENABLE": "0"})
    assert (result.rc, result.stdout, result.stderr) == (plain.rc, plain.stdout, plain.stderr)
    assert not result.profile.exists()


@pytest.mark.parametrize("mode", ["run", "preload", "link"])
def test_an_unknown_variable_is_named_once_in_the_whole_job(mpi: Mpi, mode: str) -> None:
    program = mpi.compile("listing1.c", link=mode == "link")
    result = mpi.run(4, [program], mode=mode, env={"COMMLENS_FOO": "1"})
    assert (result.rc, result.stdout) == (0, "320\n")
    about = [line for line in result.said if "COMMLENS_FOO" in line]
    assert len(about) == 1, result.said
    assert len(result.said) == 2  # and where the profile is
    result.open().check()


def test_a_wrong_value_is_said_and_the_default_taken(mpi: Mpi) -> None:
    result = mpi.run(2, [mpi.compile("listing1.c")], env={"COMMLENS_CALLSITES": "maybe"})
    about = [line for line in result.said if "COMMLENS_CALLSITES" in line]
    assert len(about) == 1, result.said
    assert re.search(r"maybe", about[0])
    assert "COMMLENS_CALLSITES=1" in result.open().meta()["options"].splitlines()


def test_a_configuration_that_is_not_there_or_not_one(mpi: Mpi, tmp_path: Path) -> None:
    program = mpi.compile("listing1.c")
    absent = tmp_path / "absent.conf"
    result = mpi.run(2, [program], env={"COMMLENS_CONFIG": str(absent)})
    assert (result.rc, result.stdout) == (0, "160\n")
    assert len([line for line in result.said if str(absent) in line]) == 1, result.said
    result.open().check()
    wrong = tmp_path / "wrong.conf"
    wrong.write_text("quiet = 0\ncolour = blue\n\x00\xff\n")
    result = mpi.run(2, [program], env={"COMMLENS_CONFIG": str(wrong)})
    assert (result.rc, result.stdout) == (0, "160\n")
    assert len([line for line in result.said if f"{wrong}:2" in line and "colour" in line]) == 1, result.said
    result.open().check()
    assert mpi.run(2, [program], env={"COMMLENS_CONFIG": "/"}).rc == 0


def test_another_preload_stays(mpi: Mpi) -> None:
    """commlens-run adds to LD_PRELOAD, it does not replace it; and leaves it to what the program starts."""
    library = mpi.compile("count_sends.c", "c", shared=True)
    result = mpi.run(2, [mpi.compile("tool_target.c")], preload=[library])
    assert (result.rc, result.lines) == (0, ["done", "tool saw 3 sends", "tool saw 3 sends"]), result
    assert result.open().total("MPI_Send")[0] == 6


def test_mpi_begins_in_the_constructor_of_a_library(mpi: Mpi, tmp_path: Path) -> None:
    """It runs before ours: libraries that are preloaded are initialised last."""
    (tmp_path / "up.c").write_text(
        "#include <mpi.h>\n"
        "__attribute__((constructor)) static void up(void) { MPI_Init(0, 0); }\n"
        "void down(void) { MPI_Finalize(); }\n"
    )
    library = mpi.compile(tmp_path / "up.c", flags=("-shared", "-fPIC"))
    (tmp_path / "main.c").write_text(
        "#include <mpi.h>\nvoid down(void);\n"
        "int main(void) { for (int i = 0; i < 5; ++i) MPI_Barrier(MPI_COMM_WORLD); down(); return 0; }\n"
    )
    program = mpi.compile(tmp_path / "main.c", None, library, f"-Wl,-rpath,{library.parent}")
    profile = mpi.run(2, [program]).open()
    profile.check()
    assert profile.calls("MPI_Barrier") == {"W0.0": {0: 5, 1: 5}}


@pytest.mark.skipif(SANITIZER is not None, reason="a sanitizer is there already")
@pytest.mark.parametrize("preloaded", [False, True])
def test_a_program_with_the_address_sanitizer(mpi: Mpi, preloaded: bool) -> None:
    """Its run-time library wants to be the first; also when the user preloads it for a program that has it not."""
    runtime = subprocess.run(
        ["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    # libstdc++ because hwloc may load libraries that throw.
    flags = ("-Wl,--no-as-needed", "-lstdc++", *(() if preloaded else ("-fsanitize=address",)))
    program = mpi.compile("listing1.c", flags=flags)
    env, preload = {"ASAN_OPTIONS": "detect_leaks=0"}, [Path(runtime)] if preloaded else []
    plain = mpi.run(2, [program], env=env, preload=preload, mode="off")
    if plain.rc != 0:
        pytest.skip("ends without commlens, too")
    under = mpi.run(2, [program], env=env, preload=preload)
    assert (under.rc, under.stdout) == (0, plain.stdout), under
    under.open().check()
    assert under.open().calls("MPI_Allreduce")["W0.0"] == {0: 30, 1: 30}
