# SPDX-License-Identifier: Apache-2.0
"""The output of `commlens matrix`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.text import Text

from commlens.base.counts import count_text
from commlens.matrix import picture
from commlens.matrix.ends import EXAMPLES, Difference
from commlens.matrix.facts import Facts
from commlens.matrix.patterns import Pattern
from commlens.matrix.query import KINDS, SHAPES, TITLES
from commlens.render.screen import Screen
from commlens.render.shades import kind_of
from commlens.render.table import Column, Table, fold
from commlens.render.units import bytes_text, share_text

NAME = 12  # characters before the text


def show(facts: Facts, screen: Screen, heading: str) -> None:
    """Print a matrix and its facts."""
    matrix, axis = facts.matrix, facts.axis
    messages, bytes = facts.pairs.total("messages"), facts.pairs.total("bytes")
    screen.lines(
        fold(
            "",
            f"{TITLES[matrix.kind]}{heading}: {count_text(len(facts.pairs), 'pair')} of {count_text(len(axis.labels), axis.noun)}, "
            f"{count_text(messages, 'message')}, {bytes_text(bytes)}",
            screen.width,
            "bold",
        )
    )
    if len(facts.pairs):
        screen.lines(picture.draw(facts.pairs, axis, facts.what, kind_of(screen), screen.width))
    else:
        screen.lines(fold("", nothing(facts, heading), screen.width))
    said = list(sayings(facts))
    if said:
        screen.lines([Text("")])
    for name, text in said:
        screen.lines(fold(f"{name:<{NAME}}", text, screen.width))
    for table in tables(facts):
        screen.lines([Text(""), *table.lines(screen.width)])


def nothing(facts: Facts, heading: str) -> str:
    """Return the reason why there is no picture."""
    matrix = facts.matrix
    if matrix.messages:
        return "nothing to draw: no message has two known ends"
    which = "no such messages match" if heading else "no such messages in this profile"
    others = [
        option_of(kind) for kind in matrix.kinds if kind not in (*KINDS[matrix.kind], *SHAPES, "received")
    ]
    if others:
        where = "the selection" if heading else "the profile"
        return f"{which}; {where} has {', '.join(others)}"
    if matrix.kind in ("collective", "internal") and matrix.inside != "measured":
        which += "; COMMLENS_MATRIX=all counts them, if the MPI library exposes them (Open MPI)"
    return which


def sayings(facts: Facts) -> Iterator[tuple[str, str]]:
    """Return name and text of each line of facts."""
    matrix = facts.matrix
    if facts.pattern:
        yield "pattern", facts.pattern.text()
    if len(matrix.pairs):
        yield "locality", locality_text({where: share(facts, pair) for where, pair in facts.locality.items()})
    if facts.symmetry is not None:
        yield "symmetry", f"{share_text(facts.symmetry)} of the traffic is matched in the opposite direction"
    if facts.partners:
        words = {"to": "sends to", "from": "receives from", "either": "either"}
        ways = [
            f"{words[way]} {number(low)} / {number(mid)} / {number(high)}"
            for way, (low, mid, high) in facts.partners.items()
        ]
        yield "partners", f"per {facts.axis.noun}, minimum / median / maximum: {', '.join(ways)}"
    if matrix.messages:
        yield (
            "elsewhere",
            f"{count_text(matrix.messages, 'message')} with {bytes_text(matrix.bytes)} belong to no pair: the other end is a "
            "process of another MPI_COMM_WORLD, or the communicator was freed, shares a row with others, or belongs to the MPI library",
        )
    for remark in facts.remarks:
        yield "note", remark
    yield from both_ends(facts)


def locality_text(shares: Mapping[str, float]) -> str:
    """Return the shares by distance, the nearest first; together they are 100 %.

    >>> locality_text({"in a core complex": 0.5, "in a node": 0.125, "between nodes": 0.375})
    'in a core complex 50.0 %, elsewhere in a node 12.5 %, between nodes 37.5 %'
    """
    parts: list[str] = []
    for where, part in shares.items():
        beyond = "elsewhere " if parts and where.startswith("in a ") else ""
        parts.append(f"{beyond}{where} {share_text(part)}")
    return ", ".join(parts)


def share(facts: Facts, pair: tuple[int, int]) -> float:
    """Return the share of (messages, bytes) in the total."""
    index = 0 if facts.what == "messages" else 1
    total = facts.matrix.pairs.total(facts.what)
    return pair[index] / total if total else 0.0


def number(value: float) -> str:
    """Return a number of partners; a median may have a half."""
    return f"{value:,.1f}".removesuffix(".0")


def both_ends(facts: Facts) -> Iterator[tuple[str, str]]:
    """Return the lines that compare sent and received counts."""
    ends = facts.ends
    if ends is None:
        return
    left_out = (
        f"; {count_text(ends.left_out, 'pair')} not compared: counted in blocks" if ends.left_out else ""
    )
    different = len(ends.differences)
    # The heading counts a pair once that exchanges messages on several communicators.
    comms = {comm for comm, flow in facts.matrix.traffic if flow in ("sent", "received")}
    counted = ends.equal + different + ends.left_out
    is_apart = len(comms) > 1 and counted > len(facts.pairs)
    apart = " of ranks, counted per communicator" if is_apart else ""
    if not ends.differences:
        if ends.equal:
            yield (
                "both ends",
                f"sent and received are equal in all {count_text(ends.equal, 'pair')}{apart}{left_out}",
            )
        elif ends.left_out:
            yield (
                "both ends",
                f"not compared: {count_text(ends.left_out, 'pair')} with an end that counts in blocks",
            )
        return
    yield (
        "both ends",
        f"sent and received are equal in {ends.equal:,} of {count_text(ends.equal + different, 'pair')}{apart}{left_out}",
    )
    for why, differences in ends.by_reason().items():
        examples = "; ".join(difference_text(difference) for difference in differences[:EXAMPLES])
        more = len(differences) - EXAMPLES
        yield "", f"{why}: {examples}" + (f"; and {more:,} more" if more > 0 else "")


def difference_text(difference: Difference) -> str:
    """Return a difference in words."""
    d = difference
    on = f" on {d.communicator}" if d.communicator else ""
    return (
        f"{d.source} to {d.destination}{on} sent {count_text(d.messages_sent, 'message')}, {bytes_text(d.bytes_sent)}, received "
        f"{d.messages_received:,}, {bytes_text(d.bytes_received)}"
    )


def tables(facts: Facts) -> Iterator[Table]:
    """Return the tables below the facts."""
    matrix = facts.matrix
    kinds = Table(
        [Column("kind of traffic", right=False), Column("messages"), Column("bytes"), Column("", right=False)]
    )
    shapes = Table(
        [
            Column("shape of collectives", right=False),
            Column("calls"),
            Column("bytes"),
            Column("", right=False),
        ]
    )
    for kind, (number, bytes) in matrix.kinds.items():
        name, volume = kind.replace("_", "-"), bytes_text(bytes)
        if kind in SHAPES:
            shapes.add([name, f"{number:,}", volume, SHAPES[kind]])
        else:
            how = "drawn" if kind in KINDS[matrix.kind] else option_of(kind)
            kinds.add([name, f"{number:,}", volume, how])
    yield from (table for table in (kinds, shapes) if table.rows)
    if len(facts.of_comms) > 1:
        comms = Table(
            [
                Column("communicator", right=False),
                Column("ranks"),
                Column("messages"),
                Column("bytes"),
                Column("share"),
                Column("pattern", right=False),
            ]
        )
        for row in facts.of_comms:
            comms.add(
                [
                    *(row["label"], f"{row['size']:,}", f"{row['messages']:,}", bytes_text(row["bytes"])),
                    *(share_text(row["share"]), Pattern(**row["pattern"]).text()),
                ]
            )
        yield comms
    if facts.heaviest:
        yield pairs_table(facts)


def option_of(kind: str) -> str:
    """Return the option that shows a kind that is not drawn."""
    if kind == "received":
        return "the other end of sent"
    return f"--kind {'p2p' if kind == 'sent' else kind}"


def pairs_table(facts: Facts) -> Table:
    """Return the heaviest pairs."""
    rows: list[dict[str, Any]] = facts.heaviest
    has_nodes = len(set(facts.matrix.nodes.values())) > 1 and facts.axis.noun == "rank"
    nodes = [Column("from node", right=False), Column("to node", right=False)] if has_nodes else []
    table = Table(
        [
            Column("from", right=False),
            Column("to", right=False),
            Column("messages"),
            Column("bytes"),
            Column("share"),
            *nodes,
        ]
    )
    total = facts.pairs.total(facts.what)
    for row in rows:
        more = [row[f"{end}_node"] or "?" for end in ("source", "destination")] if has_nodes else []
        part = row[facts.what] / total if total else 0.0
        table.add(
            [
                str(row["source"]),
                str(row["destination"]),
                f"{row['messages']:,}",
                bytes_text(row["bytes"]),
                share_text(part),
                *more,
            ]
        )
    left = len(facts.pairs) - len(rows)
    if left > 0:
        table.say(f"and {count_text(left, 'more pair')}")
    return table
