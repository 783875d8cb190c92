// SPDX-License-Identifier: Apache-2.0
// What the page shows: view, filter and order. It is in the fragment of the address, so that a link shows the same.

/** What the views are restricted to; each part is the number that the profile uses. */
export interface Filter {
  family?: number;
  comm?: number;
  op?: number;
  bin?: number;
  region?: number;
  callsite?: number;
  /** A node of the tree of call paths, with all inside it. */
  path?: number;
  node?: number;
  rank?: number;
}

export type Dimension = keyof Filter;

export const DIMENSIONS: Dimension[] = ["family", "comm", "op", "bin", "region", "callsite", "path", "node", "rank"];

export interface State {
  view: string;
  filter: Filter;
  /** Choices of single views, such as the kind of traffic. */
  choices: Record<string, string>;
}

export function parse(fragment: string): State {
  const state: State = { view: "", filter: {}, choices: {} };
  for (const [name, value] of new URLSearchParams(fragment.replace(/^#/, ""))) {
    if (name === "view") state.view = value;
    else if ((DIMENSIONS as string[]).includes(name)) {
      if (/^-?\d{1,9}$/.test(value)) state.filter[name as Dimension] = Number(value);
    } else state.choices[name] = value;
  }
  return state;
}

/** Returns what the address asks for; without a fragment, what the page was made to begin with. */
export function current(): State {
  return parse(location.hash || (document.documentElement.dataset.start ?? ""));
}

export function fragment(state: State): string {
  const parts = new URLSearchParams();
  if (state.view) parts.set("view", state.view);
  for (const dimension of DIMENSIONS) {
    const value = state.filter[dimension];
    if (value !== undefined) parts.set(dimension, `${value}`);
  }
  for (const [name, value] of Object.entries(state.choices)) if (value) parts.set(name, value);
  return `#${parts.toString()}`;
}

/** Returns the filter with one part set; with the value that it has, the part is removed. */
export function toggled(filter: Filter, dimension: Dimension, value: number): Filter {
  const others = without(filter, [dimension]);
  return filter[dimension] === value ? others : { ...others, [dimension]: value };
}

/** Returns the filter without some of its parts. */
export function without(filter: Filter, dimensions: Dimension[]): Filter {
  return Object.fromEntries(Object.entries(filter).filter(([name]) => !dimensions.includes(name as Dimension)));
}
