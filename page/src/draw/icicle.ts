// SPDX-License-Identifier: Apache-2.0
// A tree as an icicle: children below their parent, as wide as their part of it.

import { h } from "../dom";
import { forest, type Node } from "./forest";

export interface Leaf extends Node {
  readonly label: string;
  readonly title: string;
  /** Width of the node without its children. */
  readonly own: number;
  /** Width of the node; at least that of its children. Without it, own and children add up. */
  readonly whole?: number;
  /** Length of the line at the bottom of the box, from 0 to 1. */
  readonly part: number;
}

const ROW = 30;

/** Draws the tree; each node is a button. */
export function icicle(leaves: Leaf[], label: string, isPicked: (id: number) => boolean, pick: (id: number) => void): HTMLElement {
  const { children, order } = forest(leaves);
  const widths = new Map<number, number>();
  for (const { id, own, whole } of [...order].reverse()) {
    const below = (children.get(id) ?? []).reduce((sum, child) => sum + widths.get(child.id)!, 0);
    widths.set(id, whole === undefined ? own + below : Math.max(whole, below));
  }
  const roots = children.get(null) ?? [];
  const total = roots.reduce((sum, root) => sum + widths.get(root.id)!, 0) || 1;
  const places = new Map<number, [left: number, depth: number]>();
  const place = (siblings: Leaf[], left: number, depth: number) => {
    let at = left;
    for (const leaf of siblings) {
      places.set(leaf.id, [at, depth]);
      at += widths.get(leaf.id)!;
    }
  };
  place(roots, 0, 0);
  let deepest = 0;
  const boxes = order.map((leaf) => {
    const [left, depth] = places.get(leaf.id)!;
    const wide = widths.get(leaf.id)!;
    place([...(children.get(leaf.id) ?? [])].sort((a, b) => widths.get(b.id)! - widths.get(a.id)!), left, depth + 1);
    deepest = Math.max(deepest, depth);
    return wide / total > 0.0005 && h("button", {
      class: "box", title: leaf.title, "aria-pressed": `${isPicked(leaf.id)}`, click: () => { pick(leaf.id); },
      style: `left:${(100 * left) / total}%;width:${(100 * wide) / total}%;top:${depth * ROW}px;--part:${100 * Math.min(leaf.part, 1)}%`,
    }, leaf.label);
  });
  return h("div", { class: "icicle" },
    h("div", { class: "boxes", role: "group", "aria-label": label, style: `height:${(deepest + 1) * ROW}px` }, boxes));
}
