# SPDX-License-Identifier: Apache-2.0
"""Words and tables for where another algorithm could pay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from commlens.algorithms.offered import library_of
from commlens.base.counts import count_text
from commlens.render.table import Column, Table
from commlens.render.units import average_text, share_text, size_text, time_text
from commlens.reports.by_family import draw_by_family
from commlens.selection.sizes import BinRange
from commlens.tune.plan import LEAST_CALLS, LEAST_GAIN, LEAST_NS, Place, Plan
from commlens.tune.switches import Trial

COLUMNS = (
    Column("communicator", right=False),
    Column("size", right=False),
    Column("calls/rank"),
    Column("time"),
    Column("waiting"),
    Column("interval", wide=3),
    Column("operation", wide=2),
    Column("saves at most"),
    Column("of run"),
    Column("algorithm", right=False, wide=1),
)

MOSTLY = 0.5  # share of the waiting from which on it is the reason to leave the algorithms alone

MOST_NAMES = 2  # of algorithms that send the same messages

NO_COLLECTIVES = (
    "nothing to try: no blocking collective was called on a communicator of two or more ranks, so that there is no "
    "algorithm to choose"
)


def head_text(plan: Plan) -> str:
    """Return the answer in one sentence."""
    worth = plan.worth
    if not worth:
        return nothing_text(plan)
    gain = sum(place.gain_max_ns for place in worth)
    of_run = (
        f" of {time_text(plan.run_ns)} run time ({share_text(gain / plan.run_ns)})" if plan.run_ns else ""
    )
    noun = f"{len(worth):,} of {count_text(len(plan.places), 'place')}"
    return f"worth trying: another algorithm in {noun}; it saves at most {time_text(gain)}{of_run}, sums over the ranks"


def nothing_text(plan: Plan) -> str:
    """Return in one sentence that nothing is worth trying, and why."""
    places = [place for place in plan.places if not place.open_calls]
    if not places:
        return "nothing to try: no other row remains" if plan.places else NO_COLLECTIVES
    time_ns = sum(place.time_ns for place in places)
    if plan.run_ns and time_ns < LEAST_GAIN * plan.run_ns:
        return f"nothing to try: collectives take {share_text(time_ns / plan.run_ns)} of the run time"
    large = [place for place in places if place.is_large]
    chosen = [place for place in large if place.has_choice]
    if large:
        names = ", ".join(sorted({place.row["operation"] for place in chosen or large}))
        if chosen:
            have = "have" if "," in names else "has"
            return f"nothing to try: {names} {have} fewer than {LEAST_CALLS} calls per member of a communicator in a place"
        return f"nothing to try: {library_text(plan)} has one algorithm only for {names}"
    waiting_ns = sum(place.waiting_ns or 0 for place in places)
    if time_ns and waiting_ns >= MOSTLY * time_ns:
        return (
            f"nothing to try: {share_text(waiting_ns / time_ns)} of the time in collectives is waiting for late ranks; "
            "another algorithm does not shorten it (see commlens waits)"
        )
    most = places[0]
    if most.gain_share is None or most.gain_share >= LEAST_GAIN:
        return (
            f"nothing to try: another algorithm saves at most {time_text(most.gain_max_ns // max(1, most.ranks))} per rank in "
            f"one place, {most.row['operation']} in {most.row['communicator']}; a run does not show less than "
            f"{time_text(LEAST_NS)}"
        )
    return (
        f"nothing to try: another algorithm saves at most {share_text(most.gain_share)} of the run time in one place, "
        f"{most.row['operation']} in {most.row['communicator']}; from {share_text(LEAST_GAIN)} on it would be worth trying"
    )


def open_sentence(plan: Plan) -> str:
    """Return in a sentence which rows are left out, because their time includes calls that had not returned; else empty."""
    left_out = [place for place in plan.places if place.open_calls]
    if not left_out:
        return ""
    calls = ", ".join(
        f"{place.open_calls:,} of {place.row['operation']} in {family_text(place.row)}" for place in left_out
    )
    return (
        f"Calls that had not returned: {calls}. Another algorithm does not shorten a hang: these rows are left out, because "
        "their time may include it. So may the run time."
    )


def library_text(plan: Plan) -> str:
    """Return the name of the MPI library."""
    found = library_of(plan.library)
    return found[0].title if found else plan.library or "the MPI library"


def draw(plan: Plan, top: int | None) -> Table:
    """Return the places that are worth trying, below their communicators."""
    shown = plan.worth if top is None else plan.worth[:top]
    library = library_text(plan)
    table = draw_by_family(COLUMNS, shown, family_text, lambda place: cells(place, library))
    rest = plan.worth[len(shown) :]
    if rest:
        table.say(
            f"and {count_text(len(rest), 'more row')} with at most {time_text(sum(place.gain_max_ns for place in rest))}"
        )
    return table


def family_text(row: Mapping[str, Any]) -> str:
    """Return the name of a family, and the number of its communicators."""
    number = f" x{row['communicators']:,}" if row["communicators"] > 1 else ""
    return f"{row['communicator']}{number}"


def cells(place: Place, library: str) -> list[str]:
    """Return the cells of one row."""
    bin = place.row["bin"]
    operation = place.operation_ns
    return [
        f"  {place.row['operation']}",
        "varies" if bin < 0 else size_text(*BinRange(bin, bin).bounds),
        average_text(place.calls_per_rank),
        time_text(place.time_ns),
        share_text(place.wait.share.share) if place.wait else "unknown",
        interval_text(place),
        time_text(operation) if operation is not None else f"<= {time_text(place.operation_max_ns)}",
        time_text(place.gain_max_ns),
        share_text(place.gain_share),
        ", ".join(map(algorithm_text, place.ran)) or f"chosen by {library}",
    ]


def algorithm_text(ran: str) -> str:
    """Return the name of an algorithm; of several that send the same messages, their number if there are many.

    >>> algorithm_text("ring"), algorithm_text("ambiguous: a or b"), algorithm_text("ambiguous: a or b or c or d")
    ('ring', 'ambiguous: a or b', 'ambiguous: a or b or 2 more')
    """
    names = ran.split(" or ")
    more = len(names) - MOST_NAMES
    return ran if more < 2 else f"{' or '.join(names[:MOST_NAMES])} or {more:,} more"


def interval_text(place: Place) -> str:
    """Return the interval of the share of waiting; ? if there are too few samples."""
    share = place.wait.share if place.wait else None
    if share is None or share.low is None or share.high is None:
        return "?"
    return "exact" if share.is_exact else f"{100 * share.low:.1f} to {100 * share.high:.1f} %"


def note_sentences(plan: Plan, shown: Sequence[Place]) -> list[str]:
    """Return in sentences what the library offers for the rows, and what limits the table."""
    sentences = []
    offers = {place.row["operation"]: place.offer for place in shown}
    for operation, offer in offers.items():
        if offer is not None:
            sentences.append(f"{operation}: {offer.variable} chooses from {names_text(offer.names)}.")
    unknown = [operation for operation, offer in offers.items() if offer is None]
    if unknown:
        sentences.append(
            f"commlens does not know which algorithms {library_text(plan)} has for {', '.join(unknown)}."
        )
    if any(place.wait is None for place in shown):
        sentences.append("Where waiting is unknown, no call was sampled: all of the time may be operation.")
    return sentences


def names_text(names: Sequence[str]) -> str:
    """Return the algorithms with their numbers; only the numbers where the library gives no names.

    >>> names_text(["linear", "ring"]), names_text(["preset 1", "preset 2", "preset 3"])
    ('1 linear, 2 ring', 'presets 1 to 3')
    """
    numbered = list(enumerate(names, 1))
    if len(names) > 1 and all(name == f"preset {number}" for number, name in numbered):
        return f"presets 1 to {len(names)}"
    return ", ".join(f"{number} {name}" for number, name in numbered)


def trial_text(trial: Trial) -> str:
    """Return in a sentence which variable to try, and why."""
    settings = " ".join(f"{name}={value}" for name, value in trial.environment.items())
    return f"Also try {settings}: {trial.reason}."
