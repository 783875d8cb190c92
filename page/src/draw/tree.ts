// SPDX-License-Identifier: Apache-2.0
// A tree of rows with columns, which open and close, by mouse or by the keys of an ARIA tree.

import { h } from "../dom";
import { forest, type Node } from "./forest";

export interface Branch extends Node {
  readonly label: string;
  readonly title: string;
  /** What the columns show. */
  readonly values: string[];
}

export interface Tree {
  readonly id: string;
  readonly label: string;
  readonly columns: string[];
  readonly branches: Branch[];
  /** A tree with many levels: the branches in the order in which they open at first; without it, level by level. */
  readonly byWeight?: readonly number[];
  /** Rows that button "Open all" shows at most; it then opens the upper levels. */
  readonly mostOpen?: number;
  readonly isPicked: (id: number) => boolean;
  readonly pick: (id: number) => void;
}

const FIRST_ROWS = 40;
const FIRST_ROWS_DEEP = 200;
const LAST_INDENT = 6; // deeper levels have their number instead
const LAST_INDENT_DEEP = 20;

/** Which branches are open, by the id of the tree: a view that is drawn again looks as before. */
const opened = new Map<string, Set<number>>();

class Rows {
  private readonly children: ReadonlyMap<number | null, Branch[]>;
  private readonly open: Set<number>;
  private readonly order: readonly number[];
  private readonly levels = new Map<number, number>();
  private readonly ids = new WeakMap<Element, number>();
  readonly body: HTMLElement;

  constructor(private readonly tree: Tree) {
    const { children, order } = forest(tree.branches);
    this.children = children;
    this.order = order.map(({ id }) => id);
    for (const root of this.below(null)) this.levels.set(root.id, 1);
    for (const { id } of order) for (const child of this.below(id)) this.levels.set(child.id, this.levels.get(id)! + 1);
    this.open = opened.get(tree.id) ?? (tree.byWeight ? this.heaviest(tree.byWeight) : this.upper(this.order, FIRST_ROWS));
    opened.set(tree.id, this.open);
    const parents = new Map(order.flatMap(({ id }) => this.below(id).map((child) => [child.id, id])));
    for (const { id } of order.filter((branch) => tree.isPicked(branch.id))) {
      for (let parent = parents.get(id); parent !== undefined; parent = parents.get(parent)) this.open.add(parent);
    }
    this.body = h("div", {
      role: "tree", "aria-label": tree.label,
      click: (event) => { this.clicked(event); }, keydown: (event) => { this.pressed(event as KeyboardEvent); }, focusin: (event) => { this.reach(event.target as HTMLElement); },
    });
    this.fill();
  }

  private below(id: number | null): Branch[] { return this.children.get(id) ?? []; }

  /** Returns the first branches, as many as make few rows. */
  private upper(order: readonly number[], most: number): Set<number> {
    const open = new Set<number>();
    let rows = this.below(null).length;
    for (const id of order) {
      const more = this.below(id).length;
      if (rows + more > most) break;
      rows += more;
      if (more) open.add(id);
    }
    return open;
  }

  /** Returns the heaviest branches with their parents, but none with too many rows. */
  private heaviest(order: readonly number[]): Set<number> {
    const open = new Set<number>();
    const seen = new Set(this.below(null).map(({ id }) => id));
    for (const id of order) {
      const inside = this.below(id);
      if (!seen.has(id) || !inside.length || seen.size + inside.length > FIRST_ROWS_DEEP) continue;
      open.add(id);
      for (const child of inside) seen.add(child.id);
    }
    return open;
  }

  /** Returns the rows of the branches below one, and of those below these that are open. */
  private rows(id: number | null): HTMLElement[] {
    const found: HTMLElement[] = [];
    const waiting = this.below(id).map((branch, i, all): [Branch, number, number] => [branch, i + 1, all.length]).reverse();
    for (let next = waiting.pop(); next; next = waiting.pop()) {
      const [branch, place, siblings] = next;
      found.push(this.row(branch, place, siblings));
      const children = this.open.has(branch.id) ? this.below(branch.id) : [];
      for (let i = children.length - 1; i >= 0; i--) waiting.push([children[i]!, i + 1, children.length]);
    }
    return found;
  }

  private row(branch: Branch, place: number, siblings: number): HTMLElement {
    const { tree } = this;
    const level = this.levels.get(branch.id)!;
    const last = tree.byWeight ? LAST_INDENT_DEEP : LAST_INDENT;
    const isPicked = tree.isPicked(branch.id);
    const row = h("div", {
      id: `${tree.id}-${branch.id}`, class: "branch", role: "treeitem", tabindex: "-1", title: branch.title, style: `--indent:${Math.min(level - 1, last)}`,
      "aria-level": level, "aria-posinset": place, "aria-setsize": siblings, "aria-selected": `${isPicked}`,
      "aria-expanded": this.below(branch.id).length ? `${this.open.has(branch.id)}` : undefined,
    },
    h("span", { class: "branch-name" }, h("span", { class: "twig" }), level - 1 > last ? h("small", {}, `level ${level} `) : null, branch.label),
    branch.values.map((value, i) => h("span", { class: "branch-value", "data-title": tree.columns[i]! }, value)));
    this.ids.set(row, branch.id);
    return row;
  }

  private all(): HTMLElement[] { return [...this.body.children] as HTMLElement[]; }

  /** Draws all rows anew; Tab reaches the selected row, or the first one. */
  private fill(): void {
    this.body.replaceChildren(...this.rows(null));
    const first = this.body.querySelector<HTMLElement>("[aria-selected=true]") ?? this.body.firstElementChild;
    first?.setAttribute("tabindex", "0");
  }

  openAll(isOpen: boolean): void {
    this.open.clear();
    if (isOpen) for (const id of this.upper(this.order, this.tree.mostOpen ?? Infinity)) this.open.add(id);
    this.fill();
  }

  /** Lets Tab come back to the row that has the focus. */
  private reach(row: HTMLElement): void {
    for (const old of this.body.querySelectorAll("[tabindex='0']")) old.setAttribute("tabindex", "-1");
    row.setAttribute("tabindex", "0");
  }

  private toggle(row: HTMLElement): void {
    const id = this.ids.get(row)!;
    const level = this.levels.get(id)!;
    if (this.open.delete(id)) {
      const inside = (next: Element | null) => next !== null && this.levels.get(this.ids.get(next)!)! > level;
      while (inside(row.nextElementSibling)) row.nextElementSibling!.remove();
    } else {
      this.open.add(id);
      row.after(...this.rows(id));
    }
    row.setAttribute("aria-expanded", `${this.open.has(id)}`);
  }

  private clicked(event: Event): void {
    const target = event.target as Element;
    const row = target.closest<HTMLElement>("[role=treeitem]");
    if (!row) return;
    if (target.closest(".twig") && row.hasAttribute("aria-expanded")) {
      this.toggle(row);
      row.focus();
    } else this.tree.pick(this.ids.get(row)!);
  }

  private pressed(event: KeyboardEvent): void {
    const row = (event.target as Element).closest<HTMLElement>("[role=treeitem]");
    if (!row || event.ctrlKey || event.altKey || event.metaKey) return;
    const { key } = event;
    const isOpen = row.getAttribute("aria-expanded");
    const level = (each: Element) => this.levels.get(this.ids.get(each)!)!;
    const next = row.nextElementSibling as HTMLElement | null;
    const acts: Record<string, () => void> = {
      ArrowDown: () => { next?.focus(); },
      ArrowUp: () => { (row.previousElementSibling as HTMLElement | null)?.focus(); },
      Home: () => { this.all()[0]?.focus(); },
      End: () => { this.all().at(-1)?.focus(); },
      ArrowRight: () => { if (isOpen === "true") next?.focus(); else if (isOpen) this.toggle(row); },
      ArrowLeft: () => {
        if (isOpen === "true") this.toggle(row);
        else this.all().slice(0, this.all().indexOf(row)).findLast((each) => level(each) < level(row))?.focus();
      },
      Enter: () => { this.tree.pick(this.ids.get(row)!); },
      " ": () => { this.tree.pick(this.ids.get(row)!); },
    };
    const act = Object.hasOwn(acts, key) ? acts[key] : undefined;
    if (!act) return;
    event.preventDefault();
    act();
  }
}

/** Scrolls to the selected row if it is not seen: another view, or a chart, may have selected it. */
function showSelected(box: HTMLElement): void {
  const row = box.querySelector<HTMLElement>("[aria-selected=true]");
  if (!row) return;
  const top = row.offsetTop - box.offsetTop;
  const isSeen = top >= box.scrollTop && top + row.offsetHeight <= box.scrollTop + box.clientHeight;
  if (!isSeen) box.scrollTop = top - box.clientHeight / 3;
}

/** Draws the tree; each row restricts the views, as the boxes of an icicle do. */
export function tree(parts: Tree): HTMLElement {
  const rows = new Rows(parts);
  const widths = parts.columns.map((title) => `${Math.max(5, 0.6 * title.length)}rem`);
  const isNested = parts.branches.some((branch) => branch.parent !== null);
  const box = h("div", { class: parts.byWeight ? "tree deep" : "tree", style: `--columns:${widths.join(" ")}` },
    h("div", { class: "branch branch-head", "aria-hidden": "true" }, h("span", { class: "branch-name" }), parts.columns.map((title) => h("span", { class: "branch-value" }, title))),
    rows.body);
  requestAnimationFrame(() => { showSelected(box); });
  return h("div", {},
    isNested ? h("div", { class: "buttons" },
      h("button", { click: () => { rows.openAll(true); } }, parts.branches.length > (parts.mostOpen ?? Infinity) ? "Open the upper levels" : "Open all"), h("button", { click: () => { rows.openAll(false); } }, "Close all")) : null,
    box);
}
