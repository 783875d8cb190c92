# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the MPI tests.

`mpi` is one MPI library; a test that asks for it runs once per library: with Debian's Open MPI and MPICH, or with those
that COMMLENS_TEST_MPI names, such as COMMLENS_TEST_MPI=openmpi5,mpich5,mpich5-abi,intel,intel-abi for the ones that
tools/mpis.sh fetches.  One that is not there is an error, not a skip.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from harness import Mpi

from commlens.base.errors import CommlensError
from commlens.jobs import arenas

NAMES = tuple(os.environ.get("COMMLENS_TEST_MPI", "openmpi,mpich").split(","))

DEALT = ("openmpi", "mpich")
"""Each case of a test marked `dealt` runs with one of these two; with other libraries, it runs with each of them."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--every-case",
        action="store_true",
        help="run each case of the tests marked `dealt` with both MPI libraries",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the cases that are the turn of the other MPI library, unless tests are asked for by name."""
    if config.getoption("--every-case") or any("::" in argument for argument in config.args):
        return
    turns: dict[Path, dict[str, int]] = {}
    is_kept = [is_its_turn(item, turns.setdefault(item.path, {})) for item in items]
    config.hook.pytest_deselected(items=[item for item, kept in zip(items, is_kept) if not kept])
    items[:] = [item for item, kept in zip(items, is_kept) if kept]


def is_its_turn(item: pytest.Item, turns: dict[str, int]) -> bool:
    """Return whether a case runs with its MPI library; `turns` numbers the dealt cases of the file.

    The turns go A B B A A B B A ..., so that both libraries get both values of a parameter with two.
    """
    if item.get_closest_marker("dealt") is None or set(NAMES) != set(DEALT):
        return True
    if not isinstance(item, pytest.Function) or "mpi" not in item.fixturenames:
        return True
    library = str(item.callspec.params["mpi"])
    case = item.nodeid.replace(library, "", 1)
    turn = turns.setdefault(case, len(turns))
    return DEALT[(turn + turn // 2) % 2] == library


@pytest.fixture(scope="session", params=NAMES)
def mpi(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mpi]:
    """Return one MPI implementation with our library built for it."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    programs = shared / "programs" / request.param
    programs.mkdir(parents=True, exist_ok=True)
    folder = tmp_path_factory.mktemp(request.param)
    found = Mpi(request.param, folder, programs)
    for product in (found.library, found.runner):
        if not product.exists():
            pytest.fail(f"{product} is missing: run `make build` first")
    yield found
    remove_arenas(folder)


def remove_arenas(folder: Path) -> None:
    """Remove what killed jobs have left in /dev/shm, if their profiles would be in this folder."""
    with suppress(CommlensError):  # there is no commlens-arena
        for arena in arenas.read(arenas.find([Path("/dev/shm")])):
            if not arena.error and not arena.is_running and Path(arena.output).is_relative_to(folder):
                arena.file.unlink(missing_ok=True)
