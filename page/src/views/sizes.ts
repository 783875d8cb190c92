// SPDX-License-Identifier: Apache-2.0
// Operations by message size: where time goes, what a call costs, and how fast bytes move.

import { type Context, pick, result } from "../context";
import type { Child } from "../dom";
import { columns } from "../draw/columns";
import { lines } from "../draw/lines";
import { choice, legend, panel } from "../panel";
import type { Group } from "../query";
import { bytes, count, many, size, smallest, time } from "../units";

type Measure = "time" | "calls" | "bytes" | "each" | "rate";

const MEASURES: Record<Measure, { title: string; text: (value: number) => string; of: (group: Group) => number }> = {
  time: { title: "time", text: time, of: (group) => group.time },
  calls: { title: "calls", text: count, of: (group) => group.calls },
  bytes: { title: "bytes", text: bytes, of: (group) => group.sent + group.received },
  each: { title: "time per call", text: time, of: (group) => (group.calls ? group.time / group.calls : 0) },
  rate: { title: "bytes per second", text: (value) => `${bytes(value)}/s`, of: (group) => (group.time ? ((group.sent + group.received) / group.time) * 1e9 : 0) },
};
const WIDTHS: [string, string][] = [["1", "×2"], ["2", "×4"], ["4", "×16"]];

/** Returns the first bin of the bins that are drawn as one; calls without a size stay apart. */
function coarse(bin: number, width: number): number {
  return bin <= 0 ? bin : 1 + Math.floor((bin - 1) / width) * width;
}

function label(bin: number, width: number): string {
  if (bin <= 0 || width === 1) return size(bin);
  return `${smallest(bin)} …`;
}

function joined(groups: Group[], width: number): Map<number, Map<number, Group>> {
  const bins = new Map<number, Map<number, Group>>();
  for (const group of groups) {
    const [op, exact] = group.keys as [number, number];
    const bin = coarse(exact, width);
    const ops = bins.get(bin) ?? new Map<number, Group>();
    bins.set(bin, ops);
    const old = ops.get(op);
    ops.set(op, old
      ? { ...old, calls: old.calls + group.calls, time: old.time + group.time, sent: old.sent + group.sent, received: old.received + group.received }
      : group);
  }
  return new Map([...bins].sort((a, b) => a[0] - b[0]));
}

function chart(context: Context, groups: Group[], measure: Measure, width: number): SVGSVGElement {
  const { names, colours, state } = context;
  const bins = joined(groups, width);
  const { text, of, title } = MEASURES[measure];
  const name = (op: number, bin: number, group: Group) => `${names.op(op)}, ${label(bin, width)}: ${text(of(group))}, ${many(group.calls, "call")}`;
  if (measure === "each" || measure === "rate") {
    const ops = [...new Set(groups.map((group) => group.keys[0]!))].filter((op) => !colours.isOther("op", op));
    return lines(ops.map((op) => ({
      colour: colours.of("op", op),
      points: [...bins].flatMap(([bin, each], place) => (each.has(op) ? [{ place, value: of(each.get(op)!), title: name(op, bin, each.get(op)!) }] : [])),
    })), [...bins.keys()].map((bin) => label(bin, width)), text, `${title} by message size`);
  }
  return columns([...bins].map(([bin, ops]) => ({
    label: label(bin, width),
    parts: [...ops].sort((a, b) => Number(colours.isOther("op", a[0])) - Number(colours.isOther("op", b[0])) || a[0] - b[0]).map(([op, group]) => ({
      value: of(group), colour: colours.of("op", op), title: name(op, bin, group),
    })),
    ...(width === 1 ? { isPicked: state.filter.bin === bin, pick: () => { pick(context, "bin", bin); } } : {}),
  })), text, `${title} by message size`);
}

export function sizes(context: Context): Child[] {
  const { cells, state, names, colours } = context;
  const parts: Child[] = [];
  if (cells.has("bin")) {
    const groups = cells.groups(["op", "bin"], state.filter);
    const measure = (Object.keys(MEASURES) as Measure[]).find((each) => each === state.choices.measure) ?? "time";
    const width = Number(WIDTHS.find(([each]) => each === state.choices.width)?.[0] ?? 1);
    const set = (name: string) => (value: string) => { context.go({ choices: { ...state.choices, [name]: value } }); };
    const ops = groups.map((group) => group.keys[0]!);
    const isLines = measure === "each" || measure === "rate";
    const entries = colours.entries("op", ops, (id) => names.op(id));
    parts.push(panel("sizes", {
      title: "Operations by message size",
      about: "Size is that of the buffer of one call, as the MPI standard counts it for the procedure; calls whose blocks differ in size are under “varies”.",
      controls: [choice("Show", "measure", (Object.keys(MEASURES) as Measure[]).map((each) => [each, MEASURES[each].title]), measure, set("measure")),
        choice("Steps", "width", WIDTHS, `${width}`, set("width"))],
      legend: legend(isLines ? entries.filter(([, colour]) => colour !== colours.other) : entries),
      chart: chart(context, groups, measure, width),
      result: result(context, ["op", "bin"], groups),
    }));
  }
  parts.push(panel("operations", { title: "Operations", result: result(context, ["op"], cells.groups(["op"], state.filter)), open: true }));
  return parts;
}
