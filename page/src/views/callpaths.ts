// SPDX-License-Identifier: Apache-2.0
// Where in the program the time in MPI is: the functions from the outside in, down to the MPI procedures.

import type { Context } from "../context";
import { flame } from "../draw/flame";
import type { Branch } from "../draw/tree";
import { tree } from "../draw/tree";
import { legend, panel, type Result } from "../panel";
import type { Group } from "../query";
import { type Filter, without } from "../state";
import { bytes, count, many, share, time } from "../units";

const MOST_OPEN = 1000; // rows of the tree that a button opens

const MOST_NAMES = 9; // of a path that is read

/** A function on a path, or an MPI procedure that the innermost one calls, with all calls inside. */
interface Place {
  readonly id: number;
  readonly parent: number | null;
  /** The node of the call paths. */
  readonly path: number;
  readonly op: number | null;
  calls: number;
  time: number;
  longest: number;
  sent: number;
  received: number;
}

function add(place: Place, more: Pick<Group, "calls" | "time" | "longest" | "sent" | "received">): void {
  place.calls += more.calls;
  place.time += more.time;
  place.longest = Math.max(place.longest, more.longest);
  place.sent += more.sent;
  place.received += more.received;
}

/** The tree with the sums under a filter; nodes without calls are not in it. */
class Places {
  /** By id; those inside a place come after it. */
  readonly all = new Map<number, Place>();
  readonly total: number;
  private readonly inside = new Map<number | null, number[]>();

  constructor(private readonly context: Context, groups: readonly Group[]) {
    const { paths } = context.names;
    const sums = new Array<Place | undefined>(paths.length);
    const make = (path: number): Place => ({ id: path, parent: paths.parent[path]! < 0 ? null : paths.parent[path]!, path, op: null, calls: 0, time: 0, longest: 0, sent: 0, received: 0 });
    const ops = groups.flatMap((group): Place[] => {
      const [path, op] = group.keys as [number, number];
      if (path < 0 || path >= paths.length) return [];
      add((sums[path] ??= make(path)), group);
      return [{ ...group, id: this.idOf(path, op), parent: path, path, op }];
    });
    for (let path = paths.length - 1; path >= 0; path--) {
      const [place, parent] = [sums[path], paths.parent[path]!];
      if (place && parent >= 0) add((sums[parent] ??= make(parent)), place);
    }
    for (const place of [...sums, ...ops]) if (place) this.all.set(place.id, place);
    for (const { id, parent } of [...this.all.values()].sort((a, b) => b.time - a.time || a.id - b.id)) {
      const siblings = this.inside.get(parent);
      if (siblings) siblings.push(id);
      else this.inside.set(parent, [id]);
    }
    this.total = this.below(null).reduce((sum, id) => sum + this.all.get(id)!.time, 0);
  }

  /** Returns the id of a procedure below a node: the same under every filter. */
  idOf(path: number, op: number): number { return this.context.names.paths.length * (1 + op) + path; }

  below(id: number | null): readonly number[] { return this.inside.get(id) ?? []; }

  name({ path, op }: Place): string { return op === null ? this.context.names.paths.name(path) : this.context.names.op(op); }

  level({ path, op }: Place): number { return this.context.names.paths.level[path]! + (op === null ? 1 : 2); }

  part({ time: spent }: Place): number { return this.total ? spent / this.total : 0; }

  chain({ id, path, op }: Place): number[] {
    const chain = this.context.names.paths.chain(path);
    return op === null ? chain : [...chain, id];
  }

  text(place: Place): string {
    const { paths } = this.context.names;
    return place.op === null ? paths.text(place.path) : `${paths.text(place.path)} > ${this.name(place)}`;
  }

  /** Returns a path without the middle of a long one. */
  brief(place: Place): string {
    const names = this.chain(place).map((id) => this.name(this.all.get(id)!));
    return (names.length > MOST_NAMES ? [...names.slice(0, 2), "…", ...names.slice(3 - MOST_NAMES)] : names).join(" > ");
  }

  /** Returns the place that the filter selects. */
  picked(filter: Filter): Place | undefined {
    const { path, callsite, op } = filter;
    const node = path ?? (callsite === undefined ? undefined : this.context.names.paths.leaf(callsite));
    if (node === undefined) return undefined;
    return (op === undefined ? undefined : this.all.get(this.idOf(node, op))) ?? this.all.get(node);
  }
}

function pick(context: Context, place: Place, picked: Place | undefined): void {
  const { filter } = context.state;
  // The procedure went into the filter together with its path: it leaves it together.
  const others = without(filter, picked?.op == null || place.op !== null && place !== picked ? ["path", "callsite"] : ["path", "callsite", "op"]);
  const isSame = place === picked && filter.path !== undefined;
  context.go({ filter: isSame ? others : { ...others, path: place.path, ...(place.op === null ? {} : { op: place.op }) } });
}

function chart(context: Context, places: Places, picked: Place | undefined): HTMLElement {
  const { colours, state } = context;
  const of = (id: number) => places.all.get(id)!;
  return flame({
    id: "flame",
    label: "time in MPI by call path: arrow keys go to the functions around, inside and beside, Enter restricts all views",
    roots: places.below(null),
    below: (id) => places.below(id),
    chain: (id) => places.chain(of(id)),
    value: (id) => of(id).time,
    name: (id) => places.name(of(id)),
    colour: (id) => (of(id).op === null ? undefined : colours.of("op", of(id).op!)),
    read: (id) => `${share(places.part(of(id)))}, ${time(of(id).time)}, ${many(of(id).calls, "call")}, ${bytes(of(id).sent)} sent: ${places.brief(of(id))}`,
    hint: "Point at a box to read it. A click restricts all views to it and makes it as wide as the chart; a second click shows all again. With the keyboard: arrows, Enter and Escape.",
    zoomed: state.filter.path === undefined ? null : picked?.id ?? null,
    picked: picked?.id ?? null,
    pick: (id) => { pick(context, of(id), picked); },
  });
}

/** A row of the tree; what it shows is made when it is shown. */
class Row implements Branch {
  readonly id: number;
  readonly parent: number | null;

  constructor(private readonly places: Places, private readonly place: Place) {
    this.id = place.id;
    this.parent = place.parent;
  }

  get label(): string { return this.places.name(this.place); }
  get title(): string { return this.places.text(this.place); }
  get values(): string[] {
    const { place } = this;
    return [share(this.places.part(place)), time(place.time), count(place.calls), bytes(place.sent), bytes(place.received)];
  }
}

function rows(context: Context, places: Places, picked: Place | undefined): HTMLElement {
  const sorted = [...places.all.values()].sort((a, b) => b.time - a.time || a.id - b.id);
  return tree({
    id: "path",
    label: "call paths, as a tree",
    columns: ["share", "time", "calls", "sent", "received"],
    branches: sorted.map((place) => new Row(places, place)),
    byWeight: sorted.map(({ id }) => id),
    mostOpen: MOST_OPEN,
    isPicked: (id) => id === picked?.id,
    pick: (id) => { pick(context, places.all.get(id)!, picked); },
  });
}

/** Returns all places in the order of the tree. */
function inOrder(places: Places): Place[] {
  const found: Place[] = [];
  const waiting = [...places.below(null)].reverse();
  for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
    found.push(places.all.get(id)!);
    waiting.push(...[...places.below(id)].reverse());
  }
  return found;
}

function table(context: Context, places: Places, picked: Place | undefined): Result {
  const all = inOrder(places);
  return {
    columns: [
      { name: "name", title: "function or procedure", unit: "text" }, { name: "level", title: "level", unit: "number" },
      { name: "call_path", title: "call path", unit: "text", hidden: true },
      { name: "calls", title: "calls", unit: "count" }, { name: "time_ns", title: "time", unit: "time" }, { name: "share", title: "share", unit: "share" },
      { name: "average_ns", title: "per call", unit: "time" }, { name: "longest_ns", title: "longest", unit: "time" },
      { name: "bytes_sent", title: "sent", unit: "bytes" }, { name: "bytes_received", title: "received", unit: "bytes" },
    ],
    length: all.length,
    row: (index) => {
      const place = all[index]!;
      return [places.name(place), places.level(place), places.text(place), place.calls, place.time, places.part(place), place.calls ? place.time / place.calls : 0, place.longest, place.sent, place.received];
    },
    pick: (row) => { pick(context, all[row]!, picked); },
    isPicked: (row) => all[row] === picked,
  };
}

/** Returns where the most time goes in one procedure, in a sentence. */
function about(places: Places): string {
  const top = [...places.all.values()].reduce<Place | undefined>((most, place) => (place.op !== null && place.time > (most?.time ?? -1) ? place : most), undefined);
  const head = top ? `The most time, ${share(places.part(top))}, is in ${places.name(top)} of ${places.name(places.all.get(top.path)!)}. ` : "";
  return `${head}Each box is a function, below the one that calls it, as wide as the time in MPI inside it: the wider, the stronger its colour. The coloured boxes are the MPI procedures. Times are summed over the ranks.`;
}

/** Returns the call paths as a panel; null if the page has none. */
export function callpaths(context: Context): HTMLElement | null {
  const { cells, names, colours, state, profile } = context;
  if (!cells.has("path")) return null;
  const groups = cells.groups(["path", "op"], without(state.filter, ["path", "callsite"]));
  const places = new Places(context, groups);
  const picked = places.picked(state.filter);
  const said = profile.facts.folded.filter((text) => text.startsWith("call paths"));
  return panel("callpaths", {
    title: "Call paths: where in the program the time in MPI is",
    about: `${about(places)}${said.map((text) => ` To keep this page small, ${text.replace(/^call paths: /, "")}.`).join("")}`,
    legend: legend(colours.entries("op", groups.map((group) => group.keys[1]!), (id) => names.op(id))),
    chart: [chart(context, places, picked), rows(context, places, picked)],
    result: table(context, places, picked),
  });
}
