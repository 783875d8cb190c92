# SPDX-License-Identifier: Apache-2.0
"""What `make demo` and `make install` leave behind."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from machine import without_make

ROOT = Path(__file__).resolve().parents[2]


def run(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `command` at the root of the repository and return what it said."""
    return subprocess.run(
        [str(part) for part in command],
        cwd=ROOT,
        env={**without_make(), **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_make_demo_shows_the_communicators_of_an_application_nobody_here_wrote() -> None:
    result = run("make", "demo")
    assert result.returncode == 0, result.stdout
    assert re.search(r"^demo    mpirun -n 4 commlens-run lmp .* \d+ s$", result.stdout, re.MULTILINE)
    report = result.stdout.split("commlens report", 1)[1]
    assert "W0.0" in report
    assert "MPI_Cart_create" in report or "MPI_Comm_split" in report
    with closing(sqlite3.connect(f"file:{ROOT}/build/demo.db?mode=ro", uri=True)) as profile:
        halves = profile.execute(
            "SELECT name, size FROM comm WHERE name IN ('s0.1', 's2.1') ORDER BY name"
        ).fetchall()
    assert halves == [("s0.1", 2), ("s2.1", 2)]


def test_programs_need_libc_only() -> None:
    """They run where the compiler's own libraries are in no path, as those of a module often are."""
    for program in ("commlens-run", "commlens-arena"):
        needed = re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", f"build/release/bin/{program}").stdout)
        assert needed
        assert set(needed) <= {
            "libc.so.6",
            "libdl.so.2",
            "libm.so.6",
            "libpthread.so.0",
            "ld-linux-x86-64.so.2",
        }, program


def test_with_make_the_archive_waits_for_its_objects(tmp_path: Path) -> None:
    """Ninja knows each file; make only whole targets, and there may be no Ninja where somebody compiles a checkout."""
    configured = run(
        "cmake", "-S", ROOT, "-B", tmp_path, "-G", "Unix Makefiles", "-DCMAKE_BUILD_TYPE=Release"
    )
    assert configured.returncode == 0, configured
    rules = (tmp_path / "CMakeFiles" / "Makefile2").read_text()
    for family in ("openmpi", "mpich", "abi"):
        after = re.findall(
            rf"^CMakeFiles/commlens_static_{family}.dir/all: CMakeFiles/(\w+).dir/all$", rules, re.MULTILINE
        )
        assert {f"commlens_{family}", f"static_{family}", f"api_{family}"} <= set(after)
        after = re.findall(
            rf"^CMakeFiles/commlens_{family}.dir/all: CMakeFiles/(\w+).dir/all$", rules, re.MULTILINE
        )
        assert {"sqlite", "core_base", f"wrappers_{family}", f"core_mpi_{family}"} <= set(after)


def test_make_install_gives_a_tree_that_works_by_itself(tmp_path: Path) -> None:
    result = run("sh", "-c", f"umask 077 && make install PREFIX='{tmp_path}'")
    assert result.returncode == 0, result.stdout
    assert all(path.stat().st_mode & 0o055 == 0o055 for path in tmp_path.rglob("*") if path.is_dir())
    installed = run(tmp_path / "bin" / "commlens", "--version")
    assert (ROOT / "VERSION").read_text().strip() in installed.stdout
    launched = run(tmp_path / "bin" / "commlens-run", "env", COMMLENS_MPI="mpich")
    library = re.search(r"^LD_PRELOAD=(.*)$", launched.stdout, re.MULTILINE)
    assert library
    assert Path(library[1]).is_relative_to(tmp_path)
    assert Path(library[1]).name == "libcommlens.so"
    # Beside the reader's own environment: for the user's Python, and for a reader that is started with this PYTHONPATH.
    folder = str(tmp_path / "share" / "commlens" / "python")
    again = run(tmp_path / "bin" / "commlens", "schema", PYTHONPATH=folder)
    assert (again.returncode, again.stderr) == (0, "")
    check_modules(tmp_path)
    check_site(tmp_path)
    (tmp_path / "lib" / "other").mkdir()
    (tmp_path / "lib" / "other" / "file").touch()
    removed = run("make", "uninstall", f"PREFIX={tmp_path}")
    assert removed.returncode == 0, removed.stdout
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / "lib" / "other" / "file"]
    again = run("make", "uninstall", f"PREFIX={tmp_path}")
    assert again.returncode != 0
    assert "nothing was installed" in again.stdout


def check_modules(prefix: Path) -> None:
    """Assert that the module files name folders of this installation, all of which are there."""
    folder = prefix / "share" / "commlens" / "modulefiles" / "commlens"
    version = (ROOT / "VERSION").read_text().strip()
    for name, variable in ((f"{version}.lua", "root, "), (version, "$root/")):
        text = (folder / name).read_text()
        assert f'"{prefix}"' in text
        paths = re.findall(rf'{re.escape(variable)}"?([\w/]+)"', text)
        assert {"bin", "lib", "share/commlens/python"} <= set(paths)
        assert all((prefix / path).is_dir() for path in paths)


def check_site(prefix: Path) -> None:
    """Assert that what an administrator copies names files of this installation, and that commlens reads the rest."""
    version = (ROOT / "VERSION").read_text().strip()
    library = prefix / "lib" / "commlens" / "libcommlens-any.so"
    site, modules = prefix / "share" / "commlens" / "site", prefix / "share" / "commlens" / "modulefiles"
    assert library.is_file()
    assert f'"{library}"' in (modules / "commlens-always" / f"{version}.lua").read_text()
    assert f'"{library}"' in (modules / "commlens-always" / version).read_text()
    plugin = re.search(
        r"^optional (\S+) library=(\S+) default=on$", (site / "plugstack.conf").read_text(), re.MULTILINE
    )
    assert plugin
    assert (Path(plugin[1]).parent.parent, plugin[2]) == (prefix / "lib" / "commlens", str(library))
    prolog = site / "task_prolog.sh"
    assert run(prolog, LD_PRELOAD="").stdout == f"export LD_PRELOAD={library}\n"
    assert run(prolog, LD_PRELOAD=str(library)).stdout == ""
    assert run(prolog, COMMLENS_ENABLE="off", LD_PRELOAD="").stdout == ""
    said = run(prefix / "bin" / "commlens", "doctor", COMMLENS_CONFIG=str(site / "commlens.conf")).stdout
    assert "is not an option" not in said
    assert "is invalid" not in said


IMPORT = """
import sys, commlens
with commlens.region("solve"):
    commlens.metric("residual", unit="1").record(0.5)
assert not commlens.active()
try:
    import click
except ImportError:
    print(commlens.__file__)
"""


def pythons() -> list[str]:
    """Return the Pythons here, of different versions, that the guide promises."""
    found: dict[str, None] = {}
    for name in ("python3", *(f"python3.{minor}" for minor in range(9, 20))):
        done = run(
            "sh", "-c", f"{name} -c 'import sys; print(sys.executable, sys.version_info[:2] >= (3, 9))'"
        )
        path, _, is_new = done.stdout.strip().rpartition(" ")
        if done.returncode == 0 and is_new == "True":
            found[path] = None
    return list(found)


def test_every_python_imports_commlens_from_the_installation(tmp_path: Path) -> None:
    """Without the packages of any environment: those of the reader are not there."""
    done = run("cmake", "--install", "build/release", "--prefix", tmp_path, "--component", "api")
    assert done.returncode == 0, done
    folder = tmp_path / "share" / "commlens" / "python"
    assert pythons()
    for python in pythons():
        done = run(python, "-S", "-B", "-c", IMPORT, PYTHONPATH=str(folder))
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{folder}/commlens/__init__.py\n", ""), (
            python
        )
    assert files_of(folder) == files_of(ROOT / "python")


def files_of(folder: Path) -> set[Path]:
    """Return the files of the package below a folder, without what Python has compiled."""
    found = {path.relative_to(folder) for path in (folder / "commlens").rglob("*") if path.is_file()}
    return {path for path in found if "__pycache__" not in path.parts}


def pip_install(target: Path, **environment: str) -> Path:
    """Install the package alone, without what it needs, and return the folder.

    With ccache, and with the compilers that CMake finds instead of Python's: tools/build.sh has compiled the same sources
    already.
    """
    python = ROOT / ".venv" / "bin" / "python"
    if shutil.which("ccache"):
        environment |= {"CMAKE_C_COMPILER_LAUNCHER": "ccache", "CMAKE_CXX_COMPILER_LAUNCHER": "ccache"}
        environment = {"CCACHE_DEPEND": "1", "CC": "cc", "CXX": "c++", **environment}
    command = (python, "-m", "pip", "install", "--quiet", "--no-deps", "--target", target, ROOT)
    done = run(*command, **environment)
    assert done.returncode == 0, done
    assert (target / "commlens" / "__init__.py").exists()
    return target


def test_pip_install_brings_the_library_for_each_interface(tmp_path: Path) -> None:
    """Also below --target, which leaves out some folders of a package."""
    place = pip_install(tmp_path, SKBUILD_BUILD_DIR="build/pip")
    families = {path.parent.name for path in (place / "libexec" / "commlens").glob("*/libcommlens.so")}
    assert families == {"openmpi", "mpich", "abi"}
    for family in families:
        launched = run(place / "bin" / "commlens-run", "env", COMMLENS_MPI=family)
        library = place / "libexec" / "commlens" / family / "libcommlens.so"
        assert f"LD_PRELOAD={library}\n" in launched.stdout, launched
    listed = run(place / "libexec" / "commlens" / "commlens-arena", "list")
    assert (listed.returncode, listed.stderr) == (0, "")
    assert listed.stdout.startswith("file\tdevice\tinode\t")


@pytest.mark.parametrize("reason", [{"CXX": "/nowhere/c++"}, {"SKBUILD_WHEEL_CMAKE": "false"}])
def test_pip_install_brings_the_reader_alone(reason: dict[str, str], tmp_path: Path) -> None:
    """Where the library cannot be built, and where nobody wants it."""
    place = pip_install(tmp_path, **reason)
    assert list(place.rglob("libcommlens.so")) == []
    assert list(place.rglob("commlens-*")) == list(place.glob("commlens-*.dist-info"))


def test_what_is_installed_is_built_without_the_unit_tests(tmp_path: Path) -> None:
    """Target all, which make build and make install build."""
    done = run("cmake", "-S", ROOT, "-B", tmp_path, "-G", "Unix Makefiles")
    assert done.returncode == 0, done
    targets = re.findall(r"^all: (.*)$", (tmp_path / "CMakeFiles" / "Makefile2").read_text(), re.MULTILINE)
    assert "CMakeFiles/commlens-arena.dir/all" in targets
    assert [target for target in targets if "test" in target] == []
