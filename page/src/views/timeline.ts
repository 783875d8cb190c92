// SPDX-License-Identifier: Apache-2.0
// The share of MPI over the run, by communicator.

import { type Context } from "../context";
import { cellsOf } from "../data";
import { type Child, h } from "../dom";
import { columns } from "../draw/columns";
import { legend, panel, type Result } from "../panel";
import type { Group } from "../query";
import { where } from "../sql";
import type { Filter } from "../state";
import { share, time } from "../units";
import { sheet } from "./sheets";

function sql(context: Context, filter: Filter): string {
  return `SELECT slot, each.family, named.name AS communicator, SUM(calls) AS calls, SUM(time_ns) AS time_ns,
       SUM(bytes_sent) AS bytes_sent, SUM(bytes_received) AS bytes_received
  FROM (SELECT slice.*, comm.family, op.name AS operation
          FROM slice JOIN comm ON comm.id = slice.comm JOIN op ON op.id = slice.op${where(filter, context.names, { op: "op.name", family: "comm.family" })}) AS each
       JOIN (SELECT family, name FROM family) AS named ON named.family = each.family
 GROUP BY slot, each.family ORDER BY slot, each.family`;
}

function table(context: Context, groups: Group[], filter: Filter): Result {
  const rows = [...groups].sort((a, b) => a.keys[0]! - b.keys[0]! || a.keys[1]! - b.keys[1]!);
  const width = context.profile.facts.slice_ns;
  return {
    columns: [
      { name: "slot", title: "slice", unit: "number" }, { name: "begin_ns", title: "begins at", unit: "time", extra: true },
      { name: "family", title: "family", unit: "number", hidden: true }, { name: "communicator", title: "communicator", unit: "text" },
      { name: "calls", title: "calls", unit: "count" }, { name: "time_ns", title: "time", unit: "time" },
      { name: "bytes_sent", title: "sent", unit: "bytes" }, { name: "bytes_received", title: "received", unit: "bytes" },
    ],
    length: rows.length,
    row: (index) => {
      const { keys: [slot, family], calls, time: spent, sent, received } = rows[index]!;
      return [slot!, slot! * width, family!, context.names.families.get(family!)?.name ?? "", calls, spent, sent, received];
    },
    sql: sql(context, filter),
  };
}

export function timeline(context: Context): Child[] {
  const { slices, state, names, colours, profile } = context;
  const { facts } = profile;
  if (!profile.slices.rows || !slices.has("family")) {
    return [h("section", { class: "panel" }, h("h2", {}, "Timeline"), h("p", {}, "This profile has no counters over time, or they were added up to keep this page small.")), regionSlices(context)];
  }
  const deaf = slices.deaf(state.filter);
  const filter = Object.fromEntries(Object.entries(state.filter).filter(([name]) => slices.has(name as keyof Filter))) as Filter;
  const groups = slices.groups(["slot", "family"], filter);
  const slots = groups.reduce((most, group) => Math.max(most, group.keys[0]! + 1), 0);
  const shown = names.ranks.filter((rank) => (filter.rank === undefined || filter.rank === rank) && (filter.node === undefined || names.nodeOf[rank] === filter.node));
  const whole = facts.slice_ns * Math.max(1, shown.length);
  const elapsed = Number(facts.run.elapsed_ns ?? 0);
  const bySlot = new Map<number, Group[]>();
  for (const group of groups) bySlot.set(group.keys[0]!, [...(bySlot.get(group.keys[0]!) ?? []), group]);
  const items = Array.from({ length: slots }, (_, slot) => ({
    label: time(slot * facts.slice_ns),
    parts: (bySlot.get(slot) ?? []).sort((a, b) => a.keys[1]! - b.keys[1]!).map((group) => ({
      value: group.time / whole,
      colour: colours.of("family", group.keys[1]!),
      title: `from ${time(slot * facts.slice_ns)}: ${names.family(group.keys[1]!)} ${time(group.time)}, ${share(group.time / whole)} of the slice`,
    })),
  }));
  return [panel("timeline", {
    title: "Share of MPI over the run",
    about: `Each column is a slice of ${time(facts.slice_ns)}; the last one is cut off by the end of the run at ${time(elapsed)}. A rank that ended earlier counts as outside MPI.`
      + (deaf.length ? ` The slices do not tell apart ${deaf.map((each) => `the ${each}`).join(" and ")}: that part of the filter has no effect here.` : ""),
    legend: legend(colours.entries("family", groups.map((group) => group.keys[1]!), (id) => names.family(id))),
    chart: columns(items, share, "share of MPI over the run", Math.max(1, ...items.map((item) => item.parts.reduce((sum, part) => sum + part.value, 0))), { width: facts.slice_ns, text: time }),
    result: table(context, groups, filter),
  }), regionSlices(context)];
}

/** Exclusive time of the code regions over the run; the regions with the most have colours of their own. */
function regionSlices(context: Context): HTMLElement | null {
  const { facts } = context.profile;
  const of = (column: string) => cellsOf(facts, "region_slices", column).map(Number);
  const [slots, regions, times] = [of("slot"), of("region"), of("exclusive_ns")];
  if (!slots.length) return null;
  const sums = new Map<number, number>();
  regions.forEach((region, i) => sums.set(region, (sums.get(region) ?? 0) + times[i]!));
  const order = [...sums.keys()].sort((a, b) => sums.get(b)! - sums.get(a)! || a - b);
  const own = new Map(order.slice(0, facts.palette.length - 1).map((region, i) => [region, facts.palette[i]!]));
  const colourOf = (region: number) => own.get(region) ?? context.colours.other;
  const whole = facts.slice_ns * Math.max(1, context.names.ranks.length);
  const items = Array.from({ length: slots.reduce((most, slot) => Math.max(most, slot), 0) + 1 }, (_, slot) => ({
    label: time(slot * facts.slice_ns),
    parts: slots.flatMap((each, i) => (each === slot ? [i] : [])).map((i) => ({
      value: times[i]! / whole,
      colour: colourOf(regions[i]!),
      title: `from ${time(slot * facts.slice_ns)}: ${context.names.region(regions[i]!)} ${time(times[i]!)}`,
    })),
  }));
  const entries = [...own].map(([region, colour]): [string, string] => [context.names.region(region), colour]);
  return panel("region-slices", {
    title: "Code regions over the run",
    about: "Time in each region without the regions inside it, as a share of all ranks. This chart shows the whole run.",
    legend: legend(order.length > own.size ? [...entries, [`${order.length - own.size} others`, context.colours.other]] : entries),
    chart: columns(items, share, "code regions over the run", Math.max(1, ...items.map((item) => item.parts.reduce((sum, part) => sum + part.value, 0))), { width: facts.slice_ns, text: time }),
    result: sheet(context, "region_slices", { slot: "slice", path: "region", calls: "ended", exclusive_ns: "exclusive time" }),
  });
}
