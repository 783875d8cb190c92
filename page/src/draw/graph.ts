// SPDX-License-Identifier: Apache-2.0
// Ranks and the messages between them as a graph: a tree in layers from its root, or ranks on a circle.

import { h, s } from "../dom";

export interface Edge {
  readonly source: number;
  readonly destination: number;
  /** Width of the arrow, from 0 to 1. */
  readonly part: number;
  readonly title: string;
}

export interface Node {
  readonly title: string;
  readonly isPicked: boolean;
  readonly pick: () => void;
}

interface Point { readonly x: number; readonly y: number }

const RADIUS = 11, MARGIN = 16, LAYER = 92, ROW = 27, AROUND = 36;
const MOST_LAYERS = 12, MOST_ROWS = 40;
const MANY = 50; // arrows, which are thinner then
const HEAD = 6; // length of the head of an arrow

/** Returns the parent of each rank, -1 of the root, by breadth-first search; null if the edges are no tree of all ranks. */
function treeOf(ranks: number, edges: Edge[], root: number): number[] | null {
  const beside = Array.from({ length: ranks }, () => new Set<number>());
  for (const { source, destination } of edges) {
    if (source === destination) continue;
    beside[source]!.add(destination);
    beside[destination]!.add(source);
  }
  if (beside.reduce((sum, each) => sum + each.size, 0) !== 2 * (ranks - 1)) return null;
  const parents = new Map([[root, -1]]);
  for (const rank of parents.keys()) {
    for (const other of [...beside[rank]!].sort((a, b) => a - b)) if (!parents.has(other)) parents.set(other, rank);
  }
  return parents.size === ranks ? Array.from(beside, (_, rank) => parents.get(rank)!) : null;
}

function depth(tree: number[]): number {
  const depths = tree.map((_, rank) => {
    let steps = 0;
    for (let above = tree[rank]!; above >= 0; above = tree[above]!) steps++;
    return steps;
  });
  return Math.max(...depths);
}

/** Returns the tree that the edges are, if they are one; without a root, that of the least depth. */
function shallowest(ranks: number, edges: Edge[], root: number | null): number[] | null {
  if (root !== null) return treeOf(ranks, edges, root);
  const trees = Array.from({ length: ranks }, (_, rank) => treeOf(ranks, edges, rank)).filter((tree) => tree !== null);
  return trees.reduce<number[] | null>((best, tree) => (best && depth(best) <= depth(tree) ? best : tree), null);
}

/** Returns the ranks of a tree in layers from left to right; null if it is too deep or too wide. */
function layers(tree: number[]): Point[] | null {
  if (depth(tree) >= MOST_LAYERS) return null;
  const points = new Array<Point>(tree.length);
  let rows = 0;
  const place = (rank: number, layer: number): number => {
    const below = tree.flatMap((parent, child) => (parent === rank ? [place(child, layer + 1)] : []));
    const row = below.length ? (below[0]! + below.at(-1)!) / 2 : rows++;
    points[rank] = { x: MARGIN + layer * LAYER, y: MARGIN + row * ROW };
    return row;
  };
  place(tree.indexOf(-1), 0);
  return rows > MOST_ROWS ? null : points;
}

/** Returns the ranks clockwise around a circle from the top, one of them maybe in its middle. */
function circle(ranks: number, middle: number | null): Point[] {
  const around = Array.from({ length: ranks }, (_, rank) => rank).filter((rank) => rank !== middle);
  const radius = Math.max(140, (around.length * AROUND) / (2 * Math.PI));
  const centre = radius + MARGIN;
  const points = Array.from({ length: ranks }, () => ({ x: centre, y: centre }));
  around.forEach((rank, i) => {
    const angle = (2 * Math.PI * i) / around.length;
    points[rank] = { x: centre + radius * Math.sin(angle), y: centre - radius * Math.cos(angle) };
  });
  return points;
}

const number = (value: number) => value.toFixed(1);
const at = ({ x, y }: Point) => `${number(x)} ${number(y)}`;

function towards(from: Point, to: Point, distance: number): Point {
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  return { x: from.x + ((to.x - from.x) * distance) / length, y: from.y + ((to.y - from.y) * distance) / length };
}

function arrow(edge: Edge, from: Point, to: Point, width: number): SVGGElement {
  const tip = towards(to, from, RADIUS + 1.5);
  const base = towards(tip, from, HEAD + width);
  const [x, y] = [0.55 * (tip.y - base.y), 0.55 * (base.x - tip.x)];
  return s("g", { class: "edge" },
    s("path", { class: "shaft", d: `M${at(towards(from, to, RADIUS))} L${at(base)}`, "stroke-width": number(width) }),
    s("path", { class: "head", d: `M${at(tip)} L${at({ x: base.x + x, y: base.y + y })} L${at({ x: base.x - x, y: base.y - y })}Z` }),
    s("title", {}, edge.title));
}

/** Draws the graph, from its root if that is known. A rank that is pointed at shows its own messages. */
export function graph(nodes: Node[], edges: Edge[], root: number | null, label: string): HTMLElement {
  const tree = shallowest(nodes.length, edges, root);
  const points = (tree && layers(tree)) ?? circle(nodes.length, tree && depth(tree) === 1 ? tree.indexOf(-1) : null);
  const thin = edges.length > MANY ? 0.6 : 1;
  const arrows = edges.map((edge) => arrow(edge, points[edge.source]!, points[edge.destination]!, thin * (1 + 2 * edge.part)));
  const readout = h("p", { class: "readout", "aria-live": "polite" }, "Point at a rank to read its messages.");
  const light = (rank: number | null) => {
    arrows.forEach((each, i) => { each.classList.toggle("lit", edges[i]!.source === rank || edges[i]!.destination === rank); });
    svg.classList.toggle("lit", rank !== null);
    if (rank !== null) readout.textContent = nodes[rank]!.title;
  };
  const circles = nodes.map((node, rank) => s("g", {
    class: node.isPicked ? "node picked" : rank === root ? "node root" : "node", role: "button", tabindex: "0",
    "aria-label": node.title, "aria-pressed": `${node.isPicked}`,
    click: node.pick, keydown: (event) => { if (["Enter", " "].includes((event as KeyboardEvent).key)) { event.preventDefault(); node.pick(); } },
    pointerenter: () => { light(rank); }, pointerleave: () => { light(null); }, focus: () => { light(rank); }, blur: () => { light(null); },
  }, s("circle", { cx: number(points[rank]!.x), cy: number(points[rank]!.y), r: RADIUS }),
  s("text", { x: number(points[rank]!.x), y: number(points[rank]!.y + 4), "text-anchor": "middle" }, `${rank}`)));
  const [width, height] = [Math.max(...points.map(({ x }) => x)) + MARGIN, Math.max(...points.map(({ y }) => y)) + MARGIN];
  const svg = s("svg", { class: "graph", width: Math.ceil(width), height: Math.ceil(height), role: "group", "aria-label": label }, arrows, circles);
  return h("div", {}, h("div", { class: "graph-box" }, svg), readout);
}
