# SPDX-License-Identifier: Apache-2.0
"""What is kept of several settings: all of them, if they are faster together, or the best one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from commlens.cli.tune_steps import Steps
from commlens.overhead.estimate import Cost, Estimate
from commlens.tune.proof import TOGETHER, Proof
from commlens.tune.rules import RuleSet
from commlens.tune.switches import Trial

ONE = Trial("one", "1", {"ONE": "1"}, "because")
TWO = Trial("two", "2", {"TWO": "2"}, "because")
RULES = RuleSet({}, {"RULES": "{folder}/r"})


def changed(by: float, p: float = 0.001) -> Cost:
    """Return a change of the run time, with an interval of 1 % to each side."""
    return Cost("leg", 0, 0, 0, 0, 0, 12, ratio=Estimate(by, by - 0.01, by + 0.01, p, 12))


def kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rules: Cost | None, tried: Any, together: Any = None
) -> tuple[list[str], str]:
    """Return what is printed, and the content of the file; together: costs of the best setting and of all."""
    asked: list[Mapping[str, str]] = []

    def prove(variables: Mapping[str, str], best: Mapping[str, str], *_: object) -> dict[str, Cost]:
        asked.extend((variables, best))
        return dict(zip(("best", TOGETHER), together))

    monkeypatch.setattr("commlens.cli.tune_steps.prove_together", prove)
    plan: Any = SimpleNamespace(worth=[], library="Open MPI v4.1.4")
    steps = Steps("p.db", plan, [], ["true"], tmp_path, "proof", 60, 12)
    lines = steps.show_kept(RULES, Proof([], tmp_path, rules), tried)
    assert bool(asked) == (together is not None)
    path = tmp_path / "settings"
    return lines, path.read_text(encoding="utf-8") if path.exists() else ""


def test_nothing_is_kept_of_settings_without_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = [(ONE, changed(0.02)), (TWO, changed(-0.02, p=0.2)), (ONE, None)]
    lines, text = kept(tmp_path, monkeypatch, None, tried)
    assert text == ""
    assert [line.split(": ")[:2] for line in lines] == [["ONE=1", "Leave it"], ["TWO=2", "Leave it"], ["ONE=1", "Leave it"]]  # fmt: skip


def test_one_setting_needs_no_further_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines, text = kept(tmp_path, monkeypatch, changed(0.0), [(ONE, changed(-0.1)), (TWO, changed(0.0))])
    assert text == "ONE=1\n"
    assert lines[0].startswith("ONE=1: Faster: 10.0 % (9.0 to 11.0 %) less time")


def test_rules_alone_are_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, text = kept(tmp_path, monkeypatch, changed(-0.1), [])
    assert text == f"RULES={tmp_path}/r\n"


def test_settings_that_are_faster_together_are_all_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = [(ONE, changed(-0.1)), (TWO, changed(-0.05))]
    both = (changed(-0.1), changed(-0.2))
    lines, text = kept(tmp_path, monkeypatch, changed(-0.15), tried, both)
    assert text == f"ONE=1\nRULES={tmp_path}/r\nTWO=2\n"
    assert lines[2].startswith("all 3 settings together: Faster: 20.0 %")


@pytest.mark.parametrize("together", [changed(-0.08), changed(0.1), changed(-0.2, p=0.3)])
def test_settings_that_are_not_are_reduced_to_the_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, together: Cost
) -> None:
    tried = [(ONE, changed(-0.05)), (TWO, changed(-0.1))]
    lines, text = kept(tmp_path, monkeypatch, None, tried, (changed(-0.1), together))
    assert text == "TWO=2\n"
    assert lines[2].startswith("all 2 settings together are not faster than the best alone")
    assert lines[3] == "only the best is kept: TWO=2"


def test_few_runs_become_enough_for_several_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan: Any = SimpleNamespace(worth=[], library="Open MPI v4.1.4")
    steps = Steps("p.db", plan, [], ["true"], tmp_path, "proof", 60, 6)
    assert [steps.rounds(number) for number in (1, 2, 3)] == [6, 7, 8]
    assert "7 runs each: fewer cannot show that one of 2 settings is faster" in capsys.readouterr().out
