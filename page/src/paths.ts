// SPDX-License-Identifier: Apache-2.0
// The tree of call paths: functions from the outside in. All nodes inside a node follow it, so that a range of numbers is a part of the tree.

import type { Profile } from "./data";

const ARROW = " > ";
const MOST_NAMES = 4; // of a path in few words

export class Paths {
  readonly length: number;
  readonly parent: Int32Array;
  /** Number of the first node after a node that is not inside it. */
  readonly end: Int32Array;
  readonly level: Int32Array;
  private readonly names: readonly string[];
  private readonly nameOf: Float64Array;
  private readonly leaves = new Map<number, number>();

  constructor({ facts, paths, leaves }: Profile) {
    this.length = paths.rows;
    this.names = facts.path_names;
    this.parent = Int32Array.from(paths.columns.parent ?? []);
    this.nameOf = paths.columns.name ?? new Float64Array();
    this.level = new Int32Array(this.length);
    this.end = new Int32Array(this.length).map((_, node) => node + 1);
    for (let node = 0; node < this.length; node++) if (this.parent[node]! >= 0) this.level[node] = this.level[this.parent[node]!]! + 1;
    for (let node = this.length - 1; node >= 0; node--) {
      const parent = this.parent[node]!;
      if (parent >= 0) this.end[parent] = Math.max(this.end[parent]!, this.end[node]!);
    }
    const { callsite, node } = leaves.columns;
    for (let i = 0; i < leaves.rows; i++) this.leaves.set(callsite![i]!, node![i]!);
  }

  /** Returns the node of a call site; -1 if it has none. */
  leaf(site: number): number { return this.leaves.get(site) ?? -1; }

  name(node: number): string { return this.names[this.nameOf[node] ?? -1] ?? `call path ${node}`; }

  /** Whether a node is another one or inside it. */
  isInside(node: number, outer: number): boolean { return node >= outer && node < (this.end[outer] ?? outer); }

  /** Returns the nodes from the outside to a node. */
  chain(node: number): number[] {
    const found: number[] = [];
    for (let at = node; at >= 0 && at < this.length; at = this.parent[at]!) found.push(at);
    return found.reverse();
  }

  text(node: number): string { return this.chain(node).map((each) => this.name(each)).join(ARROW); }

  /** Returns a path by its outermost and innermost functions. */
  brief(node: number): string {
    const chain = this.chain(node);
    const shown = chain.length > MOST_NAMES ? [...chain.slice(0, 1), -1, ...chain.slice(2 - MOST_NAMES)] : chain;
    return shown.map((each) => (each < 0 ? "…" : this.name(each))).join(ARROW);
  }

  /** Returns the call sites of a node and of those inside it, in order. */
  sites(node: number): number[] {
    return [...this.leaves].flatMap(([site, leaf]) => (this.isInside(leaf, node) ? [site] : [])).sort((a, b) => a - b);
  }
}
