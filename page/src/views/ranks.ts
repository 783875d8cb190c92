// SPDX-License-Identifier: Apache-2.0
// How time in MPI differs between ranks and nodes.

import { type Context, pick, result } from "../context";
import { canvas, type Child, colour, h } from "../dom";
import { bars } from "../draw/bars";
import { heat, scale } from "../draw/heat";
import { choice, panel } from "../panel";
import type { Group } from "../query";
import { many, time } from "../units";
import { positions } from "./positions";
import { sheet } from "./sheets";

function curve(context: Context, groups: Group[]): HTMLElement {
  const { names, state } = context;
  const isSorted = state.choices.ranks === "sorted";
  const spent = new Map(groups.map((group) => [group.keys[0]!, group.time]));
  const order = [...names.ranks];
  if (isSorted) order.sort((a, b) => (spent.get(b) ?? 0) - (spent.get(a) ?? 0));
  const most = groups.reduce((most, group) => Math.max(most, group.time), 1);
  const about = h("p", { class: "readout", "aria-live": "polite" }, "Point at a rank to read its time; a click restricts all views to it.");
  const at = (event: Event): number => {
    const { offsetX } = event as MouseEvent;
    return Math.min(order.length - 1, Math.max(0, Math.floor((offsetX / element.clientWidth) * order.length)));
  };
  const element = canvas(180, `time in MPI of ${order.length} ranks`, (context2d, width, height) => {
    const step = width / order.length;
    const [even, odd, picked] = ["--bar-even", "--bar-odd", "--accent"].map(colour);
    const bar = (i: number, time: number) => {
      const rank = order[i]!;
      context2d.fillStyle = (rank === state.filter.rank ? picked : names.nodeOf[rank]! % 2 ? odd : even)!;
      const tall = (time / most) * (height - 4);
      context2d.fillRect(i * step, height - tall, Math.max(step > 4 ? step - 1 : step, 1), tall);
    };
    // Of the ranks of one pixel, the one with the most time is drawn, and the selected rank in any case.
    const each = Math.max(1, Math.round(1 / (step * window.devicePixelRatio)));
    for (let i = 0; i < order.length; i += each) bar(i, order.slice(i, i + each).reduce((high, rank) => Math.max(high, spent.get(rank) ?? 0), 0));
    const at = state.filter.rank === undefined ? -1 : order.indexOf(state.filter.rank);
    if (at >= 0) bar(at, spent.get(order[at]!) ?? 0);
  });
  element.addEventListener("mousemove", (event) => {
    const rank = order[at(event)]!;
    about.textContent = `rank ${rank} on ${names.nodes[names.nodeOf[rank]!] ?? "-"}: ${time(spent.get(rank) ?? 0)}`;
  });
  element.addEventListener("click", (event) => { pick(context, "rank", order[at(event)]!); });
  return h("div", {}, h("div", { class: "scale" }, h("span", {}, time(most))), element, about);
}

function slotHeat(context: Context): HTMLElement | null {
  const { slices, names, state, profile } = context;
  if (!slices.has("rank") || !profile.slices.rows) return null;
  const groups = slices.groups(["rank", "slot"], state.filter);
  if (!groups.length) return null;
  const slots = groups.reduce((most, group) => Math.max(most, group.keys[1]! + 1), 1);
  const place = new Map(names.ranks.map((rank, i) => [rank, i]));
  const tall = Math.min(480, Math.max(120, names.ranks.length * 12));
  const element = canvas(tall, "time in MPI by rank and time", (context2d, width, height) => {
    const rows = names.ranks.length;
    context2d.fillStyle = colour("--empty");
    context2d.fillRect(0, 0, width, height);
    const colourOf = heat();
    for (const group of groups) {
      context2d.fillStyle = colourOf(group.time / profile.facts.slice_ns);
      context2d.fillRect((group.keys[1]! / slots) * width, (place.get(group.keys[0]!)! / rows) * height, width / slots + 0.5, height / rows + 0.5);
    }
  });
  const about = h("p", { class: "readout", "aria-live": "polite" }, `Ranks from top to bottom, ${many(slots, "slice")} of ${time(profile.facts.slice_ns)} from left to right.`);
  const found = new Map(groups.map((group) => [group.keys[1]! * 2 ** 26 + group.keys[0]!, group.time]));
  element.addEventListener("mousemove", (event) => {
    const slot = Math.floor((event.offsetX / element.clientWidth) * slots);
    const rank = names.ranks[Math.floor((event.offsetY / element.clientHeight) * names.ranks.length)];
    if (rank === undefined) return;
    about.textContent = `rank ${rank}, from ${time(slot * profile.facts.slice_ns)} on: ${time(found.get(slot * 2 ** 26 + rank) ?? 0)} in MPI`;
  });
  return panel("rank-time", {
    title: "Time in MPI by rank over the run",
    about: "Each row is a rank, each column a slice of time. A slice that a rank did not run to its end counts as a whole one.",
    chart: [element, scale("0 %", "100 % of the slice"), about],
  });
}

export function ranks(context: Context): Child[] {
  const { cells, state, names, profile } = context;
  if (!cells.has("rank")) {
    return [h("section", { class: "panel" }, h("h2", {}, "Ranks and nodes"), h("p", {}, profile.facts.is_summary
      ? "This profile has summary detail: statistics over all ranks, and no counters of single ranks."
      : "The counters of single ranks were added up to keep this page small: make it again with a larger --budget."))];
  }
  const byRank = cells.groups(["rank"], state.filter);
  const nodes = cells.groups(["node"], state.filter);
  const set = (value: string) => { context.go({ choices: { ...state.choices, ranks: value } }); };
  return [
    panel("ranks", {
      title: "Time in MPI by rank",
      about: names.nodes.length > 1 ? "Ranks of neighbouring nodes have two shades." : "",
      controls: choice("Order", "ranks", [["", "by rank"], ["sorted", "by time"]], state.choices.ranks === "sorted" ? "sorted" : "", set),
      chart: curve(context, byRank),
      result: result(context, ["rank"], byRank),
    }),
    panel("nodes", {
      title: "Time in MPI by node",
      chart: bars(nodes.slice(0, 24).map((group) => ({
        label: names.of("node", group.keys[0]!),
        about: many(names.nodeOf.reduce((ranks, node) => ranks + Number(node === group.keys[0]), 0), "rank"),
        value: time(group.time),
        parts: [{ value: group.time, colour: "var(--bar-even)", title: time(group.time) }],
        isPicked: state.filter.node === group.keys[0],
        pick: () => { pick(context, "node", group.keys[0]!); },
      })), "time by node"),
      result: result(context, ["node"], nodes),
    }),
    positions(context),
    slotHeat(context),
    panel("all-ranks", {
      title: "The ranks of the whole run",
      about: "Preempted: how often the kernel gave the processor of a rank to another process.",
      result: sheet(context, "ranks", {
        rank: "rank", node: "node", app_ns: "time", mpi_ns: "in MPI", cpu_ns: "CPU time", preempted: "preempted", calls: "calls", threads: "threads", state: "end", cpus: "CPUs",
      }),
    }),
  ];
}
