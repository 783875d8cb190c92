// SPDX-License-Identifier: Apache-2.0
// What changed from the runs of side A to those of side B.

import type { Context } from "../context";
import type { Comparison, Value } from "../data";
import { type Child, h } from "../dom";
import { changes } from "../draw/changes";
import { type Column, listed, panel, type Result } from "../panel";
import { many, time, type Unit } from "../units";

const TOP = 15;

/** The columns that the page shows, with title and unit; all others are in CSV. */
const SHOWN: Record<string, [string, Unit]> = {
  name: ["what", "text"], calls_a: ["calls A", "count"], calls_b: ["calls B", "count"], time_ns_a: ["time A", "time"], time_ns_b: ["time B", "time"],
  time_ns_change: ["change", "percent"], low: ["from", "percent"], high: ["to", "percent"], q: ["q", "number"], claim: ["claim", "text"],
};

function signed(ns: number): string {
  return `${ns < 0 ? "−" : "+"}${time(Math.abs(ns))}`;
}

function table(comparison: Comparison): Result {
  const names = Object.keys(comparison.rows);
  const columns = names.map((name): Column => {
    const [title, unit] = SHOWN[name] ?? [name, "text"];
    return { name, title, unit, hidden: !(name in SHOWN) };
  });
  const rows = comparison.rows.name!.map((_, i) => names.map((name): Value => {
    const value = comparison.rows[name]![i] ?? null;
    return typeof value === "boolean" ? `${value}` : value;
  }));
  return { columns, ...listed(rows) };
}

function chart(comparison: Comparison): HTMLElement {
  const of = (name: string) => comparison.rows[name]!;
  const order = of("name").map((_, i) => i).slice(2).sort((a, b) => Math.abs(Number(of("added_ns")[b])) - Math.abs(Number(of("added_ns")[a])));
  return changes(order.slice(0, TOP).map((i) => ({
    label: String(of("name")[i]),
    value: Number(of("added_ns")[i]),
    text: signed(Number(of("added_ns")[i])),
    isSure: of("significant")[i] === true,
  })), "change of the time, largest first");
}

export function comparison(context: Context): Child[] {
  const { comparison: found } = context.profile.facts;
  if (!found) return [];
  const side = (name: string, paths: string[]) => [h("dt", {}, name), h("dd", {}, paths.length > 4 ? `${many(paths.length, "run")}: ${paths.slice(0, 3).join(", ")}, …` : paths.join(", "))];
  return [
    h("section", { class: "panel", id: "difference" }, h("h2", {}, found.headline), h("p", { class: "about" }, found.statement),
      h("dl", { class: "head" }, side("A", found.a), side("B", found.b), found.setup.map((line) => [h("dt", {}, "setup"), h("dd", {}, line)])),
      found.outliers.map((line) => h("p", { class: "outlier" }, line))),
    panel("changes", {
      title: "Change of the time in MPI, from A to B",
      about: "Medians over the runs, summed over the ranks. Hatched bars may be chance. The other views show the first profile of B.",
      chart: chart(found),
      result: table(found),
      open: true,
    }),
  ];
}
