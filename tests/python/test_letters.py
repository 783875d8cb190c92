# SPDX-License-Identifier: Apache-2.0
"""`commlens comms --letters mpisee`: communicators with the letters of that tool."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

from build_profile import ProfileBuilder
from conftest import Run

from commlens.reports.communicators import MPISEE_LETTERS, with_letters_of_mpisee

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CALLS = Path(__file__).resolve().parents[2] / "spec" / "calls.toml"
OF_MPISEE = {
    "MPI_Comm_create": "c", "MPI_Comm_split": "s", "MPI_Comm_dup": "d", "MPI_Comm_idup": "i", "MPI_Cart_create": "a",
    "MPI_Cart_sub": "b", "MPI_Graph_create": "r", "MPI_Dist_graph_create": "g", "MPI_Comm_split_type": "t",
    "MPI_Comm_create_group": "u", "MPI_Dist_graph_create_adjacent": "j",
}  # fmt: skip
"""As in the second argument of alloc_init_commprof() of its wrappers."""


def test_each_procedure_that_mpisee_knows_has_its_letter() -> None:
    rules = tomllib.loads(CALLS.read_text(encoding="utf-8"))["measure"]
    ours = {call: rule["creates"] for rule in rules if "creates" in rule for call in rule["calls"]}
    assert {call: with_letters_of_mpisee(ours[call] + "0.1") for call in OF_MPISEE} == {
        call: letter + "0.1" for call, letter in OF_MPISEE.items()
    }
    assert set(MPISEE_LETTERS) <= {*ours.values(), "u"}


def test_one_known_member_is_a_rank_and_not_a_number_of_ranks(tmp_path: Path, run: Run) -> None:
    """A communicator of two groups, of which the profile knows one."""
    build = ProfileBuilder(ranks=4)
    build.comm("i2.1", [2, 3], creator="MPI_Comm_dup", parent=1, kind="inter", remote_size=1, members="2")
    drawn = run("comms", build.write(tmp_path / "p.db")).stdout
    assert " rank 2, " in drawn and "ranks 2," not in drawn


def test_the_tree_has_the_letters_in_every_form(tmp_path: Path, run: Run) -> None:
    build = ProfileBuilder(ranks=4)
    group = build.comm("g0.1", [0, 1], creator="MPI_Comm_split", parent=1)
    build.comm("x0.2", [0], creator="MPI_Comm_dup", parent=group)
    path = build.write(tmp_path / "p.db")
    names = {"u0.1": "W0.0", "g0.2": "u0.1"}
    rows = json.loads(run("comms", path, "--letters", "mpisee", "--format", "json").stdout)
    assert {row["communicator"]: row["parent"] for row in rows if row["parent"]} == names
    text = run("comms", path, "--letters", "mpisee", "--format", "csv").stdout
    assert {
        row["communicator"]: row["parent"] for row in csv.DictReader(io.StringIO(text)) if row["parent"]
    } == names
    drawn = run("comms", path, "--letters", "mpisee").stdout
    assert "u0.1" in drawn and "of u0.1" in drawn and "x0.2" not in drawn
    assert "x0.2" in run("comms", path).stdout
