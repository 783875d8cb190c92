# SPDX-License-Identifier: Apache-2.0
"""Debug information apart from the program: by build id, by .gnu_debuglink, and from debuginfod."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from build_paths import compiled, recorded
from build_profile import ProfileBuilder
from conftest import MS, Run
from tests.needs import need_programs

from commlens.symbols import debug_files
from commlens.symbols.elf import build_id, debug_link, has_line_numbers

LABEL = "exchange solver.c:20"
WITHOUT_LINE = "exchange in solver"  # the program exports its functions


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """Return the program, and the return address of a call in it."""
    need_programs("objcopy", package="binutils")
    solver = compiled(tmp_path_factory.mktemp("whole"))
    return solver, recorded(solver)[0][1][-1]


@pytest.fixture
def debug_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that stands for /usr/lib/debug."""
    folder = tmp_path / "debug"
    monkeypatch.setattr(debug_files, "DEBUG_FOLDERS", [folder])
    return folder


@pytest.fixture
def bare(whole: tuple[Path, int], tmp_path: Path) -> Path:
    """Return the program without symbols and debug information; beside it, in `split`, is what was removed."""
    (tmp_path / "bin").mkdir()
    bare, split = tmp_path / "bin" / "solver", tmp_path / "split"
    subprocess.run(["objcopy", "--only-keep-debug", whole[0], split], check=True)
    subprocess.run(["objcopy", "--strip-all", whole[0], bare], check=True)
    assert build_id(split) == build_id(bare) == build_id(whole[0])
    assert (has_line_numbers(bare), has_line_numbers(split)) == (False, True)
    return bare


def linked(bare: Path, name: str) -> None:
    """Add a .gnu_debuglink with a name to the program."""
    file = bare.parent.parent / name
    shutil.copy(bare.parent.parent / "split", file)
    subprocess.run(["objcopy", f"--add-gnu-debuglink={file}", bare], check=True)
    file.unlink()
    assert debug_link(bare) == name


def place(file: Path, into: Path) -> Path:
    into.parent.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(file, into))


def profile(bare: Path, offset: int, path: Path) -> Path:
    build = ProfileBuilder(ranks=1)
    build.sites[1] = (str(bare), build_id(bare), offset)
    build.count(1, "MPI_Bcast", 0, 1, MS, callsite=1)
    return build.write(path)


def shown(run: Run, path: Path) -> str:
    """Return the call site as the report shows it."""
    done = run("report", path, "--callsites")
    assert (done.exit_code, done.stderr) == (0, "")
    return done.stdout.rstrip("\n").splitlines()[-1].strip()


def by_id(folder: Path, file: Path) -> Path:
    identity = build_id(file)
    return folder / ".build-id" / identity[:2] / f"{identity[2:]}.debug"


@pytest.mark.parametrize("is_there", [True, False])
def test_debug_information_is_found_by_build_id(
    run: Run, whole: tuple[Path, int], bare: Path, debug_folder: Path, tmp_path: Path, is_there: bool
) -> None:
    path = profile(bare, whole[1], tmp_path / "x.db")
    assert shown(run, path) == WITHOUT_LINE
    place(tmp_path / "split", by_id(debug_folder, bare))
    if not is_there:
        bare.unlink()
    assert shown(run, path) == LABEL
    assert run("symbols", path).stdout == "1 of 1 call sites have names, 1 of them new or better\n"


@pytest.mark.parametrize("where", ["{bin}/names.dbg", "{bin}/.debug/names.dbg", "{debug}{bin}/names.dbg"])
def test_debug_information_is_found_by_the_link_in_the_program(
    run: Run, whole: tuple[Path, int], bare: Path, debug_folder: Path, tmp_path: Path, where: str
) -> None:
    linked(bare, "names.dbg")
    path = profile(bare, whole[1], tmp_path / "x.db")
    place(tmp_path / "split", Path(where.format(bin=bare.parent, debug=debug_folder)))
    assert shown(run, path) == LABEL


def test_debug_information_of_another_build_is_not_used(
    run: Run, whole: tuple[Path, int], bare: Path, debug_folder: Path, tmp_path: Path
) -> None:
    linked(bare, "names.dbg")
    path = profile(bare, whole[1], tmp_path / "x.db")
    other = tmp_path / "other"
    subprocess.run(["objcopy", "--remove-section=.note.gnu.build-id", tmp_path / "split", other], check=True)
    place(other, by_id(debug_folder, bare))
    assert build_id(by_id(debug_folder, bare)) == ""
    assert shown(run, path) == WITHOUT_LINE
    assert "1 call site without line: it has no debug information" in run("symbols", path).stdout


@pytest.mark.parametrize("identity", ["", "ab", "../../../etc", "a/bc", "ABCZ", "f" * 129, "00\0ff"])
@pytest.mark.usefixtures("debug_folder")
def test_a_build_id_that_is_none_names_no_file(tmp_path: Path, identity: str) -> None:
    assert debug_files.files_of(str(tmp_path / "x"), identity, is_own=True) == []


# debuginfod-find: a script that answers as the real one does.

FAKE = """\
#!/bin/sh
echo "$@" >> '{log}'
[ "$1 $2" = "debuginfo {identity}" ] && {answer}
echo 'Server query failed: {error}' >&2
exit 1
"""


def fake(
    bare: Path, monkeypatch: pytest.MonkeyPatch, answer: str, error: str = "No such file or directory"
) -> Path:
    """Put a debuginfod-find into the path, and return the file with its arguments."""
    folder = bare.parent.parent / "tools"
    folder.mkdir()
    tool, log = folder / "debuginfod-find", folder / "log"
    tool.write_text(FAKE.format(log=log, identity=build_id(bare), answer=answer, error=error))
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("DEBUGINFOD_URLS", "http://localhost:1")
    return log


def test_symbols_downloads_what_the_machine_lacks(
    run: Run, whole: tuple[Path, int], bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = fake(bare, monkeypatch, f"echo '{tmp_path / 'split'}' && exit 0")
    path = profile(bare, whole[1], tmp_path / "x.db")
    bare.unlink()
    assert shown(run, path) == f"solver+0x{whole[1]:x}"
    assert not log.exists(), "a report downloads nothing"
    done = run("symbols", path)
    assert done.stdout == "1 of 1 call sites have names, 1 of them new or better\n"
    assert done.stderr == "commlens: asking the servers of DEBUGINFOD_URLS for solver, at most 300 s\n"
    assert shown(run, path) == LABEL
    assert run("symbols", path).stderr == "", "what has a line is not asked for again"
    assert len(log.read_text().splitlines()) == 1


@pytest.mark.parametrize(
    "answer, options, reason",
    [
        ("false", (), "debuginfod-find: Server query failed: No such file or directory"),
        (
            "exec sleep 60",
            ("--download-time", "1"),
            "debuginfod-find did not get it in 1 s (--download-time)",
        ),
        ("kill -9 $$", (), "debuginfod-find: exit code -9"),
        ("exit 0", (), "debuginfod-find: exit code 0"),
    ],
    ids=["not there", "too slow", "killed", "no answer"],
)
def test_a_download_that_fails_is_one_line(
    run: Run, whole: tuple[Path, int], bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    answer: str, options: tuple[str, ...], reason: str,
) -> None:  # fmt: skip
    fake(bare, monkeypatch, answer)
    path = profile(bare, whole[1], tmp_path / "x.db")
    done = run("symbols", path, *options)
    assert done.exit_code == 0
    assert done.stdout.splitlines()[1:] == [
        f"{bare}: 1 call site without line: it has no debug information; {reason}"
    ]


def test_downloads_end_when_their_time_is_over(
    run: Run, whole: tuple[Path, int], bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = fake(bare, monkeypatch, "exec sleep 60")
    build = ProfileBuilder(ranks=1)
    build.sites[1] = (str(bare), build_id(bare), whole[1])
    build.sites[2] = ("/nowhere/lib.so", "abcd", whole[1])
    path = build.write(tmp_path / "x.db")
    monkeypatch.setattr("commlens.symbols.naming.files_of", lambda *_, **__: [])
    lines = run("symbols", path, "--download-time", 1).stdout.splitlines()
    assert "; debuginfod-find: Server query failed" in lines[1]
    assert "; debuginfod-find did not get it in" in lines[2]
    log.unlink()
    assert "debuginfod-find" not in run("symbols", path, "--download-time", 0).stdout
    assert not log.exists()


def test_without_debuginfod_find_the_line_says_so(
    run: Run, whole: tuple[Path, int], bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = profile(bare, whole[1], tmp_path / "x.db")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "addr2line").symlink_to(str(shutil.which("addr2line")))
    monkeypatch.setenv("PATH", str(tmp_path / "tools"))
    monkeypatch.setenv("DEBUGINFOD_URLS", "http://localhost:1")
    assert "; DEBUGINFOD_URLS is set, but debuginfod-find is not installed" in run("symbols", path).stdout
    monkeypatch.setenv("DEBUGINFOD_URLS", "")
    assert run("symbols", path).stdout.endswith("it has no debug information\n")
