// SPDX-License-Identifier: Apache-2.0
// A large tree as an icicle on a canvas: what is called lies below its caller, as wide as its part of it. What is narrower
// than a pixel is not drawn, so that the number of nodes does not matter.

import { colour, h } from "../dom";
import { share } from "../units";

export interface Flame {
  readonly id: string;
  readonly label: string;
  readonly roots: readonly number[];
  /** Returns what lies below a node, the widest first. */
  readonly below: (id: number) => readonly number[];
  /** Returns the nodes from the outside to a node. */
  readonly chain: (id: number) => readonly number[];
  readonly value: (id: number) => number;
  readonly name: (id: number) => string;
  /** A colour of its own; without it, the colour of a node is the stronger the more it has. */
  readonly colour: (id: number) => string | undefined;
  readonly read: (id: number) => string;
  readonly hint: string;
  /** The node that is as wide as the chart, below those around it. */
  readonly zoomed: number | null;
  readonly picked: number | null;
  readonly pick: (id: number) => void;
}

interface Box { readonly id: number; readonly left: number; readonly wide: number }

const ROW = 23, GAP = 1, PAD = 5, LEAST_TEXT = 26; // pixels
const LEAST_PART = 0.0004; // of the width: narrower nodes add no row
const FONT = "12.5px sans-serif";

/** Returns shorter and shorter forms of a name: without arguments, namespaces, the prefix of MPI, or the file. */
function forms(name: string): string[] {
  const plain = name.replace(/\([^()]*\)( const)?(?= |$)/, "");
  const [first = "", ...rest] = plain.split(" ");
  const last = [first.split("::").at(-1)!, ...rest].join(" ");
  return [name, plain, last, last.replace(/^P?MPI_|^.+\+(?=0x[0-9a-f]+$)| in \S+$/, "")];
}

/** Returns the longest form of a name that fits, or its beginning. */
function fitted(context: CanvasRenderingContext2D, name: string, room: number): string {
  const found = forms(name).find((form) => context.measureText(form).width <= room);
  if (found !== undefined) return found;
  const last = forms(name).at(-1)!;
  let length = Math.floor((last.length * room) / context.measureText(last).width);
  while (length > 0 && context.measureText(`${last.slice(0, length)}…`).width > room) length--;
  return length > 1 ? `${last.slice(0, length)}…` : "";
}

/** Returns black or white, whatever can be read on a colour #rrggbb. */
function onto(back: string): string {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(back.slice(at, at + 2), 16));
  return 0.299 * red! + 0.587 * green! + 0.114 * blue! > 120 ? "#101418" : "#ffffff";
}

class Chart {
  readonly element: HTMLCanvasElement;
  readonly readout: HTMLElement;
  private readonly rows: Box[][] = [];
  private readonly chain: readonly number[];
  private readonly total: number;
  private at: number | null = null;

  constructor(private readonly flame: Flame) {
    this.chain = flame.zoomed === null ? [] : flame.chain(flame.zoomed);
    this.total = flame.roots.reduce((sum, id) => sum + flame.value(id), 0) || 1;
    this.place(1, LEAST_PART);
    const height = Math.max(1, this.rows.length) * ROW;
    this.element = h("canvas", { id: flame.id, tabindex: "0", role: "application", "aria-roledescription": "icicle chart", "aria-label": flame.label, style: `height:${height}px` });
    this.readout = h("p", { class: "readout", "aria-live": "polite" }, flame.hint);
    this.listen();
    new ResizeObserver(() => { this.draw(); }).observe(this.element);
  }

  /** Finds the places of all nodes that are at least so wide in a chart of some width. */
  private place(width: number, least: number): void {
    const { flame, rows } = this;
    rows.length = 0;
    this.chain.forEach((id) => { rows.push([{ id, left: 0, wide: width }]); });
    const base = this.chain.at(-1);
    const waiting: [ids: readonly number[], left: number, scale: number, depth: number][] = [];
    const inside = (id: number, left: number, wide: number, depth: number) => {
      const ids = flame.below(id);
      const sum = Math.max(flame.value(id), ids.reduce((all, each) => all + flame.value(each), 0));
      if (sum > 0 && ids.length) waiting.push([ids, left, wide / sum, depth]);
    };
    if (base === undefined) waiting.push([flame.roots, 0, width / this.total, 0]);
    else inside(base, 0, width, rows.length);
    for (let next = waiting.pop(); next; next = waiting.pop()) {
      const [ids, begin, scale, depth] = next;
      let left = begin;
      for (const id of ids) {
        const wide = flame.value(id) * scale;
        if (!(wide >= least)) break; // the others are narrower still
        (rows[depth] ??= []).push({ id, left, wide });
        inside(id, left, wide, depth + 1);
        left += wide;
      }
    }
    for (const row of rows) row.sort((a, b) => a.left - b.left);
  }

  private draw(): void {
    const width = this.element.clientWidth;
    const height = this.element.clientHeight;
    if (!width || !height) return;
    const scale = window.devicePixelRatio || 1;
    this.place(width, 1 / scale);
    this.element.width = Math.round(width * scale);
    this.element.height = Math.round(height * scale);
    const context = this.element.getContext("2d")!;
    context.scale(scale, scale);
    context.font = FONT;
    context.textBaseline = "middle";
    const theme = { paper: colour("--paper"), accent: colour("--accent"), onAccent: colour("--on-accent"), ink: colour("--ink") };
    this.rows.forEach((row, depth) => { for (const box of row) this.box(context, box, depth * ROW, theme); });
    this.mark(context, theme.ink);
  }

  private box(context: CanvasRenderingContext2D, { id, left, wide }: Box, top: number, theme: Record<"accent" | "onAccent" | "ink", string>): void {
    const { flame } = this;
    const part = flame.value(id) / this.total;
    const own = flame.colour(id);
    const isPicked = id === flame.picked;
    const inner = Math.max(wide - GAP, Math.min(wide, 0.6));
    context.fillStyle = isPicked ? theme.accent : own ?? theme.accent;
    context.globalAlpha = isPicked || own !== undefined ? 1 : 0.1 + 0.34 * Math.min(1, part);
    context.fillRect(left, top, inner, ROW - GAP);
    context.globalAlpha = 1;
    if (wide < LEAST_TEXT) return;
    context.fillStyle = isPicked ? theme.onAccent : own === undefined ? theme.ink : onto(own);
    const text = fitted(context, flame.name(id), wide - 2 * PAD);
    const middle = top + (ROW - GAP) / 2 + 0.5;
    context.fillText(text, left + PAD, middle);
    const number = share(part);
    const room = context.measureText(number).width;
    if (context.measureText(text).width + room + 5 * PAD > wide) return;
    context.globalAlpha = 0.85;
    context.fillText(number, left + wide - GAP - PAD - room, middle);
    context.globalAlpha = 1;
  }

  /** Draws a frame around the node that is read. */
  private mark(context: CanvasRenderingContext2D, ink: string): void {
    this.rows.forEach((row, depth) => {
      const box = row.find(({ id }) => id === this.at);
      if (!box) return;
      context.strokeStyle = ink;
      context.lineWidth = 2;
      context.strokeRect(box.left + 1, depth * ROW + 1, Math.max(1, box.wide - GAP - 2), ROW - GAP - 2);
    });
  }

  private under(event: MouseEvent): number | null {
    const row = this.rows[Math.floor(event.offsetY / ROW)] ?? [];
    return row.find(({ left, wide }) => event.offsetX >= left && event.offsetX < left + wide)?.id ?? null;
  }

  private reach(id: number | null): void {
    if (id === this.at) return;
    this.at = id;
    this.readout.textContent = id === null ? this.flame.hint : this.flame.read(id);
    this.draw();
  }

  private listen(): void {
    const on: HTMLCanvasElement["addEventListener"] = this.element.addEventListener.bind(this.element);
    on("mousemove", (event) => {
      this.reach(this.under(event));
      this.element.style.cursor = this.at === null ? "" : "pointer";
    });
    on("mouseleave", () => { if (document.activeElement !== this.element) this.reach(null); });
    on("click", (event) => {
      const id = this.under(event);
      if (id !== null) this.flame.pick(id);
    });
    on("focus", () => { if (this.element.matches(":focus-visible")) this.walk(this.at ?? this.flame.picked ?? this.rows[0]?.[0]?.id); });
    on("blur", () => { this.reach(null); });
    on("keydown", (event) => { this.pressed(event); });
  }

  /** Goes to a node and scrolls to its row. */
  private walk(id: number | undefined): void {
    if (id === undefined) return;
    this.reach(id);
    const depth = this.rows.findIndex((row) => row.some((box) => box.id === id));
    const around = this.element.parentElement!;
    if (depth < 0) return;
    if (depth * ROW < around.scrollTop) around.scrollTop = depth * ROW;
    else if ((depth + 1) * ROW > around.scrollTop + around.clientHeight) around.scrollTop = (depth + 1) * ROW - around.clientHeight;
  }

  private pressed(event: KeyboardEvent): void {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const { flame, rows } = this;
    const depth = rows.findIndex((row) => row.some(({ id }) => id === this.at));
    const row = rows[depth] ?? [];
    const place = row.findIndex(({ id }) => id === this.at);
    const box = row[place];
    const first = rows[0]?.[0]?.id;
    const isIn = (outer: Box, inner: Box) => inner.left >= outer.left - 1e-6 && inner.left < outer.left + outer.wide - 1e-6;
    const acts: Record<string, () => void> = {
      ArrowDown: () => { this.walk(box ? rows[depth + 1]?.find((each) => isIn(box, each))?.id : first); },
      ArrowUp: () => { this.walk(box ? rows[depth - 1]?.find((each) => isIn(each, box))?.id : first); },
      ArrowLeft: () => { this.walk(row[place - 1]?.id); },
      ArrowRight: () => { this.walk(row[place + 1]?.id); },
      Home: () => { this.walk(first); },
      Enter: () => { if (box) flame.pick(box.id); },
      " ": () => { if (box) flame.pick(box.id); },
      Escape: () => { if (flame.zoomed !== null) flame.pick(flame.zoomed); },
    };
    const act = Object.hasOwn(acts, event.key) ? acts[event.key] : undefined;
    if (!act) return;
    event.preventDefault();
    act();
  }
}

/** Draws the tree; a click on a node picks it. */
export function flame(parts: Flame): HTMLElement {
  const chart = new Chart(parts);
  return h("div", { class: "flame-box" }, h("div", { class: "flame" }, chart.element), chart.readout);
}
