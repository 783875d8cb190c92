# SPDX-License-Identifier: Apache-2.0
"""No name of somebody else acts on the terminal: not from profiles, options, files or environments, in no format."""

from __future__ import annotations

import csv
import io
import json
import os
import sqlite3
import subprocess
import sys
import unicodedata
from contextlib import closing
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from conftest import Result, Run, marked_builder
from rich.cells import cell_len
from rich.text import Text
from test_shards import split
from test_text import environment, in_terminal, program

from commlens.base.errors import CommlensError
from commlens.base.escape import Target, escape
from commlens.overhead import charts
from commlens.overhead.estimate import costs
from commlens.overhead.legs import BASELINE
from commlens.overhead.measure import Run as OneRun
from commlens.profile import open_profile
from commlens.profile._schema import RELATIONS
from commlens.profile.incomplete import IncompleteProfile
from commlens.render.screen import Screen
from commlens.render.table import fold

CONTROLS = "".join(map(chr, [*range(1, 32), *range(0x7F, 0xA0)]))
MARKS = "\u061c\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029\ufeff\u00ad\U000e0041"
UNKNOWN = "\ue000\u0378\uffff"
PLAIN = "é µ 日本語 ελ e\u0301 a\u3000b\u00a0c 👍 \\n [red] $x$ <b> & \"'`"
HOSTILE = f"x\x1b]0;title\x07\x1b[31m{CONTROLS}{MARKS}{UNKNOWN}\nforged\r{PLAIN}"
# For names of files and arguments; the last one is a byte that is not UTF-8.
SHORT = "x\x1b[31m\x9b\u202e\n\rforged é日\udcff"
SHOWN = r"x\x1b[31m\u009b\u202e\n\rforged é日\xff"

GLOB = "x\x1b*\u202e*\nforged*"
FORMATS = ("table", "csv", "json")


def dangerous(text: str) -> set[str]:
    """Return the characters on which a terminal acts, or which nobody sees; an end of line is none."""
    bad = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
    return {c for c in text if c != "\n" and (unicodedata.category(c) in bad or c in MARKS)}


def assert_safe(*texts: str) -> None:
    for text in texts:
        assert dangerous(text) == set()
        assert "Traceback" not in text
        assert not any(line.startswith("forged") for line in text.split("\n")), text


def safe(result: Result) -> Result:
    """Return a result after a look at its output and errors."""
    assert_safe(result.stdout, result.stderr)
    return result


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a profile in which every name is hostile."""
    build = marked_builder()
    for key in (
        "command_line",
        "program",
        "mpi_library",
        "job_id",
        "options",
        "working_directory",
        "clock",
        "inside",
    ):
        build.meta[key] = HOSTILE
    build.meta["start_time"] = f"2026-11-21T10:00:00Z{HOSTILE}"
    for comm in build.comms.values():
        comm.name, comm.user_name = comm.name + HOSTILE, HOSTILE
        comm.topology = HOSTILE
    for region in list(build.regions.values())[1:]:
        region.name += HOSTILE
    build.metrics = [(name + HOSTILE, unit + HOSTILE) for name, unit in build.metrics]
    build.tags = [(region, key + HOSTILE, value + HOSTILE) for region, key, value in build.tags]
    build.more["datatype"] = [(1, HOSTILE, 8, 0, 8)]
    build.sites[1] = (f"/opt/{HOSTILE}", "", 0x1234)
    build.imports += [
        ("MPI_Bcast", HOSTILE, "MPI_Bcast", "measured", None),
        ("MPIX_A", "app", f"MPIX_A{HOSTILE}", "unseen", HOSTILE),
    ]
    build.nodes = 2
    build.stands(1, "MPI_Bcast", 1, 1000)
    path = build.write(tmp_path_factory.mktemp("hostile") / "hostile.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE rank SET node = node || ?", (HOSTILE,))
        connection.execute("UPDATE meta SET value = '1000000' WHERE key = 'slice_ns'")
        connection.execute(
            "INSERT INTO slice SELECT comm.id, op.id, rank, rank, 1, 1000, 8, 8 FROM comm, op, rank"
        )
    return path


COMMANDS = [
    ("report",),
    ("report", "--all-ranks", "--callsites", "--unfold"),
    ("report", "--by", "region"),
    ("regions",),
    ("metrics",),
    ("metrics", "--series"),
    ("datatypes", "--uses"),
    ("timeline",),
    ("regions", "--executions", "--iterations", "--unfold"),
    ("comms",),
    ("comms", "--unfold"),
    ("coverage",),
    ("matrix",),
    ("matrix", "--by", "node"),
    ("matrix", "--sizes"),
    ("matrix", "--comm", GLOB),
    ("algorithms",),
    ("tune",),
]


@pytest.mark.parametrize("style", [*FORMATS, "sql"])
@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: "_".join(words[:2]))
def test_names_in_a_profile_are_shown_with_escapes(
    run: Run, hostile: Path, command: tuple[str, ...], style: str
) -> None:
    name, *options = command
    done = safe(run(name, hostile, *options, *(["--sql"] if style == "sql" else ["--format", style])))
    assert done.exit_code == 0, done.stderr
    if style == "json":
        assert json.loads(done.stdout) is not None
    elif style == "csv":
        records = list(csv.reader(io.StringIO(done.stdout)))
        assert len(records) == done.stdout.count("\n") and len(set(map(len, records))) <= 1


@pytest.mark.long
@pytest.mark.parametrize("style", FORMATS)
def test_every_table_is_shown_with_escapes(run: Run, hostile: Path, style: str) -> None:
    for name in RELATIONS:
        safe(run("sql", hostile, f"SELECT * FROM {name}", "--format", style))
    query = f"SELECT 1 AS \"{HOSTILE.replace(chr(34), '')}\", x'00ff' AS bytes"
    assert safe(run("sql", hostile, query, "--format", style)).exit_code == 0


def texts_in(value: Any) -> list[str]:
    """Return all texts of a JSON value."""
    if isinstance(value, dict):
        return [text for pair in value.items() for part in pair for text in texts_in(part)]
    if isinstance(value, list):
        return [text for member in value for text in texts_in(member)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_json_loses_nothing(hostile: Path, encoding: str) -> None:
    command = program("sql", hostile, "SELECT name, user_name FROM comm WHERE id = 1", "--format", "json")
    done = subprocess.run(
        command, env=environment(PYTHONUTF8="0", PYTHONIOENCODING=encoding), capture_output=True, check=True
    )
    assert_safe(done.stdout.decode(encoding))
    assert json.loads(done.stdout.decode(encoding)) == [{"name": f"W0.0{HOSTILE}", "user_name": HOSTILE}]


def test_a_record_of_csv_is_one_line_with_visible_escapes(run: Run, hostile: Path) -> None:
    query = "SELECT user_name, 1 FROM comm WHERE id = 1"
    heading, record = run("sql", hostile, query, "--format", "csv").stdout.splitlines()
    assert heading == "user_name,1"
    (fields,) = csv.reader([record])
    assert fields == [escape(HOSTILE, Target.CSV), "1"]
    assert fields[0].startswith(r"x\x1b]0;title\x07\x1b[31m\x01") and fields[0].endswith(
        rf"\nforged\r{PLAIN}"
    )


@pytest.mark.parametrize("target", [Target.LINE, Target.LINES, Target.CSV, Target.JSON])
def test_plain_text_stays_as_it_is(target: Target) -> None:
    assert escape(PLAIN, target) == PLAIN


@pytest.mark.long
@pytest.mark.parametrize("target", list(Target))
def test_every_character_is_printable_or_escaped(target: Target) -> None:
    for plane in range(17):
        text = "".join(map(chr, range(plane << 16, (plane + 1) << 16)))
        found = escape(text, target)
        assert dangerous(found) == set()
        if target is Target.ASCII_JSON:
            assert found.replace("\n", "").isprintable() and found.isascii()
        if target in (Target.LINE, Target.CSV, Target.HTML):
            assert "\n" not in found


@pytest.mark.long
def test_json_of_every_character_is_read_as_it_was() -> None:
    text = "".join(chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000) + "\udcff \ud800"
    for target in (Target.JSON, Target.ASCII_JSON):
        assert json.loads(escape(json.dumps(text, ensure_ascii=False), target)) == text


REFUSED = [
    ("report", "P", "--comm", "X"),
    ("report", "P", "--op", "X"),
    ("report", "P", "--class", "X"),
    ("report", "P", "--rank", "X"),
    ("report", "P", "--size", "X"),
    ("report", "P", "--time", "X"),
    ("report", "P", "--buckets", "X"),
    ("report", "P", "--sort", "X"),
    ("report", "P", "--top", "X"),
    ("report", "P", "--format", "X"),
    ("report", "P", "--X"),
    ("report", "P", "X"),
    ("report", "X"),
    ("X",),
    ("--X",),
    ("regions", "P", "--depth", "X"),
    ("regions", "X"),
    ("comms", "X"),
    ("coverage", "P", "--state", "X"),
    ("coverage", "X"),
    ("matrix", "P", "--kind", "X"),
    ("matrix", "P", "--comm", "X"),
    ("matrix", "P", "--op", "X"),
    ("matrix", "P", "--region", "X"),
    ("matrix", "P", "--slice", "X"),
    ("matrix", "P", "--kind", "modelled", "--algorithm", "X"),
    ("matrix", "P", "--topology", "X"),
    ("matrix", "P", "--topology", "X=X"),
    ("matrix", "P", "--to", "X"),
    ("matrix", "P", "--to", "X/X.svg"),
    ("matrix", "X"),
    ("algorithms", "P", "--tree", "X"),
    ("algorithms", "P", "--comm", "X"),
    ("schema", "X"),
    ("sql", "P", "X"),
    ("sql", "P", "SELECT * FROM 'X'"),
    ("export", "P", "--to", "X", "-o", "X"),
    ("export", "P", "--to", "csv", "-o", "X/X"),
    ("export", "P", "--to", "csv", "--table", "X", "-o", "X"),
    ("export", "P", "--to", "csv"),
    ("overhead", "--from", "X"),
    ("overhead", "--to", "X", "--", "true"),
    ("overhead", "--tool", "X", "--", "true"),
    ("overhead", "--tool", "t=X", "--", "true"),
    ("overhead", "--wrapper", "X", "--", "true"),
    ("overhead", "--wrapper", "t=X", "--", "true"),
    ("overhead", "--", "X"),
    ("merge", "X"),
    ("recover", "X"),
    ("clean", "X"),
    ("hang", "X"),
    ("top", "X"),
    ("top", "-i", "X"),
    ("doctor", "--runner", "X"),
    ("doctor", "--", "X"),
]


@pytest.mark.parametrize("command", REFUSED, ids=" ".join)
def test_what_the_user_typed_is_quoted_with_escapes(
    run: Run, hostile: Path, command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = [word.replace("X", SHORT) if word != "P" else str(hostile) for word in command]
    done = safe(run(*arguments))
    assert done.exit_code in (1, 2)
    assert done.stdout + done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("report", "P", "--rank", "9"),
        ("report", "P", "--size", "9:"),
        ("report", "P", "--time", "9:"),
        ("report", "P", "--comm", "9"),
        ("report", "P", "--buckets", "9"),
        ("matrix", "P", "--slice", "9"),
        ("overhead", "--seed", "9", "--from", "/dev/null"),
        ("report", "x"),
        ("merge", "x"),
        ("export", "P", "--to", "csv", "-o", "x"),
        ("overhead", "--to", "x.csv", "--", "true"),
        ("recover", "x"),
        ("doctor", "--", "x"),
    ],
    ids="_".join,
)
@pytest.mark.parametrize("length", [25, 300, 5000])
def test_long_values_are_refused_in_one_line(
    run: Run,
    hostile: Path,
    command: tuple[str, ...],
    length: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    values = [word.replace("9", "9" * length).replace("x", "x" * length) for word in command[1:]]
    values = [str(hostile) if word == "P" else values[i] for i, word in enumerate(command[1:])]
    if "csv" in command:
        values[2] = "csv"
    done = safe(run(command[0], *values))
    assert done.exit_code in (0, 1, 2)


def test_a_query_that_is_no_text_is_refused(hostile: Path) -> None:
    for query in (b"SELECT '\xff'", b"SELECT 1\0", b"SELECT '\x1b"):
        done = subprocess.run(
            program("sql", hostile, "-"), input=query, env=environment(), capture_output=True
        )
        assert done.returncode == 2 and done.stderr.startswith(b"commlens: SQL: ")
        assert_safe(done.stderr.decode())


def test_the_value_is_still_recognised(run: Run, hostile: Path) -> None:
    assert f"no communicator '{SHOWN}'" in run("report", hostile, "--comm", SHORT).stderr
    assert (
        f"no such option '--{SHOWN}'; 'commlens report --help' lists all"
        in run("report", hostile, f"--{SHORT}").stderr
    )


def test_what_python_prints_of_a_profile_has_escapes(small: Path, tmp_path: Path) -> None:
    """Python prints warnings and errors as they are: what open_profile() says is safe before."""
    directory = split(small, tmp_path / "p.commlens")
    with closing(sqlite3.connect(directory / "index.db")) as connection, connection:
        connection.execute("UPDATE shard SET file = ? WHERE number = 1", ("shard\x1b[31m\nforged\u202e.db",))
    with pytest.warns(IncompleteProfile) as caught, open_profile(str(directory)):
        pass
    assert_safe(*(str(warning.message) for warning in caught))
    assert r"shard\x1b[31m\nforged\u202e.db (ranks 2 to 3) no such file" in str(caught[0].message)
    with pytest.raises(CommlensError) as refused, open_profile(str(tmp_path / SHORT)):
        pass
    assert_safe(str(refused.value))


@pytest.mark.long
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_names_of_files_are_printed_with_escapes_by_the_real_command(
    tmp_path: Path, hostile: Path, encoding: str
) -> None:
    folder = tmp_path / SHORT
    folder.mkdir()
    (folder / f"{SHORT}.db").write_bytes(hostile.read_bytes())
    (folder / "damaged.db").write_bytes(hostile.read_bytes()[:5000])
    (folder / f"{SHORT}.commlens").mkdir()
    (folder / f"{SHORT}.commlens" / "shard.0.db").write_bytes(b"")
    for command, code in (
        (("report", f"{SHORT}.db"), 0),
        (("export", f"{SHORT}.db", "--to", "csv", "-o", SHORT), 0),
        (("export", f"{SHORT}.db", "--to", "thicket", "-o", f"{SHORT}.json"), 0),
        (("matrix", f"{SHORT}.db", "--to", f"{SHORT}.svg"), 0),
        (("report", folder / "damaged.db"), 2),
        (("report", folder / f"{SHORT}.commlens"), 2),
        (("merge", folder / f"{SHORT}.commlens"), 2),
    ):
        done = subprocess.run(
            [*program()[:3], *(os.fsencode(str(part)) for part in command)],
            cwd=folder,
            env=environment(PYTHONUTF8="0", LC_ALL="C.UTF-8", PYTHONIOENCODING=encoding),
            capture_output=True,
        )
        assert done.returncode == code, done.stderr
        assert_safe(done.stdout.decode(encoding), done.stderr.decode(encoding))
        assert (command[0], code) == ("report", 0) or rb"x\x1b[31m" in done.stdout + done.stderr


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("command", ["report", "regions", "comms", "coverage", "matrix"])
def test_a_terminal_gets_colours_and_no_other_controls(hostile: Path, command: str, columns: int) -> None:
    lines = in_terminal(columns, command, hostile)
    bare = "".join(part.split("m", 1)[-1] for part in ("m" + lines).split("\x1b["))
    assert_safe(bare)
    assert "\x1b[1m" in lines


def test_wide_characters_are_folded_where_the_line_ends() -> None:
    text = "日本語の名前 と 長い長い長い 名前 " * 5 + "e\u0301 " * 40
    lines = [line.plain for line in fold("warning   ", text.strip(), 40)]
    assert max(map(cell_len, lines)) <= 40
    assert " ".join(line.strip() for line in lines).removeprefix("warning   ") == text.strip()
    assert all(line.startswith(" " * 10) for line in lines[1:])


def in_terminal_of_python(code: str) -> str:
    """Return what Python code prints on a terminal."""
    master, slave = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", code], env=environment(TERM="xterm"), stdout=slave, stderr=slave
    ) as process:
        os.close(slave)
        output = b""
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:  # Linux says so when the last writer has gone
                break
            if not part:
                break
            output += part
    os.close(master)
    assert process.returncode == 0, output
    return output.decode()


def test_a_bar_takes_no_name_for_markup_or_controls() -> None:
    output = in_terminal_of_python(
        "from commlens.base import progress\n"
        "progress.PATIENCE = -1\n"
        f"list(progress.tracked([1, 2, 3], {'[red][/x] ' + SHORT!r}))\n"
        f"list(progress.announced([1, 2], 2, 1, {'[red][/x] ' + SHORT!r}))\n"
    )
    assert r"reading [red][/x] x\x1b[31m\u009b" in output
    assert dangerous(SHORT) - {"\x1b", "\r"} and not dangerous(output) & (dangerous(SHORT) - {"\x1b", "\r"})
    assert "x\x1b[31m" not in output


def test_lines_that_are_renewed_in_place_have_escapes() -> None:
    output = in_terminal_of_python(
        "from rich.text import Text\nfrom commlens.render.screen import Screen\n"
        "with Screen().renewed() as show:\n"
        f"    show([Text({SHORT!r}, 'bold')])\n    show([Text('second')])\n"
    )
    assert (
        SHOWN.replace(r"\r", "") in output.replace(r"\r", "") and "second" in output
    )  # Text itself drops \r
    assert not dangerous(output) & {"\x9b", "\u202e", "\udcff"}


def test_colours_stay_where_they_were_beside_escapes() -> None:
    line = Text("a\x1b[31mb red")
    line.stylize("red", 8, 11)
    result = Screen()._safe(line)
    assert result.plain == r"a\x1b[31mb red"
    assert [result.plain[span.start : span.end] for span in result.spans] == ["red"]


@pytest.mark.parametrize(
    "to", ["csv", "tinyprof", "hatchet", "thicket", "caliper", "chrome", "speedscope", "folded"]
)
def test_exports_are_safe_to_look_at(run: Run, hostile: Path, tmp_path: Path, to: str) -> None:
    output = tmp_path / "out"
    assert safe(run("export", hostile, "--to", to, "-o", output)).exit_code == 0
    files = sorted(output.iterdir()) if output.is_dir() else [output]
    for file in files:
        text = file.read_bytes().decode()
        assert_safe(text)
        if to not in ("csv", "tinyprof", "folded"):
            assert any(HOSTILE in one for one in texts_in(json.loads(text)))


@pytest.mark.parametrize("ending", ["svg", "graphml", "mtx", "csv"])
@pytest.mark.parametrize("by", ["rank", "node"])
def test_files_of_a_matrix_are_safe_to_look_at(
    run: Run, hostile: Path, tmp_path: Path, ending: str, by: str
) -> None:
    output = tmp_path / f"m.{ending}"
    chosen = ("--comm", GLOB)
    done = safe(run("matrix", hostile, "--by", by, *chosen, "--to", output))
    assert (done.exit_code, done.stdout) == (0, f"{output}\n")
    text = output.read_bytes().decode()
    assert_safe(text)
    if ending in ("svg", "graphml"):
        ElementTree.fromstring(text)
        assert "<b>" not in text
    assert run("matrix", hostile, "--by", by, "--to", tmp_path / "m.png").exit_code == 0


def test_a_page_of_costs_is_safe_to_look_at() -> None:
    name = f"$x{SHORT}{MARKS[:4]}<script>$"
    runs = [
        OneRun(number, place, tool, 2, 10**9 + number, 10, 10, 1, 1)
        for number in range(1, 8)
        for place, tool in enumerate((BASELINE, name), 1)
    ]
    page = charts.page(costs(runs), runs, 7, 2)
    assert dangerous(page) == set()
    assert "<script>" not in page and "&lt;script&gt;" in page


def test_findings_of_doctor_have_escapes(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / SHORT
    config.write_bytes(b"no setting \x1b[31m \xff\x9b \xe2\x80\xae\n")
    script = tmp_path / f"{SHORT}.sh"
    script.write_text("#!/bin/sh\nmpirun -n 2 ./app\n")
    script.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMMLENS_CONFIG", str(config))
    monkeypatch.setenv("COMMLENS_OUTPUT", f"{SHORT}/%\x1b")
    monkeypatch.setenv("COMMLENS_" + SHORT, "1")
    monkeypatch.setenv("COMMLENS_QUIET", SHORT)
    monkeypatch.setenv("LD_PRELOAD", f"/gone/{SHORT}")
    for style in FORMATS:
        done = safe(run("doctor", "--format", style, "--", f"./{SHORT}.sh", SHORT))
        assert r"x\x1b[31m" in done.stdout or style == "json"
        if style == "json":
            assert any(SHORT in text for text in texts_in(json.loads(done.stdout)))
