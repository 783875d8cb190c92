// SPDX-License-Identifier: Apache-2.0
// The places in the application that call MPI.

import { type Context, result } from "../context";
import { type Child, h } from "../dom";
import { panel } from "../panel";
import { callpaths } from "./callpaths";

export function callsites(context: Context): Child[] {
  const { cells, state, profile } = context;
  if (!cells.has("callsite")) {
    return [h("section", { class: "panel" }, h("h2", {}, "Call sites"), h("p", {}, "The call sites were added up to keep this page small: make it again with a larger --budget."))];
  }
  const labels = Object.values(profile.facts.sites);
  const isResolved = labels.some((label) => /:\d+$/.test(label));
  const isNamed = labels.some((label) => / in \S+$/.test(label));
  return [callpaths(context), panel("callsites", {
    title: "Call sites",
    about: isResolved
      ? "Function, file and line come from the debug information of the programs on the machine where this page was made."
      : isNamed ? "The machine where this page was made has no debug information of the program: functions come from the symbols in its files, without lines. Compile with -g, and make the page where the program is."
      : "The machine where this page was made has no debug information of the program: call sites are file and offset. Compile with -g, and make the page where the program is.",
    result: result(context, ["callsite", "op"], cells.groups(["callsite", "op"], state.filter)),
    open: true,
  })];
}
