# SPDX-License-Identifier: Apache-2.0
"""The recipes in packaging/, as far as no package is built; `make packages` builds all of them and profiles jobs."""

from __future__ import annotations

import ast
import fnmatch
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).resolve().parents[2]
RECIPES = ROOT / "packaging"
VERSION = (ROOT / "VERSION").read_text(encoding="utf-8").strip()
LIBDIR = "lib/x86_64-linux-gnu"


def text(name: str) -> str:
    """Return the text of a recipe."""
    return (RECIPES / name).read_text(encoding="utf-8")


def run(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command at the root of the repository."""
    return subprocess.run(
        [str(word) for word in command],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("recipe", "pattern"),
    [
        ("debian/changelog", r"^commlens \(([\d.]+)-1\)"),
        ("rpm/commlens.spec", r"^Version: +(\S+)$"),
        ("rpm/commlens.spec", r"^\* .* - ([\d.]+)-1$"),
        ("spack/package.py", r'^    version\("([^"]+)"'),
        ("spack/package.py", r"/commlens-([\d.]+)\.tar\.xz"),
        ("conda/recipe.yaml", r'^  version: "([^"]+)"$'),
    ],
)
def test_a_recipe_has_the_version_of_the_file_version(recipe: str, pattern: str) -> None:
    assert re.findall(pattern, text(recipe), re.MULTILINE)[:1] == [VERSION]


def test_the_easyconfig_has_the_version_in_its_name_too() -> None:
    (recipe,) = (RECIPES / "easybuild").glob("*.eb")
    values = easyconfig(recipe)
    assert values["version"] == VERSION
    assert isinstance(values["toolchain"], dict)
    assert (
        recipe.name == f"commlens-{VERSION}-{values['toolchain']['name']}-{values['toolchain']['version']}.eb"
    )


def easyconfig(recipe: Path) -> dict[str, object]:
    """Return the constants that an easyconfig defines."""
    found = {}
    for line in ast.parse(recipe.read_text(encoding="utf-8")).body:
        assert isinstance(line, ast.Assign)
        try:
            found[ast.unparse(line.targets[0])] = ast.literal_eval(line.value)
        except ValueError:  # calculated from a constant of EasyBuild
            continue
    return found


def needed() -> dict[str, str]:
    """Return the packages that the reader needs, and the version of each."""
    listed = re.search(r"^dependencies = \[(.*)\]$", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert listed
    return dict(re.findall(r'"([a-z]+)>=([\d.]+)"', listed[1]))


def test_recipes_need_the_packages_that_the_reader_needs() -> None:
    conda = yaml.safe_load(text("conda/recipe.yaml"))["requirements"]["run"]
    assert len(needed()) == 3
    for name, version in needed().items():
        assert re.search(rf"python3-{name} \(>= (1:)?{re.escape(version)}\)", text("debian/control")), name
        assert re.search(rf"python\S+-{name} >= {re.escape(version)}\n", text("rpm/commlens.spec")), name
        short = re.sub(r"(\.0)+$", "", version)
        assert f'"py-{name}@{short}:"' in text("spack/package.py"), name
        assert f"{name} >={version}" in conda, name
        for container in ("Dockerfile", "commlens.def"):
            assert f"python3-{name}" in text(f"containers/{container}"), (container, name)


def test_recipes_are_what_their_tools_can_read() -> None:
    ast.parse(text("spack/package.py"))
    assert yaml.safe_load(text("conda/recipe.yaml"))["schema_version"] == 1
    paragraphs = text("debian/control").strip().split("\n\n")
    assert [part.split("\n")[0].split(":")[0] for part in paragraphs] == ["Source", *4 * ["Package"]]
    assert os.access(RECIPES / "debian" / "rules", os.X_OK)
    for script in ("smoke.sh", "debian/tests/smoke"):
        assert os.access(RECIPES / script, os.X_OK)
        assert run("sh", "-n", RECIPES / script).returncode == 0


def test_the_definition_for_apptainer_has_all_its_parts() -> None:
    """A header, then sections, each of them once; the sources are copied before they are compiled."""
    lines = text("containers/commlens.def").splitlines()
    assert [line for line in lines if re.match(r"\w+: ", line)] == [
        "Bootstrap: docker",
        "From: debian:bookworm-slim",
    ]
    sections = [line for line in lines if line.startswith("%")]
    assert sections == ["%files", "%post", "%environment", "%runscript", "%test"]
    outside = lines[: lines.index("%files")]
    assert all(re.match(r"#|\w+: |$", line) for line in outside)
    assert lines[lines.index("%files") + 1] == "    . /source"
    assert "    cd /source" in lines


def test_recipes_contain_no_address_or_checksum() -> None:
    """The release that `make dist` packs has them; an archive cannot contain its own checksum."""
    for recipe in ("rpm/commlens.spec", "spack/package.py", "conda/recipe.yaml"):
        assert "@ADDRESS@" in text(recipe)
    for path in RECIPES.rglob("*"):
        assert path.is_dir() or not re.search(r"\b[0-9a-f]{64}\b", path.read_text(encoding="utf-8")), path


@pytest.fixture(scope="module")
def configured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a build folder with the reader, in which nothing is compiled."""
    folder = tmp_path_factory.mktemp("build")
    options = ("-DCOMMLENS_TESTS=OFF", "-DCOMMLENS_READER=lib/python3", f"-DCMAKE_INSTALL_LIBDIR={LIBDIR}")
    python = ROOT / ".venv" / "bin" / "python"
    done = run("cmake", "-S", ROOT, "-B", folder, f"-DCOMMLENS_PYTHON={python}", *options)
    assert done.returncode == 0, done
    return folder


def test_every_installed_file_is_in_a_debian_package_or_left_out(configured: Path, tmp_path: Path) -> None:
    lists = [path.read_text(encoding="utf-8") for path in (RECIPES / "debian").glob("*.install")]
    globs = re.findall(r"^(usr/\S+)", "\n".join([*lists, text("debian/not-installed")]), re.MULTILINE)
    files = installed(configured, tmp_path)
    assert f"usr/{LIBDIR}/commlens/abi/libcommlens.so" in files
    for file in files:
        assert any(fnmatch.fnmatch(file, glob) or fnmatch.fnmatch(file, f"{glob}/*") for glob in globs), file
    for glob in globs:
        assert any(fnmatch.fnmatch(file, f"{glob}*") for file in files), glob


def test_the_reader_runs_from_a_folder_that_was_moved(configured: Path, tmp_path: Path) -> None:
    first, moved = tmp_path / "first", tmp_path / "moved"
    done = run("cmake", "--install", configured, "--prefix", first, "--component", "reader")
    assert done.returncode == 0, done
    first.rename(moved)
    program = (moved / "bin" / "commlens").read_text(encoding="utf-8")
    assert VERSION in run(moved / "bin" / "commlens", "--version").stdout
    relative = re.search(r'__file__\)\), "([^"]+)"', program)
    assert relative
    assert (moved / "bin" / relative[1] / "commlens" / "__main__.py").exists()
    assert "Requires-Dist: click>=8.0\n" in next(moved.rglob("METADATA")).read_text(encoding="utf-8")


def installed(build: Path, root: Path) -> set[str]:
    """Return what the install scripts of a build folder would install below usr, without building it."""
    # Those that are written with the prefix in them need no build.
    done = run("cmake", "--install", build, "--prefix", "/usr", "--component", "modules", DESTDIR=str(root))
    assert done.returncode == 0, done
    files = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    assert "usr/share/commlens/site/commlens.conf" in files
    for script in build.rglob("cmake_install.cmake"):
        written = script.read_text(encoding="utf-8")
        for folder, names in re.findall(
            r'file\(INSTALL DESTINATION "\$\{CMAKE_INSTALL_PREFIX\}/([^"]+)" TYPE \w+(.*?)\)',
            written,
            re.DOTALL,
        ):
            rename = re.search(r'RENAME "([^"]+)"', names)
            for name in re.findall(r'"(/[^"]+)"', names):
                files.add(f"usr/{folder}/{rename[1] if rename else Path(name).name}")
    return files


def test_the_systems_sqlite_is_used_by_name_and_stays_out_of_sight(tmp_path: Path) -> None:
    source = tmp_path / "uses.c"
    source.write_text("""
#include <dlfcn.h>
#include <stdio.h>
#include "third_party/sqlite/sqlite3.h"
int main(void) {
  sqlite3* db = NULL;
  sqlite3_stmt* row = NULL;
  const int code = sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE, NULL);
  sqlite3_prepare_v2(db, "SELECT 6 * 7 AS answer", -1, &row, NULL);
  const int has_row = sqlite3_step(row) == SQLITE_ROW;
  printf("%d %g %s %d\\n", code == SQLITE_OK, has_row ? sqlite3_column_double(row, 0) : 0,
         has_row ? sqlite3_column_name(row, 0) : "none", dlsym(RTLD_DEFAULT, "sqlite3_libversion") != NULL);
  sqlite3_finalize(row);
  return sqlite3_close(db);
}
""")
    program = tmp_path / "uses"
    flags = ("-D_GNU_SOURCE", "-fvisibility=hidden", f"-I{ROOT}")
    done = run("cc", *flags, "-o", program, source, ROOT / "core/out/system_sqlite.c", "-ldl")
    assert done.returncode == 0, done
    assert run(program).stdout == "1 42 answer 0\n"
    # A sanitizer ends programs that use RTLD_DEEPBIND.
    done = run(
        "cc", "-fsanitize=address", *flags, "-o", program, source, ROOT / "core/out/system_sqlite.c", "-ldl"
    )
    assert done.returncode == 0, done
    assert run(program, ASAN_OPTIONS="detect_leaks=0").stdout == "1 42 answer 0\n"
    # An SQLite that the application has loaded is left to the application.
    done = run(
        *("cc", *flags, "-o", tmp_path / "linked", source, ROOT / "core/out/system_sqlite.c", "-ldl"),
        *("-Wl,--no-as-needed", "-l:libsqlite3.so.0"),
    )
    assert done.returncode == 0, done
    assert run(tmp_path / "linked").stdout == "0 0 none 1\n"
    # Without the library, nothing is found, and nothing fails.
    (tmp_path / "libsqlite3.so.0").write_text("no library")
    assert run(program, LD_LIBRARY_PATH=str(tmp_path), ASAN_OPTIONS="detect_leaks=0").stdout == "0 0 none 0\n"


def test_each_function_of_sqlite_that_the_library_calls_has_one_for_the_system() -> None:
    handed_on = (ROOT / "core/out/system_sqlite.c").read_text()
    for source in (ROOT / "core").rglob("*.cpp"):
        for name in re.findall(r"\b(sqlite3_\w+)\(", source.read_text(encoding="utf-8")):
            assert re.search(rf"\b{name}[,(]", handed_on), name


def test_make_dist_packs_the_same_bytes_again(tmp_path: Path) -> None:
    """In another folder and at another time, from a repository with few files."""
    archives = []
    for name in ("one", "another folder"):
        folder = tmp_path / name
        (folder / "tools").mkdir(parents=True)
        for script in ("dist.sh", "step.sh"):
            shutil.copy(ROOT / "tools" / script, folder / "tools")
        shutil.copytree(RECIPES, folder / "packaging")
        (folder / "VERSION").write_text("1.2\n")
        (folder / "ignored").touch()
        (folder / ".gitignore").write_text("ignored\nbuild\ndist\n")
        assert run("git", "init", "--quiet", folder).returncode == 0
        done = run(folder / "tools" / "dist.sh", "https://example.org/x", SOURCE_DATE_EPOCH="1")
        assert done.returncode == 0, done
        archives.append(folder / "dist" / "commlens-1.2.tar.xz")
        recipe = (folder / "dist" / "recipes" / "conda" / "recipe.yaml").read_text()
        assert f'sha256: "{run("sha256sum", archives[-1]).stdout.split()[0]}"' in recipe
        assert "https://example.org/x/commlens-" in recipe
    assert archives[0].read_bytes() == archives[1].read_bytes()
    names = run("tar", "tf", archives[0]).stdout.split()
    assert "commlens-1.2/VERSION" in names
    assert "commlens-1.2/ignored" not in names
