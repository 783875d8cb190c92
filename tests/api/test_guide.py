# SPDX-License-Identifier: Apache-2.0
"""What docs/guide/annotate.md shows can be copied as it is, and does the same in every language."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from application import ROOT, Kit, run

GUIDE = (ROOT / "docs/guide/annotate.md").read_text(encoding="utf-8")
SNIPPETS = dict(re.findall(r"^```(\w+)\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL))
FILES = {"c": "app.c", "cpp": "app.cpp", "fortran": "model.f90", "fortran77": "model.f"}
CALLS = """\
begin solve
tag kind=COMP
loop time steps 1
iteration
begin relax
record residual [1] 1
end relax
iteration
begin relax
record residual [1] 0.5
end relax
end time steps
end solve
""".splitlines()


def write(kit: Kit, *languages: str) -> None:
    """Write what the guide shows into files."""
    for language in languages:
        kit.write(FILES[language], SNIPPETS[language])


def check(kit: Kit, *command: str | Path) -> None:
    """Run a program of the guide in both ways."""
    assert kit.both(*command).calls == [f"0 {call}" for call in CALLS]


def test_every_snippet_is_tested_here() -> None:
    assert set(SNIPPETS) == {*FILES, "python", "cmake", "sh"}
    assert len(re.findall("^```$", GUIDE, re.MULTILINE)) == len(SNIPPETS)


@pytest.mark.parametrize("language", FILES)
def test_a_program_of_the_guide_runs(kit: Kit, language: str) -> None:
    write(kit, language)
    check(kit, kit.build(kit.work / FILES[language]))


def test_the_lines_of_python_run(kit: Kit) -> None:
    check(kit, sys.executable, kit.write("app.py", SNIPPETS["python"]))


def test_the_lines_for_cmake_build_its_programs(kit: Kit) -> None:
    write(kit, "c", "fortran")
    head = "cmake_minimum_required(VERSION 3.18)\nproject(guide LANGUAGES C Fortran)\n"
    programs = "add_executable(app app.c)\nadd_executable(model model.f90)\n"
    kit.write("CMakeLists.txt", head + programs + SNIPPETS["cmake"])
    run("cmake", "-S", ".", "-B", "build", f"-DCMAKE_PREFIX_PATH={kit.prefix}", cwd=kit.work)
    run("cmake", "--build", "build", cwd=kit.work)
    for program in ("app", "model"):
        check(kit, kit.work / "build" / program)


def test_the_lines_for_pkg_config_build_its_programs(kit: Kit) -> None:
    write(kit, "c", "fortran")
    # The shell would split the path of the installation at its blank.
    (kit.work / "prefix").symlink_to(kit.prefix)
    path = f"{kit.work}/prefix/lib/pkgconfig:{os.environ.get('PKG_CONFIG_PATH', '')}"
    run("bash", "-ec", SNIPPETS["sh"], cwd=kit.work, PKG_CONFIG_PATH=path)
    for program in ("app", "model"):
        check(kit, kit.work / program)


def test_what_the_guide_names_is_there() -> None:
    sources = "".join(
        (ROOT / name).read_text(encoding="utf-8")
        for name in (
            "include/commlens/commlens.h",
            "include/commlens/commlens.hpp",
            "core/api/fortran77.c",
            "cmake/commlens_api.cmake",
        )
    )
    for name in re.findall(r"\bcommlens_\w+", GUIDE):
        assert re.search(rf"\b{name}\b", sources), name
    for name in re.findall(r"\bcommlens::(\w+)", GUIDE):
        assert re.search(rf"\b{name}\b", sources), name


def test_what_the_guide_calls_of_python_is_there() -> None:
    import commlens

    assert set(re.findall(r"\bcommlens\.([a-z]+)\(", GUIDE)) <= set(commlens.__all__)
    assert [name for name in commlens.__all__ if not re.search(rf"\b{name}\b", GUIDE)] == []
