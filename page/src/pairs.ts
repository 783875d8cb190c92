// SPDX-License-Identifier: Apache-2.0
// The communication matrix: messages and bytes from each source to each destination.

import type { Context } from "./context";
import type { Result } from "./panel";
import { descending, grouped } from "./sort";
import { ranksOf } from "./sql";

/** Kinds of traffic, and the flows that each adds up; a message that both sides count is in one of them only. */
export const KINDS: [string, string, string[]][] = [
  ["p2p", "point-to-point", ["sent"]],
  ["one-sided", "one-sided", ["put", "get"]],
  ["collective", "inside collectives", ["collective"]],
  ["internal", "inside other calls", ["internal"]],
  ["share", "shares of collectives", ["share"]],
];

export interface Pairs {
  readonly source: Float64Array;
  readonly destination: Float64Array;
  readonly messages: Float64Array;
  readonly bytes: Float64Array;
}

const flowsOf = new WeakMap<Float64Array, Set<number>>();

/** Returns the flows that the profile has. */
function flows(column: Float64Array): Set<number> {
  const known = flowsOf.get(column) ?? new Set(column);
  flowsOf.set(column, known);
  return known;
}

/** Returns the kinds of which the profile has traffic. */
export function present(context: Context): typeof KINDS {
  const flow = context.profile.pairs.columns.flow;
  if (!flow) return [];
  const names = new Set([...flows(flow)].map((id) => context.names.flow(id)));
  return KINDS.filter(([, , wanted]) => wanted.some((each) => names.has(each)));
}

const MOST_KEPT = 8;
const kept = new Map<string, Pairs>();

function cached(name: string, make: () => Pairs): Pairs {
  const pairs = kept.get(name) ?? make();
  if (kept.size >= MOST_KEPT) kept.clear();
  kept.set(name, pairs);
  return pairs;
}

/** Returns the pairs of one kind under the filter on communicators and ranks, added up over communicators, those with the most bytes first. */
export function selected(context: Context, wanted: string[]): Pairs {
  const { comm, family, rank, node } = context.state.filter;
  const whole = () => cached(JSON.stringify([wanted, comm, family]), () => added(context, wanted));
  if (rank === undefined && node === undefined) return whole();
  return cached(JSON.stringify([wanted, comm, family, rank, node]), () => ofRanks(context, whole()));
}

/** Returns the pairs of which the filter on ranks and nodes leaves one side. */
function ofRanks(context: Context, pairs: Pairs): Pairs {
  const { names: { nodeOf }, state: { filter: { rank, node } } } = context;
  const { source, destination } = pairs;
  const places = new Uint32Array(source.length).map((_, i) => i).filter((i) => {
    const [from, to] = [source[i]!, destination[i]!];
    return (rank === undefined || from === rank || to === rank) && (node === undefined || nodeOf[from] === node || nodeOf[to] === node);
  });
  return taken(pairs, places);
}

function at(column: Float64Array, places: Uint32Array): Float64Array {
  return new Float64Array(places.length).map((_, i) => column[places[i]!]!);
}

function taken({ source, destination, messages, bytes }: Pairs, places: Uint32Array): Pairs {
  return { source: at(source, places), destination: at(destination, places), messages: at(messages, places), bytes: at(bytes, places) };
}

/** Returns the rows of some flows, and of the communicators that the filter leaves. */
function rowsOf(context: Context, wanted: string[]): Uint32Array {
  const { names, state: { filter }, profile } = context;
  const { comm, flow } = profile.pairs.columns;
  const ids = new Set([...flows(flow!)].filter((id) => wanted.includes(names.flow(id))));
  const isWanted = (id: number) => (filter.comm === undefined || id === filter.comm) && (filter.family === undefined || names.familyOf.get(id) === filter.family);
  return new Uint32Array(profile.pairs.rows).map((_, row) => row).filter((row) => ids.has(flow![row]!) && (!comm || isWanted(comm[row]!)));
}

/** Sorts rows by a column of ranks, -1 for unknown ones; equal ones keep their order. */
function byRank(rows: Uint32Array, column: Float64Array, ranks: number): Uint32Array {
  return grouped(rows.map((row) => column[row]! + 1), ranks + 1).order.map((place) => rows[place]!);
}

function added(context: Context, wanted: string[]): Pairs {
  const { source, destination, messages, bytes } = context.profile.pairs.columns;
  // A profile that lacks ranks has messages to them all the same.
  const ranks = 1 + [source!, destination!].reduce((most, column) => column.reduce((a, b) => Math.max(a, b), most), -1);
  const rows = byRank(byRank(rowsOf(context, wanted), destination!, ranks), source!, ranks);
  const sums = [new Float64Array(rows.length), new Float64Array(rows.length)] as const;
  const first = new Uint32Array(rows.length);
  let count = 0;
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i]!;
    const last = first[count - 1];
    if (last === undefined || source![last] !== source![row] || destination![last] !== destination![row]) first[count++] = row;
    sums[0][count - 1]! += messages![row]!;
    sums[1][count - 1]! += bytes![row]!;
  }
  const firsts = first.subarray(0, count);
  const pairs = { source: at(source!, firsts), destination: at(destination!, firsts), messages: sums[0], bytes: sums[1] };
  return taken(pairs, descending(sums[1].subarray(0, count)));
}

function sql(context: Context, flows: string[]): string {
  const { filter } = context.state;
  const conditions = [`kind IN (${flows.map((flow) => `'${flow}'`).join(", ")})`];
  if (filter.comm !== undefined) conditions.push(`comm = ${filter.comm}`);
  if (filter.family !== undefined) conditions.push(`comm IN (SELECT id FROM comm WHERE family = ${filter.family})`);
  if (filter.rank !== undefined) conditions.push(`(source = ${filter.rank} OR destination = ${filter.rank})`);
  if (filter.node !== undefined) {
    const ranks = ranksOf(filter.node, context.names);
    conditions.push(`(source IN ${ranks} OR destination IN ${ranks})`);
  }
  return `SELECT source, destination, SUM(messages) AS messages, SUM(bytes) AS bytes
  FROM pair WHERE ${conditions.join("\n   AND ")}
 GROUP BY source, destination ORDER BY SUM(bytes) DESC, source, destination`;
}

export function table(context: Context, pairs: Pairs, flows: string[]): Result {
  const known = (rank: number) => (rank < 0 ? null : rank);
  return {
    columns: [
      { name: "source", title: "from rank", unit: "number" }, { name: "destination", title: "to rank", unit: "number" },
      { name: "messages", title: "messages", unit: "count" }, { name: "bytes", title: "bytes", unit: "bytes" },
    ],
    length: pairs.source.length,
    row: (i) => [known(pairs.source[i]!), known(pairs.destination[i]!), pairs.messages[i]!, pairs.bytes[i]!],
    sql: sql(context, flows),
  };
}
