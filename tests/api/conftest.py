# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of what applications link."""

from __future__ import annotations

from pathlib import Path

import pytest
from application import PROGRAMS, ROOT, Kit, run


@pytest.fixture(scope="session")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with libcommlens-api installed, which was somewhere else before."""
    folder = tmp_path_factory.mktemp("api")
    build = folder / "build"
    run("cmake", "-S", ROOT, "-B", build, "-DCOMMLENS_WITH_MPI=OFF", "-DCOMMLENS_TESTS=OFF")
    run("cmake", "--build", build, "--target", "commlens-api")
    run("cmake", "--install", build, "--component", "api", "--prefix", folder / "installed")
    return (folder / "installed").rename(folder / "moved here")


@pytest.fixture(scope="session")
def profiler(prefix: Path) -> Path:
    """Return a stand-in for the profiler."""
    target = prefix.parent / "libprofiler.so"
    sources = (PROGRAMS / "profiler.c", ROOT / "core/api/fortran77.c")
    run("cc", "-shared", "-fPIC", "-pthread", f"-I{prefix}/include", f"-I{ROOT}", *sources, "-o", target)
    return target


@pytest.fixture
def kit(prefix: Path, profiler: Path, tmp_path: Path) -> Kit:
    """Return what it takes to build and run annotated programs."""
    return Kit(prefix, profiler, tmp_path)
