# SPDX-License-Identifier: Apache-2.0
"""The proof of settings: runs with planted gains and none, interrupted proofs, and files that were changed."""

from __future__ import annotations

import dataclasses
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from commlens.base.errors import CommlensError
from commlens.overhead.estimate import Cost
from commlens.overhead.legs import BASELINE, HERE, Tool
from commlens.overhead.measure import Run
from commlens.tune.model import Candidate, Case, Choice
from commlens.tune.proof import PROFILED, compared_rows, filed, has_begun, leg_name, legs
from commlens.tune.prove import (
    PROOF,
    SUBJECT,
    TUNED,
    costs_of,
    fewest,
    is_faster,
    kept_runs,
    prove,
    sentence,
    subject,
)
from commlens.tune.rules import RuleSet
from commlens.tune.settings import faster_trials, settings_text, store_settings
from commlens.tune.switches import Trial

MS = 10**6


def cost_of(runs: list[Run]) -> Cost | None:
    """Return what the leg with the rules changes, if it is the only one."""
    return costs_of(runs, [TUNED]).get(TUNED)


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


def test_runs_with_other_settings_do_not_count(tmp_path: Path) -> None:
    prove("a", Application(-0.1), tmp_path, 6)
    other = Application(0.0)
    runs = prove("b", other, tmp_path, 6)
    assert other.made == 14
    assert kept_runs("a", tmp_path) == []
    assert [run for run in runs if run.round > 0] == kept_runs("b", tmp_path)


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


def test_the_subject_changes_with_a_file_that_the_command_names(tmp_path: Path) -> None:
    """A program that was compiled anew is another one."""
    program = tmp_path / "app"
    program.write_text("1")
    texts = {subject([], [HERE, str(program)], {})}
    program.write_text("22")
    texts.add(subject([], [HERE, str(program)], {}))
    program.unlink()
    texts.add(subject([], [HERE, str(program)], {}))
    assert len(texts) == 3


TRIALS = [Trial("limit", value, {"OMPI_MCA_limit": value}, "because") for value in ("1", "2", "3")]


def several(changes: dict[str, float], rounds: int) -> list[Run]:
    """Return runs of 100 ms, which each leg changes by so much and by noise of 0.1 % that is the same for all."""
    return [
        Run(round, position, name, 4, round_ns((1 + change) * (1 + 0.001 * (round % 3))), 0, 0, 0, 0)
        for round in range(1, rounds + 1)
        for position, (name, change) in enumerate({BASELINE: 0.0, **changes}.items(), 1)
    ]


def test_the_number_of_settings_is_part_of_the_p_value() -> None:
    """With seven rounds, no p value is below 2 / 2^7 = 0.016: of one faster setting among five, it is 0.08."""
    one = {leg_name(TRIALS[0]): -0.1}
    others = {f"other-{i}": 0.001 * (-1) ** i for i in range(4)}
    assert is_faster(costs_of(several(one, 7), one)[leg_name(TRIALS[0])])
    mixed = several({**one, **others}, 7)
    spread = [replace_ns(run, 1 + 0.01 * (-1) ** run.round) if run.tool in others else run for run in mixed]
    cost = costs_of(spread, {**one, **others})[leg_name(TRIALS[0])]
    assert not is_faster(cost)
    assert "is not certain (p = 0.0" in sentence(cost)
    assert "corrected for the number of settings" in sentence(cost)
    enough = several({**one, **others}, fewest(5))
    assert is_faster(costs_of(enough, {**one, **others})[leg_name(TRIALS[0])])


def replace_ns(run: Run, factor: float) -> Run:
    return dataclasses.replace(run, net_ns=int(run.net_ns * factor))


@pytest.mark.parametrize("tested", range(1, 10))
def test_the_fewest_rounds_allow_one_setting_to_be_certain(tested: int) -> None:
    changes = {"one": -0.1, **{f"other-{i}": 0.0 for i in range(tested - 1)}}
    assert is_faster(costs_of(several(changes, fewest(tested)), changes)["one"])


def test_the_best_value_of_a_variable_is_kept() -> None:
    other = Trial("other", "9", {"OTHER": "9"}, "because")
    slow = Trial("slow", "1", {"SLOW": "1"}, "because")
    changes = {leg_name(TRIALS[0]): -0.05, leg_name(TRIALS[1]): -0.2, leg_name(TRIALS[2]): -0.1}
    changes |= {leg_name(other): -0.15, leg_name(slow): 0.1}
    costs = costs_of(several(changes, 12), changes)
    tried = [(trial, costs[leg_name(trial)]) for trial in (*TRIALS, other, slow)]
    assert [trial for trial, _ in faster_trials([*tried, (slow, None)])] == [TRIALS[1], other]


def test_a_trial_runs_without_commlens_and_rules_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "commlens.tune.proof.commlens_tool", lambda name, variables: Tool(name, "", ("w",), variables)
    )
    assert [tool.name for tool in legs(RuleSet(), TRIALS[:1], tmp_path, tmp_path)] == ["limit-1"]
    choice = Choice(Case(1, "W0.0", "bcast", 4, 7, 100), Candidate(2, "x"), 2.0, 1.0, -0.5, -0.6, -0.4, 9)
    rules = RuleSet({"f": ""}, {"RULES": "{folder}/f"}, [choice])
    plain, tuned, trial = legs(rules, TRIALS[:1], tmp_path, tmp_path / "p")
    assert (plain.name, plain.wrapper, "RULES" in plain.variables) == (PROFILED, ("w",), False)
    assert (tuned.name, tuned.variables["RULES"]) == (TUNED, f"{tmp_path}/f")
    assert (trial.wrapper, trial.variables) == ((), {"OMPI_MCA_limit": "1"})


def test_the_profiles_of_the_warm_up_and_of_failed_runs_do_not_count(tmp_path: Path) -> None:
    """An interrupted proof has a second warm-up, and a round that is made again."""

    def made(rounds: list[tuple[int, str]], done: int) -> Iterator[Run]:
        for round, failure in rounds:
            (tmp_path / "tuned.db").write_text(f"{done + round}")
            yield Run(round, 1, "tuned", 4, 0, 0, 0, 0, 0, failure)

    first = filed(made([(0, ""), (1, ""), (2, ""), (3, "")], 0), tmp_path, 0)
    assert len(list(first)) == 4
    list(filed(made([(0, ""), (1, ""), (2, "signal 9")], 2), tmp_path, 2))  # round 3 was not whole
    found = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert found == {"tuned.1.db": "1", "tuned.2.db": "2", "tuned.3.db": "3"}


def test_only_profiles_of_whole_rounds_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    monkeypatch.setattr("commlens.tune.proof.read_run", lambda path, _: read.append(Path(path).name))
    monkeypatch.setattr("commlens.tune.proof.compare", lambda *_: SimpleNamespace(nodes=[], rows=[]))
    for name in (PROFILED, TUNED):
        for number in (1, 2, 3, 4):
            (tmp_path / f"{name}.{number}.db").touch()
    runs = several({PROFILED: 0.0, TUNED: 0.0}, 3)
    compared_rows(tmp_path, runs[:-1], [])
    assert read == ["default.1.db", "default.2.db", "tuned.1.db", "tuned.2.db"]


def test_what_is_kept_is_read_by_a_shell(tmp_path: Path) -> None:
    variables = {"B": "it's $HOME", "A": "1"}
    path = store_settings(variables, tmp_path)
    assert path is not None
    said = subprocess.run(
        ["sh", "-c", 'set -a; . "$1"; env', "sh", str(path)], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert {"A=1", "B=it's $HOME"} <= set(said)
    assert path.read_text() == settings_text(variables)
    assert store_settings({}, tmp_path) is None
    assert not path.exists()


def test_a_proof_has_begun_when_a_run_is_kept(tmp_path: Path) -> None:
    assert not has_begun(tmp_path)
    (tmp_path / "profiles" / "1234").mkdir(parents=True)
    assert not has_begun(tmp_path)
    (tmp_path / "profiles" / "1234" / PROOF).touch()
    (tmp_path / "profiles" / "1234" / SUBJECT).write_text(subject([Tool("limit-1")], [], {}))
    assert not has_begun(tmp_path)  # a variable alone: more measurements change no rule that was proven
    (tmp_path / "profiles" / "1234" / SUBJECT).write_text(subject([Tool(TUNED)], [], {}))
    assert has_begun(tmp_path)
