# SPDX-License-Identifier: Apache-2.0
"""libcommlens.a, linked into the program; with a shared MPI library, or with one that is linked in, too."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import forked
import pytest
from harness import BUILD, ROOT, SANITIZER, Mpi

pytestmark = pytest.mark.skipif(SANITIZER is not None, reason="builds with sanitizers have no libcommlens.a")

BOTH = (0, 1)
COMMLENS = ("-Wl,-Bstatic", "-lcommlens", "-Wl,-Bdynamic")
ITS_OWN = ("-lstdc++", "-lm")
# The same instances of templates as in commlens, a name of libc that commlens calls, and an exception through MPI.
PLUS_PLUS = """
#include <mpi.h>
#include <cstdint>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>
extern "C" int unlink(const char*) { std::puts("the program's own"); return 0; }
static int copies(MPI_Comm, int, void*, void*, void*, int*) { throw std::runtime_error("no copy"); }
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  std::map<std::string, std::vector<std::uint64_t>> numbers;
  int one = 1, sum = 0, key = 0;
  for (int i = 0; i < 20; ++i) {
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    numbers[std::to_string(i)].push_back(sum);
  }
  MPI_Comm_create_keyval(copies, MPI_COMM_NULL_DELETE_FN, &key, nullptr);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
  MPI_Comm copy = MPI_COMM_NULL;
  try {
    MPI_Comm_dup(MPI_COMM_SELF, &copy);
  } catch (const std::runtime_error& error) {
    std::puts(error.what());
  }
  MPI_Comm_delete_attr(MPI_COMM_SELF, key);
  MPI_Barrier(MPI_COMM_WORLD);
  std::printf("%zu %d\\n", numbers.size(), sum);
  MPI_Finalize();
}
"""


def folder(mpi: Mpi) -> str:
    """Return the option that names the folder of the archive; it must be there."""
    place = BUILD / "lib" / mpi.family
    assert (place / "libcommlens.a").exists()
    return f"-L{place}"


def check(mpi: Mpi, program: Path, own: Path) -> None:
    """Compare a program that counts itself with the same one without commlens."""
    plain = mpi.run(2, [own], mode="off")
    under = mpi.run(2, [program], mode="link")
    assert (under.rc, under.lines) == (plain.rc, plain.lines) == (0, under.lines), under
    profile = under.open()
    profile.check()
    assert profile.calls("MPI_Barrier", "W0.0") == {"W0.0": dict.fromkeys(BOTH, 1)}
    assert profile.calls("MPI_Allreduce") == {"W0.0": dict.fromkeys(BOTH, 20)}
    assert profile.total("MPI_Allreduce") == (40, 160, 160)
    subprocess.run(["strip", program], check=True)
    said = forked.run(
        ["doctor", "--runner", mpi.runner, "--", program], {**os.environ, "COMMLENS_OUTPUT": ""}, ROOT
    )
    assert "linked with libcommlens.a" in said.stdout and "would be profiled" in said.stdout, said


def source(mpi: Mpi) -> Path:
    """Write the program."""
    path = mpi.fresh("static") / "plus.cpp"
    path.write_text(PLUS_PLUS)
    return path


def test_with_a_shared_mpi_library(mpi: Mpi) -> None:
    path = source(mpi)
    check(mpi, mpi.compile(path, None, folder(mpi), *COMMLENS, *mpi.libs, *ITS_OWN), mpi.compile(path))


def test_under_the_shared_library_it_measures_alone(mpi: Mpi) -> None:
    """As on a machine that measures every program, or under commlens-run: one profile, with the program's regions."""
    path = mpi.fresh("static") / "both.c"
    path.write_text(
        "#include <mpi.h>\n#include <commlens/commlens.h>\n"
        "int main(int argc, char** argv) {\n"
        '  MPI_Init(&argc, &argv);\n  commlens_begin("own");\n  MPI_Barrier(MPI_COMM_WORLD);\n'
        '  commlens_end("own");\n  return MPI_Finalize();\n}\n'
    )
    include = f"-I{ROOT / 'include'}"
    program = mpi.compile(path, None, folder(mpi), *COMMLENS, *mpi.libs, *ITS_OWN, flags=[include])
    done = mpi.run(2, [program])
    assert done.rc == 0 and len(done.said) == 1, done
    assert len(list(done.profile.parent.glob("*.db"))) == 1
    profile = done.open()
    profile.check()
    assert profile.calls("MPI_Barrier") == {"W0.0": dict.fromkeys(BOTH, 1)}
    assert {row["name"] for row in profile.rows("SELECT name FROM region")} >= {"own"}


def test_a_c_program_needs_two_libraries_more(mpi: Mpi) -> None:
    program = mpi.compile("sites.c", None, folder(mpi), *COMMLENS, *mpi.libs, *ITS_OWN)
    done = mpi.run(2, [program], mode="link")
    assert done.rc == 0, done
    profile = done.open()
    profile.check()
    assert profile.total("MPI_Barrier")[0] == 2 * 9
    places = {row["function"] for row in profile.rows("SELECT DISTINCT offset AS function FROM callsite")}
    assert len(places) > 1


def test_with_a_static_mpi_library(mpi: Mpi) -> None:
    """Nothing of MPI and commlens is loaded: all of both is in the program."""
    found = subprocess.run(
        [mpi.compilers["c"], "-print-file-name=libmpich.a"], capture_output=True, text=True, check=True
    ).stdout.strip()
    if mpi.name != "mpich" or not Path(found).is_absolute():
        pytest.skip("only Debian's MPICH brings a static library")
    include = next(word for word in _show(mpi) if word.startswith("-I"))
    path = source(mpi)
    program = path.with_suffix("")
    subprocess.run(
        ["g++", "-O1", "-g", include, str(path), "-o", str(program), folder(mpi), "-Wl,-Bstatic", "-lcommlens",
         "-Wl,--whole-archive", found, "-Wl,--no-whole-archive", "-Wl,-Bdynamic", "-lhwloc", "-lucp", "-lucs", "-pthread"],
        check=True,
    )  # fmt: skip
    needed = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout
    assert "libmpi" not in needed and "libcommlens" not in needed
    check(mpi, program, mpi.compile(path))


def _show(mpi: Mpi) -> list[str]:
    return subprocess.run(
        [mpi.compilers["c"], "-show"], capture_output=True, text=True, check=True
    ).stdout.split()
