# SPDX-License-Identifier: Apache-2.0
"""Programs that are annotated for other tools: their regions, written out by hand, and the same program without us."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from harness import BUILD, PROGRAMS, ROOT, SANITIZER, SANITIZER_ENV, Mpi
from launches import Result
from profile_rows import Profile
from test_languages import mpi4py_env

RANKS = 2
ADAPTERS = BUILD / "lib" / "adapters"


def regions(profile: Profile) -> dict[str, tuple[int, int]]:
    """Return how often each region was entered, and how many barriers it has itself; of rank 1."""
    rows = profile.rows(
        "SELECT path, r.calls, COALESCE(b.calls, 0) AS barriers FROM region_rank r JOIN region_path p ON p.region = r.region "
        "LEFT JOIN (SELECT k.region, SUM(c.calls) AS calls FROM cell c JOIN key k ON k.id = c.key JOIN op ON op.id = k.op "
        "WHERE op.name = 'MPI_Barrier' AND c.rank = 1 GROUP BY 1) b ON b.region = r.region WHERE r.rank = 1"
    )
    return {row["path"]: (row["calls"], row["barriers"]) for row in rows}


def spans(profile: Profile) -> dict[str, int]:
    """Return the metrics of rank 1: how many values; none lasted less than nothing or longer than the test."""
    rows = profile.rows(
        "SELECT name, unit, SUM(count) AS count, MIN(min) AS least, MAX(max) AS most FROM metric_value "
        "JOIN metric ON id = metric WHERE rank = 1 GROUP BY 1, 2"
    )
    assert all(row["unit"] == "ns" and 0 <= row["least"] <= row["most"] < 60e9 for row in rows), rows
    return {row["name"]: row["count"] for row in rows}


def adopted(mpi: Mpi, argv: Sequence[str | Path], adopt: str, env: dict[str, str] | None = None) -> Result:
    """Run a program without us, without adapters and with one: it does the same, and we have nothing to complain about."""
    plain = mpi.run(RANKS, argv, mode="off", env=env)
    without = mpi.run(RANKS, argv, env=env)
    result = mpi.run(RANKS, argv, env={"COMMLENS_ADOPT": adopt, **(env or {})})
    assert plain.rc == 0, plain
    assert (result.rc, result.lines) == (without.rc, without.lines) == (plain.rc, plain.lines), result
    assert len(result.said) == 1, result.said  # where the profile went
    assert list(regions(without.open())) == [""], "nobody asked for regions"
    result.open().check()
    assert result.open().calls("MPI_Barrier") == without.open().calls("MPI_Barrier")
    return result


def nvtx_include() -> Path:
    """Return where NVTX's headers are."""
    spec = importlib.util.find_spec("nvidia")
    assert spec is not None and spec.submodule_search_locations, "nvidia-nvtx is missing: run `make setup`"
    (found,) = (
        header.parents[1]
        for place in spec.submodule_search_locations
        for header in Path(place).glob("*/include/nvtx3/nvToolsExt.h")
    )
    return found


def nvtx_program(mpi: Mpi) -> Path:
    return mpi.compile("adopt_nvtx.c", None, "-ldl", flags=(f"-I{nvtx_include()}", f"-I{ROOT}"))


def test_nvtx_push_and_pop_are_regions_and_start_and_end_metrics(mpi: Mpi) -> None:
    result = adopted(mpi, [nvtx_program(mpi)], "nvtx")
    sweep = "main/solver:sweep"
    assert regions(result.open()) == {
        "": (1, 1),
        "before MPI": (1, 0),
        "main": (1, 1),  # after the first end of two domains
        sweep: (4, 3),
        f"{sweep}/Größe 𝜋": (3, 3),
        f"{sweep}/e/a:write": (1, 1),
        "main/(no name)": (1, 1),
        "thread": (1, 0),
    }
    assert spans(result.open()) == {"ahead": 1, "copy": 1, "e/a:write": 1}


def test_nvtx_of_python(mpi: Mpi) -> None:
    result = adopted(mpi, [sys.executable, PROGRAMS / "adopt_nvtx.py"], "nvtx", mpi4py_env(mpi))
    assert regions(result.open()) == {
        "": (1, 0),
        "main": (1, 0),
        "main/step": (4, 4),
        "main/step/halo:exchange": (4, 4),
    }
    assert spans(result.open()) == {"ahead": 1}


KOKKOS = Path("/usr/include/trilinos/Kokkos_Core.hpp")
needs_kokkos_alone = pytest.mark.skipif(SANITIZER is not None, reason="Kokkos was built without it")


def kokkos_program(mpi: Mpi) -> Path:
    assert KOKKOS.is_file(), "libtrilinos-kokkos-dev is missing: run `make setup`"
    flags = ("-std=c++17", "-DOMPI_SKIP_MPICXX", f"-isystem{KOKKOS.parent}")
    return mpi.compile("adopt_kokkos.cpp", None, "-ltrilinos_kokkoscore", flags=flags)


def kokkos_of_debian(adapter: str) -> dict[str, str]:
    """Debian's Kokkos 3.4 knows the variable's old name only, which newer ones complain about."""
    return {"KOKKOS_PROFILE_LIBRARY": str(ADAPTERS / f"libcommlens-{adapter}.so")}


@needs_kokkos_alone
def test_kokkos_regions(mpi: Mpi) -> None:
    program = kokkos_program(mpi)
    plain, result = (
        mpi.run(RANKS, [program], mode="off"),
        mpi.run(RANKS, [program], env=kokkos_of_debian("kokkos")),
    )
    assert (result.rc, result.lines) == (plain.rc, plain.lines) == (0, ["sum 2997000"] * RANKS), result
    assert len(result.said) == 1, result.said
    result.open().check()
    assert regions(result.open()) == {"": (1, 0), "main": (1, 0), "main/solve": (3, 3)}
    assert spans(result.open()) == {"halo": 3}


@needs_kokkos_alone
def test_kokkos_kernels_are_regions_when_asked_for(mpi: Mpi) -> None:
    program = kokkos_program(mpi)
    result = mpi.run(RANKS, [program], env=kokkos_of_debian("kokkos-kernels"))
    assert (result.rc, len(result.said)) == (0, 1), result
    found = regions(result.open())
    assert found["main/solve"] == (3, 3)
    assert found["main/solve/parallel_for axpy"] == (3, 0)
    assert found["main/solve/parallel_reduce dot"] == (3, 0)
    assert found["main/deep_copy x"] == (1, 0)
    left_out = mpi.run(
        RANKS,
        [program],
        env={**kokkos_of_debian("kokkos-kernels"), "COMMLENS_REGIONS": "!parallel_*,!deep_copy *,!fence *"},
    )
    assert {path for path in regions(left_out.open()) if "main" in path} == {"main", "main/solve"}


@needs_kokkos_alone
def test_kokkos_without_the_profiler(mpi: Mpi) -> None:
    program = kokkos_program(mpi)
    plain = mpi.run(RANKS, [program], mode="off")
    alone = mpi.run(RANKS, [program], mode="off", env=kokkos_of_debian("kokkos-kernels"))
    assert (alone.rc, alone.lines, alone.stderr) == (plain.rc, plain.lines, plain.stderr)


def test_nvtx_without_the_profiler(mpi: Mpi) -> None:
    program = nvtx_program(mpi)
    plain = mpi.run(RANKS, [program], mode="off")
    alone = mpi.run(
        RANKS, [program], mode="off", env={"NVTX_INJECTION64_PATH": str(ADAPTERS / "libcommlens-nvtx.so")}
    )
    assert (alone.rc, alone.stdout, alone.stderr) == (plain.rc, plain.stdout, plain.stderr)


def hooks(mpi: Mpi, what: str) -> Result:
    """Run what calls the hooks of Kokkos itself."""
    result = mpi.run(
        RANKS, [mpi.compile("adopt_hooks.c", None, "-ldl"), what], env={"COMMLENS_ADOPT": "kokkos"}
    )
    assert (result.rc, result.stdout) == (0, ""), result
    result.open().check()
    return result


def test_threads_that_meet_the_same_names_at_once(mpi: Mpi) -> None:
    found = regions(hooks(mpi, "threads").open())
    assert found == {"": (1, 1), "thread": (80, 0), **{f"thread/part {i}": (80, 0) for i in range(50)}}


def test_sections_are_used_again_and_those_beyond_1024_are_not_counted(mpi: Mpi) -> None:
    # one of the 1,024 is "outer", which was not destroyed
    assert spans(hooks(mpi, "sections").open()) == {"outer": 1, "short": 5000, "many": 1023}


def test_no_name_a_long_one_and_too_many(mpi: Mpi) -> None:
    profile = hooks(mpi, "names").open()
    found = regions(profile)
    assert found["(no name)"] == (2, 0)
    assert found["x" * 255] == (1, 0)
    assert found["1234"] == (1, 0)
    assert sum(calls for path, (calls, _) in found.items() if path) == 70003
    assert len(found) <= 16384 + 1, "what a process tells apart"


def test_regions_that_are_too_deep_are_said_once(mpi: Mpi) -> None:
    result = hooks(mpi, "deep")
    found = regions(result.open())
    assert found["/".join(["deeper"] * 128)] == (1, 0)
    assert found["after"] == (1, 0)
    assert len(result.said) == 2, result.said


CALIPER_REGIONS = {
    "": (1, 0),
    "main": (1, 0),
    "main/first": (1, 1),
    "main/steps": (1, 0),
    "main/steps/exchange": (3, 3),
    "main/solve": (1, 1),
    "main/solve/sweeps": (1, 0),
    "main/solve/sweeps/halo": (4, 4),
    "main/axpy": (1, 1),
    "main/dot": (1, 1),
}
# 1 region, 1 phase, 1 loop, 3 iterations, sizes and exchanges each; then solve with 1 loop, 4 iterations and halos;
# mode, axpy and dot
CALIPER_SAW = f"caliper saw {3 + 9 + 2 + 8 + 3} begin, 0 left open, 1 wrong"


def caliper_program(mpi: Mpi, flags: Sequence[str] = ()) -> Path:
    stub = mpi.compile("caliper_stub.cpp", shared=True)
    return mpi.compile("adopt_caliper.cpp", None, stub, f"-Wl,-rpath,{stub.parent}", flags=flags)


def test_caliper_has_the_same_calls_and_commlens_its_regions(mpi: Mpi) -> None:
    result = adopted(mpi, [caliper_program(mpi)], "caliper")
    assert result.lines == [CALIPER_SAW] * RANKS
    profile = result.open()
    assert regions(profile) == CALIPER_REGIONS
    loops = profile.rows(
        "SELECT path, iterations FROM loop_time l JOIN region_path p ON p.region = l.region WHERE rank = 1 ORDER BY 1"
    )
    assert [tuple(row.values()) for row in loops] == [("main/solve/sweeps", 4), ("main/steps", 3)]


@pytest.fixture
def caliper() -> Path:
    """Return where a Caliper is installed. No package registry has it, so these tests run where somebody has built it."""
    place = os.environ.get("CALIPER_DIR")
    if place is None:
        pytest.skip("CALIPER_DIR does not name the folder of an installed Caliper")
    return Path(place)


def test_the_regions_of_a_real_caliper(mpi: Mpi, caliper: Path) -> None:
    """What Caliper itself counts is the same with the adapter and without."""
    (library,) = (found for found in caliper.glob("lib*/libcaliper.so"))
    flags = ("-std=c++17", f"-isystem{caliper}/include")
    program = mpi.compile(
        "adopt_caliper_macros.cpp", None, library, f"-Wl,-rpath,{library.parent}", flags=flags
    )
    env = {
        "CALI_SERVICES_ENABLE": "event,aggregate,report",
        "CALI_REPORT_FILENAME": "stdout",
        "CALI_REPORT_CONFIG": "format expand",  # a line for each rank, region and event, with its number
    }
    result = adopted(mpi, [program], "caliper", env)
    assert sum("event.end#region=halo" in line and ",count=4," in line for line in result.lines) == RANKS, (
        result
    )
    profile = result.open()
    assert regions(profile) == CALIPER_REGIONS
    loops = profile.rows(
        "SELECT path, iterations FROM loop_time l JOIN region_path p ON p.region = l.region WHERE rank = 1 ORDER BY 1"
    )
    assert [tuple(row.values()) for row in loops] == [("main/solve/sweeps", 4), ("main/steps", 3)]


def test_caliper_that_only_a_plugin_sees(mpi: Mpi, tmp_path: Path) -> None:
    """As of a Python module, which the interpreter loads with RTLD_LOCAL."""
    stub = mpi.compile("caliper_stub.cpp", shared=True)
    plugin = mpi.compile(
        "adopt_caliper.cpp",
        None,
        stub,
        f"-Wl,-rpath,{stub.parent}",
        flags=("-shared", "-fPIC", "-Dmain=run_all"),
    )
    (tmp_path / "host.cpp").write_text(
        "#include <dlfcn.h>\n#include <mpi.h>\n"
        "int main(int argc, char** argv) {\n"
        "  void* plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);\n"
        "  if (plugin == nullptr) return 3;\n"
        '  return reinterpret_cast<int (*)(int, char**)>(dlsym(plugin, "_Z7run_alliPPc"))(argc, argv);\n'
        "}\n"
    )
    host = mpi.compile(tmp_path / "host.cpp", None, "-ldl", flags=("-Wl,--no-as-needed",))
    result = adopted(mpi, [host, plugin], "caliper")
    assert result.lines == [CALIPER_SAW] * RANKS
    assert regions(result.open()) == CALIPER_REGIONS


LLVM_OPENMP = next(iter(sorted(Path("/usr/lib").glob("llvm-*/lib/libomp.so.5"))), None)
"""Of the release that Debian takes for its package libomp5."""
OPENMP_REGIONS = [
    ("", 1, 2),
    ("omp parallel", 1, 1),
    ("omp parallel", 2, 2),
    ("omp parallel", 5, 5),
    ("omp parallel/omp for", 5, 0),
    ("omp parallel/omp parallel", 3, 3),
]


def openmp_program(mpi: Mpi, *runtime: str) -> Path:
    """Return a program that GCC compiled; with LLVM's OpenMP runtime, that is the first of the two that are loaded."""
    return mpi.compile("adopt_openmp.c", None, *runtime, flags=("-fopenmp", "-fno-inline"))


@pytest.mark.skipif(SANITIZER is not None, reason="LLVM's runtime was built without it")
@pytest.mark.dealt
def test_openmp_parallel_regions(mpi: Mpi) -> None:
    assert LLVM_OPENMP is not None, "libomp5 is missing: run `make setup`"
    program = openmp_program(mpi, "-Wl,--no-as-needed", str(LLVM_OPENMP))
    result = adopted(mpi, [program], "openmp")
    assert result.lines == ["sum 24750"] * RANKS
    profile = result.open()
    # The places in the program, which are equal on all ranks.
    places = r" [\w.-]+\+0x[0-9a-f]+"
    of_regions = [(re.sub(places, "", path), *counts) for path, counts in regions(profile).items()]
    assert sorted(of_regions) == OPENMP_REGIONS
    assert profile.column("SELECT DISTINCT COUNT(*) FROM region_rank GROUP BY region") == [RANKS]
    assert profile.column("SELECT threads FROM rank") == [1] * RANKS, "the other threads have no regions"
    alone = mpi.run(
        RANKS, [program], mode="off", env={"OMP_TOOL_LIBRARIES": str(ADAPTERS / "libcommlens-openmp.so")}
    )
    assert (alone.rc, alone.lines) == (0, ["sum 24750"] * RANKS)


@pytest.mark.dealt
def test_the_openmp_runtime_of_gcc_has_no_tools(mpi: Mpi) -> None:
    result = mpi.run(RANKS, [openmp_program(mpi)], env={"COMMLENS_ADOPT": "openmp"})
    assert (result.rc, result.lines) == (0, ["sum 24750"] * RANKS)
    assert regions(result.open()) == {"": (1, 13)}


def environment_of(adopt: str, **chosen: str) -> tuple[dict[str, str], str]:
    """Return the environment of a program that commlens-run starts, and the messages of commlens-run."""
    env_command = shutil.which("env")
    assert env_command is not None
    done = subprocess.run(
        [BUILD / "bin" / "commlens-run", env_command],
        env={"COMMLENS_MPI": "mpich", "COMMLENS_ADOPT": adopt, "PATH": "/usr/bin:/bin", **SANITIZER_ENV, **chosen},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    return dict(line.split("=", 1) for line in done.stdout.splitlines()), done.stderr


def test_commlens_run_puts_adapters_where_their_tools_look() -> None:
    env, said = environment_of("kokkos, nvtx,caliper, openmp")
    assert said == ""
    assert env["KOKKOS_TOOLS_LIBS"] == str(ADAPTERS / "libcommlens-kokkos.so")
    assert env["NVTX_INJECTION64_PATH"] == str(ADAPTERS / "libcommlens-nvtx.so")
    assert env["OMP_TOOL_LIBRARIES"] == str(ADAPTERS / "libcommlens-openmp.so")
    assert [Path(path).name for path in env["LD_PRELOAD"].split(":")] == [
        "libcommlens.so",
        "libcommlens-caliper.so",
    ]
    assert "KOKKOS_PROFILE_LIBRARY" not in env, "newer versions of Kokkos complain about it"
    again, said = environment_of(
        "kokkos-kernels,caliper", **{k: env[k] for k in ("KOKKOS_TOOLS_LIBS", "LD_PRELOAD")}
    )
    assert said == "", "an outer commlens-run is not the user's choice"
    assert again["KOKKOS_TOOLS_LIBS"] == str(ADAPTERS / "libcommlens-kokkos-kernels.so")
    assert again["LD_PRELOAD"] == env["LD_PRELOAD"]
    none, said = environment_of("")
    assert (said, set(none) & {"KOKKOS_TOOLS_LIBS", "NVTX_INJECTION64_PATH"}) == ("", set())
    assert Path(none["LD_PRELOAD"]).name == "libcommlens.so"


@pytest.mark.parametrize(
    ("adopt", "variable", "tool"),
    [
        ("kokkos", "KOKKOS_TOOLS_LIBS", "/opt/tool.so"),
        ("nvtx", "NVTX_INJECTION64_PATH", "/opt/tool.so"),
        ("openmp", "OMP_TOOL_LIBRARIES", "/opt/tool.so"),
        # Kokkos ends a program in which the two variables differ.
        ("kokkos-kernels", "KOKKOS_PROFILE_LIBRARY", "/opt/tool.so"),
        ("kokkos-kernels", "KOKKOS_PROFILE_LIBRARY", "/opt/lib/libcommlens-kokkos.so"),
    ],
)
def test_a_tool_that_the_user_has_chosen_stays(adopt: str, variable: str, tool: str) -> None:
    env, said = environment_of(adopt, **{variable: tool})
    assert {name: env[name] for name in env if name.startswith(("KOKKOS", "NVTX", "OMP_TOOL"))} == {
        variable: tool
    }
    assert said == f"commlens: {variable} already names a tool; COMMLENS_ADOPT={adopt} is ignored\n"


def test_a_tool_that_the_program_is_told_of_stays() -> None:
    """Kokkos 3 ends a program that hears of two tools."""
    argument = "--kokkos-tools-libs=/opt/tool.so"
    done = subprocess.run(
        [BUILD / "bin" / "commlens-run", "/bin/sh", "-c", 'echo "$KOKKOS_TOOLS_LIBS"', "sh", argument],
        env={"COMMLENS_MPI": "mpich", "COMMLENS_ADOPT": "kokkos", "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout == "\n"
    assert done.stderr == f"commlens: {argument} already names a tool; COMMLENS_ADOPT=kokkos is ignored\n"


def test_what_cannot_be_adopted_is_said() -> None:
    env, said = environment_of("tau,nvtx")
    assert said.splitlines() == [
        "commlens: COMMLENS_ADOPT=tau is invalid; use kokkos, kokkos-kernels, nvtx, openmp or caliper"
    ]
    assert "NVTX_INJECTION64_PATH" in env
