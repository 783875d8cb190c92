# SPDX-License-Identifier: Apache-2.0
"""libcommlens-api: what it shows, and that the profiler takes its place however it came into the process."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from application import ROOT, Kit, run

HEADER = (ROOT / "include/commlens/commlens.h").read_text(encoding="utf-8")
FUNCTIONS = set(re.findall(r"^\w[^;{}]*?\b(commlens_\w+)\([^;]*\);", HEADER, re.MULTILINE))
FORTRAN = {f"{name}_f" for name in FUNCTIONS}

PROGRAM = """
#include <commlens/commlens.h>
int main(void) {
  commlens_begin("a");
  commlens_end("a");
  return 0;
}
"""
PLUGIN = '#include <commlens/commlens.h>\nvoid plugin(void) { commlens_begin("a"); commlens_end("a"); }\n'
LOADER = """
#define _GNU_SOURCE
#include <dlfcn.h>
int main(int argc, char** argv) {
  void* const plugin = dlopen(argv[argc - 1], RTLD_NOW | FLAGS);
  if (plugin == 0) return 1;
  void (*run)(void);
  *(void**)&run = dlsym(plugin, "plugin");
  run();
  return dlclose(plugin);
}
"""
TOLD = ["0 begin a", "0 end a"]


def test_the_header_is_understood() -> None:
    assert {"commlens_begin", "commlens_loop_iteration", "commlens_metric", "commlens_flush"} <= FUNCTIONS
    assert len(FUNCTIONS) == len(re.findall(r"^\w.*\);$", HEADER, re.MULTILINE))


def test_it_shows_the_functions_of_the_header_and_their_names_in_fortran_and_nothing_else(
    prefix: Path,
) -> None:
    listed = run("nm", "-D", "--defined-only", prefix / "lib/libcommlens-api.so").stdout.splitlines()
    fortran = {form for name in FORTRAN for form in (name, f"{name}_", f"{name}__", name.upper())}
    assert {line.split()[-1] for line in listed} == FUNCTIONS | fortran


def test_it_needs_libc_only_and_has_a_soname_with_a_number(prefix: Path) -> None:
    said = run("readelf", "-d", prefix / "lib/libcommlens-api.so").stdout
    assert re.findall(r"\(NEEDED\).*\[(.*)\]", said) == ["libc.so.6"]
    assert re.findall(r"\(SONAME\).*\[(.*)\]", said) == ["libcommlens-api.so.0"]


def test_fortran_has_a_procedure_for_each_function(prefix: Path) -> None:
    module = (prefix / "share/commlens/commlens.f90").read_text(encoding="utf-8")
    public = set(
        re.findall(r"\bcommlens_\w+", " ".join(re.findall(r"^  public ::.*$", module, re.MULTILINE)))
    )
    by_handle = {"commlens_begin_region", "commlens_end_region"}  # commlens_begin takes both
    assert {name for name in public if not name.endswith("_t")} == FUNCTIONS - by_handle


@pytest.mark.parametrize(
    "flags",
    [
        ("-O2",),
        ("-rdynamic",),
        ("-no-pie", "-fno-pic"),
        ("-Wl,-z,now",),
        ("-Wl,-z,lazy",),
        ("-Wl,--as-needed",),
        ("-flto",),
        ("-fvisibility=hidden",),
    ],
    ids=" ".join,
)
def test_the_profiler_takes_the_place_of_what_is_linked(kit: Kit, flags: tuple[str, ...]) -> None:
    assert kit.both(kit.build(kit.write("program.c", PROGRAM), *flags)).calls == TOLD


@pytest.mark.parametrize(
    ("flags", "seen"), [("RTLD_LOCAL", True), ("RTLD_GLOBAL", True), ("RTLD_DEEPBIND", False)]
)
def test_the_profiler_takes_its_place_in_a_plugin_unless_that_looks_at_itself_first(
    kit: Kit, flags: str, seen: bool
) -> None:
    plugin = kit.build(kit.write("plugin.c", PLUGIN), "-shared", "-fPIC", name="plugin.so")
    loader = kit.build(kit.write("loader.c", LOADER), f"-DFLAGS={flags}", "-ldl", name="loader")
    assert kit.both(loader, plugin).calls == (TOLD if seen else [])


@pytest.mark.parametrize("needed", ["--as-needed", "--no-as-needed"])
@pytest.mark.parametrize("first", [True, False], ids=["before", "behind"])
def test_a_profiler_that_is_linked_has_to_be_linked_before_it(kit: Kit, needed: str, first: bool) -> None:
    profiler = [f"-L{kit.profiler.parent}", f"-l{kit.profiler.stem[3:]}", f"-Wl,-rpath,{kit.profiler.parent}"]
    order = [*profiler, *kit.link] if first else [*kit.link, *profiler]
    # The MPI procedures of the real one keep it among what is needed.
    program = kit.build(kit.write("program.c", PROGRAM), f"-Wl,{needed}", *order)
    assert kit.run(program).calls == (TOLD if first else [])


def test_a_static_program_is_refused_by_the_linker(kit: Kit) -> None:
    source = kit.write("program.c", PROGRAM)
    assert not list(kit.prefix.rglob("*.a"))
    done = subprocess.run(
        ["cc", "-static", source, f"-I{kit.prefix}/include", *kit.link, "-o", kit.work / "static"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "commlens-api" in done.stderr


def test_a_header_that_is_included_twice_and_with_old_c_compiles(kit: Kit) -> None:
    source = kit.write("program.c", "#include <commlens/commlens.h>\n" + PROGRAM)
    kit.both(kit.build(source, "-std=c90"))
