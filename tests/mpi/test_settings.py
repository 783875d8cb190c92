# SPDX-License-Identifier: Apache-2.0
"""Table setting: labels and how the job was set up, from the environment of real launches."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from harness import Mpi
from launches import Result
from profile_rows import Profile
from test_languages import mpi4py_env
from test_survive import commlens

SETTINGS = "SELECT source, name, value, ranks FROM setting ORDER BY 1, 2, 3"
LABELS = {"COMMLENS_LABEL": "alg=linear run=3"}
VARIABLES = {"OMP_NUM_THREADS": "2", "UCX_LOG_LEVEL": "error", "FI_PROVIDER_TOKEN": "abc", "OTHER": "x"}


def settings(profile: Profile) -> dict[tuple[str, str], list[tuple[str, int]]]:
    """Return values and numbers of ranks, by source and name."""
    found: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for row in profile.rows(SETTINGS):
        found.setdefault((row["source"], row["name"]), []).append((row["value"], row["ranks"]))
    return found


def finished(result: Result) -> dict[tuple[str, str], list[tuple[str, int]]]:
    assert result.rc == 0, result
    assert len(result.said) == 1, result.said
    return settings(result.open())


def test_labels_and_variables_are_in_the_profile(mpi: Mpi) -> None:
    program = mpi.compile("listing1.c")
    found = finished(mpi.run(4, [program], {**LABELS, **VARIABLES}))
    assert found["label", "alg"] == [("linear", 4)]
    assert found["label", "run"] == [("3", 4)]
    assert found["environment", "OMP_NUM_THREADS"] == [("2", 4)]
    assert found["environment", "UCX_LOG_LEVEL"] == [("error", 4)]
    assert found["environment", "FI_PROVIDER_TOKEN"] == [("***", 4)]
    assert ("environment", "OTHER") not in found
    assert found["program", "executable"] == [(os.path.realpath(program), 4)]
    ((build_id, ranks),) = found["program", "build_id"]
    assert re.fullmatch(r"[0-9a-f]{40}", build_id) and ranks == 4
    assert [ranks for _, ranks in found.get(("machine", "processor"), [("", 4)])] == [4]


def test_nothing_that_the_launcher_sets_for_each_process_or_launch_is_stored(mpi: Mpi) -> None:
    """Two launches of the same command have the same settings, and each value is that of all ranks."""
    program = mpi.compile("listing1.c")
    first, second = (finished(mpi.run(4, [program])) for _ in range(2))
    assert first == second
    assert all(len(values) == 1 and values[0][1] == 4 for values in first.values()), first


def test_labels_alone_are_stored_if_a_site_wants_it(mpi: Mpi) -> None:
    found = finished(
        mpi.run(2, [mpi.compile("listing1.c")], {**LABELS, **VARIABLES, "COMMLENS_SETTINGS": "labels"})
    )
    assert found == {("label", "alg"): [("linear", 2)], ("label", "run"): [("3", 2)]}


def test_a_word_that_is_no_label_is_named_once(mpi: Mpi) -> None:
    result = mpi.run(2, [mpi.compile("listing1.c")], {"COMMLENS_LABEL": "alg=ring fast"})
    assert result.rc == 0
    assert result.said[0] == "commlens: COMMLENS_LABEL: 'fast' is not NAME=VALUE and is left out"
    assert len(result.said) == 2
    assert settings(result.open())["label", "alg"] == [("ring", 2)]


def test_labels_that_differ_in_bytes_that_are_no_utf8_are_stored_together(mpi: Mpi) -> None:
    latin = b"gr\xf6\xdfe=1 gr\xfc\xdfe=1 a=2".decode("utf-8", "surrogateescape")
    found = finished(mpi.run(2, [mpi.compile("listing1.c")], {"COMMLENS_LABEL": latin}))
    assert found["label", "gr\ufffd\ufffde"] == [("1", 2)]
    assert found["label", "a"] == [("2", 2)]


def test_settings_that_differ_between_ranks_are_both_stored(mpi: Mpi) -> None:
    """As after a module is loaded on one node only; the environment at MPI_Init counts."""
    script = 'rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; if [ $rank = 1 ]; then export OMP_NUM_THREADS=7; fi; exec "$@"'
    command: list[str | Path] = ["sh", "-c", script, "sh", mpi.runner, mpi.compile("listing1.c")]
    result = mpi.run(4, command, {"OMP_NUM_THREADS": "2"}, mode="link")
    assert result.rc == 0, result
    assert settings(result.open())["environment", "OMP_NUM_THREADS"] == [("2", 3), ("7", 1)]
    text = " ".join(commlens("report", result.profile, cwd=result.profile.parent).split())
    assert "settings OMP_NUM_THREADS is 2 on 3 ranks, 7 on 1 rank" in text


def test_profiles_of_several_files_and_of_summary_detail_have_them(mpi: Mpi) -> None:
    program = mpi.compile("listing1.c")
    expected = settings(mpi.run(4, [program], {**LABELS, **VARIABLES}).open())
    for options in ({"COMMLENS_DETAIL": "summary"}, {"COMMLENS_AGGREGATORS": "2"}):
        result = mpi.run(4, [program], {**LABELS, **VARIABLES, **options})
        assert result.rc == 0, result
        stored = result.profile
        path = stored if stored.exists() else stored.with_suffix(".commlens") / "index.db"
        assert settings(Profile(path)) == expected, options


def test_a_recovered_profile_has_them(mpi: Mpi) -> None:
    where = mpi.fresh("killed")
    (where / "arenas").mkdir()
    script = "import os, signal\nfrom mpi4py import MPI\nMPI.COMM_WORLD.Barrier()\nos.kill(os.getpid(), signal.SIGKILL)\n"
    (where / "killed.py").write_text(script)
    env = {**mpi4py_env(mpi), **LABELS, **VARIABLES, "COMMLENS_ARENA_DIR": str(where / "arenas")}
    mpi.run(1, [sys.executable, where / "killed.py"], env, cwd=where)
    path = where / "recovered.db"
    commlens("recover", "-o", path, where / "arenas", cwd=where)
    found = settings(Profile(path))
    assert found["label", "alg"] == [("linear", 1)]
    assert found["environment", "FI_PROVIDER_TOKEN"] == [("***", 1)]
    assert found["program", "executable"] == [(os.path.realpath(sys.executable), 1)]


def controls(found: dict[tuple[str, str], list[tuple[str, int]]]) -> dict[str, list[tuple[str, int]]]:
    return {name: values for (source, name), values in found.items() if source == "control"}


def parameters(mpi: Mpi, text: str) -> dict[str, str]:
    """Return an environment whose only file of Open MPI's parameters has this text."""
    file = mpi.fresh("parameters") / "params.conf"
    file.write_text(text)
    return {"OMPI_MCA_mca_base_param_files": str(file), "OMPI_MCA_mca_base_override_param_file": "/dev/null"}


def test_control_variables_of_a_file_and_of_the_application_are_stored(mpi: Mpi) -> None:
    """Those of the environment are rows of the environment, and defaults are left out."""
    program = mpi.compile("control_variable.c")
    env = parameters(mpi, "coll_tuned_priority = 31\n")
    env["OMPI_MCA_coll_self_priority"] = "74"
    result = mpi.run(3, [program, "shmem_mmap_priority", "47"], env)
    if mpi.family != "openmpi":
        assert controls(settings(result.open())) == {}
        return
    found = finished(result)
    assert controls(found) == {"coll_tuned_priority": [("31", 3)], "shmem_mmap_priority": [("47", 3)]}
    assert found["environment", "OMPI_MCA_coll_self_priority"] == [("74", 3)]


def test_control_variables_that_differ_between_ranks_are_both_stored(mpi: Mpi) -> None:
    if mpi.family != "openmpi":
        pytest.skip("the test above shows that no other library has rows")
    env = parameters(mpi, "")
    script = (
        'if [ $OMPI_COMM_WORLD_RANK = 1 ]; then echo "coll_tuned_priority = 29" > own.conf; '
        'export OMPI_MCA_mca_base_param_files=$PWD/own.conf; fi; exec "$@"'
    )
    command: list[str | Path] = ["sh", "-c", script, "sh", mpi.runner, mpi.compile("listing1.c")]
    result = mpi.run(4, command, env, mode="link", cwd=mpi.fresh("differ"))
    assert controls(settings(result.open())) == {"coll_tuned_priority": [("29", 1)]}
    text = " ".join(commlens("report", result.profile, cwd=result.profile.parent).split())
    assert "coll_tuned_priority is 29 on 1 rank, not set on 3 ranks" in text


def test_control_variables_are_left_out_if_a_site_wants_it(mpi: Mpi) -> None:
    env = {**parameters(mpi, "coll_tuned_priority = 31\n"), "COMMLENS_SETTINGS": "labels"}
    assert finished(mpi.run(2, [mpi.compile("listing1.c")], env)) == {}
