# SPDX-License-Identifier: Apache-2.0
"""Writes docs/comparison.md from the results."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from bench.overhead_page import added_bytes, around, number, table
from bench.peers import applications, build, correct, cost, features, losses, state
from bench.peers.correct import RANDOM
from bench.peers.losses import Losses, beside, estimated
from bench.peers.results import Record, Store, of_one_version
from bench.peers.tools import BY_NAME, COMMLENS, CONFIGURATIONS, MPIS, PEERS, UNTRIED

from commlens.overhead.estimate import FEWEST, Estimate
from commlens.overhead.legs import BASELINE
from commlens.render.units import bytes_text

TEMPLATE = Path(__file__).parent / "page.md.in"
ALL = (build.PART, correct.PART, features.PART, cost.INSTRUCTIONS, cost.CALLS, cost.FINALIZE, cost.OVERHEAD)
NOTHING = ["Not measured yet.", ""]
TOO_FEW = [f"Not measured yet in at least {FEWEST} rounds.", ""]
TOOLS = [configuration.name for configuration in CONFIGURATIONS]


def code(text: str) -> str:
    """Return text as code in a cell of a table."""
    return f"`{text.replace('`', chr(39)).replace('|', '¦')}`"


def plain(text: str) -> str:
    """Return text for a cell of a table: nothing in it is Markdown."""
    return "".join(f"\\{c}" if c in "*_<>[]|`" else c for c in text)


def in_order(names: Iterable[str]) -> list[str]:
    """Return names of configurations in the order of the page."""
    return sorted(set(names), key=lambda name: TOOLS.index(name) if name in TOOLS else len(TOOLS))


IN_FIRST_TABLE = ("commit", "date", "rounds asked for")
"""Facts of a part that the page's first table states, or that each of its tables states for its rows."""


def facts(part: str) -> list[str]:
    """Return on what a part was measured, as a line."""
    found = {name: value for name, value in Store(part).facts().items() if name not in IN_FIRST_TABLE}
    if not found:
        return []
    texts = [value if name == "MPI" else f"{name} {value}" for name, value in found.items()]
    return [f"Measured: {', '.join(texts)}.", ""]


# ---- tools ----


def outcome_text(record: Record | None) -> str:
    """Return what came out of a build."""
    if record is None:
        return "not tried"
    if record["outcome"] == "built":
        return "built"
    command = f" in {code(record['command'])}" if record.get("command") else ""
    return f"**{record['outcome']}**{command}: {plain(record['why'])}"


def tools() -> list[str]:
    """Return which tools were built, and in which configurations they run."""
    store = Store(build.PART)
    rows = []
    for peer in PEERS:
        cells = []
        for mpi in MPIS:
            cells.append(outcome_text(store.get(peer.name, mpi)))
        rows.append((f"[{peer.name}]({peer.repository})", code(peer.commit[:12]), *cells))
    lines = table(("tool", "commit", *(f"with {title}" for title in MPIS.values())), rows, 4)
    lines += [f"- {name} was not tried: {why}." for name, why in UNTRIED.items()]
    lines += ["", "Each tool runs in these configurations:", ""]
    rows = []
    for one in CONFIGURATIONS:
        if one.peer != COMMLENS and not any(
            (store.get(one.peer, mpi) or {}).get("outcome") == "built" for mpi in MPIS
        ):
            continue
        settings = " ".join(f"{name}='{value}'" for name, value in one.variables.items())
        use = " and ".join(
            word for word, is_so in (("counts", one.for_counts), ("cost", one.for_cost)) if is_so
        )
        rows.append((one.name, code(settings), use, one.why))
    return [*lines, *table(("configuration", "environment", "for", "what it is"), rows, 4)]


def applications_table() -> list[str]:
    """Return the applications: where they come from, what they compute, and for which MPI library they are there."""
    store = Store(build.PART)
    rows = []
    for one in applications.APPLICATIONS:
        if one.source is None:
            cells = [f"Debian package `{one.package}`", "for Open MPI only"]
            name = one.name
        else:
            cells = [outcome_text(store.get(one.name, mpi)) for mpi in MPIS]
            name = f"[{one.name}]({one.source.repository}) {code(one.source.commit[:12])}"
        rows.append((name, f"{one.usual:,} {one.unit}, quick {one.quick:,}", *cells))
    lines: list[str] = table(
        ("application", "problem", *(f"with {title}" for title in MPIS.values())), rows, 4
    )
    return lines


# ---- correct ----


def group_of(case: str) -> str:
    """Return the row of the table that a program belongs to."""
    return RANDOM if case.startswith(f"{RANDOM} ") else case


def added_up(records: Iterable[Record], what: str) -> list[int] | None:
    """Return the sums of [right, wrong, absent], or None if no run has them."""
    all_of = [record[what] for record in records if record.get(what)]
    return [sum(column) for column in zip(*all_of)] if all_of else None


def share(found: Sequence[int] | None) -> str:
    """Return how many are right, and how many of the others are wrong and absent."""
    if found is None:
        return "–"
    right, wrong, *absent = found
    text = f"{right} of {sum(found)}"
    notes = [f"**{wrong} wrong**"] if wrong else []
    notes += [f"{absent[0]} not counted"] if absent and absent[0] else []
    return f"{text} ({', '.join(notes)})" if notes else text


def correct_of(mpi: str) -> list[str]:
    """Return the tables of one MPI library."""
    records = [record for record in Store(correct.PART) if record["key"][0] == mpi]
    by: dict[tuple[str, str], Record] = {(record["key"][1], record["key"][2]): record for record in records}
    sound = [case for (tool, case), record in by.items() if tool == "none" and not record["failure"]]
    names = in_order(tool for tool, _ in by if tool != "none")
    if not names:
        return []
    lines = [f"### {MPIS[mpi]}", ""]
    rows: list[tuple[str, ...]] = []
    for tool in names:
        of = [by[tool, case] for case in sound if (tool, case) in by]
        well = [record for record in of if not record["failure"]]
        missed, calls = (sum(record[what] for record in well) for what in ("missed", "all_calls"))
        rows.append(
            (
                tool, f"{len(of)}", f"{len(of) - len(well)}", share(added_up(well, "calls")),
                f"{100 * missed / calls:.1f} %" if calls else "", share(added_up(well, "bytes")),
                share(added_up(well, "comms")),
            )
        )  # fmt: skip
    titles = ("tool", "programs", "crashed or hung", "procedures with exact calls", "calls missed",
              "procedures with exact bytes", "communicators with exact calls")  # fmt: skip
    lines += table(titles, rows)
    groups = dict.fromkeys(group_of(case) for case in sound)
    rows = []
    for group in groups:
        cases = [case for case in sound if group_of(case) == group]
        title = f"{len(cases)} random programs" if group == RANDOM else group
        rows.append(
            (title, *(cell([by[tool, case] for case in cases if (tool, case) in by]) for tool in names))
        )
    lines += ["Procedures with exact calls, procedures with exact bytes, communicators with exact calls:", ""]
    return [*lines, *table(("program", *names), rows), *differing(by, sound, names)]


def cell(records: Sequence[Record]) -> str:
    """Return what came out for some programs of a row."""
    failed = [record for record in records if record["failure"]]
    well = [record for record in records if not record["failure"]]
    parts = []
    if well:
        calls, moved, comms = (added_up(well, what) for what in ("calls", "bytes", "comms"))
        texts = [f"{found[0]}/{sum(found)}" if found else "–" for found in (calls, moved, comms)]
        parts.append(" · ".join(texts))
    if failed:
        parts.append(f"**{len(failed)} of {len(records)} failed**" if len(records) > 1 else "**failed**")
    return ", ".join(parts)


def differing(by: Mapping[tuple[str, str], Record], sound: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return what was wrong, and how programs failed, by tool."""
    lines = []
    for tool in names:
        of = {case: by[tool, case] for case in sound if (tool, case) in by}
        items = []
        for what, title in (
            ("missing", "not counted"),
            ("wrong_calls", "wrong calls"),
            ("wrong_bytes", "wrong bytes"),
        ):
            ops = sorted({op for record in of.values() for op in record.get(what, ())})
            if ops:
                items.append(f"- {title}: {', '.join(map(code, ops))}")
        examples = [
            f"- {case}: {plain(line)}"
            for case, record in of.items()
            for line in record.get("said", ())
            if line.split(":")[0] in (*record.get("wrong_calls", ()), *record.get("wrong_bytes", ()))
        ]
        items += examples[:6]
        failures: dict[str, list[str]] = {}
        for case, record in of.items():
            if record["failure"]:
                failures.setdefault(record["failure"], []).append(case)
        for failure, cases in failures.items():
            items.append(f"- {plain(failure)}: {', '.join(cases)}. {code(of[cases[0]]['command'])}")
        if items:
            lines += [f"**{tool}** ({commit_of(tool)})", "", *items, ""]
    return lines


def commit_of(tool: str) -> str:
    """Return the commit of a configuration's tool."""
    peer = next((one.peer for one in CONFIGURATIONS if one.name == tool), COMMLENS)
    return "this tree" if peer == COMMLENS else BY_NAME[peer].commit[:12]


# ---- features ----


def features_table() -> list[str]:
    """Return which tool's output has what a small program did."""
    by = {tuple(record["key"]): record for record in Store(features.PART)}
    if not by:
        return NOTHING
    lines: list[str] = []
    commands = []
    for mpi, title in MPIS.items():
        names = in_order(tool for of, tool, _ in by if of == mpi)
        rows = []
        for feature in features.FEATURES:
            found = [by.get((mpi, tool, feature.title)) for tool in names]
            if any(found):
                cells = ("" if one is None else plain(one["verdict"]) for one in found)
                rows.append((feature.title, code(feature.mode), *cells))
        if rows:
            lines += [
                f"### Features with {title}",
                "",
                *table(("use of MPI", "MODE", *names), rows, 2 + len(names)),
            ]
        for tool in names:
            of = [(feature.mode, by.get((mpi, tool, feature.title))) for feature in features.FEATURES]
            texts = [one["command"].replace(f"features {mode}", "features MODE") for mode, one in of if one]
            commands += [f"- {tool}, {title}: {code(text)}" for text in dict.fromkeys(texts)]
    return [*lines, "The commands of the cells:", "", *commands, ""]


# ---- costs ----


def bold_best(values: Mapping[str, float], texts: Mapping[str, str], names: Sequence[str]) -> list[str]:
    """Return the cells of a row, the smallest value in bold."""
    best = min(values.values(), default=None)
    return [
        f"**{texts[name]}**" if name in values and values[name] == best else texts.get(name, "")
        for name in names
    ]


def instructions(cheaper: Losses) -> list[str]:
    """Return the instructions that each tool adds to a call."""
    lines: list[str] = []
    for mpi, title in MPIS.items():
        of = {record["key"][1]: record for record in Store(cost.INSTRUCTIONS) if record["key"][0] == mpi}
        if BASELINE not in of:
            continue
        names = in_order(name for name in of if name != BASELINE)
        counts = {
            name: {(call, n): count for call, n, count in record["counts"]} for name, record in of.items()
        }
        rows = []
        for (call, n), alone in sorted(counts[BASELINE].items()):
            added = {name: counts[name][call, n] - alone for name in names if (call, n) in counts[name]}
            texts = {name: number(value, 0) for name, value in added.items()}
            rows.append((call, f"{n:,}", number(alone, 0), *bold_best(added, texts, names)))
            more = {name: [added[COMMLENS] - value] for name, value in added.items() if COMMLENS in added}
            where = f"{call}, {n:,} communicators, {title}"
            cheaper.note(losses.INSTRUCTIONS, mpi, call, where, added, more, lambda value: number(value, 0))
        lines += [f"**{title}**", "", *table(("call", "communicators", "alone", *names), rows, 1)]
        lines += failed_lines((name, of[name]["failure"], of[name]["command"]) for name in names)
    return lines or NOTHING


def failed_lines(found: Iterable[tuple[str, str, str]]) -> list[str]:
    """Return a line for each tool that failed."""
    lines = [f"- {name}: {plain(failure)}. {code(command)}" for name, failure, command in found if failure]
    return [*lines, ""] if lines else []


def calls(cheaper: Losses) -> list[str]:
    """Return the nanoseconds that each tool adds to a call."""
    lines: list[str] = []
    for mpi, title in MPIS.items():
        records = of_one_version([record for record in Store(cost.CALLS) if record["key"][0] == mpi])
        added: dict[tuple[str, int], dict[str, dict[str, float]]] = {}
        alone: dict[tuple[str, int], list[float]] = {}
        failed: dict[str, tuple[str, str, str]] = {}
        for record in records:
            base = {(row, n): ns for row, n, ns in record["runs"][BASELINE]["ns"]}
            for name, run in record["runs"].items():
                if run["failure"]:
                    failed[name] = (name, run["failure"], run["command"])
                for row, n, ns in run["ns"] if not run["failure"] else ():
                    if name == BASELINE:
                        alone.setdefault((row, n), []).append(ns)
                    elif (row, n) in base and n:
                        of = added.setdefault((row, n), {}).setdefault(name, {})
                        of[record["key"][-1]] = ns - base[row, n]
        if not added or len(records) < FEWEST:
            continue
        names = in_order(name for of in added.values() for name in of)
        rows = []
        for (row, n), by_tool in added.items():
            found = {name: estimated(tuple(of.values())) for name, of in by_tool.items()}
            texts = {name: around(one, 1) for name, one in found.items()}
            values = {name: one.value for name, one in found.items()}
            rows.append(
                (row, f"{n:,}", number(statistics.median(alone[row, n])), *bold_best(values, texts, names))
            )
            own = by_tool.get(COMMLENS, {})
            more = {
                name: [own[key] - value for key, value in of.items() if key in own]
                for name, of in by_tool.items()
            }
            call, where = row.split(",")[0], f"{row}, {n:,} communicators, {title}"
            cheaper.note(losses.NS, mpi, call, where, values, more, number)
        lines += [f"**{title}**, {len(records)} rounds", ""]
        lines += table(("call", "communicators", "alone, ns", *(f"{name} adds" for name in names)), rows, 1)
        lines += failed_lines(failed.values())
    return lines or TOO_FEW


def by_setup(part: str) -> dict[tuple[str, str, str], list[Record]]:
    """Return the rounds of each program of a part."""
    found: dict[tuple[str, str, str], list[Record]] = {}
    for record in Store(part):
        mpi, ranks, program, _ = record["key"]
        found.setdefault((mpi, ranks, program), []).append(record)
    return {key: of_one_version(records) for key, records in found.items()}


def place_of(key: tuple[str, str, str]) -> tuple[bool, str, int, str]:
    """Return where a program has its row: applications first, then by name and ranks."""
    _, where, program = key
    name = program.split()[0]
    return name not in applications.BY_NAME, name, int(where.split()[0]), where


def ranks_text(where: str) -> str:
    """Return where a program ran.

    >>> ranks_text("2"), ranks_text("8 on 4 hosts")
    ('2 ranks', '8 ranks on 4 hosts')
    """
    ranks, *hosts = where.split(" ", 1)
    return " ".join([ranks, "ranks", *hosts])


def failures(records: Iterable[Record]) -> dict[str, tuple[int, str, str]]:
    """Return for each tool how often it failed, how, and the command."""
    found: dict[str, tuple[int, str, str]] = {}
    for record in records:
        for run in record["runs"]:
            if run["failure"]:
                times = found.get(run["tool"], (0, "", ""))[0]
                found[run["tool"]] = (times + 1, run["failure"], run["command"])
    return found


Text = Callable[[Estimate], str]


def costs_of(
    records: Sequence[Record],
    pairs: Mapping[str, Sequence[tuple[float, float]]],
    names: Sequence[str],
    text: Text,
    *,
    relative: bool,
    plain_number: bool,
) -> tuple[dict[str, float], dict[str, str]]:
    """Return the estimate of each tool, and the text of its cell; a tool that failed has a text only."""
    broken = failures(records)
    values, texts = {}, {}
    for name in names:
        if name in pairs:
            if relative:
                added = tuple(after / before - 1 for before, after in pairs[name] if before)
            else:
                added = tuple(after - (0 if plain_number else before) for before, after in pairs[name])
            one = estimated(added)
            values[name], texts[name] = one.value, text(one)
        if name in broken:
            texts[name] = f"{texts.get(name, '')} failed {times_text(broken[name][0])}".strip()
    return values, texts


def cost_table(
    part: str,
    what: str,
    title: str,
    text: Text,
    cheaper: Losses,
    *,
    relative: bool = False,
    plain_number: bool = False,
) -> list[str]:
    """Return a table of what each tool adds to one number of the runs of a part.

    relative : as a share of the number without a tool
    plain_number : the tools' own number, which is none without a tool
    """
    lines: list[str] = []
    is_timed = what.endswith("_ns")
    whole = {
        key: records for key, records in by_setup(part).items() if len(records) >= (FEWEST if is_timed else 1)
    }
    for mpi, mpi_title in MPIS.items():
        setups = {key: records for key, records in whole.items() if key[0] == mpi}
        names = in_order(
            run["tool"]
            for records in setups.values()
            for r in records
            for run in r["runs"]
            if run["tool"] != BASELINE
        )
        rows = []
        for (_, ranks, program), records in sorted(setups.items(), key=lambda item: place_of(item[0])):
            pairs = cost.differences(records, what)
            values, texts = costs_of(
                records, pairs, names, text, relative=relative, plain_number=plain_number
            )
            before = [pair[0] for pair in next(iter(pairs.values()), [])]
            base = [] if plain_number else [base_text(what, statistics.median(before)) if before else ""]
            rows.append((code(program), ranks, str(len(records)), *base, *bold_best(values, texts, names)))
            cheaper.note(
                title,
                mpi,
                program.split()[0],
                f"{code(program)}, {ranks_text(ranks)}, {mpi_title}",
                values,
                beside(records, what, relative=relative),
                lambda value: text(Estimate(value, float("nan"), float("nan"), 1, None)),
            )
        if rows:
            alone = [] if plain_number else ["alone"]
            lines += [
                f"**{mpi_title}**: {title}",
                "",
                *table(("program", "ranks", "rounds", *alone, *names), rows),
            ]
    return lines or (TOO_FEW if is_timed else NOTHING)


def base_text(what: str, value: float) -> str:
    """Return a number without a tool."""
    return bytes_text(round(value)) if what.endswith("bytes") else f"{number(value / 1e6, 1)} ms"


def milliseconds(found: Estimate) -> str:
    """Return added milliseconds with their interval."""
    return str(around(found, 1e6))


def percent(found: Estimate) -> str:
    """Return an added share with its interval."""
    return f"{around(found, 0.01)} %"


def median_bytes(found: Estimate) -> str:
    """Return bytes."""
    return bytes_text(round(found.value))


def times_text(times: int) -> str:
    """Return how often something happened."""
    return "once" if times == 1 else f"{times} times"


def failed_runs(part: str) -> list[str]:
    """Return how the runs of a part failed."""
    lines = []
    for (mpi, ranks, program), records in by_setup(part).items():
        for tool, (times, failure, command) in failures(records).items():
            who = "without a tool" if tool == BASELINE else tool
            lines.append(
                f"- {who}, {program}, {ranks_text(ranks)}, {MPIS[mpi]}, {times_text(times)}: {plain(failure)}. {code(command)}"
            )
    return ["Failed runs:", "", *lines, ""] if lines else []


def write(target: Path) -> None:
    """Write the page."""
    cheaper = Losses()
    parts: dict[str, list[str]] = {
        "PARTS": state.head([part for part in ALL if part != build.PART]) or NOTHING,
        "TOOLS": tools(),
        "APPLICATIONS": applications_table(),
        "CORRECT": [*facts(correct.PART), *(line for mpi in MPIS for line in correct_of(mpi))] or NOTHING,
        "FEATURES": [*facts(features.PART), *features_table()],
        "INSTRUCTIONS": [*facts(cost.INSTRUCTIONS), *instructions(cheaper)],
        "CALLS": [*facts(cost.CALLS), *calls(cheaper)],
        "FINALIZE": [
            *facts(cost.FINALIZE),
            *cost_table(cost.FINALIZE, "finalize_ns", losses.FINALIZE, milliseconds, cheaper),
        ],
        "MEMORY": cost_table(cost.FINALIZE, "memory_bytes", losses.MEMORY, added_bytes, cheaper),
        "OUTPUT": cost_table(
            cost.FINALIZE, "output_bytes", losses.OUTPUT, median_bytes, cheaper, plain_number=True
        ),
        "FAILED_FINALIZE": failed_runs(cost.FINALIZE),
        "OVERHEAD": facts(cost.OVERHEAD),
        "NET": cost_table(cost.OVERHEAD, "net_ns", losses.NET, percent, cheaper, relative=True),
        "HOOK": cost_table(cost.OVERHEAD, "hook_ns", losses.HOOK, milliseconds, cheaper),
        "WRAP": cost_table(cost.OVERHEAD, "wrap_ns", losses.WRAP, milliseconds, cheaper),
        "FAILED_OVERHEAD": failed_runs(cost.OVERHEAD),
    }
    parts["LOSSES"] = cheaper.lines()  # when all tables are made
    text = TEMPLATE.read_text(encoding="utf-8")
    for name, lines in parts.items():
        text = text.replace(f"@{name}@", "\n".join(lines).rstrip())
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
