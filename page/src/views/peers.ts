// SPDX-License-Identifier: Apache-2.0
// Who sends how much to whom.

import { type Context, pick } from "../context";
import { type Child, h } from "../dom";
import { bars } from "../draw/bars";
import { matrix } from "../draw/matrix";
import { present, selected, table, type Pairs } from "../pairs";
import { choice, panel } from "../panel";
import { bytes, many, share } from "../units";

const HEAVIEST = 12;

/** Returns how much stays within a node, in words; empty with one node. */
function locality(context: Context, pairs: Pairs): string {
  const { nodes, nodeOf } = context.names;
  if (nodes.length < 2) return "";
  let inside = 0;
  let total = 0;
  pairs.bytes.forEach((volume, i) => {
    const from = pairs.source[i]!;
    const to = pairs.destination[i]!;
    if (from < 0 || to < 0) return;
    total += volume;
    if (nodeOf[from] === nodeOf[to]) inside += volume;
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
  const first = [...pairs.bytes.subarray(0, HEAVIEST)].map((volume, i) => ({
    label: `${pairs.source[i]! < 0 ? "?" : pairs.source[i]!} → ${pairs.destination[i]! < 0 ? "?" : pairs.destination[i]!}`,
    about: many(pairs.messages[i]!, "message"),
    value: bytes(volume),
    parts: [{ value: volume, colour: "var(--bar-even)", title: bytes(volume) }],
    isPicked: context.state.filter.rank === pairs.source[i],
    pick: () => { if (pairs.source[i]! >= 0) pick(context, "rank", pairs.source[i]!); },
  }));
  return h("div", {}, h("h3", {}, "Heaviest pairs"), bars(first, "heaviest pairs of ranks"));
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
  const order = [...names.ranks];
  const isByNode = state.choices.order === "node" && names.nodes.length > 1;
  if (isByNode) order.sort((a, b) => names.nodeOf[a]! - names.nodeOf[b]! || a - b);
  const place = new Int32Array(names.nodeOf.length).fill(-1);
  order.forEach((rank, i) => { place[rank] = i; });
  const set = (name: string) => (value: string) => { context.go({ choices: { ...state.choices, [name]: value } }); };
  const text = byMessages ? (value: number) => many(value, "message") : bytes;
  const unknown = pairs.source.filter((source, i) => source < 0 || pairs.destination[i]! < 0).length;
  const deaf = (["op", "bin", "region", "callsite"] as const).filter((each) => state.filter[each] !== undefined);
  const isAdded = !profile.pairs.columns.comm && (state.filter.comm ?? state.filter.family) !== undefined;
  return [panel("pairs", {
    title: "Who talks to whom",
    about: `${title[0]!.toUpperCase()}${title.slice(1)}: ${many(pairs.source.length, "pair")} of ranks.${locality(context, pairs)}`
      + (unknown ? ` ${many(unknown, "pair")} with an unknown process are in the table only.` : "")
      + (deaf.length ? ` The matrix does not tell apart operations, sizes, regions and call sites: that part of the filter has no effect here.` : "")
      + (isAdded ? " The communicators were added up to keep this page small." : ""),
    controls: [
      choice("Kind", "kind", kinds.map(([name, words]) => [name, words]), kind, set("kind")),
      choice("Show", "volume", [["bytes", "bytes"], ["messages", "messages"]], byMessages ? "messages" : "bytes", set("volume")),
      names.nodes.length > 1 ? choice("Order", "order", [["rank", "by rank"], ["node", "by node"]], isByNode ? "node" : "rank", set("order")) : null,
    ],
    chart: h("div", { class: "beside" }, matrix({
      row: pairs.source.map((rank) => (rank < 0 ? -1 : place[rank]!)),
      column: pairs.destination.map((rank) => (rank < 0 ? -1 : place[rank]!)),
      value: byMessages ? pairs.messages : pairs.bytes,
    }, order.length, `communication matrix of ${order.length} ranks, ${title}`,
    (index) => `rank ${order[index] ?? "-"}`, text), heaviest(context, pairs)),
    result: table(context, pairs, flows),
  }), known(context, kind)];
}
