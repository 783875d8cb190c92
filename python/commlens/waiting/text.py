# SPDX-License-Identifier: Apache-2.0
"""Words and tables for who keeps whom waiting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from commlens.render.table import Column, Table
from commlens.render.units import share_text, size_text, time_text
from commlens.reports.by_family import draw_by_family
from commlens.selection.sizes import BinRange
from commlens.waiting.waits import MESSAGES, NEIGHBORS, PREFIX_SUMS, SAMPLING, Wait, Waits, outside_of

COLUMNS = (
    Column("communicator", right=False),
    Column("size", right=False),
    Column("calls"),
    Column("time"),
    Column("waiting"),
    Column("interval", wide=2),
    Column("operation/call"),
    Column("spread", wide=3),
    Column("waited for", right=False, wide=1),
)

SAMPLED_CALLS = (
    "commlens samples messages, collectives and MPI_Win_fence between two or more ranks, but no other one-sided calls, "
    "no access to files, and no calls that create or free communicators, windows or files"
)

MOST_RANKS = 3  # of those that are last in their communicators, named
LEAST_WAITING = 0.01  # share from which on it says who is waited for

LATE_RECEIVERS = (
    "MPI_Send",
    "MPI_Ssend",
    "MPI_Rsend",
    "MPI_Bsend",
)  # what waits in them, waits for a receiver
KINDS = ("messages", "requests", "collectives")
"""In what ranks wait: requests may be of messages and of collectives."""

LATE_EITHER = ("MPI_Sendrecv", "MPI_Sendrecv_replace", *PREFIX_SUMS)

REASONS = {
    "members": "some members have no sample of the call",
    "no data": "a block is empty, so that some members need not wait for each other",
    "machines": "a rooted collective across machines, whose clocks are not known well enough",
    "order": "a member left before the one for which it waits had entered",
    "prefix": "a prefix sum, which this version of commlens did not split",
    "threads": "several threads send or receive messages between the same two processes, so that their order is unknown",
    "posting": "a send of which it is unknown when its receive was posted",
}

MESSAGE_REASONS = {
    "members": "the other process has no sample of the message",
    "machines": "a message between machines, whose clocks are not known well enough",
    "order": "the samples do not tell in which order the messages were received",
}

RANK_COLUMNS = (
    Column("rank"),
    Column("node", right=False, wide=2),
    Column("time"),
    Column("waiting"),
    Column("last"),
    Column("late", wide=1),
    Column("after the first"),
    Column("outside MPI", wide=1),
)

MESSAGE_RANK_COLUMNS = (
    Column("rank"),
    Column("node", right=False, wide=2),
    Column("time"),
    Column("waiting"),
    Column("causes"),
    Column("late in"),
    Column("by", wide=1),
    Column("after the other side", wide=2),
    Column("region", right=False, wide=1),
)


def last_text(wait: Wait) -> str:
    """Return who is waited for."""
    pattern = wait.pattern
    if wait.share.share < LEAST_WAITING or pattern.rank < 0:
        return ""
    if wait.is_message:
        return late_text(wait)
    share = f"rank {pattern.rank} in {share_text(pattern.share)}"
    if pattern.kind == "same":
        cause = {"compute": ", computes longer", "mpi": ", comes late from other MPI calls"}.get(
            wait.cause, ""
        )
        return f"{share}{cause}"
    if pattern.kind == "each":
        return f"the same rank in each communicator: {ranks_text(pattern.ranks)}"
    if pattern.kind == "node":
        return f"node {pattern.node}"
    if pattern.kind == "order":
        return "in the order of the ranks"
    return {"rotates": "rotates", "few": share}.get(pattern.kind, f"varies, {share}")


def ranks_text(ranks: Sequence[int]) -> str:
    """Return the first ranks, and how many more there are.

    >>> ranks_text((0, 2, 4)), ranks_text((0, 2, 4, 6, 8))
    ('0, 2, 4', '0, 2, 4 and 2 more')
    """
    names = ", ".join(map(str, ranks[:MOST_RANKS]))
    return f"{names} and {len(ranks) - MOST_RANKS:,} more" if len(ranks) > MOST_RANKS else names


def late_text(wait: Wait) -> str:
    """Return who is waited for in messages."""
    pattern = wait.pattern
    if pattern.kind == "node":
        return f"node {pattern.node}"
    if pattern.kind == "chain":
        return f"chain from rank {pattern.rank} on"
    place = wait.late_path if pattern.kind == "same" else ""
    causes = f"rank {pattern.rank} causes {share_text(pattern.share)}{', late in ' * bool(place)}{place}"
    return f"varies, {causes}" if pattern.kind == "varies" else causes


def pattern_sentences(wait: Wait, node_of: Mapping[int, str]) -> str:
    """Return in sentences who is waited for, and why."""
    pattern = wait.pattern
    node = node_of.get(pattern.rank, "")
    rank = f"rank {pattern.rank}{f' on {node}' if node else ''}"
    if pattern.rank < 0:
        return "No rank was waited for."
    if wait.is_message:
        return message_sentences(wait, rank)
    often = f"{rank} is last in {share_text(pattern.share)} of the sampled calls"
    if pattern.kind == "few":
        return f"{capital(often)}. These are too few calls to tell a pattern from chance."
    if pattern.kind == "same":
        place = f"It makes most of these calls in region {wait.late_path}." if wait.late_path else ""
        sentences = (f"{capital(often)}, far more often than by chance.", cause_sentence(wait), place)
        return " ".join(filter(None, sentences))
    if pattern.kind == "each":
        return (
            "In each communicator the same rank is last in nearly all sampled calls, far more often than by chance: "
            f"{ranks_text(pattern.ranks)}."
        )
    if pattern.kind == "node":
        return f"The last rank is mostly on node {pattern.node}; {often}."
    if pattern.kind == "order":
        return f"The ranks arrive in the order of their numbers, or in the opposite order; {often}."
    if pattern.kind == "rotates":
        return "No rank is last more often than by chance: the last one changes from call to call, as noise does."
    return f"Several ranks are last more often than by chance; {often}."


def message_sentences(wait: Wait, rank: str) -> str:
    """Return in sentences who is waited for in messages. rank: its name."""
    pattern = wait.pattern
    causes = f"{share_text(pattern.share)} of the waiting is for {rank}"
    if pattern.kind == "node":
        return f"Most of the waiting is for ranks on node {pattern.node}; {causes}."
    if pattern.kind == "chain":
        return (
            f"Ranks wait for each other in turn, and the delay begins at {rank}: {share_text(pattern.share)} of the waiting "
            f"is for it, but it waits little itself. {how_late(wait)}{in_region(wait)}."
        )
    if pattern.kind == "varies":
        return f"The waiting is for several ranks; {causes}, more than for any other."
    late = next(one for one in wait.ranks if one["rank"] == pattern.rank)
    each = f"{causes}: {each_text(late['late_ns'], late['last'])} on average in {calls_text(late['last'])}."
    if pattern.kind == "few":
        return f"{each} These are too few calls to tell a pattern from chance."
    return f"{each} {how_late(wait)}{in_region(wait)}."


def in_region(wait: Wait) -> str:
    """Return in which region the rank of the pattern is late."""
    return f" in region {wait.late_path}" if wait.late_path else ""


def how_late(wait: Wait) -> str:
    """Return which side of the messages is late."""
    row = wait.row
    if row["operation"] in LATE_EITHER or row["class"] == NEIGHBORS or row["completes_collectives"]:
        return "It is late"
    return "It posts its receives late" if wait.row["operation"] in LATE_RECEIVERS else "It sends late"


def capital(text: str) -> str:
    """Return a text with a capital at its beginning."""
    return f"{text[:1].upper()}{text[1:]}"


def cause_sentence(wait: Wait) -> str:
    """Return why the rank is last, in a sentence; empty if unknown."""
    outside = outside_of(wait.pattern.rank, wait.ranks)
    if outside is None:
        return ""
    own, others = (time_text(round(ns)) for ns in outside)
    times = f"it spends {own} outside MPI, the others {others} (median)"
    if not wait.cause:
        why = "it computes at another time than they, or comes late from other MPI calls"
        return f"Between two such calls {times}, which does not explain the delay: {why}."
    cause = {
        "compute": "It computes longer",
        "mpi": "It comes late from other MPI calls, which kept it",
    }[wait.cause]
    return f"{cause}: before such a call {times}."


def interval_text(wait: Wait) -> str:
    """Return the interval of the share of waiting; ? if there are too few samples."""
    low, high = wait.share.low, wait.share.high
    if low is None or high is None:
        return "?"
    return "exact" if wait.share.is_exact else f"{100 * low:.1f} to {100 * high:.1f} %"


def draw(waits: Waits, top: int | None) -> Table:
    """Return the rows with the most waiting, below their communicators."""
    shown = waits.waits if top is None else waits.waits[:top]
    table = draw_by_family(COLUMNS, shown, lambda row: str(row["communicator"]), cells)
    rest = waits.waits[len(shown) :]
    if rest:
        time = time_text(sum(wait.row["waiting_ns"] for wait in rest))
        table.say(f"and {len(rest):,} more rows with {time} of waiting")
    return table


def cells(wait: Wait) -> list[str]:
    """Return the cells of one row."""
    row = wait.row
    size = "varies" if row["bin"] < 0 else size_text(*BinRange(row["bin"], row["bin"]).bounds)
    return [
        f"  {row['operation']}",
        size,
        f"{row['calls']:,}",
        time_text(row["time_ns"]),
        share_text(wait.share.share),
        interval_text(wait),
        time_text(round(row["operation_ns"] / row["calls"])),
        time_text(wait.spread_ns),
        last_text(wait),
    ]


def draw_ranks(wait: Wait, nodes: dict[int, str]) -> Table:
    """Return the ranks of one row."""
    table = Table(MESSAGE_RANK_COLUMNS if wait.is_message else RANK_COLUMNS)
    whole = sum(one["late_ns"] for one in wait.ranks)
    for one in wait.ranks:
        own = [
            str(one["rank"]),
            nodes.get(one["rank"], ""),
            each_text(one["time_ns"], one["samples"]),
            part_text(one["waiting_ns"], one["time_ns"]),
        ]
        late, behind = each_text(one["late_ns"], one["last"]), each_text(one["behind_ns"], one["samples"])
        if wait.is_message:
            causes = part_text(one["late_ns"], whole)
            table.add([*own, causes, calls_text(one["last"]), late, behind, one["late_path"]])
        else:
            last = part_text(one["last"], one["samples"])
            table.add([*own, last, late, behind, part_text(one["outside_ns"], one["between_ns"])])
    return table


def calls_text(calls: int) -> str:
    """Return a number of sampled calls.

    >>> calls_text(1), calls_text(1200)
    ('1 call', '1,200 calls')
    """
    return f"{calls:,} call{'s' * (calls != 1)}"


def each_text(ns: int, calls: int) -> str:
    """Return the time of one call; - if there is none."""
    return time_text(round(ns / calls)) if calls else "-"


def part_text(part: int, whole: int) -> str:
    """Return the share of a part; - if the whole is nothing."""
    return share_text(part / whole if whole else None)


def head_text(waits: Waits) -> str:
    """Return how much waiting there is, of which calls."""
    found = {kind_of(wait) for wait in waits.waits}
    kinds = [kind for kind in KINDS if kind in found]
    what = " and ".join(filter(None, [", ".join(kinds[:-1]), *kinds[-1:]]))
    return f"{time_text(waits.waiting_ns)} of waiting in {time_text(waits.time_ns)} of {what} ({share_text(waits.waiting_ns / waits.time_ns)})"


def nothing_text(waits: Waits) -> str:
    """Return why there are no rows."""
    if waits.unsplit:
        return "no sampled call could be split into waiting and operation"
    if waits.is_without_selected:
        return "no sampled calls match the selection"
    why = f"{SAMPLING} was 0 in this run" if waits.option == "0" else SAMPLED_CALLS
    return f"no sampled calls: {why}"


def kind_of(wait: Wait) -> str:
    """Return in what a row waits, as one of KINDS."""
    if wait.row["class"] not in MESSAGES:
        return "collectives"
    return "requests" if wait.row["completes_collectives"] else "messages"


def note_sentences(waits: Waits) -> list[str]:
    """Return in sentences what limits the table."""
    sentences = []
    if waits.has_barriers:
        sentences.append(
            "COMMLENS_WAITING was barrier: commlens put a barrier before each blocking collective and sampled all of "
            "them. The waiting is exact, but the barriers slowed this run down and changed its timing."
        )
    if waits.unsampled:
        names = ", ".join(f"{row['operation']} ({time_text(row['time_ns'])})" for row in waits.unsampled)
        sentences.append(
            f"Without samples, so that it is unknown how much of their time is waiting: {names}."
        )
    return [*sentences, *clock_sentences(waits.clocks)]


def clock_sentences(clocks: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return in sentences how well the clocks of several machines are related; nothing for one machine."""
    if not clocks:
        return []
    first, *others = clocks
    related = [clock for clock in others if clock["error_ns"] is not None]
    jumped = [clock for clock in related if clock["excess_ns"]]
    steady = [clock for clock in related if not clock["excess_ns"]]
    sentences = []
    if steady:
        error = time_text(max(clock["error_ns"] for clock in steady))
        which = f"{len(steady)} other machine{'s' * (len(steady) > 1)}"
        sentences.append(
            f"The clock{'s' * (len(steady) > 1)} of {which} {'are' if len(steady) > 1 else 'is'} related to that of "
            f"{machine_text(first)} with an error of at most {error}, by sampled calls."
        )
    if jumped:
        worst = max(jumped, key=lambda clock: float(clock["excess_ns"]))
        sentences.append(
            f"The clock of {machine_text(worst)} jumped or changed its rate: calls contradict a constant rate by "
            f"{time_text(worst['excess_ns'])}{others_text(len(jumped) - 1)}."
        )
    unknown = [clock for clock in others if clock["error_ns"] is None]
    if unknown:
        sentences.append(
            f"The clock of {machine_text(unknown[0])}{others_text(len(unknown) - 1)} is not related to that of "
            f"{machine_text(first)}: there is no sampled barrier, allreduce or alltoall that bounds it."
        )
    return sentences


def machine_text(clock: Mapping[str, Any]) -> str:
    """Return the name of a machine by its lowest rank."""
    return f"rank {clock['rank']} on {clock['node']}"


def others_text(more: int) -> str:
    """Return how many more machines a sentence is about."""
    return f" (and {more:,} more machine{'s' * (more > 1)})" if more else ""


def unsplit_lines(waits: Waits) -> list[str]:
    """Return one line for each reason why sampled calls could not be split."""
    found: dict[str, dict[str, int]] = {}
    for row in waits.unsplit:
        operations = found.setdefault(why_unsplit(row), {})
        operations[row["operation"]] = operations.get(row["operation"], 0) + row["calls"]
    lines = []
    for why, operations in found.items():
        names = ", ".join(f"{name} ({calls:,})" for name, calls in operations.items())
        lines.append(f"{names}: {why}")
    return lines


def why_unsplit(row: Mapping[str, Any]) -> str:
    """Return why sampled calls of a row could not be split."""
    reason = str(row["reason"])
    if row["class"] in MESSAGES and reason in MESSAGE_REASONS:
        return MESSAGE_REASONS[reason]
    return REASONS.get(reason, reason)
