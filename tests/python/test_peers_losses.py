# SPDX-License-Identifier: Apache-2.0
"""The comparison with other profilers: where another tool costs less is told beyond the noise, with what it does less."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.peers import losses, places
from bench.peers.results import Store
from bench.peers.tools import CONFIGURATIONS


@pytest.fixture(autouse=True)
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the results below a folder of the test."""
    monkeypatch.setattr(places, "RESULTS", tmp_path / "results")


@pytest.mark.parametrize(
    ("differences", "is_exact", "is_so"),
    [
        ([110.0 - 50.0], True, True),  # instructions have no noise
        ([110.0 - 50.0], False, False),
        ([-60.0], True, False),
        ([], True, False),
        ([3.0, 2.0, 4.0], True, True),
        ([3.0, 2.0, 4.0], False, False),  # too few rounds
        ([3.0, 2.0, -0.1], True, False),
        ([3.0, 2.0, 4.0, 3.5, 2.5, 3.2, 2.9], False, True),
        ([30.0, -20.0, 25.0, -28.0, 31.0, -22.0, 5.0], False, False),  # its interval has 0 in it
        ([-3.0, -2.0, -4.0, -3.5, -2.5, -3.2, -2.9], False, False),
        ([5.0] * 7, False, True),
        ([0.0] * 7, True, False),
    ],
)
def test_a_tool_costs_less_only_beyond_the_noise(
    differences: list[float], is_exact: bool, is_so: bool
) -> None:
    assert losses.is_more(differences, is_exact=is_exact) is is_so


def test_a_call_that_a_tool_does_not_count_is_not_compared() -> None:
    for name, number in (("baseline", 100), ("mpisee", 100), ("mpiP", 900), ("commlens", 190)):
        Store("instructions").put(("openmpi", name), "1", counts=[["Iprobe", 1, number]])
    found = losses.Losses()
    values = {"commlens": 9.0, "mpisee": 0.1, "mpiP": 8.0, "IPM": 7.0}
    more = {name: [9.0 - value] * 6 for name, value in values.items()}
    found.note(losses.NS, "openmpi", "Iprobe", "Iprobe, self", values, more, str)
    assert [loss.tool for loss in found.found] == ["mpiP", "IPM"], "IPM is not known to count nothing"
    assert found.compared == 2
    found.note(losses.NS, "mpich", "Iprobe", "Iprobe, self", values, more, str)
    assert found.compared == 5, "of another MPI library nothing is known"


def test_what_a_tool_does_less_is_said_with_the_rows() -> None:
    Store("correct").put(("mpich", "mpiP -p -y -e", "halo"), "1", missing=["MPI_Sendrecv"])
    found = losses.Losses()
    for where, own in (("`halo 1`, 2 ranks", 9.0), ("`halo 1`, 4 ranks", 12.0)):
        values = {"commlens": own, "mpiP": 3.0}
        found.note(losses.NET, "mpich", "halo", where, values, {"mpiP": [own - 3.0] * 6}, str)
    found.note(
        losses.OUTPUT, "mpich", "amr", "`halo 1`", {"commlens": 9.0, "IPM": 1.0}, {"IPM": [8.0] * 6}, str
    )
    text = "\n".join(found.lines())
    assert "In 3 of 3 comparisons" in text
    assert (
        "| net, added share | mpiP | 3.0 | 9.0 to 12.0 | `halo 1`, 2 ranks; `halo 1`, 4 ranks | "
        "It does not count `MPI_Sendrecv`. |" in text
    )
    assert f"| bytes of output | IPM | 1.0 | 9.0 | `halo 1` | {losses.NO_COMMS} |" in text
    assert text.index("bytes of output") < text.index("net, added share"), "the order of the page"


def test_every_reason_is_of_a_column_and_a_configuration_of_the_page() -> None:
    names = {one.name for one in CONFIGURATIONS if one.for_cost} - {"commlens"}
    assert {column for column, _ in losses.REASONS} <= set(losses.COLUMNS)
    assert {tool for _, tool in losses.REASONS} <= names


def test_a_tool_without_communicators_does_nothing_where_one_is_made() -> None:
    assert losses.reason_of(losses.NET, "mpich", "IPM", "comm_churn") == losses.NO_COMMS
    assert losses.reason_of(losses.NET, "mpich", "IPM", "cg") == losses.UNKNOWN
    assert losses.reason_of(losses.HOOK, "mpich", "IPM", "comm_churn") == losses.NO_AGREEMENT
