# SPDX-License-Identifier: Apache-2.0
"""Which algorithm it was is told from who sent how much to whom; and that is modelled where it was not measured."""

from __future__ import annotations

import doctest
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from python_calls import count_calls

import commlens.algorithms
from commlens.algorithms import mpich, openmpi, trees
from commlens.algorithms.matching import LEAST, Candidate, Match, Measured, match
from commlens.algorithms.modelled import modelled
from commlens.algorithms.pattern import Pairs, common
from commlens.algorithms.registry import (
    ALGORITHMS,
    COLLECTIVES,
    ROOTED,
    Algorithm,
    algorithm,
    algorithms,
    composed,
)
from commlens.algorithms.schedule import Call, Integers

NAMES = [pytest.param(one, id=f"{one.collective}-{one.name}") for one in ALGORITHMS]


def pairs(collective: str, name: str, call: Call, calls: int = 1) -> Pairs:
    return Pairs.of_steps(call.size, algorithm(collective, name).steps(call)).times(calls)


def added(*several: Pairs) -> Pairs:
    columns = ("source", "destination", "messages", "bytes")
    source, destination, messages, nbytes = (
        np.concatenate([getattr(one, column) for one in several]) for column in columns
    )
    return Pairs.of(several[0].size, source, destination, messages, nbytes)


def only(found: Match) -> Candidate:
    """Return the one algorithm that was recognised."""
    assert len(found.best) == 1, found.verdict
    return found.best[0]


@pytest.mark.parametrize("size", [3, 8, 13, 33])
@pytest.mark.parametrize("one", NAMES)
def test_an_algorithm_is_recognised_by_its_messages_alone(one: Algorithm, size: int) -> None:
    nodes = [rank % 4 for rank in range(size)]
    root = size // 3 if one.collective in ROOTED else 0
    fanout = 2 if size > 3 else 1
    call = Call(
        size, block=1000, root=root, radix=3 if one.name == "knomial" else 2, fanout=fanout, nodes=nodes
    )
    call = call.but(block=0) if one.collective == "barrier" else call
    if not one.needs(call):
        pytest.skip("the algorithm needs another number of ranks")
    mine = pairs(one.collective, one.name, call, 7)
    found = match(Measured(one.collective, 7, mine, block=call.bytes), nodes)
    assert found.candidates[0].fit == 1
    alike = {candidate.algorithm.name: candidate for candidate in found.best}
    degenerate = size == 3 and one.name in ("chain", "knomial")  # a pipeline, and everyone below the root
    # The parts are not empty, so an algorithm is also named by one that differs only in empty parts.
    assert {one.name, one.same_as} & set(alike) or degenerate
    for candidate in found.best:
        assert candidate.roots == ({root: 7} if one.collective in ROOTED else {})
    plain = Call(size, block=call.block, root=root, nodes=nodes)
    for name in set(alike) - {one.name}:
        parameters = {
            key: value for key, value in alike[name].parameters.items() if key in ("fanout", "radix")
        }
        assert (
            pairs(one.collective, name, plain.but(**parameters), 7) == mine
        )  # there is nothing to tell them apart by


def test_those_that_send_the_same_are_named_together() -> None:
    two = Call(2, block=8)
    found = match(Measured("allgather", 1, pairs("allgather", "two_ranks", two), block=8))
    assert found.verdict == (
        "ambiguous: recursive_doubling or ring or neighbour_exchange or two_ranks or sparbit or spread or bruck (radix 2)"
    )
    of_33 = Measured("alltoall", 1, pairs("alltoall", "pairwise", Call(33, block=8)), block=8)
    assert match(of_33).verdict == "ambiguous: linear or pairwise or linear_sync"
    posted = {"start": "linear", "send": "pairwise", "isend": "linear_sync"}
    assert {how: match(replace(of_33, posted=how)).verdict for how in posted} == posted


@pytest.mark.long
def test_what_fits_nothing_is_unknown() -> None:
    random = np.random.default_rng(7)
    source = random.integers(0, 16, 60)
    destination = (source + random.integers(1, 16, 60)) % 16
    measured = Pairs.of(16, source, destination, random.integers(1, 5, 60), random.integers(1, 9999, 60))
    for collective in COLLECTIVES:
        found = match(Measured(collective, 1, measured))
        assert found.verdict == "unknown"
        assert found.best == ()
        assert all(0 <= candidate.fit < LEAST for candidate in found.candidates)
    nothing = Pairs.of(4, *(np.zeros(0, np.int64),) * 4)
    assert match(Measured("bcast", 1, nothing, block=0)).verdict == "unknown"


def test_the_fit_is_the_share_of_messages_that_both_have() -> None:
    call = Call(11, block=100)
    whole = pairs("bcast", "binomial", call)
    messages = whole.messages.copy()
    messages[0] += 1  # 11 measured, 10 of them expected
    nbytes = whole.bytes.copy()
    nbytes[1] += 1000  # 2,000 measured, 1,000 of them expected
    found = match(
        Measured("bcast", 1, Pairs.of(11, whole.source, whole.destination, messages, nbytes), block=100)
    )
    best = found.candidates[0]
    assert (best.algorithm.name, best.fit_messages, best.fit_bytes, best.fit) == (
        "binomial",
        10 / 11,
        0.5,
        0.5,
    )
    assert found.verdict == "unknown"
    here, there = np.array([1, 5]), np.array([5, 9, 12])
    assert common(np.array([3, 4]), np.array([1, 2, 3]), here, there) == 1 / (3 + 4 + 1 + 2 + 3 - 1)
    assert common(here[:0], here[:0], here[:0], here[:0]) == 1


@pytest.mark.parametrize(
    ("name", "parameters", "said"),
    [
        ("chain", {"fanout": 2}, "chain (fanout 2)"),
        ("chain", {"fanout": 7}, "chain (fanout 7)"),
        ("knomial", {"radix": 5}, "knomial (radix 5)"),
        ("pipeline", {}, "pipeline"),
    ],
)
def test_parameters_are_told_from_the_messages(name: str, parameters: dict[str, int], said: str) -> None:
    call = Call(29, block=5000, root=3).but(**parameters)
    assert only(match(Measured("bcast", 2, pairs("bcast", name, call, 2), block=5000))).name == said


def test_roots_and_elements_are_found_together() -> None:
    """All ranks are root equally often, and 63 numbers of 8 bytes are cut into 32 and 31."""
    each = [
        pairs("bcast", "split_binary", Call(8, block=504, root=root, element=8), 1000) for root in range(8)
    ]
    columns = ("source", "destination", "messages", "bytes")
    whole = Pairs.of(8, *(np.concatenate([getattr(one, name) for one in each]) for name in columns))
    best = only(match(Measured("bcast", 8000, whole, block=504, roots=tuple(range(8)))))
    assert (best.name, best.parameters, best.fit) == ("split_binary", {"element": 8}, 1)
    assert best.roots == dict.fromkeys(range(8), 1000)


@pytest.mark.long
@pytest.mark.parametrize(("collective", "name"), [("bcast", "binary"), ("bcast", "split_binary"), ("reduce", "in_order_binary"), ("allreduce", "segmented_ring")])  # fmt: skip
@pytest.mark.parametrize("size", [8, 13])
def test_segments_are_counted(collective: str, name: str, size: int) -> None:
    call = Call(size, block=26624, segment=512, root=2 if collective in ROOTED else 0)
    best = only(match(Measured(collective, 3, pairs(collective, name, call, 3), block=26624)))
    pieces = {"binary": 52, "split_binary": 26, "in_order_binary": 52, "segmented_ring": {8: 6, 13: 4}[size]}[
        name
    ]
    assert (best.algorithm.name, best.fit) == (name, 1)
    assert best.parameters["segments"] == pieces
    least, most = best.parameters["segment"]
    assert least <= 512 <= most


def test_sizes_narrow_the_segments() -> None:
    call = Call(9, block=1000, segment=256)
    measured = pairs("bcast", "binary", call)
    sizes = np.zeros(66, np.int64)
    sizes[[8, 9]] = 8, 24  # 232 and 256 bytes
    assert only(match(Measured("bcast", 1, measured, block=1000))).parameters["segment"] == (250, 333)
    best = only(match(Measured("bcast", 1, measured, block=1000, sizes=sizes)))
    assert best.parameters == {"segments": 4, "segment": (256, 333)}
    assert best.fit == 1


def test_the_uncut_result_is_no_segment() -> None:
    call = Call(9, block=1000, segment=256, root=2)
    sizes = np.zeros(66, np.int64)
    sizes[[8, 9, 10]] = 8, 24, 1  # the last one is the result, from the root of the tree to that of the call
    measured = Measured("reduce", 1, pairs("reduce", "in_order_binary", call), block=1000, sizes=sizes)
    best = only(match(measured))
    assert (best.name, best.roots, best.fit) == ("in_order_binary", {2: 1}, 1)


def test_data_is_cut_at_elements() -> None:
    for collective, name in (("allreduce", "ring"), ("reduce", "rabenseifner"), ("bcast", "scatter_ring")):
        call = Call(13, block=8 * 92, element=8)
        best = only(match(Measured(collective, 4, pairs(collective, name, call, 4), block=736)))
        assert (best.algorithm.name, best.fit, best.parameters) == (name, 1, {"element": 8})


def test_the_roots_are_counted() -> None:
    calls = {0: 5, 3: 2, 12: 1}
    for collective, name in (("bcast", "binomial"), ("bcast", "scatter_ring"), ("reduce", "rabenseifner"), ("gather", "linear"), ("scatter", "binomial")):  # fmt: skip
        measured = added(
            *(
                pairs(collective, name, Call(13, block=640, root=root), number)
                for root, number in calls.items()
            )
        )
        best = only(match(Measured(collective, 8, measured, block=640)))
        assert (best.algorithm.name, best.roots, best.fit) == (name, calls, 1)
        assert best.tree is None


def test_the_tree_is_given_with_its_root() -> None:
    call = Call(6, block=9, root=4)
    best = only(match(Measured("bcast", 1, pairs("bcast", "binomial", call), block=9)))
    assert best.tree is not None
    assert best.tree.tolist() == [4, 5, 4, 5, -1, 4]


@pytest.mark.parametrize("block", [None, (512, 1024)])
def test_the_block_need_not_be_known(block: tuple[int, int] | None) -> None:
    for collective, name in (("bcast", "scatter_allgather"), ("allreduce", "ring"), ("allgather", "bruck"), ("alltoall", "bruck")):  # fmt: skip
        sizes = [600, 900, 1000]
        measured = added(*(pairs(collective, name, Call(12, block=one)) for one in sizes))
        best = match(Measured(collective, 3, measured, block=block)).best[0]
        assert best.algorithm.name == name
        assert best.fit > 0.99


def test_parts_of_different_sizes_are_compared_by_messages() -> None:
    parts = np.array([7, 0, 30, 5, 1, 90])
    for name in ("bruck", "ring", "neighbour_exchange"):
        measured = pairs("allgatherv", name, Call(6, block=parts))
        assert only(match(Measured("allgatherv", 1, measured))).algorithm.name == name
        assert match(Measured("allgatherv", 1, measured, block=22)).verdict == "unknown"


def test_parts_that_are_known_are_compared_by_bytes() -> None:
    parts = np.array([7, 0, 30, 5, 1, 90])
    for collective, name in (
        ("gatherv", "linear"),
        ("allgatherv", "sparbit"),
        ("reduce_scatter", "recursive_halving"),
    ):
        measured = pairs(collective, name, Call(6, block=parts))
        assert only(match(Measured(collective, 1, measured, block=parts))).algorithm.name == name
        assert match(Measured(collective, 1, measured, block=parts[::-1])).verdict == "unknown"


def test_elements_are_no_larger_than_the_data() -> None:
    exact = pairs("bcast", "split_binary", Call(9, block=5))
    nbytes = exact.bytes.copy()
    nbytes[0] += 1
    nearly = Pairs.of(9, exact.source, exact.destination, exact.messages, nbytes)
    (best,) = match(Measured("bcast", 1, nearly, block=5)).best
    assert (best.algorithm.name, best.fit_messages, "element" in best.parameters) == (
        "split_binary",
        1,
        False,
    )
    # Where the size is not known, elements of 8 bytes are tried on less.
    assert match(Measured("bcast", 1, nearly, block=(1, 8))).verdict == "split_binary"


def test_a_linear_tree_may_be_cut_into_segments() -> None:
    chains = pairs("bcast", "chain", Call(5, block=5000, segment=512, fanout=4))
    found = only(match(Measured("bcast", 1, chains, block=5000)))
    assert (found.name, found.parameters["segments"]) == ("linear", 10)


@pytest.mark.long
def test_of_thousands_of_ranks_the_algorithm_is_found_in_seconds() -> None:
    """With every root and every schedule in full it would take hours: neither is tried."""
    call = Call(4096, block=8192, root=77)
    measured = Measured("bcast", 1, pairs("bcast", "binomial", call), block=8192)
    calls, found = count_calls(lambda: match(measured))
    assert (only(found).algorithm.name, only(found).roots) == ("binomial", {77: 1})
    assert calls < 75 * 4096  # as measured: 15 for each rank
    ring = Measured("allgather", 1, pairs("allgather", "ring", Call(4096, block=8)), block=8)
    calls, found = count_calls(lambda: match(ring))
    assert found.verdict == "ring"
    assert calls < 1500 * 4096  # as measured: 320 for each round of the ring


def test_a_collective_made_of_two_others_is_recognised() -> None:
    one = composed("allreduce", "in_order_binomial", "pipeline")
    measured = Pairs.of_steps(9, one.steps(Call(9, block=50)))
    assert match(Measured("allreduce", 1, measured, block=50)).verdict == "in_order_binomial+pipeline"


@pytest.mark.parametrize(
    ("tree", "parents"),
    [
        (trees.binary(8), [-1, 0, 0, 1, 2, 1, 2, 3]),
        (trees.binomial(8), [-1, 0, 0, 1, 0, 1, 2, 3]),
        (trees.in_order_binomial(8), [-1, 0, 0, 2, 0, 4, 4, 6]),
        (trees.knomial(10, 4), [-1, 0, 0, 0, 0, 4, 4, 4, 0, 8]),
        (trees.chain(8, 3), [-1, 0, 1, 2, 0, 4, 0, 6]),
        (trees.chain(4, 5), [-1, 0, 0, 0]),
        (trees.pipeline(4), [-1, 0, 1, 2]),
        (trees.in_order_binary(7), [2, 2, 6, 5, 5, 6, -1]),
        (trees.at_root(trees.pipeline(4), 2), [3, 0, -1, 2]),
    ],
)
def test_trees_are_those_the_names_mean(tree: Integers, parents: list[int]) -> None:
    assert tree.tolist() == parents


def test_a_circle_is_no_tree() -> None:
    with pytest.raises(ValueError, match="form a cycle"):
        trees.depth(np.array([1, 2, 0]))


def test_every_number_of_coll_tuned_is_there_once() -> None:
    most = {"barrier": 6, "bcast": 9, "reduce": 7, "allreduce": 6, "gather": 3, "scatter": 3, "allgather": 7, "allgatherv": 6, "alltoall": 5, "alltoallv": 2, "reduce_scatter": 4, "reduce_scatter_block": 4, "scan": 2, "exscan": 2}  # fmt: skip
    for collective, last in most.items():
        numbers = [one.openmpi for one in algorithms(collective) if one.openmpi]
        of_two = [number for name, number in openmpi.PARTS if name == collective]
        assert sorted(numbers + of_two) == list(range(1, last + 1))


@pytest.mark.parametrize(
    ("collective", "number", "call", "runs"),
    [
        ("bcast", 6, Call(8, block=9), "binomial"),
        ("bcast", 6, Call(8), None),
        ("barrier", 4, Call(8), "dissemination"),
        ("bcast", 8, Call(8, block=7), "linear"),
        ("bcast", 8, Call(8, block=8), "scatter_allgather"),
        ("bcast", 4, Call(8, block=100, segment=51), "pipeline"),
        ("bcast", 4, Call(8, block=100, segment=50), "split_binary"),
        ("bcast", 4, Call(8, block=1), "pipeline"),
        ("reduce", 7, Call(9, block=7), "linear"),
        ("reduce", 7, Call(9, block=8, commutative=False), "linear"),
        ("allreduce", 4, Call(9, block=8), "recursive_doubling"),
        ("allreduce", 4, Call(9, block=64, element=8), "recursive_doubling"),
        ("allreduce", 5, Call(9, block=8, segment=4), "recursive_doubling"),
        ("allreduce", 5, Call(9, block=80, segment=10), "ring"),
        ("allreduce", 5, Call(9, block=90, segment=10), "segmented_ring"),
        ("allreduce", 6, Call(9, block=7), "linear"),
        ("allgather", 3, Call(9, block=1), "bruck"),
        ("allgather", 5, Call(9, block=1), "ring"),
        ("allgatherv", 4, Call(9, block=1), "ring"),
        ("reduce_scatter_block", 4, Call(8, block=1), "mirrored_halving"),
        ("reduce_scatter_block", 4, Call(9, block=1), "butterfly"),
        ("gatherv", 0, Call(8, block=1), "linear"),
        ("alltoallv", 2, Call(8), "pairwise"),
    ],
)
def test_coll_tuned_does_not_always_what_it_is_told(
    collective: str, number: int, call: Call, runs: str | None
) -> None:
    one = openmpi.runs(collective, number, call)
    assert (one and one.name) == runs


def test_coll_tuned_is_made_of_what_it_is_told() -> None:
    call = Call(8, block=9)
    one = openmpi.runs("allreduce", 2, call, {"reduce": 5, "bcast": 6})
    assert one is not None
    assert one.name == "in_order_binomial+binomial"
    with pytest.raises(ValueError, match="the reduce algorithm that it uses is missing"):
        openmpi.runs("allreduce", 2, call)
    with pytest.raises(ValueError, match="no bcast algorithm 10"):
        openmpi.runs("bcast", 10, call)
    assert openmpi.runs("alltoallv", 2, Call(8), major=5) is None
    later = openmpi.runs("alltoallv", 2, call, major=5)
    assert later is not None
    assert later.name == "pairwise_with_self"


def test_the_page_lists_every_algorithm() -> None:
    page = (Path(__file__).parents[2] / "docs" / "evidence" / "algorithms.md").read_text()
    for one in ALGORITHMS:
        numbers = f"| {one.openmpi or '–'} | {one.mpich or '–'} |"
        assert f"| {one.collective} | {one.name} {numbers}" in page, "run `make algorithms`"


def test_every_word_of_mpich_has_an_algorithm_or_is_left_out_on_purpose() -> None:
    for collective, words in mpich.WORDS.items():
        known = {one.mpich for one in algorithms(collective)}
        # "nb" is whatever the non-blocking form does, and replacing sends what the plain form sends.
        assert set(words) - known - {"auto", "nb", "pairwise_sendrecv_replace"} <= {"smp"}
        assert known - {None} <= set(words)


def test_control_variables_choose_the_algorithm() -> None:
    call = Call(16, block=100_000)
    assert mpich.chosen("bcast", call, {}) == "scatter_allgather"
    assert mpich.chosen("bcast", call.but(block=100), {}) == "in_order_binomial"
    assert mpich.chosen("bcast", call.but(size=7), {}) == "in_order_binomial"
    assert mpich.chosen("bcast", call.but(size=9), {}) == "scatter_ring"
    assert mpich.chosen("bcast", call, {"MPIR_CVAR_BCAST_SHORT_MSG_SIZE": 200_000}) == "in_order_binomial"
    assert mpich.chosen("bcast", call, {"MPIR_CVAR_BCAST_INTRA_ALGORITHM": "5"}) == "scatter_ring"
    assert mpich.chosen("bcast", call, {"MPIR_CVAR_BCAST_INTRA_ALGORITHM": "binomial"}) == "in_order_binomial"
    assert mpich.chosen("bcast", call, {"MPIR_CVAR_BCAST_INTRA_ALGORITHM": "nb"}) is None
    assert mpich.chosen("bcast", call, {"MPIR_CVAR_BCAST_INTRA_ALGORITHM": 99}) is None
    assert mpich.chosen("allreduce", call, {}) == "reduce_scatter_allgather"
    assert mpich.chosen("alltoall", call, {"MPIR_CVAR_ALLTOALL_INTRA_ALGORITHM": 4}) == "pairwise"
    assert mpich.chosen("allgather", Call(6, block=8), {}) == "bruck"
    assert mpich.chosen("barrier", Call(6), {}) == "dissemination"
    smp = {"MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM": "smp"}
    assert mpich.chosen("allreduce", call, smp) is None  # not without knowing the nodes
    assert mpich.chosen("allreduce", call.but(nodes=[0] * 16), smp) == "hierarchical"
    for collective in COLLECTIVES:
        name = mpich.chosen(collective, Call(12, block=64), {})
        assert name in [one.name for one in algorithms(collective)]


def test_what_is_modelled_says_so() -> None:
    found = modelled("bcast", "binomial", 8, 100, root=3, calls=5)
    assert (found.origin, found.algorithm) == ("modelled", "binomial")
    assert found.pairs.messages.sum() == 35
    assert found.pairs.bytes.sum() == 3500
    assert found.pairs == pairs("bcast", "binomial", Call(8, block=100, root=3), 5)
    assert modelled("allreduce", "hierarchical", 4, 10, nodes=[0, 0, 1, 1]).pairs.messages.sum() == 6
    with pytest.raises(ValueError, match="hierarchical is not defined"):
        modelled("bcast", "hierarchical", 4, 10)


def test_the_example_is_true() -> None:
    assert doctest.testmod(commlens.algorithms) == (0, 4)


def test_without_numpy_it_is_said_what_to_do() -> None:
    code = "import sys; sys.modules['numpy'] = None; import commlens.algorithms"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert "the package numpy is missing; try: pip install numpy" in done.stderr


def test_pairs_refuse_what_cannot_be() -> None:
    one = np.array([1])
    with pytest.raises(ValueError, match="outside 0 to 0"):
        Pairs.of(1, one, one, one, one)
    with pytest.raises(ValueError, match="a negative number"):
        Pairs.of(2, one, one, -one, one)
    with pytest.raises(ValueError, match="different lengths"):
        Pairs.of(2, one, one, one, one[:0])
    twice = Pairs.of(3, np.array([1, 0, 1]), np.array([2, 1, 2]), np.array([1, 2, 3]), np.array([10, 20, 30]))
    assert (twice.source.tolist(), twice.destination.tolist()) == ([0, 1], [1, 2])
    assert (twice.messages.tolist(), twice.bytes.tolist()) == ([2, 4], [20, 40])


def test_a_call_that_makes_no_sense_is_refused() -> None:
    for senseless in ("root", "radix", "segment", "element", "fanout"):
        with pytest.raises(ValueError):
            Call(4).but(**{senseless: -1})
    with pytest.raises(ValueError):
        Call(0)


def test_segments_are_whole_elements() -> None:
    assert Call(4, block=80, element=8, segment=20).segment_count == 2  # half an element rounds down
    assert Call(4, block=80, element=8, segment=21).segment_count == 3
    assert Call(4, block=80, element=8, segment=7).segment_count == 10  # less than one: not cut
    assert Call(4, block=80, element=8, segment=80).segment_count == 10
