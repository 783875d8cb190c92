// SPDX-License-Identifier: Apache-2.0
// Small tables of the profile, as their query returned them.

import type { Context } from "../context";
import type { Value } from "../data";
import type { Column, Result } from "../panel";
import type { Unit } from "../units";

function unitOf(name: string, values: Value[]): Unit {
  if (name.endsWith("_ns")) return "time";
  if (["calls", "iterations", "preempted"].includes(name)) return "count";
  if (name.startsWith("load_") || name.endsWith("_efficiency")) return "share";
  return values.some((value) => typeof value === "string") ? "text" : "number";
}

/** Returns a sheet as a table; columns without a title in `titles` are in CSV only. */
export function sheet(context: Context, name: string, titles?: Record<string, string>): Result {
  const { sql, columns } = context.profile.facts.sheets[name] ?? { sql: "", columns: {} };
  const names = Object.keys(columns);
  const heads = names.map((each): Column => ({
    name: each,
    title: titles?.[each] ?? each,
    unit: unitOf(each, columns[each]!),
    hidden: titles !== undefined && !(each in titles),
  }));
  const length = columns[names[0] ?? ""]?.length ?? 0;
  return { columns: heads, length, row: (i) => names.map((each) => columns[each]![i] ?? null), sql };
}
