# SPDX-License-Identifier: Apache-2.0
"""A small program with known call paths, and profiles with the paths that it took."""

from __future__ import annotations

import subprocess
from pathlib import Path

from build_profile import ProfileBuilder
from tests.needs import need_programs

from commlens.symbols.elf import build_id

PROGRAM = """\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <stdio.h>

/* Prints the offsets of the calls around it, the innermost first, up to main. */
__attribute__((noinline)) void like_mpi(const char *name) {
  void *frames[64];
  Dl_info own, other;
  int count = backtrace(frames, 64);
  dladdr((void *)like_mpi, &own);
  printf("%s", name);
  for (int i = 1; i < count && dladdr(frames[i], &other) && other.dli_fbase == own.dli_fbase; i++)
    printf(" %ld", (long)((char *)frames[i] - (char *)own.dli_fbase));
  puts("");
}
void hypre_MPI_Isend(const char *name) { like_mpi(name); }
void exchange(const char *name) {
  like_mpi(name);                                             /* line 20 */
  like_mpi("second"); like_mpi("third");                      /* line 21 */
}
void halo(const char *name) { exchange(name); }
static inline __attribute__((always_inline)) void inlined(const char *name) {
  like_mpi(name);                                             /* line 25 */
}
void norm(void) { inlined("norm"); }                          /* line 27 */
void solve(void) {
  halo("solve");
  norm();
  hypre_MPI_Isend("wrapped");                                 /* line 31 */
}
void setup(void) {
  exchange("setup");
  hypre_MPI_Isend("wrapped at setup");                        /* line 35 */
}
int main(void) {
  setup();
  solve();
  setup();                                                    /* line 40 */
  return 0;
}
"""


def compiled(folder: Path) -> Path:
    """Compile the program, whose lines addr2line finds."""
    need_programs("cc", "addr2line", package="gcc and binutils")
    source, binary = folder / "solver.c", folder / "solver"
    source.write_text("\n" + PROGRAM)
    options = ["-g", "-O0", "-pie", "-fPIE", "-Wl,--build-id", "-rdynamic"]
    subprocess.run(["cc", *options, "-o", str(binary), str(source), "-ldl"], check=True)
    return binary


def recorded(binary: Path) -> list[tuple[str, list[int]]]:
    """Return the calls that the program makes: name, and the return addresses from the outside in."""
    lines = subprocess.run([str(binary)], capture_output=True, check=True, text=True).stdout.splitlines()
    found = []
    for line in lines:
        words = line.split(" ")
        name = [word for word in words if not word.isdigit()]
        found.append((" ".join(name), [int(word) for word in words[len(name) :]][::-1]))
    return found


def add_path(build: ProfileBuilder, module: Path, path: list[int], caller: int | None = None) -> int:
    """Add the call sites of a path, from the outside in, behind a caller, and return the innermost."""
    identity = build_id(module)
    for offset in path:
        known = {
            (*build.sites[id], build.callers.get(id)): id for id in build.sites if id
        }  # a place has a row for every path to it
        site = known.get((str(module), identity, offset, caller), len(build.sites))
        build.sites[site] = (str(module), identity, offset)
        if caller is not None:
            build.callers[site] = caller
        caller = site
    assert caller is not None
    return caller
