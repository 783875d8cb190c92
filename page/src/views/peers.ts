// SPDX-License-Identifier: Apache-2.0
// Who sends how much to whom.

import { type Context, pick } from "../context";
import { type Child, h } from "../dom";
import { bars } from "../draw/bars";
import { matrix } from "../draw/matrix";
import { byTraffic } from "../draw/order";
import { present, selected, table, type Pairs } from "../pairs";
import { choice, panel } from "../panel";
import { bytes, many, share } from "../units";
import { collectives } from "./collectives";

const HEAVIEST = 12;

/** Returns how much stays within a node, in words; empty with one node. */
function locality(context: Context, pairs: Pairs): string {
  const { nodes, nodeOf } = context.names;
  if (nodes.length < 2) return "";
  const node = (rank: number) => nodeOf[rank] ?? -1;
  let inside = 0;
  let total = 0;
  pairs.bytes.forEach((volume, i) => {
    const from = node(pairs.source[i]!);
    const to = node(pairs.destination[i]!);
    if (from < 0 || to < 0) return;
    total += volume;
    if (from === to) inside += volume;
  });
  return total ? ` ${share(inside / total)} of the bytes stay within a node.` : "";
}

/** What commlens knows about the matrix of the whole run: its pattern, how far messages go, and how many partners a rank has. */
function known(context: Context, kind: string): HTMLElement | null {
  const lines = context.profile.facts.traffic[kind];
  if (!lines?.length) return null;
  return h("section", { class: "panel", id: "traffic" }, h("h2", {}, "The pattern of the whole run"),
    h("dl", { class: "head" }, lines.map(([name, text]) => [h("dt", {}, name), h("dd", {}, text)])));
}

/** The pairs with the most bytes; a click restricts the views to the source. */
function heaviest(context: Context, pairs: Pairs): HTMLElement {
  const known = Array.from(pairs.bytes.keys()).filter((i) => pairs.source[i]! >= 0 && pairs.destination[i]! >= 0).slice(0, HEAVIEST);
  const first = known.map((i) => ({
    label: `${pairs.source[i]!} → ${pairs.destination[i]!}`,
    about: many(pairs.messages[i]!, "message"),
    value: bytes(pairs.bytes[i]!),
    parts: [{ value: pairs.bytes[i]!, colour: "var(--bar-even)", title: bytes(pairs.bytes[i]!) }],
    isPicked: context.state.filter.rank === pairs.source[i],
    pick: () => { pick(context, "rank", pairs.source[i]!); },
  }));
  return h("div", {}, h("h3", {}, "Heaviest pairs"), bars(first, "heaviest pairs of ranks"));
}

type Order = "rank" | "node" | "traffic";

const byVolume = new WeakMap<Float64Array, number[]>();

/** Returns the ranks in the order of rows and columns, and the place of each rank in it. */
function ordered(context: Context, by: Order, pairs: Pairs, value: Float64Array): { order: number[]; place: Int32Array } {
  const { ranks, nodeOf } = context.names;
  let order = [...ranks];
  const placed = () => {
    const place = new Int32Array(nodeOf.length).fill(-1);
    order.forEach((rank, i) => { place[rank] = i; });
    return place;
  };
  if (by === "node") order.sort((a, b) => nodeOf[a]! - nodeOf[b]! || a - b);
  if (by === "traffic") {
    const place = placed();
    const at = (rank: number) => place[rank] ?? -1;
    const known = byVolume.get(value) ?? byTraffic({ row: pairs.source.map(at), column: pairs.destination.map(at), value }, ranks.length);
    byVolume.set(value, known);
    order = known.map((index) => ranks[index]!);
  }
  return { order, place: placed() };
}

function absent(context: Context): HTMLElement {
  const why = context.profile.facts.is_summary
    ? "Summary detail has no communication matrix."
    : "This profile has no communication matrix: it was switched off, or the application sent no message.";
  return h("section", { class: "panel" }, h("h2", {}, "Who talks to whom"), h("p", {}, why));
}

export function peers(context: Context): Child[] {
  const { names, state, profile } = context;
  const kinds = present(context);
  if (!kinds.length) return [absent(context)];
  const [kind, title, flows] = kinds.find(([name]) => name === state.choices.kind) ?? kinds[0]!;
  const pairs = selected(context, flows);
  const isEmpty = pairs.bytes.every((volume) => volume === 0);
  const byMessages = isEmpty || state.choices.volume === "messages";
  const value = byMessages ? pairs.messages : pairs.bytes;
  const orders: [Order, string][] = [["rank", "by rank"], ...names.nodes.length > 1 ? [["node", "by node"] as [Order, string]] : [], ["traffic", "by traffic"]];
  const [by] = orders.find(([name]) => name === state.choices.order) ?? orders[0]!;
  const { order, place } = ordered(context, by, pairs, value);
  const at = (rank: number) => place[rank] ?? -1;
  const set = (name: string) => (value: string) => { context.go({ choices: { ...state.choices, [name]: value } }); };
  const text = byMessages ? (value: number) => many(value, "message") : bytes;
  const unknown = pairs.source.reduce((count, source, i) => count + Number(at(source) < 0 || at(pairs.destination[i]!) < 0), 0);
  const deaf = (["op", "bin", "region", "callsite", "path"] as const).filter((each) => state.filter[each] !== undefined);
  const isAdded = !profile.pairs.columns.comm && (state.filter.comm ?? state.filter.family) !== undefined;
  return [panel("pairs", {
    title: "Who talks to whom",
    about: `${title[0]!.toUpperCase()}${title.slice(1)}: ${many(pairs.source.length, "pair")} of ranks.${locality(context, pairs)}`
      + (unknown ? ` Messages with a process that is unknown, that the profile lacks, or that was counted together with others, are in the table only (${many(unknown, "row")}).` : "")
      + (deaf.length ? ` The matrix does not tell apart operations, sizes, regions and call sites: that part of the filter has no effect here.` : "")
      + (by === "traffic" ? ` Ranks that exchange many ${byMessages ? "messages" : "bytes"} are beside each other.` : "")
      + (isAdded ? " The communicators were added up to keep this page small." : ""),
    controls: [
      choice("Kind", "kind", kinds.map(([name, words]) => [name, words]), kind, set("kind")),
      choice("Show", "volume", [["bytes", "bytes"], ["messages", "messages"]], byMessages ? "messages" : "bytes", set("volume")),
      choice("Order", "order", orders, by, set("order")),
    ],
    chart: h("div", { class: "beside" }, matrix({
      row: pairs.source.map(at),
      column: pairs.destination.map(at),
      value,
    }, order.length, `communication matrix of ${order.length} ranks, ${title}`,
    (index) => `rank ${order[index] ?? "-"}`, text), heaviest(context, pairs)),
    result: table(context, pairs, flows),
  }), known(context, kind), collectives(context)];
}
