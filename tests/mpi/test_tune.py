# SPDX-License-Identifier: Apache-2.0
"""`commlens tune` from the profile to the proof, with a library that is slow in one algorithm."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from harness import Mpi

from commlens.cli import commlens
from commlens.tune.rules.mpich import FILES as BY_TABLE
from commlens.tune.rules.openmpi import FILE as BY_SIZE

RANKS = 2
RUNS = 12
"""So many that a difference is certain even if load makes a run with the setting slower than its partner without."""


def prepared(mpi: Mpi, monkeypatch: pytest.MonkeyPatch, where: Path) -> None:
    for name, value in mpi.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MPICC", " ".join([mpi.compilers["c"], *mpi.flags]))
    monkeypatch.setenv("PATH", f"{mpi.runner.parent}:{os.environ['PATH']}")
    monkeypatch.chdir(where)


def tuned(mpi: Mpi, profile: Path, program: Path, *options: object) -> Result:
    command = ["--", mpi.launcher, "-n", RANKS, program]
    return CliRunner().invoke(commlens, list(map(str, ["tune", profile, *options, *command])))


def test_the_way_round_a_slow_algorithm_is_found_and_proven(
    mpi: Mpi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library's own choice for two processes is slow. A rule chooses another one."""
    if mpi.family != "openmpi":
        pytest.skip("the slow library is for Open MPI")
    slow = mpi.compile("slow_algorithm.c", None, "-ldl", shared=True)
    program = mpi.compile("tune.c")
    # A slow call takes so long that no load of the machine hides what the rule saves: 50 calls, 400 ms in each run.
    monkeypatch.setenv("SLOW_MICROSECONDS", "8000")
    before = mpi.run(RANKS, [program], mode="preload", preload=[slow])
    assert before.stderr.count("slow_algorithm: 50 slow calls") == RANKS
    prepared(mpi, monkeypatch, tmp_path)
    monkeypatch.setenv("LD_PRELOAD", str(slow))
    done = tuned(mpi, before.profile, program, "--op", "Alltoall", "--budget", 20, "--runs", RUNS)
    monkeypatch.delenv("LD_PRELOAD")
    folder = before.profile.with_suffix(".tune")
    assert done.exit_code == 0, done.output
    assert "faster with certainty in 1 of 1 case" in done.output
    assert "\nFaster: " in done.output, done.output
    assert "\n  MPI_Alltoall 512-1023 B on d0.* x5: " in done.output, done.output
    assert {"measurements.csv", "openmpi.rules", "rules.md", "settings", "proof.csv", "profiles"} <= {
        path.name for path in folder.iterdir()
    }
    # The messages of some algorithms are the same with two processes: which one was chosen decides what can be told.
    seen = [line for line in done.output.splitlines() if "(seen below MPI)" in line]
    assert len(seen) == 1, done.output
    assert seen[0].startswith("MPI_Alltoall 512-1023 B on d0.*, 2 ranks: ")
    assert "Faster: " in (folder / "rules.md").read_text(encoding="utf-8")
    settings = (folder / "settings").read_text(encoding="utf-8").splitlines()
    variables = dict(line.split("=", 1) for line in settings)
    after = mpi.run(RANKS, [program], variables, mode="preload", preload=[slow])
    assert after.rc == 0, after
    assert "slow calls" not in after.stderr


def test_mpich_gets_a_rule_for_the_slow_size(
    mpi: Mpi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages of half the data are slow, and the library's own choice sends such. Another algorithm sends all at once.

    The runs take over 10 s: the replay needs rounds, and a proof at least six.
    """
    if mpi.name != "mpich":
        pytest.skip("the messages are slowed down in UCX, and a wheel has no mpicc")
    sends = mpi.compile("netmod_sends.c", None, "-ldl", shared=True)
    program = mpi.compile("tune_sums.c")
    monkeypatch.setenv("MPIR_CVAR_NOLOCAL", "1")
    monkeypatch.setenv("SLOW_BYTES", "512")
    monkeypatch.setenv("SLOW_MICROSECONDS", "4000")
    before = mpi.run(RANKS, [program], preload=[sends])
    assert before.rc == 0, before
    prepared(mpi, monkeypatch, tmp_path)
    idle = mpi.compile("sleep_when_idle.c", None, shared=True)
    monkeypatch.setenv("LD_PRELOAD", f"{sends}:{idle}")
    done = tuned(mpi, before.profile, program, "--budget", 40, "--runs", RUNS)
    monkeypatch.delenv("LD_PRELOAD")
    folder = before.profile.with_suffix(".tune")
    assert done.exit_code == 0, done.output
    assert "faster with certainty in 1 of 1 case" in done.output, done.output
    assert "\nFaster: " in done.output, done.output
    assert f"  MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE={folder}/mpich.json" in done.output, done.output
    rules = json.loads((folder / "mpich.json").read_text(encoding="utf-8"))
    of_size = rules["collective=allreduce"]["comm_type=intra"]["comm_size<=2"]["avg_msg_size<=2047"]
    assert "reduce_scatter" not in json.dumps(of_size)


def test_no_rule_is_written_where_nothing_is_chosen(
    mpi: Mpi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It measures all that it planned; without a choice the folder has no rules."""
    program = mpi.compile("tune.c")
    before = mpi.run(RANKS, [program])
    prepared(mpi, monkeypatch, tmp_path)
    done = tuned(mpi, before.profile, program, "--until", "rules", "--budget", 6, "--to", tmp_path / "kept")
    assert done.exit_code == 0, done.output
    if "nothing to try" in done.output:  # on a machine on which the calls take no time
        assert not (tmp_path / "kept").exists()
        return
    page = (tmp_path / "kept" / "rules.md").read_text(encoding="utf-8")
    is_chosen = "another algorithm is faster with certainty in " in done.output  # by chance
    has_rule = "No rule: leave the library's own choice." not in page
    assert (has_rule or "\n## Left out\n" in page) == is_chosen
    assert has_rule or not any((tmp_path / "kept" / name).exists() for name in (BY_SIZE, *BY_TABLE))
    assert not (tmp_path / "kept" / "proof.csv").exists()


def test_a_variable_that_makes_the_run_faster_is_kept(
    mpi: Mpi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without collectives there is no rule: the proof has the plain run and the variable only.

    The plain runs sleep for 1.5 s, so that load does not hide what the variable saves.
    """
    if mpi.name != "openmpi" or not mpi.known:
        pytest.skip("the limit is one of Open MPI 4")
    program = mpi.compile("late_answers.c")
    before = mpi.run(RANKS, [program])
    assert before.rc == 0, before
    prepared(mpi, monkeypatch, tmp_path)
    name = "OMPI_MCA_btl_vader_eager_limit=16384"
    left = tuned(mpi, before.profile, program, "--no-switches")
    assert left.exit_code == 0, left.output
    assert name not in left.output
    done = tuned(mpi, before.profile, program, "--runs", RUNS)
    assert done.exit_code == 0, done.output
    assert f"\n{name}: Faster: " in done.output, done.output
    folder = before.profile.with_suffix(".tune")
    assert (folder / "settings").read_text(encoding="utf-8") == f"{name}\n"
    assert f"- {name}: Faster: " in (folder / "rules.md").read_text(encoding="utf-8")
    assert not (folder / "measurements.csv").exists()
    runs = (folder / "proof.csv").read_text(encoding="utf-8")
    again = tuned(mpi, before.profile, program, "--runs", RUNS)
    assert again.output.splitlines()[-2:] == done.output.splitlines()[-2:]
    assert (folder / "proof.csv").read_text(encoding="utf-8") == runs
