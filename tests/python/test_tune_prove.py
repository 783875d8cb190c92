# SPDX-License-Identifier: Apache-2.0
"""The proof of settings: runs with planted gains and none, interrupted proofs, and files that were changed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from commlens.base.errors import CommlensError
from commlens.overhead.legs import BASELINE, HERE, Tool
from commlens.overhead.measure import Run
from commlens.tune.prove import PROOF, cost_of, is_faster, kept_runs, prove, sentence, subject

MS = 10**6


class Application:
    """Runs of 100 ms with 1 % of noise; the settings change the time by `change`."""

    def __init__(self, change: float, stop_after: int = 10**6, crash: str = ""):
        self.change, self.left, self.crash, self.made = change, stop_after, crash, 0

    def __call__(self, number: int, seed: int) -> Iterator[Run]:
        draw = random.Random(seed)
        for round in range(number + 1):
            for position, tool in enumerate((BASELINE, "tuned"), 1):
                if self.made == self.left:
                    raise KeyboardInterrupt
                self.made += 1
                factor = (1 + self.change * (tool == "tuned")) * draw.uniform(0.99, 1.01)
                failure = self.crash if tool == "tuned" and round == 2 else ""
                yield Run(round, position, tool, 4, 0 if failure else round_ns(factor), 0, 0, 0, 0, failure)


def round_ns(factor: float) -> int:
    return int(100 * MS * factor)


@pytest.mark.parametrize("change", [-0.2, -0.05])
def test_a_planted_gain_is_found(tmp_path: Path, change: float) -> None:
    cost = cost_of(prove("a", Application(change), tmp_path, 12))
    assert cost is not None
    assert cost.ratio is not None
    assert cost.ratio.low <= change <= cost.ratio.high
    assert is_faster(cost)
    assert sentence(cost).startswith("Faster: ")
    assert "less time between MPI_Init and MPI_Finalize, 12 runs each" in sentence(cost)


def test_a_slower_application_is_left_alone(tmp_path: Path) -> None:
    cost = cost_of(prove("a", Application(0.1), tmp_path, 12))
    assert not is_faster(cost)
    assert sentence(cost).startswith("Leave it: ")
    assert " more time between" in sentence(cost)


def test_no_difference_is_no_gain(tmp_path: Path) -> None:
    """The runs of a round are the same with and without the settings, but for noise of equal sign and size."""
    runs = prove("a", Application(0.0), tmp_path, 12)
    same = [Run(r.round, r.position, r.tool, 4, round_ns(1 + 0.001 * (r.round % 2) * (r.tool == "tuned") * (1 if r.round % 4 == 1 else -1)), 0, 0, 0, 0) for r in runs]  # fmt: skip
    cost = cost_of(same)
    assert not is_faster(cost)
    assert sentence(cost).startswith("Leave it: no difference above ")


def test_a_crash_with_the_settings_is_no_gain(tmp_path: Path) -> None:
    cost = cost_of(prove("a", Application(-0.5, crash="signal 11"), tmp_path, 8))
    assert not is_faster(cost)
    assert sentence(cost) == "Leave it: the application failed with the settings: signal 11 in 1 of 8 runs"


def test_an_interrupted_proof_goes_on(tmp_path: Path) -> None:
    """Stopped in the fourth round, after the warm-up and three whole rounds."""
    with pytest.raises(KeyboardInterrupt):
        prove("a", Application(-0.1, stop_after=9), tmp_path, 8)
    assert [run.round for run in kept_runs("a", tmp_path)] == [1, 1, 2, 2, 3, 3]
    rest = Application(-0.1)
    runs = prove("a", rest, tmp_path, 8)
    assert rest.made == 2 * (5 + 1)
    assert sorted(run.round for run in runs) == sorted([*range(1, 9)] * 2)
    again = Application(-0.1)
    assert prove("a", again, tmp_path, 8) == runs
    assert again.made == 0


def test_runs_with_other_settings_are_moved_aside(tmp_path: Path) -> None:
    prove("a", Application(-0.1), tmp_path, 6)
    first = (tmp_path / PROOF).read_text()
    for number in (1, 2):
        other = Application(0.0)
        prove(f"b{number}", other, tmp_path, 6)
        assert other.made == 14
    assert (tmp_path / "proof-1.csv").read_text() == first
    assert (tmp_path / "proof-2.csv").exists()


@pytest.mark.parametrize("content", ["", "no csv\n", "round,position\n1,2\n", "\x00\xff"])
def test_a_damaged_file_is_refused_in_one_line(tmp_path: Path, content: str) -> None:
    prove("a", Application(-0.1), tmp_path, 6)
    (tmp_path / PROOF).write_text(content)
    with pytest.raises(CommlensError, match=r"proof\.csv"):
        prove("a", Application(-0.1), tmp_path, 8)


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommlensError, match="cannot be written"):
        prove("a", Application(-0.1), tmp_path / "none", 6)


def test_too_few_runs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CommlensError, match="at least 6"):
        prove("a", Application(-0.1), tmp_path, 5)


def test_the_subject_changes_with_variables_files_and_command() -> None:
    texts = {
        subject([one], launch, files)
        for one in (Tool("tuned", variables={"A": "1"}), Tool("tuned", variables={"A": "2"}))
        for launch in ([HERE, "./app"], [HERE, "./app", "2"])
        for files in ({"rules": "1"}, {"rules": "2"}, {})
    }
    assert len(texts) == 12
