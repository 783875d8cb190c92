// SPDX-License-Identifier: Apache-2.0
// How much of the time of messages and collectives is waiting, as `commlens waits` estimates it, and who is waited for.

import type { Context } from "../context";
import type { Unsplit, Wait } from "../data";
import { type Child, h } from "../dom";
import { type Bar, bars, type Whisker } from "../draw/bars";
import { legend, listed, panel, type Result } from "../panel";
import { type Filter, without } from "../state";
import { count, many, share, size, time } from "../units";
import { lateness } from "./lateness";

const TOP = 16;

/** What a bar stands for: a line of commlens waits, or calls of which none was split. */
interface Item {
  readonly family: number;
  readonly op: number;
  readonly bin: number;
  readonly time: number;
  readonly wait: Wait | null;
  readonly unsplit: Unsplit[];
}

type Place = Pick<Item, "family" | "op" | "bin">;

function keyOf({ family, op, bin }: Place): string { return `${family}.${op}.${bin}`; }

/** Returns the filter that lines follow: communicators count with their family. */
function followed(context: Context): Filter {
  const { family, comm, op, bin } = context.state.filter;
  const of = comm === undefined ? undefined : context.names.familyOf.get(comm);
  return { ...(family ?? of) === undefined ? {} : { family: family ?? of! }, ...op === undefined ? {} : { op }, ...bin === undefined ? {} : { bin } };
}

function isLeft(place: Place, filter: Filter): boolean {
  return (["family", "op", "bin"] as const).every((dimension) => filter[dimension] === undefined || filter[dimension] === place[dimension]);
}

/** Returns the bars under the present filter, the one with the most time first. */
function items(context: Context, filter: Filter): Item[] {
  const { lines, unsplit } = context.profile.facts.waiting;
  const reasons = new Map<string, Unsplit[]>();
  for (const row of unsplit) reasons.set(keyOf(row), [...(reasons.get(keyOf(row)) ?? []), row]);
  const found = lines.map((wait): Item => ({ ...wait, time: wait.time_ns, wait, unsplit: reasons.get(keyOf(wait)) ?? [] }));
  for (const item of found) reasons.delete(keyOf(item));
  if (reasons.size && context.cells.has("bin")) {
    for (const group of context.cells.groups(["family", "op", "bin"], {})) {
      const [family, op, bin] = group.keys as [number, number, number];
      const rows = reasons.get(keyOf({ family, op, bin }));
      if (rows) found.push({ family, op, bin, time: group.time, wait: null, unsplit: rows });
    }
  }
  return found.filter((item) => isLeft(item, filter)).sort((a, b) => b.time - a.time);
}

function whisker({ share_low: low, share_high: high, time_ns, interval }: Wait): Whisker | undefined {
  if (low === null || high === null || low === high) return undefined;
  return { low: low * time_ns, high: high * time_ns, title: `95 % interval of the share of waiting: ${interval}` };
}

function bar(context: Context, item: Item, isPicked: boolean): Bar {
  const { names, state, profile } = context;
  const { palette } = profile.facts;
  const { wait } = item;
  const unsplit = item.unsplit.reduce((sum, row) => sum + row.calls, 0);
  const sampled = wait ? `; ${count(wait.samples)} calls sampled, interval ${wait.interval}${unsplit ? `, ${count(unsplit)} more not split` : ""}` : "";
  const parts = wait
    ? [{ value: wait.waiting_ns, colour: palette[1]!, title: `waiting: ${time(wait.waiting_ns)}, ${share(wait.waiting_share)}${sampled}` },
      { value: wait.operation_ns, colour: palette[0]!, title: `operation: ${time(wait.operation_ns)}, ${time(wait.operation_ns / wait.calls)} per call` }]
    : [{ value: item.time, colour: context.colours.other, title: `not split: ${item.unsplit.map((row) => row.why).join("; ")}` }];
  return {
    id: `wait-${keyOf(item)}`,
    label: `${names.op(item.op)}, ${size(item.bin)}`,
    about: names.family(item.family),
    value: wait ? `${share(wait.waiting_share)} of ${time(item.time)}` : `not split: ${time(item.time)}`,
    parts,
    whisker: wait ? whisker(wait) : undefined,
    isPicked,
    pick: () => { context.go({ choices: { ...state.choices, wait: keyOf(item) } }); },
  };
}

function condition(filter: Filter): string {
  const parts = Object.entries(filter).map(([name, value]) => `${name} = ${value}`);
  return parts.length ? `\n WHERE ${parts.join(" AND ")}` : "";
}

function table(context: Context, found: Item[], chosen: Item | undefined, filter: Filter): Result {
  const waits = found.flatMap((item) => (item.wait ? [{ item, wait: item.wait }] : []));
  return {
    columns: [
      { name: "family", title: "family", unit: "number", hidden: true }, { name: "communicator", title: "name", unit: "text", hidden: true },
      { name: "communicator_label", title: "communicator", unit: "text", extra: true },
      { name: "operation", title: "operation", unit: "text" }, { name: "bin", title: "size", unit: "size" }, { name: "calls", title: "calls", unit: "count" },
      { name: "time_ns", title: "time", unit: "time" }, { name: "waiting_ns", title: "waiting", unit: "time" },
      { name: "waiting_share", title: "share", unit: "share", extra: true }, { name: "share_low", title: "from", unit: "share", extra: true },
      { name: "share_high", title: "to", unit: "share", extra: true }, { name: "operation_ns", title: "operation", unit: "time" },
      { name: "operation_per_call_ns", title: "per call", unit: "time", extra: true }, { name: "samples", title: "samples", unit: "count" },
      { name: "sampled_ns", title: "sampled time", unit: "time", hidden: true }, { name: "spread_ns", title: "spread", unit: "time", extra: true },
      { name: "late_ns", title: "late", unit: "time", extra: true }, { name: "last", title: "waited for", unit: "text", extra: true },
    ],
    ...listed(waits.map(({ wait }) => [wait.family, wait.communicator, context.names.family(wait.family), wait.operation, wait.bin, wait.calls, wait.time_ns,
      wait.waiting_ns, wait.waiting_share, wait.share_low, wait.share_high, wait.operation_ns, wait.operation_ns / wait.calls, wait.samples, wait.sampled_ns,
      wait.spread_ns, wait.late_ns, wait.last])),
    sql: `SELECT family, communicator, operation, bin, calls, time_ns, waiting_ns, operation_ns, samples, sampled_ns
  FROM (
${context.profile.facts.waiting.sql.waits!}
       )${condition(filter)}
 ORDER BY time_ns DESC, communicator, operation, bin`,
    pickTitle: "show who is waited for",
    pick: (row) => { context.go({ choices: { ...context.state.choices, wait: keyOf(waits[row]!.item) } }); },
    isPicked: (row) => waits[row]!.item === chosen,
  };
}

function unsplitPanel(context: Context, filter: Filter): HTMLElement | null {
  const { unsplit, sql } = context.profile.facts.waiting;
  const rows = unsplit.filter((row) => isLeft(row, filter));
  if (!rows.length) return null;
  return panel("unsplit", {
    title: "Sampled calls that were not split",
    about: "Of a bar that has both, the estimate is that of the calls that were split.",
    result: {
      columns: [
        { name: "family", title: "family", unit: "number", hidden: true }, { name: "communicator", title: "name", unit: "text", hidden: true },
        { name: "communicator_label", title: "communicator", unit: "text", extra: true }, { name: "operation", title: "operation", unit: "text" },
        { name: "bin", title: "size", unit: "size" }, { name: "calls", title: "calls", unit: "count" }, { name: "reason", title: "reason", unit: "text", hidden: true },
        { name: "why", title: "why", unit: "text", extra: true },
      ],
      ...listed(rows.map((row) => [row.family, row.communicator, context.names.family(row.family), row.operation, row.bin, row.calls, row.reason, row.why])),
      sql: `SELECT family, communicator, operation, bin, calls, reason
  FROM (
${sql.unsplit!}
       )${condition(filter)}
 ORDER BY calls DESC, communicator, operation, bin, reason`,
      pickTitle: "restrict all views to this",
      pick: (row) => { const { family, op, bin } = rows[row]!; context.go({ filter: { ...without(context.state.filter, ["comm"]), family, op, bin } }); },
    },
    open: true,
  });
}

/** Names the kinds of calls, as the head of commlens waits does. */
export function kinds(waits: Wait[]): string {
  const names = ["messages", "requests", "collectives"].filter((kind) => waits.some((wait) => wait.kind === kind));
  return [names.slice(0, -1).join(", "), ...names.slice(-1)].filter(Boolean).join(" and ");
}

/** Says what the bars show, and which parts of the filter they cannot follow. */
function about(context: Context, found: Item[]): string {
  const { filter } = context.state;
  const waits = found.flatMap((item) => item.wait ?? []);
  const [waiting, whole] = (["waiting_ns", "time_ns"] as const).map((name) => waits.reduce((sum, wait) => sum + wait[name], 0)) as [number, number];
  const head = whole ? `${time(waiting)} of waiting in ${time(whole)} of ${kinds(waits)} (${share(waiting / whole)}), summed over the ranks. ` : "";
  const lines = waits.some(whisker) ? "The interval at the end of the waiting has the true share in 95 of 100 cases. " : "";
  const comm = filter.comm === undefined ? "" : ` ${context.names.comm(filter.comm)} counts with its family ${context.names.family(context.names.familyOf.get(filter.comm) ?? -1)}.`;
  const deaf = (["region", "callsite", "path"] as const).some((each) => filter[each] !== undefined) ? " Regions and call sites of the filter have no effect here." : "";
  const marked = filter.rank !== undefined || filter.node !== undefined ? " Bars are of all ranks, whatever rank or node the filter has." : "";
  const notes = context.profile.facts.waiting.notes.map((sentence) => ` ${sentence}`).join("");
  return `${head}${lines}A click on a bar shows below who is waited for.${comm}${deaf}${marked}${notes}`;
}

function chart(context: Context, found: Item[], chosen: Item | undefined): Child[] {
  const left = found.length - TOP;
  return [
    h("div", { class: "waits" }, bars(found.slice(0, TOP).map((item) => bar(context, item, item === chosen)), "waiting and operation")),
    left > 0 ? h("p", { class: "about" }, `${many(left, "further row")}: see the table.`) : null,
  ];
}

function entries(context: Context, found: Item[]): [string, string][] {
  const { palette } = context.profile.facts;
  const all: [string, string, boolean][] = [["waiting for other ranks", palette[1]!, found.some((item) => item.wait)],
    ["operation", palette[0]!, found.some((item) => item.wait)], ["not split", context.colours.other, found.some((item) => !item.wait)]];
  return all.flatMap(([name, colour, isDrawn]): [string, string][] => (isDrawn ? [[name, colour]] : []));
}

/** Says why none of the calls of a bar was split. */
function whole(context: Context, item: Item): HTMLElement {
  return h("section", { class: "panel", id: "late-ranks" },
    h("h2", {}, `Not split: ${context.names.op(item.op)}, ${size(item.bin)}, on ${context.names.family(item.family)}`),
    item.unsplit.map((row) => h("p", {}, `${many(row.calls, "sampled call")}: ${row.why}.`)));
}

export function waiting(context: Context): Child[] {
  const { refused, lines } = context.profile.facts.waiting;
  if (refused) return [h("section", { class: "panel", id: "waiting" }, h("h2", {}, "Waiting"), h("p", {}, `No samples: ${refused}`))];
  const filter = followed(context);
  const found = items(context, filter);
  const most = lines.find((line) => isLeft(line, filter)) ?? null;
  const chosen = found.find((item) => keyOf(item) === context.state.choices.wait) ?? found.find((item) => item.wait === most) ?? found[0];
  return [
    panel("waiting", {
      title: "Waiting and operation",
      about: about(context, found),
      legend: legend(entries(context, found)),
      chart: chart(context, found, chosen),
      result: table(context, found, chosen, filter),
    }),
    ...(chosen?.wait ? lateness(context, chosen.wait, lines.indexOf(chosen.wait)) : chosen ? [whole(context, chosen)] : []),
    unsplitPanel(context, filter),
  ];
}
