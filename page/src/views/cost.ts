// SPDX-License-Identifier: Apache-2.0
// What commlens itself took, and what it could not see.

import type { Context } from "../context";
import { type Child, h } from "../dom";
import { panel } from "../panel";
import { bytes } from "../units";
import { sheet } from "./sheets";

export function cost(context: Context): Child[] {
  const { facts } = context.profile;
  const own = facts.head.filter(([name]) => ["commlens", "finalize"].includes(name));
  const coverage = sheet(context, "coverage", { procedure: "procedure", state: "state", reason: "reason", objects: "imported by" });
  return [
    h("section", { class: "panel" }, h("h2", {}, "What commlens cost"), h("dl", { class: "head" }, own.map(([name, text]) => [h("dt", {}, name), h("dd", {}, text)]))),
    panel("overhead", {
      title: "Time of commlens by phase",
      result: sheet(context, "overhead", { what: "phase", ranks: "ranks", time_ns: "all ranks", least_ns: "least", most_ns: "most" }),
      open: true,
    }),
    coverage.length
      ? panel("coverage", { title: "Procedures whose calls are not measured", result: coverage, open: true })
      : h("section", { class: "panel" }, h("h2", {}, "What could not be seen"), h("p", {}, context.profile.facts.sheets.coverage?.columns.procedure
        ? "commlens measures every MPI procedure that the application imports."
        : "This profile does not contain the imports of the application: an older commlens wrote it.")),
    facts.warnings.length ? h("section", { class: "panel warnings" }, h("h2", {}, "Warnings"), facts.warnings.map((text) => h("p", {}, text))) : null,
    h("section", { class: "panel" }, h("h2", {}, "This page"), h("p", {}, `The counters may take ${bytes(facts.budget)} in this page. ${facts.folded.length ? `To keep to that, ${facts.folded.join("; ")}.` : "They fit, so nothing was added up."}`),
      h("p", {}, `Made by ${facts.version}. The page is under the Apache licence, version 2.0.${facts.no_sql || facts.is_served ? "" : " View SQL contains sql.js (MIT licence, © 2017 sql.js authors), which is SQLite (public domain) compiled to WebAssembly."}`)),
  ];
}
