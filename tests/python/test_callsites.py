# SPDX-License-Identifier: Apache-2.0
"""Call sites become function, file and line where the module at hand is the one that ran."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from build_profile import ProfileBuilder
from conftest import Run
from tests.needs import need_programs

from commlens.symbols.elf import build_id, inside_functions

PROGRAM = """\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
__attribute__((noinline)) void like_mpi(void) {
  Dl_info here;
  dladdr(__builtin_return_address(0), &here);
  printf("%ld\\n", (char *)__builtin_return_address(0) - (char *)here.dli_fbase);
}
__attribute__((noinline)) void halo_exchange(void) {
  like_mpi(); /* line 11 */
  puts("");
}
int main(void) { halo_exchange(); return 0; }
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """Return a program with a build id, and the return address of the call in its line 11."""
    need_programs("cc", "addr2line", package="gcc and binutils")
    folder = tmp_path_factory.mktemp("module")
    source, binary = folder / "solver.c", folder / "solver"
    source.write_text("\n" + PROGRAM)
    command = ["cc", "-g", "-O0", "-pie", "-fPIE", "-Wl,--build-id", "-o", str(binary), str(source), "-ldl"]
    subprocess.run(command, check=True)
    return binary, int(subprocess.run([str(binary)], capture_output=True, check=True).stdout.split()[0])


def profile(path: Path, module: str, identity: str, offset: int) -> Path:
    """Return a profile with one call site."""
    build = ProfileBuilder(ranks=1)
    build.sites[1] = (module, identity, offset)
    build.count(1, "MPI_Bcast", 0, 1, 1000, callsite=1)
    return build.write(path)


def shown(run: Run, path: Path) -> str:
    """Return the call site as the report shows it."""
    result = run("report", path, "--callsites")
    assert result.exit_code == 0, result.stderr
    return str(result.stdout.rstrip("\n").splitlines()[-1].strip())


def test_a_module_that_is_the_same_is_resolved(module: tuple[Path, int], tmp_path: Path, run: Run) -> None:
    binary, offset = module
    notes = subprocess.run(["readelf", "-n", str(binary)], capture_output=True, text=True, check=True).stdout
    assert f"Build ID: {build_id(binary)}" in notes
    path = profile(tmp_path / "x.db", str(binary), build_id(binary), offset)
    assert shown(run, path) == "halo_exchange solver.c:11"


def test_a_function_is_named_only_where_its_symbol_covers_the_call(
    module: tuple[Path, int], tmp_path: Path, run: Run
) -> None:
    """What addr2line says of a stripped program is the symbol before, whatever that is."""
    binary, offset = module
    bare = tmp_path / "solver"
    for option, expected in (
        ("--strip-debug", "halo_exchange in solver"),
        ("--strip-all", f"solver+0x{offset:x}"),
    ):
        subprocess.run(["objcopy", option, str(binary), str(bare)], check=True)
        path = profile(tmp_path / f"{option}.db", str(bare), build_id(bare), offset)
        assert shown(run, path) == expected


@pytest.mark.parametrize("identity", ["", "00ff00ff"])
def test_a_module_that_is_not_surely_the_same_is_not(
    module: tuple[Path, int], tmp_path: Path, run: Run, identity: str
) -> None:
    binary, offset = module
    assert shown(run, profile(tmp_path / "x.db", str(binary), identity, offset)) == f"solver+0x{offset:x}"


def test_without_addr2line_the_stored_place_is_shown(
    module: tuple[Path, int], tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    binary, offset = module
    path = profile(tmp_path / "x.db", str(binary), build_id(binary), offset)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert shown(run, path) == f"solver+0x{offset:x}"


def test_a_module_that_is_not_here(tmp_path: Path, run: Run) -> None:
    assert shown(run, profile(tmp_path / "x.db", "/nowhere/bin/app", "abcd", 255)) == "app+0xff"


def test_a_call_site_without_module(tmp_path: Path, run: Run) -> None:
    assert shown(run, profile(tmp_path / "x.db", "", "", 0)) == "unknown+0x0"


@pytest.mark.parametrize(
    "content",
    [b"", b"\x7fELF", b"\x7fELF\x02\x01" + b"\xff" * 200, b"#!/bin/sh\n"],
    ids=["empty", "magic", "broken", "script"],
)
def test_a_file_that_is_no_sound_elf_file_has_neither_build_id_nor_functions(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    assert build_id(path) == ""
    assert inside_functions(path, [0, 64]) == set()
