# SPDX-License-Identifier: Apache-2.0
"""What is refused: one clear line, exit code 2, nothing on standard output."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Callable

import pytest
from conftest import Run

from commlens.profile._schema import VERSION

Spoil = Callable[[Path], None]


def remove(path: Path) -> None:
    path.unlink()


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def text(path: Path) -> None:
    path.write_text("MPI_Allreduce 30\n" * 100)


def other_program(path: Path) -> None:
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE meta (key, value)")
    connection.close()


def half(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def fifty_bytes(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:50])


def seven_bytes(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:7])


def version(number: int) -> Spoil:
    def spoil(path: Path) -> None:
        connection = sqlite3.connect(path)
        connection.execute(f"PRAGMA user_version = {number}")
        connection.close()

    return spoil


def garbage(path: Path) -> None:
    """Overwrite all but the first page, as a failing disk might."""
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"\xff" * (len(data) - 4096))


@pytest.mark.parametrize(
    "command", [["report"], ["comms"], ["sql", "SELECT * FROM comm"]], ids=lambda c: c[0]
)
@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (remove, "no such file"),
        (folder, "not a profile: a folder without index.db and shard.*.db"),
        (empty, "not a profile: the file is empty"),
        (text, "not a profile: not an SQLite file"),
        (other_program, "not a profile: an SQLite file of another program"),
        (half, "truncated to {half} of {size} bytes"),
        (fifty_bytes, "truncated to 50 bytes"),
        (seven_bytes, "truncated to 7 bytes"),
        (
            version(99),
            f"has schema version 99, but this commlens reads at most {VERSION}: use a newer commlens",
        ),
        (version(0), "has schema version 0, but this commlens reads 2 and later: use an older commlens"),
        (garbage, "damaged: database disk image is malformed"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_file_that_is_no_profile(
    small: Path, tmp_path: Path, run: Run, command: list[str], spoil: Spoil, complaint: str
) -> None:
    path = tmp_path / "x.db"
    shutil.copy(small, path)
    size = path.stat().st_size
    spoil(path)
    result = run(command[0], path, *command[1:])
    expected = complaint.format(half=size // 2, size=size)
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"commlens: {path}: {expected}\n")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--comm", "W0.1"], "no communicator 'W0.1' in this profile; did you mean W0.0"),
        (["--comm", "99"], "no communicator '99' in this profile; 'commlens comms' lists them"),
        (["--comm", "halo gird"], "no communicator 'halo gird' in this profile; did you mean halo grid?"),
        (["--op", "Alreduce"], "no operation 'Alreduce'; did you mean MPI_Allreduce?"),
        (["--op", "MPI_Q*"], "no operation 'MPI_Q*'"),
        (["--rank", "4"], "no rank 4 in this profile; the highest is 3"),
        (["--rank", "0,7-9"], "no rank from 7 to 9 in this profile; the highest is 3"),
    ],
)
def test_a_name_that_is_not_in_the_profile(small: Path, run: Run, options: list[str], complaint: str) -> None:
    result = run("report", small, *options)
    assert result.exit_code == 2
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith(f"commlens: {complaint}")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["reprot"], "no such command 'reprot'; did you mean report?"),
        (["matrx", "x.db"], "no such command 'matrx'; did you mean matrix?"),
        (["zzz"], "no such command 'zzz'; 'commlens --help' lists all"),
        (["help", "reprot"], "no such command 'reprot'; did you mean report?"),
        (["--verion"], "no such option '--verion'; did you mean --version?"),
        (["report", "--callsite", "x.db"], "no such option '--callsite'; did you mean --callsites?"),
        (["report", "x.db", "--zzz"], "no such option '--zzz'; 'commlens report --help' lists all"),
        (["doctor", "--runer", "x"], "no such option '--runer'; did you mean --runner?"),
    ],
)
def test_a_mistyped_command_or_option_gets_the_one_most_like_it(
    run: Run, arguments: list[str], complaint: str
) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"commlens: {complaint}\n")


@pytest.mark.parametrize("command", [[], ["report"], ["matrix"]])
def test_help_is_a_command_too(run: Run, command: list[str]) -> None:
    result = run("help", *command)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == run(*command, "--help").stdout


def test_a_profile_in_the_place_of_a_command_is_recognised(small: Path, run: Run) -> None:
    result = run(small)
    expected = f"commlens: no such command '{small}'; did you mean commlens report {small}?\n"
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", expected)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (
            ["--size", "0:1000"],
            "1000 is not a power of two; profiles store sizes by powers of two, use 512 or 1024",
        ),
        (["--size", "1024"], "'1024' is not a range LOW:HIGH"),
        (["--size", "8:8"], "'8:8' is an empty range"),
        (["--size", "a:b"], "'a' is not a size in bytes"),
        (["--buckets", "100,200"], "100 is not a power of two"),
        (["--buckets", "1024,128"], "the bounds in '1024,128' must be greater than 0"),
        (["--buckets", "0,128"], "the bounds in '0,128' must be greater than 0 and increase"),
        (["--time", "5"], "'5' is not a range of seconds LOW:HIGH"),
        (["--time", "2:1"], "'2:1' is an empty range"),
        (["--rank", "a"], "'a' is neither a number nor a range of numbers"),
        (["--rank", "3-1"], "'3-1' is an empty range"),
        (["--class", "p3p"], "'p3p' is not one of"),
        (["--sort", "colour"], "'colour' is not one of"),
        (["--top", "-1"], "-1 is not in the range"),
    ],
)
def test_a_value_that_makes_no_sense(small: Path, run: Run, options: list[str], complaint: str) -> None:
    result = run("report", small, *options)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert complaint in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        ("SELECT no FROM cell", "SQL: no such column: no"),
        ("SELEC 1", 'SQL: near "SELEC": syntax error'),
        ("SELECT 1; SELECT 2", "SQL: You can only execute one statement at a time."),
        ("DELETE FROM cell_row", "SQL: attempt to write a readonly database"),
        ("ATTACH '{folder}/new.db' AS other", "SQL: other files cannot be attached or written"),
        ("VACUUM INTO '{folder}/new.db'", "SQL: other files cannot be attached or written"),
    ],
)
def test_sql_that_is_wrong_or_would_write(
    small: Path, tmp_path: Path, run: Run, query: str, complaint: str
) -> None:
    before = small.read_bytes()
    result = run("sql", small, query.format(folder=tmp_path))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"commlens: {complaint.format(folder=tmp_path)}\n"
    assert small.read_bytes() == before
    assert list(tmp_path.iterdir()) == []


def test_a_table_that_does_not_exist(run: Run) -> None:
    result = run("schema", "cells")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("commlens: no table or view 'cells'; did you mean cell")


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["export", "PROFILE", "--to", "hatchet", "-o", "-"], "-o"),
        (["merge", "PROFILE", "--output", "-"], "-o"),
        (["recover", "-o", "-"], "-o"),
        (["matrix", "PROFILE", "--to", "-"], "--to"),
        (["overhead", "--to", "-", "--", "true"], "--to"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else value,
)
def test_no_file_is_named_like_the_standard_output(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run, arguments: list[str], option: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*[small if argument == "PROFILE" else argument for argument in arguments])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        f"commlens: {option} -: cannot write to the standard output; give the path of a file or folder\n"
    )
    assert list(tmp_path.iterdir()) == []
