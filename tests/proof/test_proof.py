# SPDX-License-Identifier: Apache-2.0
"""The proof reports what it is there to report: a check that cannot fail is no check.

The programs are shell scripts that behave differently under a make-believe commlens.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from build_profile import ProfileBuilder
from proof import page
from proof.compare import Cases, Seen, add_pair, different
from proof.run import Pairs, Program, Suite, is_done, is_known
from proof.suites import unittest_cases
from proof.summary import Summary, load, renew, save

UNDER = '[ "$MODE" = run ]'
"""True in a script that runs under commlens."""


class FakeMpi:
    """Launches one shell script as the only rank; counts the launches of each kind in $N."""

    name = "fake"

    def __init__(self) -> None:
        self.launches = 0

    def prepare(
        self, n: int, argv: Sequence[str], env: object, profile: Path, mode: str, *, capture: Sequence[Path]
    ) -> tuple[list[str], dict[str, str]]:
        del n, env
        number = self.launches // 2
        self.launches += 1
        path = {"PATH": "/usr/bin:/bin", "PMI_RANK": "0", "PROFILE": str(profile)}
        return [*map(str, capture), "sh", "-c", *argv], {**path, "MODE": mode, "N": str(number)}


def compare(place: Path, script: str, again: int = 2, seconds: int = 20, **options: Any) -> Cases:
    """Run a script as the proof does."""
    how = {key: options.pop(key) for key in ("results", "profiles") if key in options}
    program = Program("script", (script,), seconds=seconds, **{"profiles": 0, **how})
    suite = Suite("fake", "1", "PyPI", lambda _mpi: [program], ranks=(1,), **options)
    return Pairs(suite, FakeMpi(), program, 1, place).compare(again)  # type: ignore[arg-type]


def verdicts(cases: Cases) -> dict[str, str]:
    return {name: case.verdict for name, case in cases.items()}


def test_a_program_that_does_the_same_is_the_same(tmp_path: Path) -> None:
    assert verdicts(compare(tmp_path, "echo out; echo err >&2; exit 3")) == {
        "(run)": "same",
        "(profile)": "same",
    }


@pytest.mark.parametrize(
    "script",
    [
        f"{UNDER} && echo more; true",
        f"{UNDER} || echo less; true",
        f"{UNDER} && echo error >&2; true",
        f"echo a; {UNDER} && echo c; echo b",
        f"{UNDER} && exit 1; exit 0",
        f"{UNDER} && exit 0; exit 1",
        f"{UNDER} && kill -SEGV $$; true",
    ],
)
def test_output_and_exit_code_that_differ_are_reported(tmp_path: Path, script: str) -> None:
    cases = compare(tmp_path, script)
    assert verdicts(cases)["(run)"] == "different"
    assert len(cases["(run)"].under) == 3, "what differs is run again"


def test_a_hang_is_reported_and_ended(tmp_path: Path) -> None:
    cases = compare(tmp_path, f"echo begin; {UNDER} && sleep 1000; true", again=0, seconds=1)
    assert cases["(run)"].under[0].outcome == "hang"
    assert verdicts(cases)["(run)"] == "different"


def test_a_file_that_differs_is_reported(tmp_path: Path) -> None:
    script = f"echo 1 >result; {UNDER} && echo 2 >result; true"
    assert verdicts(compare(tmp_path, script))["(run)"] == "same", "nobody asked for it"
    assert verdicts(compare(tmp_path / "b", script, results=("result",)))["(run)"] == "different"


def test_only_what_is_declared_is_not_compared(tmp_path: Path) -> None:
    script = f"t=1; {UNDER} && t=2; echo time $t"
    assert verdicts(compare(tmp_path, script))["(run)"] == "different"
    assert verdicts(compare(tmp_path / "b", script, scrub=((r"time \d+", "time"),)))["(run)"] == "same"


def test_lines_of_a_rank_may_change_places_only_where_that_is_declared(tmp_path: Path) -> None:
    script = f"if {UNDER}; then echo a; echo b; else echo b; echo a; fi"
    assert verdicts(compare(tmp_path, script))["(run)"] == "different"
    assert verdicts(compare(tmp_path / "b", script, sort=True))["(run)"] == "same"


def test_what_varies_by_itself_is_flaky_and_not_different(tmp_path: Path) -> None:
    # Pairs 0, 1, ...: without commlens 0, 1, ...; with commlens always 1.
    cases = compare(tmp_path, f"if {UNDER}; then echo 1; else echo $N; fi")
    assert verdicts(cases)["(run)"] == "flaky"
    assert len(cases["(run)"].without) == 2, "no more runs than it takes"


def test_what_comes_seldom_without_commlens_is_looked_for_there(tmp_path: Path) -> None:
    # The launches without commlens have the numbers 0, 1, 2 in pairs, and then half numbers, rounded down.
    rare = f"if {UNDER} || [ $N = 9 ]; then echo rare; else echo usual; fi"
    cases = compare(tmp_path, rare)
    assert verdicts(cases)["(run)"] == "flaky"
    assert len(cases["(run)"].without) > len(cases["(run)"].under) == 3


def test_an_exit_code_that_varies_by_itself_may_be_any_but_0(tmp_path: Path) -> None:
    cases = compare(tmp_path / "a", f"if {UNDER}; then exit 77; else exit $((3 + N)); fi")
    assert verdicts(cases)["(run)"] == "flaky"
    cases = compare(tmp_path / "b", f"if {UNDER}; then exit 0; else exit $((3 + N)); fi")
    assert verdicts(cases)["(run)"] == "different"
    assert (
        verdicts(compare(tmp_path / "c", f"if {UNDER}; then exit 4; else exit 3; fi"))["(run)"] == "different"
    )


def test_what_varies_by_itself_but_never_so_is_different(tmp_path: Path) -> None:
    assert verdicts(compare(tmp_path, f"if {UNDER}; then echo x; else echo $N; fi"))["(run)"] == "different"


def test_what_commlens_says_is_no_output_of_the_program_but_counted(tmp_path: Path) -> None:
    program = Program("script", (f"{UNDER} && echo 'commlens: wrote 3 in /tmp/x' >&2; true",), profiles=0)
    suite = Suite("fake", "1", "PyPI", lambda _mpi: [program], ranks=(1,))
    pairs = Pairs(suite, FakeMpi(), program, 1, tmp_path)  # type: ignore[arg-type]
    assert not different(pairs.compare(0))
    assert dict(pairs.said) == {"commlens: wrote # in #": 1}


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("true", "0 profiles"),
        (f'{UNDER} && cp GOOD "$PROFILE" && cp GOOD "$PROFILE".2.db', "2 profiles"),
        (f'{UNDER} && echo >"$PROFILE"; true', "report: "),
    ],
)
def test_a_run_without_its_one_good_profile_is_reported(tmp_path: Path, script: str, problem: str) -> None:
    good = good_profile(tmp_path)
    cases = compare(tmp_path / "run", script.replace("GOOD", str(good)), again=0, profiles=1)
    assert verdicts(cases)["(profile)"] == "different"
    assert problem in cases["(profile)"].under[0].outcome


def test_a_good_profile_is_fine_and_its_calls_are_counted(tmp_path: Path) -> None:
    good = good_profile(tmp_path)
    program = Program("script", (f'{UNDER} && cp {good} "$PROFILE"; true',))
    suite = Suite("fake", "1", "PyPI", lambda _mpi: [program], ranks=(1,))
    pairs = Pairs(suite, FakeMpi(), program, 1, tmp_path / "run")  # type: ignore[arg-type]
    assert not different(pairs.compare(0))
    assert pairs.calls == 7


def good_profile(place: Path) -> Path:
    builder = ProfileBuilder(ranks=1, meta={"commlens_version": "0.1.0"}, nodes=1)
    builder.count(1, "MPI_Bcast", 0, 7, 1000)
    return builder.write(place / "good.db")


def test_a_case_that_one_side_lacks_is_different() -> None:
    cases: Cases = {}
    add_pair(cases, {"a": Seen("ok"), "b": Seen("ok")}, {"a": Seen("ok")})
    assert different(cases) == ["b"]
    cases = {}
    add_pair(cases, {"a": Seen("ok")}, {"a": Seen("ok")})
    add_pair(cases, {"a": Seen("ok")}, {"a": Seen("ok"), "b": Seen("ok")})
    assert different(cases) == ["b"]


UNITTEST = """\
testGood (test_a.TestA.testGood) ... ok
testSkip (test_a.TestA.testSkip) ... skipped 'not ok'
testNoise (test_a.TestA.testNoise)
What it is about. ... a line of the library
FAIL
testBad (test_a.TestA.testBad) ... ERROR
testLast (test_a.TestA.testLast) ... """


def test_each_case_of_a_unittest_is_one_of_ours(tmp_path: Path) -> None:
    script = f"cat >&2 <<'END'\n{UNITTEST}\nEND"
    cases = compare(tmp_path, script, cases=unittest_cases)
    assert {name.rpartition(".")[2]: case.under[0].outcome for name, case in cases.items()} == {
        "testGood": "ok",
        "testSkip": "skip",
        "testNoise": "fail",
        "testBad": "error",
        "testLast": "not ended",
        "(run)": "ok",
        "(profile)": "fine",
    }


def test_a_unittest_case_that_differs_is_reported_by_name(tmp_path: Path) -> None:
    script = f'w=ok; {UNDER} && w=FAIL; echo "testA (test_a.A.testA) ... $w" >&2'
    assert verdicts(compare(tmp_path, script, cases=unittest_cases)) == {
        "test_a.A.testA": "different",
        "(run)": "same",
        "(profile)": "same",
    }


def record(place: Path, program: str, **about: Any) -> None:
    names = {"suite": "fake", "version": "1", "source": "PyPI", "mpi": "openmpi", "ranks": 2}
    build = {"commlens": "0.1.0", "mpi_version": "Open MPI 4", "program": program}
    place.mkdir(exist_ok=True)
    (place / f"{program}.json").write_text(json.dumps({**names, **build, **about}))


def test_the_page_names_what_differs_what_is_flaky_and_what_is_missing(tmp_path: Path) -> None:
    same = {"without": [["ok", ""]], "with": [["ok", ""]]}
    flaky = {"without": [["ok", ""], ["fail", ""]], "with": [["fail", ""], ["ok", ""]]}
    bad = {"without": [["ok", ""]] * 2, "with": [["fail", ""]] * 2}
    hang = {"without": [["hang", ""]], "with": [["hang", ""]]}
    place = tmp_path / "fake"
    record(place, "a", cases={"same": same, "flaky": flaky}, calls=1200, said={"commlens: hm": 1})
    record(place, "b", cases={"bad": bad, "hang": hang}, calls=34, said={"commlens: hm": 2})
    record(place, "c", not_run="too big")
    (place / "programs").write_text("a\nb\nc\nd\n")
    launches = ["fake", "other"]
    text = page.write(renew({}, tmp_path, launches), launches)
    assert "- other\n- fake: 1 of 4 programs\n" in text
    assert "| fake 1 | openmpi | 2 | 2 | 4 | 3 ok, 1 hang | 1 ok, 2 fail, 1 hang | 1 | 1 | 1,234 |" in text
    assert "`b bad`: without: 2 ok; with: 2 fail (openmpi 2)" in text
    assert "`a flaky`: without: 1 ok, 1 fail; with: 1 ok, 1 fail (openmpi 2)" in text
    assert "`b hang`: hang (openmpi 2)" in text
    assert "too big: `c`" in text
    assert "3 × `commlens: hm`" in text


@pytest.mark.long
def test_how_far_a_hanging_launch_comes_is_chance(tmp_path: Path) -> None:
    """It hangs without and with, in another case each time: nothing differs; hanging only under commlens does."""
    listing = "a (t.T.a) ... ok\\nb (t.T.b) ... "
    further = f"{listing}ok\\nc (t.T.c) ... "
    reaches = f"if {UNDER}; then printf '{listing}'; else printf '{further}'; fi >&2"
    cases = compare(tmp_path / "both", f"{reaches}; sleep 60", seconds=1, cases=unittest_cases)
    assert verdicts(cases) == {"(run)": "same", "t.T.a": "same", "t.T.b": "same", "(profile)": "same"}
    assert [seen.outcome for seen in cases["t.T.b"].under] == ["not reached"]
    other = f"if {UNDER}; then printf '{further}'; else printf '{listing}'; fi >&2"
    cases = compare(tmp_path / "other", f"{other}; sleep 60", seconds=1, cases=unittest_cases)
    assert verdicts(cases)["t.T.b"] == "same"
    assert [seen.outcome for seen in cases["t.T.b"].without] == ["not reached"]
    hangs = compare(tmp_path / "one", f"{reaches}; {UNDER} && sleep 60", seconds=1, cases=unittest_cases)
    assert verdicts(hangs)["(run)"] == "different"


def test_what_this_commlens_has_been_through_is_not_run_again(tmp_path: Path) -> None:
    about = {"suite": "fake", "commlens": "0.1.0 (core/ is 1234)", "program": "a"}
    same = {"(run)": {"without": [["ok", ""]], "with": [["ok", ""]]}}
    other = {"(run)": {"without": [["ok", ""]], "with": [["exit code 1", ""]]}}
    record = tmp_path / "a.json"
    assert not is_done(record, about)
    record.write_text(json.dumps({**about, "cases": same}))
    assert is_done(record, about)
    newer = {**about, "commlens": "0.1.0 (core/ is 5678)"}
    assert not is_done(record, newer)
    assert is_done(record, newer, keep=True)
    assert not is_done(record, {**newer, "program": "b"}, keep=True)
    record.write_text(json.dumps({**about, "cases": other}))
    assert not is_done(record, about), "what differs is looked at again"
    assert not is_done(record, newer, keep=True)
    record.write_text(json.dumps({**about, "not_run": "no such package"}))
    assert not is_done(record, about)
    edited = {**about, "commlens": "0.1.0 (core/ is 1234, edited)"}
    record.write_text(json.dumps({**edited, "cases": same}))
    assert not is_done(record, edited)


def test_a_proof_goes_on_on_another_machine(tmp_path: Path) -> None:
    """All of a launch replaces what was kept of it; a part of it does not."""
    same = {"(run)": {"without": [["ok", ""]], "with": [["ok", ""]]}}
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    for program in ("a", "b"):
        record(first / "fake", program, cases=same, calls=1, said={})
    (first / "fake" / "programs").write_text("a\nb\n")
    kept = tmp_path / "kept.json"
    save(kept, renew(load(kept), first, ["fake", "other"]))
    summaries = load(kept)
    assert {launch: (one.programs, one.calls) for launch, one in summaries.items()} == {"fake": (2, 2)}

    record(second / "fake", "a", cases=same, calls=10, said={})
    (second / "fake" / "programs").write_text("a\nb\n")
    assert renew(summaries, second, ["fake"]) == summaries
    record(second / "fake", "b", not_run="too big")
    assert renew(summaries, second, ["fake"])["fake"].calls == 10


def test_a_launch_that_was_run_on_another_machine_is_not_run_again() -> None:
    about = {"commlens": "0.1.0 (core/ is 1234)", "version": "1", "mpi_version": "Open MPI 4"}
    kept = Summary("fake", "1", "openmpi", "Open MPI 4", 2, ["0.1.0 (core/ is 1234)"], 2, 0, 9, {}, {})
    assert is_known(kept, about)
    for other in ({"commlens": "0.1.0 (core/ is 5678)"}, {"version": "2"}, {"mpi_version": "Open MPI 5"}):
        assert not is_known(kept, {**about, **other})
    assert is_known(kept, {**about, "commlens": "0.1.0 (core/ is 5678)"}, keep=True)
    assert not is_known(replace(kept, missing=1), about)
    assert not is_known(replace(kept, different={"a": "without: 1 ok; with: 1 fail"}), about)
    edited = "0.1.0 (core/ is 1234, edited)"
    assert not is_known(replace(kept, commlens=[edited]), {**about, "commlens": edited})
