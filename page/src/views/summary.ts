// SPDX-License-Identifier: Apache-2.0
// What ran, how well, and what commlens finds by itself.

import type { Context } from "../context";
import { cellsOf, type Finding } from "../data";
import { type Child, h } from "../dom";
import { panel } from "../panel";
import { type Filter, fragment } from "../state";
import { count, share, time } from "../units";
import { sheet } from "./sheets";
import { kinds } from "./waiting";

function tile(title: string, value: string, about: string): HTMLElement {
  return h("div", { class: "tile" }, h("dt", {}, title), h("dd", {}, value), h("dd", { class: "tile-about" }, about));
}

function wholeRun(context: Context, column: string): number | null {
  const { facts } = context.profile;
  const at = cellsOf(facts, "regions", "region").indexOf(0);
  return at < 0 ? null : (cellsOf(facts, "regions", column)[at] as number | null) ?? null;
}

function tiles(context: Context): HTMLElement {
  const run = context.profile.facts.run as Record<string, number | null>;
  const balance = run.balance ?? null;
  const known = (column: string) => (balance === null ? null : wholeRun(context, column));
  return h("dl", { class: "tiles" },
    tile("Time", time(run.elapsed_ns ?? null), context.profile.facts.extent),
    tile("In MPI", share(run.mpi_share ?? null), "of the time of all ranks"),
    tile("MPI calls", count(run.calls ?? null), `on ${count(run.ranks ?? null)} ranks`),
    tile("Parallel efficiency", share(known("parallel_efficiency")), "average time outside MPI / run time"),
    tile("Load balance", share(balance), "average / largest time outside MPI"),
    tile("Communication efficiency", share(known("communication_efficiency")), "largest time outside MPI / run time"));
}

function target(context: Context, finding: Finding): Filter {
  const filter: Filter = finding.family === null ? {} : { ...context.names.communicator(finding.family) };
  for (const dimension of ["op", "region"] as const) {
    const name = finding[dimension];
    const id = name === null ? undefined : context.names.named(dimension, name);
    if (id !== undefined) filter[dimension] = id;
  }
  return filter;
}

function card(context: Context, finding: Finding, place: number): HTMLElement {
  return h("li", { class: "finding" },
    h("h3", {}, `${place}. ${finding.text}`),
    h("p", {}, h("strong", {}, "Try: "), finding.advice),
    h("details", {}, h("summary", {}, `Evidence (costs at most ${share(finding.share)} of the run)`),
      h("table", {}, h("tbody", {}, finding.evidence.map(([label, value]) =>
        h("tr", {}, h("th", { scope: "row", class: "text" }, label), h("td", { class: "number" }, value))))),
      h("p", { class: "about" }, `Rule ${finding.rule}: ${finding.title}.`)),
    h("button", { click: () => { context.go({ view: finding.view, filter: target(context, finding) }); } }, "Show it"));
}

function findings(context: Context): Child {
  const { refused, rules, found } = context.profile.facts.findings;
  if (refused) return h("p", {}, `No finding: ${refused}.`);
  if (!found.length) return h("p", {}, `No finding: none of ${rules} rules applies to this run. That does not mean that nothing can be improved.`);
  return h("ol", { class: "findings" }, found.map((finding, i) => card(context, finding, i + 1)));
}

/** One sentence about the waiting of the whole run, with a link to its view. */
function waiting(context: Context): HTMLElement | null {
  const { lines, waiting_ns, time_ns } = context.profile.facts.waiting;
  const [most] = lines;
  if (!most) return null;
  const whose = most.is_waited ? ` The largest part of it is in ${most.operation} on ${context.names.family(most.family)}. ${most.words}` : "";
  return h("section", { class: "panel", id: "waits" }, h("h2", {}, "Waiting"),
    h("p", {}, `${share(waiting_ns / time_ns)} of the ${time(time_ns)} in sampled ${kinds(lines)} is waiting for other ranks.${whose} `,
      h("a", { href: fragment({ ...context.state, view: "waiting" }) }, "Who is waited for")));
}

export function summary(context: Context): Child[] {
  const { facts } = context.profile;
  const run = h("dl", { class: "head" }, facts.head.map(([name, text]) => [h("dt", {}, name), h("dd", {}, text)]));
  const settings = sheet(context, "settings", { source: "source", name: "name", value: "value", ranks: "ranks" });
  return [
    tiles(context),
    facts.warnings.length ? h("section", { class: "panel warnings", "aria-label": "warnings" }, facts.warnings.map((text) => h("p", {}, text))) : null,
    h("section", { class: "panel", id: "findings" }, h("h2", {}, "What commlens finds"), findings(context)),
    waiting(context),
    h("section", { class: "panel", id: "run" }, h("h2", {}, "The run"), run),
    settings.length ? panel("settings", { title: "Settings", about: "Labels, variables, and control variables of the MPI library, with the number of ranks that had each value.", result: settings }) : null,
  ];
}
