// SPDX-License-Identifier: Apache-2.0
// What every view gets: the profile, its counters and names, the state of the page, and the colours.

import type { Profile } from "./data";
import type { Names } from "./names";
import type { Column, Result } from "./panel";
import { type Counters, type Group } from "./query";
import { sums } from "./sql";
import type { Unit } from "./units";
import { type Dimension, type Filter, type State, toggled, without } from "./state";

export interface Context {
  readonly profile: Profile;
  readonly names: Names;
  readonly cells: Counters;
  readonly slices: Counters;
  readonly state: State;
  readonly colours: Colours;
  go(change: Partial<State>): void;
}

/** The colours of operations and families: fixed by the whole run, so that a filter does not change them. */
export class Colours {
  private readonly places = new Map<string, Map<number, number>>();

  constructor(private readonly palette: string[], cells: Counters) {
    for (const dimension of ["op", "family"] as const) {
      const first = cells.groups([dimension], {}).slice(0, palette.length - 1);
      this.places.set(dimension, new Map(first.map((group, i) => [group.keys[0]!, i])));
    }
  }

  get other(): string { return this.palette.at(-1)!; }

  isOther(dimension: "op" | "family", id: number): boolean { return !this.places.get(dimension)!.has(id); }

  of(dimension: "op" | "family", id: number): string {
    const place = this.places.get(dimension)!.get(id);
    return place === undefined ? this.other : this.palette[place]!;
  }

  /** Returns the entries of a legend for the values that are drawn. */
  entries(dimension: "op" | "family", ids: Iterable<number>, name: (id: number) => string): [string, string][] {
    const all = [...new Set(ids)];
    const own = all.filter((id) => !this.isOther(dimension, id));
    own.sort((a, b) => this.places.get(dimension)!.get(a)! - this.places.get(dimension)!.get(b)!);
    const others = all.length - own.length;
    const entries = own.map((id): [string, string] => [name(id), this.of(dimension, id)]);
    return others ? [...entries, [others === 1 ? name(all.find((id) => this.isOther(dimension, id))!) : `${others} others`, this.other]] : entries;
  }
}

export function pick(context: Context, dimension: Dimension, value: number): void {
  // A communicator of another family would leave nothing.
  const filter = dimension === "family" ? without(context.state.filter, ["comm"]) : context.state.filter;
  context.go({ filter: toggled(filter, dimension, value) });
}

const KEYS: Record<Dimension, (context: Context, id: number) => { columns: Column[]; values: (string | number)[] }> = {
  family: (context, id) => ({
    columns: [{ name: "family", title: "family", unit: "number", hidden: true }, { name: "communicator_label", title: "communicator", unit: "text", extra: true },
      { name: "communicator", title: "name", unit: "text", hidden: true }],
    values: [id, context.names.family(id), context.names.families.get(id)?.name ?? ""],
  }),
  comm: (context, id) => ({
    columns: [{ name: "comm", title: "comm", unit: "number", hidden: true }, { name: "communicator", title: "communicator", unit: "text" }],
    values: [id, context.names.comm(id)],
  }),
  op: (context, id) => ({ columns: [{ name: "operation", title: "operation", unit: "text" }], values: [context.names.op(id)] }),
  bin: (_, id) => ({ columns: [{ name: "bin", title: "size", unit: "size" }], values: [id] }),
  region: (context, id) => ({
    columns: [{ name: "region", title: "region", unit: "number", hidden: true }, { name: "region_label", title: "region", unit: "text", extra: true },
      { name: "path", title: "path", unit: "text", hidden: true }],
    values: [id, context.names.region(id), context.names.path(id)],
  }),
  callsite: (context, id) => ({
    columns: [{ name: "callsite", title: "callsite", unit: "number", hidden: true }, { name: "callsite_label", title: "call site", unit: "text", extra: true }],
    values: [id, context.names.site(id)],
  }),
  path: (context, id) => ({ columns: [{ name: "call_path", title: "call path", unit: "text", extra: true }], values: [context.names.of("path", id)] }),
  node: (context, id) => ({ columns: [{ name: "node", title: "node", unit: "text" }], values: [context.names.of("node", id)] }),
  rank: (_, id) => ({ columns: [{ name: "rank", title: "rank", unit: "number" }], values: [id] }),
};

/** A further column of a table, and its value for a group. */
export type Extra = [title: string, unit: Unit, value: (group: Group) => string | number | null];

/** Returns the sums by some dimensions as a table; a row restricts the views to it. */
export function result(context: Context, by: Dimension[], groups: Group[], extras: Extra[] = []): Result {
  const total = groups.reduce((sum, group) => sum + group.time, 0);
  const isSummary = context.profile.facts.is_summary;
  const keys = by.map((dimension, i) => (group: Group | undefined) => KEYS[dimension](context, group?.keys[i] ?? 0));
  const measures: [Column, (group: Group) => number][] = [
    [{ name: "calls", title: "calls", unit: "count" }, (group) => group.calls],
    [{ name: "time_ns", title: "time", unit: "time" }, (group) => group.time],
    [{ name: "share", title: "share", unit: "share", extra: true }, (group) => (total ? group.time / total : 0)],
    [{ name: "average_ns", title: "per call", unit: "time", extra: true }, (group) => (group.calls ? group.time / group.calls : 0)],
    [{ name: "longest_ns", title: "longest", unit: "time" }, (group) => group.longest],
    [{ name: "bytes_sent", title: "sent", unit: "bytes" }, (group) => group.sent],
    [{ name: "bytes_received", title: "received", unit: "bytes" }, (group) => group.received],
  ];
  if (!isSummary && context.cells.has("rank") && !by.includes("rank")) {
    measures.splice(2, 0, [{ name: "slowest_ns", title: "slowest rank", unit: "time" }, (group) => group.slowest]);
  }
  const part = (row: number): Filter => Object.fromEntries(by.map((dimension, i) => [dimension, groups[row]!.keys[i]!]));
  const isPicked = (row: number) => by.every((dimension, i) => context.state.filter[dimension] === groups[row]!.keys[i]);
  return {
    columns: [...keys.flatMap((key) => key(undefined).columns), ...measures.map(([column]) => column),
      ...extras.map(([title, unit]): Column => ({ name: title.replaceAll(" ", "_"), title, unit, extra: true }))],
    length: groups.length,
    row: (index) => {
      const group = groups[index]!;
      return [...keys.flatMap((key) => key(group).values), ...measures.map(([, value]) => value(group)), ...extras.map(([, , value]) => value(group))];
    },
    sql: sums(by, context.state.filter, context.names, isSummary),
    pick: (row) => { context.go({ filter: isPicked(row) ? without(context.state.filter, by) : { ...context.state.filter, ...part(row) } }); },
    isPicked,
  };
}
