// SPDX-License-Identifier: Apache-2.0
// The SQL that returns from the profile what a view shows.

import type { Names } from "./names";
import { DIMENSIONS, type Dimension, type Filter } from "./state";

/** Returns a text as a literal of SQL. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** Returns the query for the ranks of a node. */
export function ranksOf(node: number, names: Names): string {
  return `(SELECT rank FROM rank WHERE node = ${quoted(names.of("node", node))})`;
}

/** Columns that have another name than in view counter. */
type Columns = Partial<Record<Dimension, string>>;

function condition(dimension: Dimension, value: number, names: Names, columns: Columns): string {
  if (dimension === "op") return `${columns.op ?? "operation"} = ${quoted(names.op(value))}`;
  if (dimension === "path") return `${columns.path ?? "callsite"} IN (${names.paths.sites(value).join(", ")})`;
  if (dimension === "node") return `rank IN ${ranksOf(value, names)}`;
  return `${columns[dimension] ?? dimension} = ${value}`;
}

export function where(filter: Filter, names: Names, columns: Columns = {}): string {
  const parts = DIMENSIONS.flatMap((dimension) => {
    const value = filter[dimension];
    if (dimension === "path" && !names.paths.length) return []; // no table of this page can follow it
    return value === undefined ? [] : [condition(dimension, value, names, columns)];
  });
  return parts.length ? `\n         WHERE ${parts.join(" AND ")}` : "";
}

/** For each dimension: the columns of the result, and what is joined to name them. */
const COLUMNS: Record<Dimension, { column: string; shown: string; join?: string }> = {
  family: {
    column: "family",
    shown: "by_rank.family, named.name AS communicator",
    join: "JOIN (SELECT family, name FROM family) AS named ON named.family = by_rank.family",
  },
  comm: {
    column: "comm",
    shown: "by_rank.comm, each.name AS communicator",
    join: "JOIN comm AS each ON each.id = by_rank.comm",
  },
  op: { column: "operation", shown: "by_rank.operation" },
  bin: { column: "bin", shown: "by_rank.bin" },
  region: {
    column: "region",
    shown: "by_rank.region, place.path",
    join: "JOIN region_path AS place ON place.region = by_rank.region",
  },
  callsite: { column: "callsite", shown: "by_rank.callsite" },
  path: { column: "callsite", shown: "by_rank.callsite" },
  node: { column: "rank", shown: "host.node", join: "JOIN rank AS host ON host.rank = by_rank.rank" },
  rank: { column: "rank", shown: "by_rank.rank" },
};

/** In summary detail no rank has counters of its own. */
const TOTALS = `(SELECT key.comm, comm.family, op.name AS operation, key.bin, key.region, key.callsite, NULL AS rank,
                       part.calls, part.time_ns, part.time_max_ns, part.bytes_sent, part.bytes_received
                  FROM key_total AS part JOIN key ON key.id = part.key JOIN comm ON comm.id = key.comm
                       JOIN op ON op.id = key.op)`;

/** Returns the query for the sums by some dimensions. */
export function sums(by: readonly Dimension[], filter: Filter, names: Names, isSummary: boolean): string {
  const parts = by.map((dimension) => COLUMNS[dimension]);
  const columns = [...new Set([...parts.map((part) => part.column), "rank"])].join(", ");
  const groups = parts.map((part) => (part.shown.startsWith("host") ? "host.node" : `by_rank.${part.column}`)).join(", ");
  const joins = parts.map((part) => (part.join ? `\n       ${part.join}` : "")).join("");
  const slowest = isSummary ? "" : " MAX(by_rank.time_ns) AS slowest_ns,";
  return `SELECT ${parts.map((part) => part.shown).join(", ")}, SUM(by_rank.calls) AS calls,
       SUM(by_rank.time_ns) AS time_ns,${slowest} MAX(by_rank.longest_ns) AS longest_ns,
       SUM(by_rank.bytes_sent) AS bytes_sent, SUM(by_rank.bytes_received) AS bytes_received
  FROM (SELECT ${columns}, SUM(calls) AS calls, SUM(time_ns) AS time_ns, MAX(time_max_ns) AS longest_ns,
               SUM(bytes_sent) AS bytes_sent, SUM(bytes_received) AS bytes_received
          FROM ${isSummary ? TOTALS : "counter"}${where(filter, names)}
         GROUP BY ${columns}) AS by_rank${joins}
 GROUP BY ${groups}
 ORDER BY SUM(by_rank.time_ns) DESC, ${groups}`;
}

/** Returns the query for the families of communicators, with their parents and the sums of each. */
export function lineage(filter: Filter, names: Names, isSummary: boolean): string {
  const slowest = isSummary ? "" : " COALESCE(spent.slowest_ns, 0) AS slowest_ns,";
  return `SELECT family.family, family.name AS communicator, family.parent, family.communicators,
       COALESCE(spent.calls, 0) AS calls, COALESCE(spent.time_ns, 0) AS time_ns,${slowest}
       COALESCE(spent.bytes_sent, 0) AS bytes_sent, COALESCE(spent.bytes_received, 0) AS bytes_received
  FROM family LEFT JOIN (
${sums(["family"], filter, names, isSummary)}
       ) AS spent ON spent.family = family.family
 WHERE family.kind IN ('intra', 'inter') ORDER BY family.family`;
}
