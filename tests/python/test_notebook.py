# SPDX-License-Identifier: Apache-2.0
"""`commlens.open`: the example notebook runs, and a page in a notebook shows the view that was asked for."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from browser import browser

import commlens
from commlens.base.errors import CommlensError

NOTEBOOK = Path(__file__).parents[2] / "docs" / "guide" / "notebook.ipynb"


def values_of(profile: Path) -> list[Any]:
    """Run the cells of the notebook on a profile; return the value of the last expression of each."""
    found: list[Any] = []
    names: dict[str, Any] = {}
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]).replace('"job.db"', repr(str(profile))))
        last = tree.body.pop()
        assert isinstance(last, ast.Expr)
        exec(compile(tree, "cell", "exec"), names)
        found.append(eval(compile(ast.Expression(last.value), "cell", "eval"), names))
    return found


def test_the_example_notebook_has_the_numbers_of_the_profile(small: Path) -> None:
    names, families, operations, page = values_of(small)
    assert {"counter", "cell", "family_total"} <= set(names)
    # On each half, rank r of the world spends 50 + 10 r ms and 20 ms; one of them frees it in 0.5 ms.
    assert list(families["name"])[:1] == ["s*.1"]
    assert int(families["time_ns"].iloc[0]) == (4 * 70 + 60) * 10**6 + 10**6 // 2
    assert float(families["share"].sum()) == pytest.approx(1)
    first = operations.row(0, named=True)
    assert (first["operation"], first["calls"]) == ("MPI_Allreduce", 400)
    assert page.height == 700


def test_a_profile_that_is_not_there_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(CommlensError, match="no such file"):
        commlens.open(tmp_path / "no.db")


def test_a_star_import_leaves_the_builtin_open_alone() -> None:
    names: dict[str, Any] = {}
    exec("from commlens import *", names)
    assert "open" not in names


@pytest.mark.long
def test_a_page_in_a_notebook_begins_with_its_view_and_reaches_nothing_outside(
    small: Path, tmp_path: Path
) -> None:
    outer = tmp_path / "notebook.html"
    shown = commlens.open(small).page("sizes&family=2")._repr_html_()
    outer.write_text(f'<!doctype html><title>notebook</title><p id="page">cell</p>{shown}', encoding="utf-8")
    with browser() as tab:
        tab.open(outer)
        tab.driver.switch_to.frame(0)
        tab.wait_until("document.getElementById('operations') !== null")
        lines = tab.results()["operations"]["csv"].splitlines()
        assert [line.split(",")[0] for line in lines] == ["operation", "MPI_Allreduce", "MPI_Comm_free"]
        tab.run("document.querySelector('nav a:nth-child(5)').click()")
        tab.wait_until("document.getElementById('ranks') !== null")
        assert (
            tab.run("try { return parent.document.title } catch (error) { return error.name }")
            == "SecurityError"
        )
        assert tab.complaints() == []
