# SPDX-License-Identifier: Apache-2.0
"""Changed copies of MPICH's tables, as a model of the library reads them; damaged libraries."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from commlens.algorithms._offered import LIBRARIES
from commlens.base.errors import CommlensError
from commlens.cli.tune_steps import refuse_rules_in_use
from commlens.tune.candidates import candidates_of
from commlens.tune.model import Candidate, Case, Choice
from commlens.tune.rules import RuleSet, page, write_rules
from commlens.tune.rules.mpich import check
from commlens.tune.rules.mpich_model import Call, ask
from commlens.tune.rules.mpich_tables import PAGE, Rule, changed, of_size, read_library, text_of

MPICH = "MPICH Version:\t5.0.2"
Tree = dict[str, Any]


def leaf(name: str) -> Tree:
    return {f"algorithm=MPIR_{name}": {}}


ALGORITHMS: Tree = {
    "collective=bcast": {
        "comm_type=intra": {
            "comm_size<8": {"comm_hierarchy=parent": leaf("Bcast_intra_smp"), "comm_hierarchy=any": leaf("Bcast_intra_binomial")},
            "comm_size=pow2": {"avg_msg_size<=12288": leaf("Bcast_intra_binomial"), "avg_msg_size=any": leaf("Bcast_allcomm_nb")},
            "comm_size=any": leaf("Bcast_intra_scatter_ring_allgather"),
        },
        "comm_type=inter": leaf("Bcast_inter_remote_send_local_bcast"),
    },
    "collective=allreduce": {
        "comm_type=intra": {
            "avg_msg_size<=8": leaf("Allreduce_intra_recursive_doubling"),
            "avg_msg_size=any": {
                "is_op_built_in=no": {"comm_size<8": leaf("Allreduce_allcomm_nb"), "comm_size=any": leaf("Allreduce_intra_ring")},
                "is_op_built_in=yes": {"count<pow2": leaf("Allreduce_allcomm_nb"), "count=any": leaf("Allreduce_intra_ring")},
            },
        },
        "comm_type=inter": leaf("Allreduce_inter_reduce_exchange_bcast"),
    },
    "collective=alltoall": {
        "comm_type=intra": {
            "is_sendbuf_inplace=yes": leaf("Alltoall_intra_pairwise_sendrecv_replace"),
            "is_sendbuf_inplace=no": leaf("Alltoall_intra_scattered"),
        },
        "comm_type=inter": leaf("Alltoall_inter_pairwise_exchange"),
    },
    "collective=allgather": {
        "comm_type=intra": {"comm_size=pow2": leaf("Allgather_intra_recursive_doubling"), "comm_size=any": leaf("Allgather_intra_ring")},
        "comm_type=inter": leaf("Allgather_inter_local_gather_remote_bcast"),
    },
    "collective=gatherv": leaf("Gatherv_allcomm_linear"),
}  # fmt: skip
COMPOSITIONS: Tree = {
    "collective=bcast": {
        "comm_type=intra": {
            "comm_hierarchy=parent": {"composition=MPIDI_Bcast_intra_composition_alpha": {}},
            "comm_hierarchy=any": {"composition=MPIDI_Bcast_intra_composition_gamma": {}},
        }
    },
    "collective=allreduce": {
        "comm_type=intra": {
            "comm_size=node_comm_size": {"composition=MPIDI_Allreduce_intra_composition_gamma": {}},
            "comm_size=any": {"composition=MPIDI_Allreduce_intra_composition_beta": {}},
        }
    },
}
OTHERS = ("Bcast_intra_tree", "Bcast_allcomm_nb", "Allreduce_intra_smp", "Allreduce_intra_tree", "Allreduce_intra_reduce_scatter_allgather", "Alltoall_intra_brucks", "Alltoall_intra_pairwise", "Allgather_allcomm_nb", "Gatherv_allcomm_nb")  # fmt: skip


def stored(path: Path, *tables: Tree) -> Path:
    """Write a file with tables between other bytes, as a library has them."""
    texts = [json.dumps(table, separators=(",", ":")).encode() for table in tables]
    names = [f"algorithm=MPIR_{name}".encode() for name in OTHERS]
    path.write_bytes(b'\x7fELF\0{"a":1}\0' + b"\0\0".join([*texts, *names]) + b"\0")
    return path


def choice(collective: str, size: int, bin: int, number: int, name: str) -> Choice:
    case = Case(1, "rows", collective, size, bin, 0)
    return Choice(case, Candidate(number, name), 2000.0, 1500.0, -0.25, -0.3, -0.2, 40)


def written(tmp_path: Path, *choices: Choice, cases: tuple[Case, ...] = (), version: str = MPICH) -> RuleSet:
    library = stored(tmp_path / "libmpi.so", COMPOSITIONS, ALGORITHMS)
    called = [one.case for one in choices]
    return write_rules(choices, version, [(1, 4), (2, 8)], [*called, *cases], str(library))


def asked(
    rules: RuleSet, name: str, collective: str, size: int, block: int, *facts: str, is_inter: bool = False
) -> str:
    """Return the last word of the leaf that a file names."""
    found = ask(json.loads(rules.files[name]), collective, Call(size, block, is_inter, frozenset(facts)))
    assert found is not None
    return found[0].rpartition("intra_")[2]


def test_a_rule_counts_for_its_size_and_messages_only(tmp_path: Path) -> None:
    rules = written(tmp_path, choice("bcast", 4, 7, 7, "tree"))
    assert rules.variables == {
        "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE": "{folder}/mpich.json",
        "MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE": "{folder}/mpich-ch4.json",
    }
    of_four = json.loads(rules.files["mpich.json"])["collective=bcast"]["comm_type=intra"]["comm_size<=4"]
    own = ALGORITHMS["collective=bcast"]["comm_type=intra"]["comm_size<8"]
    assert list(of_four) == ["avg_msg_size<=63", "avg_msg_size<=127", "avg_msg_size=any"]
    parameters: Tree = {"tree_type=kary": {}, "k=2": {}, "is_non_blocking=1": {}}
    assert of_four["avg_msg_size<=127"] == {"algorithm=MPIR_Bcast_intra_tree": parameters}
    assert of_four["avg_msg_size<=63"] == of_four["avg_msg_size=any"] == own
    for size, block in ((3, 64), (5, 64), (16, 64), (4, 63), (4, 128)):
        assert asked(rules, "mpich.json", "bcast", size, block) != "tree"
        assert asked(rules, "mpich-ch4.json", "bcast", size, block, "parent") == "composition_alpha"
    for block in (64, 127):
        assert asked(rules, "mpich.json", "bcast", 4, block) == "tree"
        assert asked(rules, "mpich-ch4.json", "bcast", 4, block, "parent") == "composition_gamma"
    assert "remote_send" in asked(rules, "mpich.json", "bcast", 4, 64, is_inter=True)


def test_what_an_algorithm_needs_is_asked(tmp_path: Path) -> None:
    rules = written(
        tmp_path,
        choice("allreduce", 4, 7, 5, "reduce_scatter_allgather"),
        choice("allreduce", 4, 8, 2, "smp"),
        choice("alltoall", 4, 7, 1, "brucks"),
    )
    assert not rules.refused
    table = "mpich.json"
    assert asked(rules, table, "allreduce", 4, 64, "built_in") == "reduce_scatter_allgather"
    assert asked(rules, table, "allreduce", 4, 64) == "algorithm=MPIR_Allreduce_allcomm_nb"
    assert asked(rules, table, "allreduce", 4, 64, "built_in", "few") == "algorithm=MPIR_Allreduce_allcomm_nb"
    assert asked(rules, table, "allreduce", 4, 128, "commutative", "parent") == "smp"
    assert asked(rules, table, "allreduce", 4, 128, "commutative", "built_in") == "ring"
    assert asked(rules, table, "alltoall", 4, 64) == "brucks"
    # The size of a call with MPI_IN_PLACE is not defined: the table must ask for that before.
    of_four = json.loads(rules.files[table])["collective=alltoall"]["comm_type=intra"]["comm_size<=4"]
    assert list(of_four) == ["is_sendbuf_inplace=no", "is_sendbuf_inplace=yes"]
    assert asked(rules, "mpich-ch4.json", "allreduce", 4, 64, "one_node") == "composition_gamma"
    assert asked(rules, "mpich-ch4.json", "allreduce", 4, 64, "one_node", "built_in") == "composition_beta"


def test_a_size_of_all_processes_and_one_without_a_message(tmp_path: Path) -> None:
    """Of an allgather the library compares the bytes of all; of a gatherv none, so that all calls need the choice."""
    chosen = [choice("allgather", 8, 7, 3, "nb"), choice("gatherv", 8, -1, 2, "nb")]
    rules = written(tmp_path, *chosen)
    assert not rules.refused and set(rules.files) == {"mpich.json"}
    for block, name in ((63, "recursive_doubling"), (64, "nb"), (127, "nb"), (128, "recursive_doubling")):
        assert asked(rules, "mpich.json", "allgather", 8, block).endswith(name)
    assert asked(rules, "mpich.json", "gatherv", 8, 10**6).endswith("Gatherv_allcomm_nb")
    assert asked(rules, "mpich.json", "gatherv", 9, 10**6).endswith("Gatherv_allcomm_linear")
    assert asked(rules, "mpich.json", "gatherv", 8, 1, is_inter=True).endswith("Gatherv_allcomm_linear")


def test_choices_that_no_table_can_name_are_refused(tmp_path: Path) -> None:
    rules = written(
        tmp_path,
        choice("allgather", 6, 7, 4, "recursive_doubling"),
        choice("alltoall", 4, 7, 5, "pairwise_sendrecv_replace"),
        choice("bcast", 4, 7, 6, "pipelined_tree"),
        choice("bcast", 4, 31, 7, "tree"),
        choice("allgather", 8, 31, 3, "nb"),
        choice("reduce", 4, 7, 1, "binomial"),
        choice("gatherv", 8, 7, 2, "nb"),
        cases=(Case(1, "rows", "gatherv", 8, 9, 0),),
    )
    assert [one.case.collective for one in rules.kept] == ["bcast"]
    reasons = [reason for _, reason in rules.refused]
    for part in (
        "power of two",
        "MPI_IN_PLACE",
        "does not have the algorithm",
        "too large",
        "no message size",
    ):
        assert any(part in reason for reason in reasons), part
    assert len(reasons) == 6


@pytest.mark.parametrize(
    ("release", "kept"), [("4.1.3", ["bcast"]), ("4.2.1", ["bcast"]), ("4.3.2", ["allreduce", "bcast"])]
)
def test_an_algorithm_whose_parameters_a_release_does_not_take_is_refused(
    tmp_path: Path, release: str, kept: list[str]
) -> None:
    """Before 4.3, a table that names the variable's default, knomial_1, would choose kary."""
    choices = [
        choice(name, 4, 7, LIBRARIES["mpich"].since[4, 1][name].index("tree") + 1, "tree")
        for name in ("allreduce", "bcast")
    ]
    rules = written(tmp_path, *choices, version=f"MPICH Version:\t{release}")
    assert sorted(one.case.collective for one in rules.kept) == kept
    assert {one.case.collective for one, _ in rules.refused} == {"allreduce", "bcast"} - set(kept)
    assert all("do not accept the parameters" in reason for _, reason in rules.refused)
    assert asked(rules, "mpich.json", "bcast", 4, 64) == "tree"


def test_a_collective_without_a_table_gets_a_variable(tmp_path: Path) -> None:
    rules = written(tmp_path, choice("scan", 4, 7, 3, "recursive_doubling"), choice("bcast", 4, 7, 7, "tree"))
    assert len(rules.kept) == 2
    assert rules.variables["MPIR_CVAR_SCAN_INTRA_ALGORITHM"] == "recursive_doubling"
    assert "mpich.json" in rules.files
    text = page(rules, MPICH, Path("/tmp"))
    assert "for communicators of its size only" in text


@pytest.mark.parametrize("seed", range(30))
def test_random_rules_change_no_other_call(tmp_path: Path, seed: int) -> None:
    """An oracle of its own: the rule of the size and bin, or the answer of the library's own table."""
    draw = random.Random(seed)
    names = {"bcast": (7, "tree"), "alltoall": (4, "pairwise"), "allgather": (3, "nb")}
    wanted = {
        (draw.choice(sorted(names)), draw.randint(2, 12), draw.randint(0, 20)): None
        for _ in range(draw.randint(1, 9))
    }
    rules = written(tmp_path, *(choice(name, size, bin, *names[name]) for name, size, bin in wanted))
    assert len(rules.kept) == len(wanted)
    for name, (_, algorithm) in names.items():
        for size in range(1, 15):
            for block in {0, *(1 << bin for bin in range(22)), *(draw.randint(0, 1 << 21) for _ in range(9))}:
                call = Call(size, block, False, frozenset(draw.sample(["parent", "built_in"], 1)))
                found = ask(json.loads(rules.files["mpich.json"]), name, call)
                assert found is not None
                if (name, size, block.bit_length()) in wanted:
                    assert found[0].endswith(f"_{algorithm}")
                else:
                    assert found == ask(ALGORITHMS, name, call)


def test_conditions_on_the_size_are_decided_as_the_library_does() -> None:
    """Below a condition on the call, it takes < for <=; in front of it not."""
    tree: Tree = {"comm_size<8": {"avg_msg_size<=8": {"a": {}}, "avg_msg_size=any": {"comm_size<8": {"b": {}}}}, "comm_size=any": {"c": {}}}  # fmt: skip
    assert of_size(tree, 8) == {"c": {}}
    assert of_size(tree, 7) == tree["comm_size<8"]
    assert of_size(
        {"comm_hierarchy=parent": tree, "comm_size<9": {"d": {}}, "comm_size=any": {"e": {}}}, 8
    ) == {
        "comm_hierarchy=parent": {"c": {}},
        "d": {},
    }


def test_a_wrong_copy_is_found() -> None:
    wanted = {"bcast": {4: [Rule("tree", 64, 127)]}}
    good = changed(ALGORITHMS, "bcast", wanted["bcast"], of_compositions=False)
    check(ALGORITHMS, good, wanted, of_compositions=False)
    of: Tree = good["collective=bcast"]["comm_type=intra"]
    bad: list[Mapping[str, Any]] = [{**of, "comm_size<=4": of["comm_size<=3"]}, {**of, "comm_size<=3": of["comm_size<=4"]}]  # fmt: skip
    for one in bad:
        copy = {**good, "collective=bcast": {**good["collective=bcast"], "comm_type=intra": one}}
        with pytest.raises(CommlensError, match="bug in commlens"):
            check(ALGORITHMS, copy, wanted, of_compositions=False)
    with pytest.raises(CommlensError, match="would change alltoall"):
        check(ALGORITHMS, {**good, "collective=alltoall": {}}, wanted, of_compositions=False)
    with pytest.raises(CommlensError, match="would not accept"):
        ask({"collective=bcast": {"comm_sise<4": {}}}, "bcast", Call(4, 1, False, frozenset()))


def test_a_file_never_ends_with_its_last_page() -> None:
    """MPICH maps it and reads on to a zero byte."""
    for extra in range(PAGE - 3, PAGE + 3):
        text = text_of({"x" * extra: {}})
        assert len(text) % PAGE != 0
        assert json.loads(text) == {"x" * extra: {}}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b'{"collective=bcast":{}',
        b'{"collective=bcast":{}}\0',
        b'{"collective=allreduce":{"algorithm=MPIR_Allreduce_intra_ring":{}},"collective=allreduce":{}}\0',
        b'{"collective=allreduce":{"algorithm=MPIR_Allreduce_intra_ring":1}}\0',
        b'{"collective=allreduce":' + b'{"a":' * 100_000 + b"\0",
        b'{"collective=allreduce":{"algorithm=MPIR_Allreduce_intra_ring":{}}}\0' * 2,
        b'{"collective=allreduce":{"algorithm=MPIR_Allreduce_intra_\xff":{}}}\0',
    ],
)
def test_a_library_without_a_clear_table_gets_variables(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "libmpi.so").write_bytes(content)
    assert read_library(tmp_path / "libmpi.so") is None
    one = choice("allgather", 4, 7, 5, "ring")
    for module in (tmp_path / "libmpi.so", tmp_path, tmp_path / "no"):
        rules = write_rules([one], MPICH, [(1, 4)], [one.case], str(module))
        assert (rules.files, rules.variables) == ({}, {"MPIR_CVAR_ALLGATHER_INTRA_ALGORITHM": "ring"})


def test_an_unread_version_gets_variables(tmp_path: Path) -> None:
    library = stored(tmp_path / "libmpi.so", ALGORITHMS)
    one = choice("allgather", 4, 7, 3, "nb")
    assert not write_rules([one], "MPICH Version: 5.1.0", [(1, 4)], [one.case], str(library)).files
    assert set(write_rules([one], MPICH, [(1, 4)], [one.case], str(library)).files) == {"mpich.json"}


def test_algorithms_that_would_abort_the_replay_are_not_tried() -> None:
    """MPICH aborts a reduce_scatter with them instead of taking another algorithm."""
    names = {
        size: [one.name for one in candidates_of(MPICH, Case(1, "W0.0", "reduce_scatter", size, -1, 100))]
        for size in (4, 6)
    }
    assert "noncommutative" not in names[4] + names[6]
    assert "pairwise" in names[4] and "pairwise" in names[6]


@pytest.mark.parametrize("name", ["BCAST_COMPOSITION", "CH4_COLL_SELECTION_TUNING_JSON_FILE"])
def test_rules_in_use_are_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"MPIR_CVAR_{name}", "1")
    with pytest.raises(CommlensError, match=f"unset MPIR_CVAR_{name}: the runs without rules"):
        refuse_rules_in_use()


def test_a_command_that_chooses_algorithms_is_refused() -> None:
    """The launcher would set the variable in all runs, and over what a job of the replay sets."""
    command = ["mpirun", "-genv", "I_MPI_ADJUST_BCAST", "3", "-n", "2", "{}", "./app"]
    with pytest.raises(CommlensError, match="leave out I_MPI_ADJUST_BCAST: all runs would use it"):
        refuse_rules_in_use((), command)
    with pytest.raises(CommlensError, match="leave out coll_tuned_bcast_algorithm: "):
        refuse_rules_in_use((), ["mpirun", "--mca", "coll_tuned_bcast_algorithm", "6", "{}", "./app"])
    with pytest.raises(CommlensError, match="leave out I_MPI_ADJUST_BCAST: "):
        refuse_rules_in_use((), ["srun", "--export=ALL,I_MPI_ADJUST_BCAST=2", "{}", "./app"])
    with pytest.raises(CommlensError, match="leave out UCX_RNDV_THRESH: "):
        refuse_rules_in_use(["UCX_RNDV_THRESH"], ["mpirun", "-x", "UCX_RNDV_THRESH=1", "{}", "./app"])
