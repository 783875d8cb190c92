// SPDX-License-Identifier: Apache-2.0
// Who is waited for in one line of `commlens waits`: by rank and by node.

import { type Context, pick } from "../context";
import type { Table, Wait } from "../data";
import { type Child, h } from "../dom";
import { bars } from "../draw/bars";
import { mirror, type Mirrored } from "../draw/mirror";
import { choice, legend, listed, panel, type Result } from "../panel";
import { count, many, share, size, time } from "../units";

const TOP_NODES = 12;

interface Rank {
  readonly rank: number;
  readonly samples: number;
  readonly time_ns: number;
  readonly waiting_ns: number;
  /** In how many samples it was last, and how long the others then waited for it alone; of messages, in how many samples of others they waited for it. */
  readonly last: number;
  readonly late_ns: number;
  readonly behind_ns: number;
  readonly between_ns: number;
  readonly outside_ns: number;
  /** In which it was late most of the time; 0: in none. */
  readonly late_region: number;
}

const SUMS = ["samples", "time_ns", "waiting_ns", "last", "late_ns", "behind_ns", "between_ns", "outside_ns"] as const;

/** Returns the ranks of a line; none if the page has no room for them. */
function read(table: Table, line: number): Rank[] {
  const { columns } = table;
  const { line: lines, rank } = columns;
  if (!lines || !rank) return [];
  const found: Rank[] = [];
  for (let i = lines.indexOf(line); i >= 0 && lines[i] === line; i++) {
    const sums = Object.fromEntries(SUMS.map((name) => [name, columns[name]![i]!])) as Record<(typeof SUMS)[number], number>;
    found.push({ rank: rank[i]!, ...sums, late_region: columns.late_region![i]! });
  }
  return found;
}

function ranksSql(context: Context, { family, op, bin }: Wait): string {
  return `SELECT rank, ${SUMS.join(", ")}
  FROM (
${context.profile.facts.waiting.sql.ranks!}
       )
 WHERE family = ${family} AND op = ${op} AND bin = ${bin}`;
}

/** Returns a part of something; null if there is nothing. */
function part(value: number, whole: number): number | null { return whole ? value / whole : null; }

function total(ranks: Rank[]): number { return ranks.reduce((sum, one) => sum + one.late_ns, 0); }

function table(context: Context, wait: Wait, ranks: Rank[]): Result {
  const { names, state } = context;
  const whole = total(ranks);
  const isCollective = !wait.is_message;
  return {
    columns: [
      { name: "rank", title: "rank", unit: "number" }, { name: "node", title: "node", unit: "text", extra: true }, { name: "samples", title: "samples", unit: "count" },
      { name: "waiting_per_call_ns", title: "waiting per call", unit: "time", extra: true }, { name: "waiting_share", title: "share", unit: "share", extra: true },
      { name: "time_ns", title: "time", unit: "time", hidden: true }, { name: "waiting_ns", title: "waiting", unit: "time", hidden: true },
      { name: "last", title: isCollective ? "times last" : "late in calls", unit: "count" },
      isCollective ? { name: "last_share", title: "of its calls", unit: "share", extra: true } : { name: "late_share", title: "of all waiting", unit: "share", extra: true },
      { name: "late_ns", title: "waited for", unit: "time" },
      { name: "behind_per_call_ns", title: isCollective ? "after the first" : "after the other side", unit: "time", extra: true },
      { name: "outside_share", title: "outside MPI before", unit: "share", extra: true, hidden: !isCollective },
      { name: "late_region", title: "late in region", unit: "text", extra: true, hidden: ranks.every((one) => !one.late_region) },
      { name: "behind_ns", title: "after the first", unit: "time", hidden: true }, { name: "between_ns", title: "between", unit: "time", hidden: true },
      { name: "outside_ns", title: "outside", unit: "time", hidden: true },
    ],
    ...listed(ranks.map((one) => [one.rank, names.nodes[names.nodeOf[one.rank] ?? -1] ?? "", one.samples, part(one.waiting_ns, one.samples), part(one.waiting_ns, one.time_ns),
      one.time_ns, one.waiting_ns, one.last, isCollective ? part(one.last, one.samples) : part(one.late_ns, whole), one.late_ns, part(one.behind_ns, one.samples),
      part(one.outside_ns, one.between_ns), names.path(one.late_region),
      one.behind_ns, one.between_ns, one.outside_ns])),
    sql: `${ranksSql(context, wait)}\n ORDER BY rank`,
    pick: (row) => { pick(context, "rank", ranks[row]!.rank); },
    isPicked: (row) => state.filter.rank === ranks[row]!.rank,
  };
}

/** Returns the numbers of a rank in words. */
function readout(context: Context, wait: Wait, one: Rank, whole: number): string {
  const { names } = context;
  const head = `rank ${one.rank} on ${names.nodes[names.nodeOf[one.rank] ?? -1] ?? "-"}: `;
  const waits = one.samples ? `waits ${time(one.waiting_ns / one.samples)} per call` : "has no sampled calls of its own";
  const by = one.last ? `, by ${time(one.late_ns / one.last)}` : "";
  if (wait.is_message) {
    const region = names.path(one.late_region);
    const late = one.last ? `: late in ${many(one.last, "call")}${by}${region && `, mostly in region ${region}`}` : "";
    return `${head}${waits}, causes ${share(part(one.late_ns, whole) ?? 0)} of the waiting${late}`;
  }
  const outside = one.between_ns ? `; ${share(one.outside_ns / one.between_ns)} of the time between them outside MPI` : "";
  return `${head}${waits}, is last in ${count(one.last)} of ${count(one.samples)} calls${by}${outside}`;
}

function chart(context: Context, wait: Wait, ranks: Rank[], isTime: boolean): HTMLElement {
  const { names, state, profile } = context;
  const { rank: picked, node } = state.filter;
  const find = new Map(ranks.map((one) => [one.rank, one]));
  const shown = ranks.map((one): Mirrored => ({
    rank: one.rank, up: part(one.waiting_ns, one.samples) ?? 0, down: isTime ? one.late_ns : one.last,
    isPicked: one.rank === picked || (node !== undefined && names.nodeOf[one.rank] === node),
  }));
  const most = (of: (one: Mirrored) => number) => shown.reduce((high, one) => Math.max(high, of(one)), 0);
  const down = most((one) => one.down);
  const { palette } = profile.facts;
  const times = wait.is_message ? `is late in up to ${many(down, "call")}` : `is last up to ${count(down)} times`;
  const whole = total(ranks);
  return mirror(shown, {
    label: `own waiting, and how much others wait for it, of ${many(ranks.length, "rank")}`,
    colours: [palette[1]!, palette[2]!],
    most: [`waits up to ${time(most((one) => one.up))} per call`, isTime ? `is waited for up to ${time(down)}` : times],
    hint: "Point at a rank to read its numbers; a click restricts all views to it.",
    read: ({ rank }) => readout(context, wait, find.get(rank)!, whole),
    pick: ({ rank }) => { pick(context, "rank", rank); },
  });
}

/** Who is waited for by node, if there are several. */
function nodes(context: Context, wait: Wait, ranks: Rank[]): HTMLElement | null {
  const { names, state } = context;
  if (names.nodes.length < 2) return null;
  const sums = new Map<number, { last: number; late: number; waiting: number }>();
  for (const one of ranks) {
    const node = names.nodeOf[one.rank] ?? -1;
    const old = sums.get(node) ?? { last: 0, late: 0, waiting: 0 };
    sums.set(node, { last: old.last + one.last, late: old.late + one.late_ns, waiting: old.waiting + one.waiting_ns });
  }
  const { is_message: isMessage } = wait;
  const by = isMessage ? ["late", "last"] as const : ["last", "late"] as const;
  const rows = [...sums].sort((a, b) => b[1][by[0]] - a[1][by[0]] || b[1][by[1]] - a[1][by[1]] || a[0] - b[0]);
  const calls = isMessage ? "late in calls" : "times last";
  return panel("late-nodes", {
    title: "Who is waited for, by node",
    chart: bars(rows.slice(0, TOP_NODES).map(([node, sum]) => ({
      label: names.of("node", node), about: isMessage ? `late in ${many(sum.last, "call")}` : `waited for ${time(sum.late)}`,
      value: isMessage ? time(sum.late) : many(sum.last, "time"),
      parts: [{ value: sum[by[0]], colour: context.profile.facts.palette[2]!, title: `${isMessage ? "late" : "last"} in ${many(sum.last, "sampled call")}` }],
      isPicked: state.filter.node === node, pick: () => { pick(context, "node", node); },
    })), isMessage ? "waited for by node" : "times last by node"),
    result: {
      columns: [{ name: "node", title: "node", unit: "text" }, { name: "last", title: calls, unit: "count" }, { name: "late_ns", title: "waited for", unit: "time" },
        { name: "waiting_ns", title: "own waiting in samples", unit: "time" }],
      ...listed(rows.map(([node, sum]) => [names.of("node", node), sum.last, sum.late, sum.waiting])),
      sql: `SELECT host.node, SUM(one.last) AS last, SUM(one.late_ns) AS late_ns, SUM(one.waiting_ns) AS waiting_ns
  FROM (${ranksSql(context, wait)}) AS one
       JOIN rank AS host ON host.rank = one.rank
 GROUP BY host.node ORDER BY ${isMessage ? "late_ns DESC, last DESC" : "last DESC, late_ns DESC"}, host.node`,
      pick: (row) => { pick(context, "node", rows[row]![0]); },
      isPicked: (row) => state.filter.node === rows[row]![0],
    },
  });
}

/** Returns the panels about the ranks and nodes of a line; `place` is its place among all lines. */
export function lateness(context: Context, wait: Wait, place: number): Child[] {
  const { names, state, profile } = context;
  const { palette } = profile.facts;
  const title = `Who is waited for: ${wait.operation}, ${size(wait.bin)}, on ${names.family(wait.family)}`;
  const across = wait.is_by_stay ? " The clocks of several machines differ: who is last there follows from who stayed for the shortest time." : "";
  const words = `${wait.is_waited ? "" : "Less than 1 % of the time is waiting. "}${wait.words}${across}`;
  const ranks = read(profile.waits, place);
  if (!ranks.length) {
    return [h("section", { class: "panel", id: "late-ranks" }, h("h2", {}, title), h("p", {}, words),
      h("p", {}, "Its ranks were left out to keep this page small: make it again with a larger --budget."))];
  }
  // The ranks of messages that others wait for are ordered by time, those of collectives by how often they are last.
  const isTime = (state.choices.late ?? (wait.is_message ? "time" : "")) === "time";
  const [times, each] = wait.is_message ? ["late in calls", "sampled calls of others that waited for it"] : ["times last", "sampled calls in which it was last"];
  return [panel("late-ranks", {
    title,
    about: words,
    controls: choice("Below the axis", "late", [["times", times], ["time", "waited for"]], isTime ? "time" : "times",
      (value) => { context.go({ choices: { ...state.choices, late: value } }); }),
    legend: legend([["own waiting per sampled call", palette[1]!], [isTime ? `time for which the others waited for it${wait.is_message ? "" : " alone"}` : each, palette[2]!]]),
    chart: chart(context, wait, ranks, isTime),
    result: table(context, wait, ranks),
  }), nodes(context, wait, ranks)];
}
