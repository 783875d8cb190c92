// SPDX-License-Identifier: Apache-2.0
// Sums the counters by one or more dimensions, of the rows that a filter selects.

import type { Profile, Table } from "./data";
import type { Names } from "./names";
import { DIMENSIONS, type Dimension, type Filter } from "./state";

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

export class Counters {
  /** The value of every row in every dimension; undefined for one that was added up. */
  private readonly values: Partial<Record<Dimension, Float64Array>> = {};
  private readonly rowsOf = new Map<string, Uint32Array>();
  private readonly wholeOf = new Map<string, Group[]>();
  private readonly ranges = new Map<string, [number, number]>();
  private readonly groupsOf = new Map<string, Group[]>();

  constructor(readonly profile: Profile, readonly names: Names, private readonly table: Table = profile.cells) {
    const { columns, rows } = table;
    for (const dimension of ["comm", "op", "bin", "region", "callsite", "rank", "family"] as const) {
      const column = columns[dimension];
      if (column) this.values[dimension] = column;
    }
    const { comm, rank } = columns;
    if (comm) this.values.family = Float64Array.from({ length: rows }, (_, i) => names.familyOf.get(comm[i]!) ?? -1);
    if (rank) this.values.node = Float64Array.from({ length: rows }, (_, i) => names.nodeOf[rank[i]!] ?? -1);
    if (profile.facts.is_summary) {
      delete this.values.rank;
      delete this.values.node;
    }
  }

  /** Whether rows are told apart by a dimension. */
  has(dimension: Dimension): boolean { return this.values[dimension] !== undefined; }

  /** Returns the parts of a filter that this table cannot follow. */
  deaf(filter: Filter): Dimension[] {
    return DIMENSIONS.filter((dimension) => filter[dimension] !== undefined && !this.has(dimension));
  }

  /** Returns the numbers of the rows that a filter leaves. */
  rows(filter: Filter): Uint32Array {
    const name = JSON.stringify(filter);
    const known = this.rowsOf.get(name);
    if (known) return known;
    const wanted = DIMENSIONS.filter((dimension) => filter[dimension] !== undefined && this.has(dimension));
    const columns = wanted.map((dimension) => this.values[dimension]!);
    const ids = wanted.map((dimension) => filter[dimension]!);
    const found = new Uint32Array(this.table.rows);
    let count = 0;
    for (let row = 0; row < this.table.rows; row++) {
      let fits = true;
      for (let i = 0; i < ids.length && fits; i++) fits = columns[i]![row] === ids[i];
      if (fits) found[count++] = row;
    }
    const rows = found.slice(0, count);
    if (this.rowsOf.size > 8) this.rowsOf.clear();
    this.rowsOf.set(name, rows);
    return rows;
  }

  /** Returns the values of a dimension or another column by row. */
  column(name: string): Float64Array | undefined {
    return this.values[name as Dimension] ?? this.table.columns[name];
  }

  /** Returns the least and the largest value of a column, and of 0. */
  private range(name: string): [number, number] {
    let known = this.ranges.get(name);
    if (!known) {
      known = [0, 0];
      for (const value of this.column(name)!) {
        if (value < known[0]) known[0] = value;
        if (value > known[1]) known[1] = value;
      }
      this.ranges.set(name, known);
    }
    return known;
  }

  /** Returns the sums for each combination of values of the dimensions, those with the most time first. */
  groups(by: readonly string[], filter: Filter): Group[] {
    const isWhole = Object.keys(filter).length === 0;
    const cache = isWhole ? this.wholeOf : this.groupsOf;
    const name = JSON.stringify([by, filter]);
    let known = cache.get(name);
    if (!known) {
      known = this.added(by, filter);
      if (!isWhole && cache.size > 64) cache.clear();
      cache.set(name, known);
    }
    return known;
  }

  private added(by: readonly string[], filter: Filter): Group[] {
    const rows = this.rows(filter);
    const columns = by.map((each) => this.column(each)!);
    const ranges = by.map((each) => this.range(each));
    const least = ranges.map(([low]) => low);
    const spans = ranges.map(([low, high]) => high - low + 1);
    const numbering = new Numbering(spans.reduce((product, span) => product * span, 1));
    const groupOf = new Int32Array(rows.length);
    for (let i = 0; i < rows.length; i++) {
      let key = 0;
      for (let c = 0; c < columns.length; c++) key = key * spans[c]! + columns[c]![rows[i]!]! - least[c]!;
      groupOf[i] = numbering.of(key);
    }
    const sums = this.sums(rows, groupOf, numbering.keys.length);
    const slowest = this.slowest(rows, groupOf, numbering.keys.length);
    const groups = numbering.keys.map((key, place): Group => {
      const keys: number[] = [];
      let rest = key;
      for (let c = columns.length - 1; c >= 0; c--) {
        keys.unshift((rest % spans[c]!) + least[c]!);
        rest = Math.floor(rest / spans[c]!);
      }
      const at = (name: string) => sums[name]?.[place] ?? 0;
      return {
        keys, calls: at("calls"), time: at("time_ns"), slowest: slowest[place]!, longest: at("time_max_ns"),
        sent: at("bytes_sent"), received: at("bytes_received"),
      };
    });
    return groups.sort((a, b) => b.time - a.time || order(a.keys, b.keys));
  }

  /** Returns the sums of the counters by group; of the longest calls the longest. */
  private sums(rows: Uint32Array, groupOf: Int32Array, groups: number): Record<string, Float64Array> {
    const found: Record<string, Float64Array> = {};
    for (const name of ["calls", "time_ns", "bytes_sent", "bytes_received"]) {
      const values = this.table.columns[name]!;
      const sum = new Float64Array(groups);
      for (let i = 0; i < rows.length; i++) sum[groupOf[i]!]! += values[rows[i]!]!;
      found[name] = sum;
    }
    const longest = this.table.columns.time_max_ns;
    if (longest) {
      const most = new Float64Array(groups);
      for (let i = 0; i < rows.length; i++) most[groupOf[i]!] = Math.max(most[groupOf[i]!]!, longest[rows[i]!]!);
      found.time_max_ns = most;
    }
    return found;
  }

  /** Returns the time of the rank that spent the most, by group; 0 if ranks are not told apart. */
  private slowest(rows: Uint32Array, groupOf: Int32Array, groups: number): Float64Array {
    const { rank } = this.values;
    const time = this.table.columns.time_ns!;
    const most = new Float64Array(groups);
    if (!rank) return most;
    const world = this.names.nodeOf.length;
    const numbering = new Numbering(groups * world);
    const spent = new Float64Array(rows.length);
    for (let i = 0; i < rows.length; i++) spent[numbering.of(groupOf[i]! * world + rank[rows[i]!]!)]! += time[rows[i]!]!;
    numbering.keys.forEach((key, i) => {
      const group = Math.floor(key / world);
      most[group] = Math.max(most[group]!, spent[i]!);
    });
    return most;
  }
}

function order(a: number[], b: number[]): number {
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return a[i]! - b[i]!;
  return 0;
}
