// SPDX-License-Identifier: Apache-2.0
// Which communicators take the time, and which was made from which.

import { type Context, pick, result } from "../context";
import { type Child, h } from "../dom";
import type { Bar } from "../draw/bars";
import { bars } from "../draw/bars";
import { forest, totals } from "../draw/forest";
import { icicle } from "../draw/icicle";
import { tree } from "../draw/tree";
import type { Family } from "../names";
import { legend, panel, type Result } from "../panel";
import type { Group } from "../query";
import { lineage as lineageSql } from "../sql";
import { type Filter, without } from "../state";
import { count, many, share, shown, time, type Unit } from "../units";

const TOP = 12;

function operations(context: Context): HTMLElement {
  const { cells, names, colours, state } = context;
  const groups = cells.groups(["family"], state.filter);
  const parts = cells.groups(["family", "op"], state.filter);
  const items = groups.slice(0, TOP).map((group): Bar => {
    const family = group.keys[0]!;
    return {
      label: names.family(family),
      about: sizesText(context, family),
      value: time(group.time),
      parts: parts.filter((part) => part.keys[0] === family).map((part) => ({
        value: part.time,
        colour: colours.of("op", part.keys[1]!),
        title: `${names.op(part.keys[1]!)}: ${time(part.time)}, ${many(part.calls, "call")}`,
      })),
      isPicked: state.filter.family === family,
      pick: () => { pick(context, "family", family); },
    };
  });
  const drawn = new Set(groups.slice(0, TOP).map((group) => group.keys[0]));
  const ops = parts.filter((part) => drawn.has(part.keys[0])).map((part) => part.keys[1]!);
  const first = groups[0];
  const total = groups.reduce((sum, group) => sum + group.time, 0);
  return panel("comm-operations", {
    title: "Time in MPI by communicator and operation",
    about: first ? `${names.family(first.keys[0]!)} has ${share(total ? first.time / total : 0)} of it. Communicators that the same call created in the same way are one family. Times are summed over the ranks.` : "",
    legend: legend(colours.entries("op", ops, (id) => names.op(id))),
    chart: [bars(items, "time by communicator"), groups.length > TOP ? h("p", { class: "about" }, `${count(groups.length - TOP)} further families are in the table.`) : null],
    result: result(context, ["family", "op"], parts),
  });
}

function sizesText(context: Context, id: number): string {
  const sizes = context.names.families.get(id)?.sizes ?? "-";
  return sizes === "-" ? "" : sizes === "1" ? "1 rank" : `${sizes} ranks`;
}

/** Returns the procedure and call site that created a family. */
function origin(context: Context, id: number): string {
  const family = context.names.families.get(id);
  if (!family?.creator) return "";
  return family.callsite === null ? family.creator : `${family.creator} at ${context.names.site(family.callsite)}`;
}

/** Families of communicators and what they take, whatever communicator the filter selects. */
interface Lineage {
  readonly families: Family[];
  readonly groups: Map<number, Group>;
  readonly others: Filter;
  readonly total: number;
}

function read(context: Context): Lineage {
  const { cells, names, state } = context;
  const others = without(state.filter, ["family", "comm"]);
  const groups = new Map(cells.groups(["family"], others).map((group) => [group.keys[0]!, group]));
  const families = [...names.families.values()].filter((family) => ["intra", "inter"].includes(family.kind));
  const total = [...groups.values()].reduce((sum, group) => sum + group.time, 0) || 1;
  return { families, groups, others, total };
}

function boxes(context: Context, { families, groups, total }: Lineage): HTMLElement {
  const { names, state } = context;
  const leaves = families.map((family) => {
    const spent = groups.get(family.id)?.time ?? 0;
    return {
      id: family.id,
      parent: family.parent,
      label: `${names.family(family.id)}${family.communicators > 1 ? ` ×${count(family.communicators)}` : ""}`,
      title: `${names.family(family.id)}: ${many(family.communicators, "communicator")} of ${family.sizes} ranks, ${time(spent)} in MPI (${share(spent / total)})`
        + (family.creator ? `, created by ${origin(context, family.id)}` : ""),
      own: Math.max(spent, total / 100),
      part: spent / total,
    };
  });
  return icicle(leaves, "lineage of communicators", (id) => state.filter.family === id, (id) => { pick(context, "family", id); });
}

/** What the tree and the table of the lineage tell about a family; `name` is that of the result of the SQL. */
const MEASURES: { name: string; title: string; unit: Unit; of: (group: Group) => number }[] = [
  { name: "calls", title: "calls", unit: "count", of: (group) => group.calls },
  { name: "time_ns", title: "time", unit: "time", of: (group) => group.time },
  { name: "slowest_ns", title: "slowest rank", unit: "time", of: (group) => group.slowest },
  { name: "bytes_sent", title: "sent", unit: "bytes", of: (group) => group.sent },
  { name: "bytes_received", title: "received", unit: "bytes", of: (group) => group.received },
];

function measures(context: Context): typeof MEASURES {
  const hasRanks = !context.profile.facts.is_summary && context.cells.has("rank");
  return MEASURES.filter(({ name }) => hasRanks || name !== "slowest_ns");
}

function lineageTree(context: Context, { families, groups }: Lineage, whole: Map<number, number>): HTMLElement {
  const { names, state } = context;
  const shownOnes = measures(context).filter(({ name }) => name !== "calls");
  return tree({
    id: "branch",
    label: "lineage of communicators, as a tree",
    columns: ["size", "communicators", "with children", ...shownOnes.map(({ title }) => title)],
    branches: [...families].sort((a, b) => whole.get(b.id)! - whole.get(a.id)! || a.id - b.id).map((family) => ({
      id: family.id,
      parent: family.parent,
      label: names.family(family.id),
      title: family.creator ? `created by ${origin(context, family.id)}` : "",
      values: [family.sizes, count(family.communicators), time(whole.get(family.id)!), ...shownOnes.map(({ of, unit }) => shown(measured(groups, family, of), unit))],
    })),
    isPicked: (id) => state.filter.family === id,
    pick: (id) => { pick(context, "family", id); },
  });
}

function measured(groups: Map<number, Group>, family: Family, of: (group: Group) => number): number {
  const group = groups.get(family.id);
  return group ? of(group) : 0;
}

function lineageTable(context: Context, { families, groups, others }: Lineage, whole: Map<number, number>): Result {
  const { names, state, profile } = context;
  const own = measures(context);
  return {
    columns: [
      { name: "family", title: "family", unit: "number", hidden: true }, { name: "communicator_label", title: "communicator", unit: "text", extra: true },
      { name: "communicator", title: "name", unit: "text", hidden: true }, { name: "parent", title: "parent", unit: "number", hidden: true },
      { name: "created_from", title: "created from", unit: "text", extra: true }, { name: "created_by", title: "created by", unit: "text", extra: true },
      { name: "size", title: "size", unit: "text", extra: true }, { name: "communicators", title: "communicators", unit: "count" },
      { name: "with_children_ns", title: "with children", unit: "time", extra: true }, ...own,
    ],
    length: families.length,
    row: (index) => {
      const family = families[index]!;
      return [
        family.id, names.family(family.id), family.name, family.parent, family.parent === null ? null : names.family(family.parent), origin(context, family.id),
        family.sizes, family.communicators, whole.get(family.id)!, ...own.map(({ of }) => measured(groups, family, of)),
      ];
    },
    sql: lineageSql(others, names, profile.facts.is_summary),
    pick: (row) => { pick(context, "family", families[row]!.id); },
    isPicked: (row) => state.filter.family === families[row]!.id,
  };
}

function lineage(context: Context): HTMLElement | null {
  const found = read(context);
  if (!found.families.length) return null;
  const whole = totals(forest(found.families), ({ id }) => found.groups.get(id)?.time ?? 0);
  return panel("lineage", {
    title: "Which communicator was created from which",
    about: "Each box is a family, below the family it was created from, as wide as its time in MPI and that of the families below. The line at the bottom of a box is its own share of all time in MPI. The tree below has the same families; “with children” is the time of a family and of all that were created from it.",
    chart: [boxes(context, found), lineageTree(context, found, whole)],
    result: lineageTable(context, found, whole),
  });
}

export function communicators(context: Context): Child[] {
  const { cells, state, names } = context;
  const family = state.filter.family ?? (state.filter.comm === undefined ? undefined : names.familyOf.get(state.filter.comm));
  const isSeveral = family !== undefined && (names.families.get(family)?.communicators ?? 1) > 1;
  return [
    operations(context),
    lineage(context),
    panel("families", {
      title: "Families of communicators",
      about: "A click on a name restricts all views to it.",
      result: result(context, ["family"], cells.groups(["family"], state.filter), [
        ["size", "count", (group) => names.families.get(group.keys[0]!)?.sizes ?? null],
        ["communicators", "count", (group) => names.families.get(group.keys[0]!)?.communicators ?? null],
        ["created by", "text", (group) => origin(context, group.keys[0]!)],
      ]),
      open: true,
    }),
    isSeveral && cells.has("comm")
      ? panel("comms", { title: `The communicators of ${names.family(family)}`, result: result(context, ["comm"], cells.groups(["comm"], state.filter)), open: true })
      : null,
  ];
}
