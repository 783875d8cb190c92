// SPDX-License-Identifier: Apache-2.0
// The communication matrix: messages and bytes from each source to each destination.

import type { Context } from "./context";
import type { Result } from "./panel";
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

/** Returns the kinds of which the profile has traffic. */
export function present(context: Context): typeof KINDS {
  const flow = context.profile.pairs.columns.flow;
  if (!flow) return [];
  const names = new Set([...new Set(flow)].map((id) => context.names.flow(id)));
  return KINDS.filter(([, , flows]) => flows.some((each) => names.has(each)));
}

let last: { name: string; pairs: Pairs } | null = null;

/** Returns the pairs of one kind under the filter on communicators and ranks, added up over communicators. */
export function selected(context: Context, flows: string[]): Pairs {
  const { comm, family, rank, node } = context.state.filter;
  const name = JSON.stringify([flows, comm, family, rank, node]);
  if (last?.name !== name) last = { name, pairs: added(context, flows) };
  return last.pairs;
}

function added(context: Context, flows: string[]): Pairs {
  const { names, state: { filter }, profile } = context;
  const { comm, flow, source, destination, messages, bytes } = profile.pairs.columns;
  const world = names.nodeOf.length + 1;
  const wanted = new Set([...new Set(flow)].filter((id) => flows.includes(names.flow(id))));
  const places = new Map<number, number>();
  const sums: [number[], number[], number[]] = [[], [], []];
  for (let row = 0; row < profile.pairs.rows; row++) {
    if (!wanted.has(flow![row]!)) continue;
    if (comm && filter.comm !== undefined && comm[row] !== filter.comm) continue;
    if (comm && filter.family !== undefined && names.familyOf.get(comm[row]!) !== filter.family) continue;
    const from = source![row]!;
    const to = destination![row]!;
    if (filter.rank !== undefined && from !== filter.rank && to !== filter.rank) continue;
    if (filter.node !== undefined && names.nodeOf[from] !== filter.node && names.nodeOf[to] !== filter.node) continue;
    const key = (from + 1) * world + to + 1;
    let place = places.get(key);
    if (place === undefined) {
      place = places.size;
      places.set(key, place);
      sums[0].push(key);
      sums[1].push(0);
      sums[2].push(0);
    }
    sums[1][place]! += messages![row]!;
    sums[2][place]! += bytes![row]!;
  }
  const order = sums[0].map((_, i) => i).sort((a, b) => sums[2][b]! - sums[2][a]! || sums[0][a]! - sums[0][b]!);
  return {
    source: Float64Array.from(order, (i) => Math.floor(sums[0][i]! / world) - 1),
    destination: Float64Array.from(order, (i) => (sums[0][i]! % world) - 1),
    messages: Float64Array.from(order, (i) => sums[1][i]!),
    bytes: Float64Array.from(order, (i) => sums[2][i]!),
  };
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
    rows: Array.from(pairs.source, (source, i) => [known(source), known(pairs.destination[i]!), pairs.messages[i]!, pairs.bytes[i]!]),
    sql: sql(context, flows),
  };
}
