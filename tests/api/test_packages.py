# SPDX-License-Identifier: Apache-2.0
"""Projects outside find the library with CMake and with pkg-config, wherever it was moved."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from application import PROGRAMS, ROOT, Kit, run
from test_languages import STORY

PROJECTS = {"C": ("story.c", "api"), "CXX": ("story.cpp", "api"), "Fortran": ("story.f90", "fortran")}


def project(kit: Kit, languages: str, programs: dict[str, tuple[str, str]], more: str = "") -> Path:
    """Write a project of programs and configure it."""
    source = kit.work / "project"
    source.mkdir()
    lines = [
        "cmake_minimum_required(VERSION 3.18)",
        f"project(outside LANGUAGES {languages})",
        "find_package(commlens 0.1 REQUIRED)",
    ]
    for name, (file, target) in programs.items():
        shutil.copy(PROGRAMS / file, source)
        lines += [f"add_executable({name} {file})", f"target_link_libraries({name} commlens::{target})"]
    (source / "CMakeLists.txt").write_text("\n".join([*lines, more]) + "\n", encoding="utf-8")
    build = kit.work / "outside"
    run("cmake", "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={kit.prefix}")
    return build


@pytest.mark.parametrize("language", PROJECTS)
def test_a_project_of_one_language_uses_the_package_of_cmake(kit: Kit, language: str) -> None:
    build = project(kit, language, {"app": PROJECTS[language]})
    run("cmake", "--build", build)
    assert kit.both(build / "app").calls == [f"0 {call}" for call in STORY]


def test_several_programs_of_several_languages_share_one_package(kit: Kit) -> None:
    build = project(
        kit,
        "C CXX Fortran",
        {f"in_{name}": program for name, program in PROJECTS.items()},
        "find_package(commlens REQUIRED)\n"
        "add_executable(again story.f90)\ntarget_link_libraries(again commlens::fortran)",
    )
    run("cmake", "--build", build, "--parallel", "2")
    for program in ("in_C", "in_CXX", "in_Fortran", "again"):
        assert kit.both(build / program).calls == [f"0 {call}" for call in STORY]


def test_a_version_that_is_not_there_is_refused(kit: Kit) -> None:
    folder = kit.work / "newer"
    folder.mkdir()
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.18)\nproject(newer LANGUAGES C)\nfind_package(commlens 99 REQUIRED)\n"
    )
    command = ["cmake", "-S", str(folder), "-B", str(folder / "build"), f"-DCMAKE_PREFIX_PATH={kit.prefix}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert 'compatible with requested version "99"' in done.stderr


def pkg_config(kit: Kit, *questions: str) -> list[str]:
    """Ask pkg-config; a blank in a path comes back as a backslash and a blank."""
    done = subprocess.run(
        ["pkg-config", *questions, "commlens"],
        env={**os.environ, "PKG_CONFIG_PATH": str(kit.prefix / "lib/pkgconfig")},
        capture_output=True,
        text=True,
        check=True,
    )
    return [part.replace("\0", " ") for part in done.stdout.replace("\\ ", "\0").split()]


@pytest.mark.parametrize("source", ["story.c", "story.cpp", "story.f90", "story77.f"])
def test_pkg_config_says_how_to_compile_and_link(kit: Kit, source: str) -> None:
    compiler = {".c": "cc", ".cpp": "c++", ".f90": "gfortran", ".f": "gfortran"}[Path(source).suffix]
    [libraries] = pkg_config(kit, "--variable=libdir")
    module = pkg_config(kit, "--variable=fortran") if source.endswith(".f90") else []
    command = [compiler, *pkg_config(kit, "--cflags"), *module, str(PROGRAMS / source), "-o", "app"]
    run(*command, *pkg_config(kit, "--libs"), f"-Wl,-rpath,{libraries}", cwd=kit.work)
    assert kit.both(kit.work / "app").calls == [f"0 {call}" for call in STORY]


def test_pkg_config_and_cmake_have_the_version_of_commlens(kit: Kit) -> None:
    version = (ROOT / "VERSION").read_text(encoding="utf-8").strip()
    assert pkg_config(kit, "--modversion") == [version]
    library = (kit.prefix / "lib/libcommlens-api.so").resolve()
    assert library.name == f"libcommlens-api.so.{version}"


def test_nothing_installed_names_where_it_was_built_or_first_installed(kit: Kit) -> None:
    for path in kit.prefix.rglob("*"):
        if path.is_file():
            text = path.read_bytes()
            for place in (str(ROOT), str(kit.prefix.parent), str(kit.prefix.parent / "installed")):
                assert place.encode() not in text, path
