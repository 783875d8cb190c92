// SPDX-License-Identifier: Apache-2.0
// Sums the counters by one or more dimensions, of the rows that a filter selects.

import type { Profile, Table } from "./data";
import type { Names } from "./names";
import { grouped } from "./sort";
import { DIMENSIONS, type Dimension, type Filter, without } from "./state";

/** The counters of one group of rows. Times are in nanoseconds, summed over the ranks. */
export interface Group {
  readonly keys: number[];
  readonly calls: number;
  readonly time: number;
  /** Time of the rank that spent the most. */
  readonly slowest: number;
  /** Longest call. */
  readonly longest: number;
  readonly sent: number;
  readonly received: number;
}

const DENSE = 1 << 22; // entries of an array that replaces a map

/** Hands out numbers from 0 on to keys, in the order in which they come. */
class Numbering {
  private readonly dense: Int32Array | null;
  private readonly sparse = new Map<number, number>();
  readonly keys: number[] = [];

  constructor(space: number) {
    this.dense = space <= DENSE ? new Int32Array(space).fill(-1) : null;
  }

  of(key: number): number {
    const old = this.dense ? this.dense[key]! : this.sparse.get(key) ?? -1;
    if (old >= 0) return old;
    const number = this.keys.length;
    if (this.dense) this.dense[key] = number;
    else this.sparse.set(key, number);
    this.keys.push(key);
    return number;
  }
}

/** Counters to add up, of a row each, or of a run of rows that differ in their rank only. */
interface Level {
  readonly columns: Readonly<Record<string, Float64Array | undefined>>;
  readonly length: number;
  /** Where the rows of each begin; the last number is that of all rows. */
  readonly begin: Uint32Array;
}

const SUMS = ["calls", "time_ns", "bytes_sent", "bytes_received"];
const OF_RANKS = ["rank", "node"];

/** Returns the runs of rows that differ in their rank only, added up; the rows themselves if there are no long runs. */
function runs(rows: Level): Level {
  const { columns } = rows;
  const dimensions = Object.keys(columns).filter((name) => ![...SUMS, ...OF_RANKS, "noncontiguous", "time_max_ns"].includes(name));
  const keys = dimensions.map((name) => columns[name]!);
  const begin = rows.begin.filter((_, row) => row === 0 || row === rows.length || keys.some((key) => key[row] !== key[row - 1]));
  const length = begin.length - 1;
  if (2 * length > rows.length) return rows;
  const found: Record<string, Float64Array> = {};
  dimensions.forEach((name, i) => { found[name] = new Float64Array(length).map((_, run) => keys[i]![begin[run]!]!); });
  for (const name of [...SUMS, "time_max_ns"]) {
    const values = columns[name];
    if (!values) continue;
    found[name] = new Float64Array(length).map((_, run) => {
      const part = values.subarray(begin[run], begin[run + 1]);
      return name === "time_max_ns" ? part.reduce((most, value) => Math.max(most, value), 0) : part.reduce((sum, value) => sum + value, 0);
    });
  }
  return { columns: found, length, begin };
}

export class Counters {
  private readonly fine: Level;
  private readonly coarse: Level;
  private readonly placesOf = new Map<string, Uint32Array>();
  private readonly wholeOf = new Map<string, Group[]>();
  private readonly ranges = new Map<string, [number, number]>();
  private readonly groupsOf = new Map<string, Group[]>();
  private scratch?: Uint32Array<ArrayBuffer>;

  constructor(profile: Profile, private readonly names: Names, table: Table = profile.cells) {
    const columns = { ...table.columns };
    const { comm, rank, callsite } = columns;
    if (comm) columns.family = comm.map((id) => names.familyOf.get(id) ?? -1);
    if (callsite && names.paths.length) columns.path = callsite.map((id) => names.paths.leaf(id));
    if (profile.facts.is_summary) delete columns.rank;
    else if (rank) columns.node = rank.map((each) => names.nodeOf[each] ?? -1);
    this.fine = { columns, length: table.rows, begin: new Uint32Array(table.rows + 1).map((_, row) => row) };
    this.coarse = runs(this.fine);
  }

  /** Whether rows are told apart by a dimension. */
  has(dimension: string): boolean { return this.fine.columns[dimension] !== undefined; }

  /** Returns the parts of a filter that this table cannot follow. */
  deaf(filter: Filter): Dimension[] {
    return DIMENSIONS.filter((dimension) => filter[dimension] !== undefined && !this.has(dimension));
  }

  /** Returns the places of a level that a filter leaves. */
  private places(level: Level, filter: Filter): Uint32Array {
    const name = JSON.stringify([level === this.fine, filter]);
    const known = this.placesOf.get(name);
    if (known) return known;
    const [first, ...others] = Object.entries(filter).map(([dimension, value]): [string, number] => [dimension, Number(value)]);
    let found = first ? this.fitting(level.columns[first[0]]!, ...this.within(first)) : this.fine.begin.slice(0, level.length);
    for (const part of others) {
      const [column, [low, high]] = [level.columns[part[0]]!, this.within(part)];
      found = found.filter((place) => column[place]! >= low && column[place]! <= high);
    }
    if (this.placesOf.size > 8) this.placesOf.clear();
    this.placesOf.set(name, found);
    return found;
  }

  /** Returns the least and the largest value that a part of a filter leaves: a node of the call paths stands for all inside it. */
  private within([dimension, value]: [string, number]): [number, number] {
    return dimension === "path" ? [value, (this.names.paths.end[value] ?? value + 1) - 1] : [value, value];
  }

  /** Returns the places in which a column has values in a range. */
  private fitting(column: Float64Array, low: number, high: number): Uint32Array<ArrayBuffer> {
    this.scratch ??= new Uint32Array(this.fine.length);
    let count = 0;
    for (let place = 0; place < column.length; place++) if (column[place]! >= low && column[place]! <= high) this.scratch[count++] = place;
    return this.scratch.slice(0, count);
  }

  /** Returns the least and the largest value of a column, and of 0. */
  private range(name: string): [number, number] {
    let known = this.ranges.get(name);
    if (!known) {
      const values = (this.coarse.columns[name] ?? this.fine.columns[name])!;
      known = [values.reduce((low, value) => Math.min(low, value), 0), values.reduce((high, value) => Math.max(high, value), 0)];
      this.ranges.set(name, known);
    }
    return known;
  }

  /** Returns the sums for each combination of values of the dimensions, those with the most time first. */
  groups(by: readonly string[], filter: Filter): Group[] {
    const heard = without(filter, this.deaf(filter));
    const isWhole = Object.keys(heard).length === 0;
    const cache = isWhole ? this.wholeOf : this.groupsOf;
    const name = JSON.stringify([by, heard]);
    let known = cache.get(name);
    if (!known) {
      const found = by.includes("node") ? this.byNode(by, heard) : this.added(by, heard);
      known = found.sort((a, b) => b.time - a.time || order(a.keys, b.keys));
      if (!isWhole && cache.size > 64) cache.clear();
      cache.set(name, known);
    }
    return known;
  }

  private byNode(by: readonly string[], filter: Filter): Group[] {
    const found = new Map<string, Group>();
    for (const group of this.groups(by.map((each) => (each === "node" ? "rank" : each)), filter)) {
      const keys = group.keys.map((key, i) => (by[i] === "node" ? this.names.nodeOf[key] ?? -1 : key));
      const old = found.get(keys.join());
      found.set(keys.join(), old ? joined(old, group) : { ...group, keys });
    }
    return [...found.values()];
  }

  private added(by: readonly string[], filter: Filter): Group[] {
    const level = [...by, ...Object.keys(filter)].some((each) => OF_RANKS.includes(each)) ? this.fine : this.coarse;
    const places = this.places(level, filter);
    const columns = by.map((each) => level.columns[each]!);
    const ranges = by.map((each) => this.range(each));
    const least = ranges.map(([low]) => low);
    const spans = ranges.map(([low, high]) => high - low + 1);
    const numbering = new Numbering(spans.reduce((product, span) => product * span, 1));
    const groupOf = new Int32Array(places.length);
    for (let i = 0; i < places.length; i++) {
      let key = 0;
      for (let c = 0; c < columns.length; c++) key = key * spans[c]! + columns[c]![places[i]!]! - least[c]!;
      groupOf[i] = numbering.of(key);
    }
    const groups = numbering.keys.length;
    const [calls, time, sent, received] = SUMS.map((name) => sum(level, name, places, groupOf, groups));
    const longest = this.longest(level, places, groupOf, groups);
    const slowest = by.includes("rank") ? time! : this.slowest(level, places, groupOf, groups);
    return numbering.keys.map((key, at): Group => {
      const keys: number[] = [];
      let rest = key;
      for (let c = columns.length - 1; c >= 0; c--) {
        keys.unshift((rest % spans[c]!) + least[c]!);
        rest = Math.floor(rest / spans[c]!);
      }
      return { keys, calls: calls![at]!, time: time![at]!, slowest: slowest[at]!, longest: longest[at]!, sent: sent![at]!, received: received![at]! };
    });
  }

  private longest(level: Level, places: Uint32Array, groupOf: Int32Array, groups: number): Float64Array {
    const most = new Float64Array(groups);
    const values = level.columns.time_max_ns;
    if (values) for (let i = 0; i < places.length; i++) most[groupOf[i]!] = Math.max(most[groupOf[i]!]!, values[places[i]!]!);
    return most;
  }

  /** Returns the time of the rank that spent the most, by group; 0 if ranks are not told apart. */
  private slowest({ begin }: Level, places: Uint32Array, groupOf: Int32Array, groups: number): Float64Array {
    const { rank, time_ns: time } = this.fine.columns;
    if (!rank) return new Float64Array(groups);
    const byGroup = grouped(groupOf, groups);
    const spent = new Float64Array(this.range("rank")[1] + 1);
    return new Float64Array(groups).map((_, group) => {
      const own = byGroup.order.subarray(byGroup.begin[group], byGroup.begin[group + 1]);
      for (const i of own) for (let row = begin[places[i]!]!; row < begin[places[i]! + 1]!; row++) spent[rank[row]!]! += time![row]!;
      let most = 0;
      for (const i of own) {
        for (let row = begin[places[i]!]!; row < begin[places[i]! + 1]!; row++) {
          most = Math.max(most, spent[rank[row]!]!);
          spent[rank[row]!] = 0;
        }
      }
      return most;
    });
  }
}

/** Returns the sums of a counter by group. */
function sum(level: Level, name: string, places: Uint32Array, groupOf: Int32Array, groups: number): Float64Array {
  const values = level.columns[name]!;
  const found = new Float64Array(groups);
  for (let i = 0; i < places.length; i++) found[groupOf[i]!]! += values[places[i]!]!;
  return found;
}

function joined(a: Group, b: Group): Group {
  return {
    keys: a.keys, calls: a.calls + b.calls, time: a.time + b.time, slowest: Math.max(a.slowest, b.slowest),
    longest: Math.max(a.longest, b.longest), sent: a.sent + b.sent, received: a.received + b.received,
  };
}

function order(a: number[], b: number[]): number {
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return a[i]! - b[i]!;
  return 0;
}
