// SPDX-License-Identifier: Apache-2.0
// A tree as an icicle: children below their parent, as wide as their part of it.

import { h } from "../dom";

export interface Leaf {
  readonly id: number;
  readonly parent: number | null;
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
  const children = new Map<number | null, Leaf[]>();
  const known = new Set(leaves.map((leaf) => leaf.id));
  for (const leaf of leaves) {
    const parent = leaf.parent !== null && known.has(leaf.parent) ? leaf.parent : null;
    children.set(parent, [...(children.get(parent) ?? []), leaf]);
  }
  const widths = new Map<number, number>();
  const width = (leaf: Leaf): number => {
    let sum = leaf.own;
    for (const child of children.get(leaf.id) ?? []) sum += width(child);
    widths.set(leaf.id, leaf.whole === undefined ? sum : Math.max(leaf.whole, sum - leaf.own));
    return widths.get(leaf.id)!;
  };
  const roots = children.get(null) ?? [];
  const total = roots.reduce((sum, root) => sum + width(root), 0) || 1;
  const boxes: HTMLElement[] = [];
  let deepest = 0;
  const place = (leaf: Leaf, left: number, depth: number) => {
    const wide = widths.get(leaf.id)!;
    deepest = Math.max(deepest, depth);
    if (wide / total > 0.0005) {
      boxes.push(h("button", {
        class: "box", title: leaf.title, "aria-pressed": `${isPicked(leaf.id)}`, click: () => { pick(leaf.id); },
        style: `left:${(100 * left) / total}%;width:${(100 * wide) / total}%;top:${depth * ROW}px;--part:${100 * Math.min(leaf.part, 1)}%`,
      }, leaf.label));
    }
    let at = left;
    const sorted = [...(children.get(leaf.id) ?? [])].sort((a, b) => widths.get(b.id)! - widths.get(a.id)!);
    for (const child of sorted) {
      place(child, at, depth + 1);
      at += widths.get(child.id)!;
    }
  };
  let at = 0;
  for (const root of roots) {
    place(root, at, 0);
    at += widths.get(root.id)!;
  }
  return h("div", { class: "icicle", role: "group", "aria-label": label, style: `height:${(deepest + 1) * ROW}px` }, boxes);
}
