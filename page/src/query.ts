// SPDX-License-Identifier: Apache-2.0
// Adds up the counters by one or two dimensions, under a filter, and says by which SQL the profile gives the same.

import type { Profile, Table } from "./data";
import type { Names } from "./names";
import { DIMENSIONS, type Dimension, type Filter } from "./state";

/** The counters of one group of rows. Times are in nanoseconds, summed over the ranks. */
export interface Group {
  readonly keys: number[];
  calls: number;
  time: number;
  /** Time of the rank that spent the most. */
  slowest: number;
  slowestRank: number;
  /** Longest call. */
  longest: number;
  sent: number;
  received: number;
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

  /** Returns the sums for each combination of values of the dimensions, those with the most time first. */
  groups(by: readonly string[], filter: Filter): Group[] {
    const name = JSON.stringify([by, filter]);
    let known = this.groupsOf.get(name);
    if (!known) {
      known = this.added(by, filter);
      if (this.groupsOf.size > 64) this.groupsOf.clear();
      this.groupsOf.set(name, known);
    }
    return known;
  }

  private added(by: readonly string[], filter: Filter): Group[] {
    const rows = this.rows(filter);
    const columns = by.map((each) => this.column(each)!);
    const least = columns.map((column) => column.reduce((low, value) => Math.min(low, value), 0));
    const spans = columns.map((column, i) => column.reduce((high, value) => Math.max(high, value), 0) - least[i]! + 1);
    const numbering = new Numbering(spans.reduce((product, span) => product * span, 1));
    const groupOf = new Int32Array(rows.length);
    for (let i = 0; i < rows.length; i++) {
      let key = 0;
      for (let c = 0; c < columns.length; c++) key = key * spans[c]! + columns[c]![rows[i]!]! - least[c]!;
      groupOf[i] = numbering.of(key);
    }
    const groups = numbering.keys.map((key): Group => {
      const keys: number[] = [];
      let rest = key;
      for (let c = columns.length - 1; c >= 0; c--) {
        keys.unshift((rest % spans[c]!) + least[c]!);
        rest = Math.floor(rest / spans[c]!);
      }
      return { keys, calls: 0, time: 0, slowest: 0, slowestRank: -1, longest: 0, sent: 0, received: 0 };
    });
    this.sum(rows, groupOf, groups);
    this.findSlowest(rows, groupOf, groups);
    return groups.sort((a, b) => b.time - a.time || order(a.keys, b.keys));
  }

  private sum(rows: Uint32Array, groupOf: Int32Array, groups: Group[]): void {
    const { calls, time_ns: time, time_max_ns: longest, bytes_sent: sent, bytes_received: received } = this.table.columns;
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i]!;
      const group = groups[groupOf[i]!]!;
      group.calls += calls![row]!;
      group.time += time![row]!;
      group.sent += sent![row]!;
      group.received += received![row]!;
      if (longest && longest[row]! > group.longest) group.longest = longest[row]!;
    }
  }

  private findSlowest(rows: Uint32Array, groupOf: Int32Array, groups: Group[]): void {
    const rank = this.values.rank;
    const time = this.table.columns.time_ns!;
    if (!rank) return;
    const world = this.names.nodeOf.length;
    const numbering = new Numbering(groups.length * world);
    const spent: number[] = [];
    for (let i = 0; i < rows.length; i++) {
      const at = numbering.of(groupOf[i]! * world + rank[rows[i]!]!);
      spent[at] = (spent[at] ?? 0) + time[rows[i]!]!;
    }
    numbering.keys.forEach((key, i) => {
      const group = groups[Math.floor(key / world)]!;
      const each = key % world;
      const isLater = spent[i] === group.slowest && each > group.slowestRank && group.slowestRank >= 0;
      if (spent[i]! >= group.slowest && !isLater) {
        group.slowest = spent[i]!;
        group.slowestRank = each;
      }
    });
  }
}

function order(a: number[], b: number[]): number {
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return a[i]! - b[i]!;
  return 0;
}
