# SPDX-License-Identifier: Apache-2.0
"""The Makefile and the small scripts behind it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from machine import without_make

ROOT = Path(__file__).resolve().parents[2]
SOURCED = {
    "slurm_daemons.sh",
    "step.sh",
    "wheel_tools.sh",
    "old_gcc.sh",
    "openmpi.sh",
    "page.sh",
    "namespaces.sh",
    "roots.sh",
}


def bash(script: str) -> subprocess.CompletedProcess[str]:
    """Run `script` at the root of the repository."""
    return subprocess.run(
        ["bash", "-c", script],
        cwd=ROOT,
        env=without_make(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def targets() -> list[str]:
    """Return what the Makefile declares as .PHONY."""
    declared = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert declared
    return declared[1].split()


def test_make_alone_lists_every_target() -> None:
    listed = re.findall(r"^  ([a-z0-9-]+) ", bash("make").stdout, re.MULTILINE)
    assert sorted(listed) == sorted(targets())


@pytest.mark.parametrize("target", targets())
def test_a_target_runs_a_script_that_is_there(target: str) -> None:
    recipe = bash(f"make --dry-run {target}").stdout
    for script in re.findall(r"tools/\w+\.sh", recipe):
        assert os.access(ROOT / script, os.X_OK), script


@pytest.mark.parametrize("script", sorted((ROOT / "tools").glob("*.sh")), ids=lambda path: path.name)
def test_a_script_is_executable_or_only_sourced(script: Path) -> None:
    assert os.access(script, os.X_OK) == (script.name not in SOURCED)


WITHOUT_OPTIONS = "shaped_hosts.py"
WITH_SPARK = "fleet_spark.py"
"""Runs in the environment that tools/spark.sh creates."""
BENCHMARKS = [
    path
    for path in sorted((ROOT / "bench").glob("*.py"))
    if "import argparse" in path.read_text() and path.name not in (WITHOUT_OPTIONS, WITH_SPARK)
]


@pytest.mark.parametrize("script", BENCHMARKS, ids=lambda path: path.name)
def test_a_benchmark_finds_what_it_imports(script: Path) -> None:
    # By paths that it sets up itself, wherever it is called.
    done = subprocess.run(
        [sys.executable, script, "--help"], cwd="/", capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: {script.name}")


def test_ci_and_the_readme_say_the_same_command() -> None:
    assert "\nmake test " in (ROOT / ".ci" / "run").read_text()
    assert "\n    make test " in (ROOT / "README.md").read_text()


def test_a_step_that_works_is_one_line() -> None:
    result = bash(". tools/step.sh; step test 'a step' echo hidden")
    assert re.fullmatch(r"test    a step {50} +\d+ s\n", result.stdout)


def test_a_step_that_fails_shows_its_output_and_keeps_its_code() -> None:
    result = bash(". tools/step.sh; step test 'a step' bash -c 'echo why; exit 7'")
    assert result.returncode == 7
    assert "failed\n    | why\n" in result.stdout
    assert "build/log/test-a-step.log" in result.stdout


def test_steps_beside_each_other_print_whole_lines() -> None:
    steps = "step test slow bash -c 'sleep 0.5; echo why; exit 7' & step test quick true; wait $!"
    result = bash(f". tools/step.sh; export STEPS_BESIDE=1; {steps}")
    assert result.returncode == 7
    quick, slow, *output = result.stdout.splitlines()
    assert re.fullmatch(r"test    quick {52} +\d+ s", quick)
    assert re.fullmatch(r"test    slow {53} failed", slow)
    assert [line.strip() for line in output] == ["| why", "whole output: build/log/test-slow.log"]


def test_a_step_does_not_read_what_the_user_types() -> None:
    assert bash(". tools/step.sh; echo typed | step test 'a step' bash -c '! read -r line'").returncode == 0


@pytest.mark.parametrize("script", ["build", "format", "generate", "lint", "sanitize", "test"])
def test_help_is_the_comment_of_the_script_and_sets_up_nothing(script: str) -> None:
    result = bash(f"cd /; PATH=/usr/bin:/bin {ROOT}/tools/{script}.sh --help")
    comment = re.match(r"#!.*\n# SPDX.*\n((?:#.*\n)+)", (ROOT / "tools" / f"{script}.sh").read_text())
    assert comment
    assert result.returncode == 0 and result.stdout == re.sub("^# ?", "", comment[1], flags=re.MULTILINE)


PASSED = '<testcase classname="c" name="good" time="1.5"/>'
FAILED = '<testcase classname="c" name="bad"><failure message="no"/></testcase>'
SKIPPED = '<testcase classname="c" name="away"><skipped message="no hpcc here"/></testcase>'


@pytest.mark.parametrize(
    ("cases", "steps", "code", "last"),
    [
        ([PASSED, PASSED, SKIPPED], [], 0, "2 passed, 0 failed, 1 skipped"),
        ([PASSED, FAILED], [], 1, "1 passed, 1 failed, 0 skipped"),
        ([PASSED], ["lint"], 1, "1 passed, 1 failed, 0 skipped"),
        ([SKIPPED], [], 1, "0 passed, 0 failed, 1 skipped"),
        ([], [], 1, "0 passed, 0 failed, 0 skipped"),
    ],
)
def test_the_summary_ends_with_totals_and_fails_when_it_should(
    tmp_path: Path, cases: list[str], steps: list[str], code: int, last: str
) -> None:
    (tmp_path / "suite.xml").write_text(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")
    result = subprocess.run(
        [sys.executable, ROOT / "tools" / "summary.py", tmp_path, *steps],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == code
    assert result.stdout.splitlines()[-1] == last
    assert ("FAILED  c bad" in result.stdout) == (FAILED in cases)
    assert ("skipped 1: no hpcc here" in result.stdout) == (SKIPPED in cases)


def test_the_summary_says_where_the_time_went(tmp_path: Path) -> None:
    cases = "".join(f'<testcase classname="c" name="t{n}" time="{n}.5"/>' for n in range(12))
    (tmp_path / "mpi.xml").write_text(f'<testsuite time="40">{cases}</testsuite>')
    (tmp_path / "steps.tsv").write_text("build\tcompile debug\t90\ntest\tunit tests\t9\nsetup\tnothing\t0\n")
    (tmp_path / "seconds").write_text("99\n")
    result = subprocess.run(
        [sys.executable, ROOT / "tools" / "summary.py", tmp_path], capture_output=True, text=True, check=False
    )
    lines = result.stdout.splitlines()
    named = [line.split() for line in lines if line.startswith("    ")]
    assert [line[-2] for line in named if line[-1] == "s"] == ["90", "40", "130", "99"]
    slowest = lines[lines.index("slowest of mpi") + 1 :][:11]
    assert [line.split() for line in slowest[:10]] == [
        [f"{n}.5", "s", "c", f"t{n}"] for n in range(11, 1, -1)
    ]
    assert slowest[10] == ""


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("print(name)", 1),
        ("for name in names:\n    list(map(print, names))", 2),
        ("import click\nclick.echo(name, err=True)", 2),
        ("from click import echo as say\nsay(name)", 1),
        ("import sys\nsys.stdout.write(name)", 2),
        ("import sys as system\nprint_to = system.stderr", 2),
        ("from sys import stderr\nstderr.write(name)", 1),
        ("import os\nos.write(2, name)", 2),
        ("from rich.console import Console", 1),
        ("import rich.console\nrich.console.Console(stderr=True)", 2),
        ("screen = Screen()\nscreen.console.print(name)", 2),
        ("def f():\n    import rich\n    rich.print(name)", 3),
        ("import traceback", 1),
        ("import csv\ncsv.writer(file)", 2),
        ("import html", 1),
    ],
)
def test_output_past_the_escapes_is_found(tmp_path: Path, code: str, line: int) -> None:
    (tmp_path / "cli").mkdir()
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "messages.py").write_text("import sys\nsys.stderr.write('commlens: well')\n")
    assert checked_output(tmp_path) == (0, "")
    (tmp_path / "cli" / "planted.py").write_text(code + "\n")
    rc, found = checked_output(tmp_path)
    assert rc == 1
    assert found.startswith(f"{tmp_path}/cli/planted.py:{line}: ")


def checked_output(folder: Path) -> tuple[int, str]:
    """Return exit code and output of the check."""
    tool = ROOT / "tools" / "check_output.py"
    done = subprocess.run([sys.executable, tool, folder], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("core/a.cpp", b"int a;", None),
        ("tests/profiles/v1.db", b"SQLite\0", None),
        ("a1", b"text", "a1: not on the list of what is at the root"),
        ("scratch/a.cpp", b"int a;", "scratch/a.cpp: not on the list"),
        ("bench/a.out", b"\x7fELF\0", "bench/a.out: a binary"),
    ],
)
def test_files_out_of_place_are_found(
    tmp_path: Path, name: str, content: bytes, complaint: str | None
) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_bytes(content)
    tool = [sys.executable, str(ROOT / "tools" / "check_tree.py"), str(tmp_path)]
    result = subprocess.run(tool, capture_output=True, text=True, check=False)
    assert result.returncode == (complaint is not None)
    assert (complaint or "check_tree: all 1 files are where they belong") in result.stdout


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("core/out/a.cpp", '#include "core/profile/b.h"\n', None),
        ("core/out/a.cpp", '#include "core/out/b.h"\n#include <mpi.h>\n', None),
        (
            "core/profile/a.h",
            '#pragma once\n#include "core/out/b.h"\n',
            "core/profile/a.h:2: core/profile must not use core/out",
        ),
        (
            "core/mpi/a.cpp",
            ' # include "core/recover/b.h"\n',
            "core/mpi/a.cpp:1: core/mpi must not use core/recover",
        ),
        ("core/drawer/a.h", "", "core/drawer/a.h: core/drawer has no line in INCLUDES"),
        (
            "python/commlens/matrix/a.py",
            "from commlens.base.errors import CommlensError\nimport numpy\n",
            None,
        ),
        ("python/commlens/matrix/a.py", "from commlens.matrix import b\nimport commlens.matrix.c\n", None),
        ("python/commlens/cli/a.py", "from commlens import matrix\n", None),
        (
            "python/commlens/base/a.py",
            "import os\nimport commlens.cli.report\n",
            "python/commlens/base/a.py:2: python/commlens/base must not use python/commlens/cli",
        ),
        (
            "python/commlens/algorithms/a.py",
            "def f():\n    from commlens.matrix.query import b\n",
            "python/commlens/algorithms/a.py:2: python/commlens/algorithms must not use python/commlens/matrix",
        ),
        (
            "python/commlens/jobs/a.py",
            "from commlens import base, doctor\n",
            "python/commlens/jobs/a.py:1: python/commlens/jobs must not use python/commlens/doctor",
        ),
        (
            "python/commlens/profile/a.py",
            "from commlens import region\n",
            "python/commlens/profile/a.py:1: python/commlens/profile must not use python/commlens/__init__",
        ),
        (
            "python/commlens/frames.py",
            "import commlens.cli\n",
            "python/commlens/frames.py:1: python/commlens/frames must not use python/commlens/cli",
        ),
        (
            "python/commlens/render/a.py",
            "from . import b\nfrom .c import d\nfrom ..cli import e\n",
            "python/commlens/render/a.py:3: python/commlens/render must not use python/commlens/cli",
        ),
        (
            "python/commlens/drawer/a.py",
            "",
            "python/commlens/drawer/a.py: python/commlens/drawer has no line in IMPORTS",
        ),
        (
            "python/commlens/drawer.py",
            "",
            "python/commlens/drawer.py: python/commlens/drawer has no line in IMPORTS",
        ),
    ],
)
def test_an_include_or_import_against_the_order_is_found(
    tmp_path: Path, name: str, content: str, complaint: str | None
) -> None:
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_text(content)
    tool = [sys.executable, str(ROOT / "tools" / "check_rooms.py"), str(tmp_path)]
    result = subprocess.run(tool, capture_output=True, text=True, check=False)
    assert result.returncode == (complaint is not None)
    assert (complaint or "check_rooms: all includes and imports point one way") in result.stdout


def test_rooms_may_use_only_rooms_above_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "tools")
    import check_rooms

    assert list(check_rooms.disordered("IMPORTS", {"base": "", "cli": "base"})) == []
    assert list(check_rooms.disordered("IMPORTS", {"matrix": "algorithms", "algorithms": "matrix"})) == [
        "IMPORTS: matrix may use algorithms, which is not above it"
    ]


@pytest.mark.parametrize(
    ("first", "second", "is_found"),
    [
        ("struct A { int x; };", "class A {};", True),
        ("struct A { int x; };", "class A;", False),
        ("struct A { struct B {}; };", "struct B {};", False),
        ("namespace { struct A {}; }", "struct A {};", False),
        ("// struct A {};", 'struct A { const char* s = "}"; };', False),
        ("namespace out { struct A {}; }", "struct A {};", False),
        ("enum class A : int { x };", "struct [[nodiscard]] A final : B {};", True),
    ],
)
def test_two_types_of_one_name_in_two_rooms_are_found(
    tmp_path: Path, first: str, second: str, is_found: bool
) -> None:
    for room, text in (("hot", first), ("state", second)):
        (tmp_path / "core" / room).mkdir(parents=True)
        (tmp_path / "core" / room / "a.h").write_text(f"namespace commlens {{\n{text}\n}}\n")
    tool = [sys.executable, str(ROOT / "tools" / "check_types.py"), str(tmp_path)]
    result = subprocess.run(tool, capture_output=True, text=True, check=False)
    assert result.returncode == is_found
    assert ("core/state/a.h: commlens::A is defined in core/hot/a.h, too" in result.stdout) == is_found


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("core/a.h", "\n" * 600, None),
        ("core/a.h", "\n" * 601, "core/a.h: 601 lines, more than 600"),
        ("gen/a.py", "def f():\n" + "    x = 1\n" * 59, None),
        (
            "gen/a.py",
            "class A:\n    def f(self):\n" + "        x = 1\n" * 60,
            "gen/a.py:A.f: 61 lines, more than 60",
        ),
        ("core/a.cpp", "int f(int a,\n      int b) {\n" + "  g();\n" * 57 + "}\n", None),
        (
            "core/a.cpp",
            "int f(int a,\n      int b) {\n" + "  g();\n" * 58 + "}\n",
            "core/a.cpp:int f: 61 lines",
        ),
        ("core/a.h", "struct A {\n" + "  int a;\n" * 70 + "};\n", None),
    ],
)
def test_long_files_and_functions_are_found(
    tmp_path: Path, name: str, content: str, complaint: str | None
) -> None:
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_text(content)
    tool = [sys.executable, str(ROOT / "tools" / "check_sizes.py"), str(tmp_path)]
    result = subprocess.run(tool, capture_output=True, text=True, check=False)
    assert result.returncode == (complaint is not None)
    assert (complaint or "check_sizes: 1 files and") in result.stdout


def test_clang_tidy_checks_each_file_once_or_for_each_interface_that_it_asks_for(tmp_path: Path) -> None:
    (tmp_path / "plain.cpp").write_text("#if defined(OTHER)\n#endif\n// #if defined(OPEN_MPI)\n")
    (tmp_path / "asks.cpp").write_text("#if 0\n#elif defined(MPI_ABI_VERSION)\n#endif\n")
    commands = [
        {"file": str(tmp_path / name), "command": f"c++ -I{family} {name}"}
        for family in ("openmpi", "mpich", "abi")
        for name in ("plain.cpp", "asks.cpp")
    ]
    (tmp_path / "compile_commands.json").write_text(json.dumps(commands))
    tool: list[str | Path] = [
        sys.executable,
        ROOT / "tools" / "tidy_commands.py",
        tmp_path,
        tmp_path / "some",
    ]
    subprocess.run(tool, check=True)
    found = json.loads((tmp_path / "some" / "compile_commands.json").read_text())
    assert found == [command for command in commands if "asks" in command["file"] or command is commands[0]]
