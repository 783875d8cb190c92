// SPDX-License-Identifier: Apache-2.0
// Nodes that name their parent, put into order. Chains may be thousands deep: nothing here recurses.

export interface Node {
  readonly id: number;
  readonly parent: number | null;
}

export interface Forest<T extends Node> {
  /** The nodes below each node; those below null are the roots, also those whose parent is missing. */
  readonly children: ReadonlyMap<number | null, T[]>;
  /** All nodes, each before those below it. */
  readonly order: T[];
}

export function forest<T extends Node>(nodes: T[]): Forest<T> {
  const children = new Map<number | null, T[]>();
  const known = new Set(nodes.map((node) => node.id));
  for (const node of nodes) {
    const parent = node.parent !== null && known.has(node.parent) ? node.parent : null;
    const siblings = children.get(parent);
    if (siblings) siblings.push(node);
    else children.set(parent, [node]);
  }
  const order = [...(children.get(null) ?? [])];
  for (const node of order) for (const child of children.get(node.id) ?? []) order.push(child);
  return { children, order };
}

/** Returns a sum for each node: its own value and those of all nodes below it. */
export function totals<T extends Node>({ children, order }: Forest<T>, own: (node: T) => number): Map<number, number> {
  const sums = new Map<number, number>();
  for (const node of [...order].reverse()) {
    const below = (children.get(node.id) ?? []).reduce((sum, child) => sum + sums.get(child.id)!, 0);
    sums.set(node.id, own(node) + below);
  }
  return sums;
}
