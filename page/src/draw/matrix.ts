// SPDX-License-Identifier: Apache-2.0
// The communication matrix as a heat map: sources from top to bottom, destinations from left to right.
// It can be zoomed with the wheel or + and -, and moved by dragging or with the arrow keys.

import { colour, h } from "../dom";
import { heat, scale } from "./heat";

export interface Points {
  /** Row and column of each value; the same numbers as on the axes. */
  readonly row: Float64Array;
  readonly column: Float64Array;
  readonly value: Float64Array;
}

interface Box { left: number; top: number; span: number }

const MOST_PIXELS = 640;
const SMALLEST_SPAN = 4;

class Map2d {
  readonly element = h("canvas", { class: "matrix", tabindex: "0", role: "img" });
  private view: Box;
  private cells = new Map<number, number>();
  private scale = 1;
  private blocks = 1;
  private readonly least: number;
  private readonly most: number;

  constructor(private readonly points: Points, private readonly ranks: number, label: string,
    private readonly read: (rows: [number, number], columns: [number, number], value: number) => void) {
    this.view = { left: 0, top: 0, span: ranks };
    [this.least, this.most] = range(points.value);
    this.element.setAttribute("aria-label", label);
    this.listen();
    new ResizeObserver(() => { this.draw(); }).observe(this.element);
  }

  /** Ranks that one block of the picture stands for: 1 if there are enough pixels. */
  private get ranksOfBlock(): number { return Math.max(1, Math.ceil(this.view.span / MOST_PIXELS)); }

  private draw(): void {
    const width = this.element.clientWidth;
    if (!width) return;
    const { left, top, span } = this.view;
    const each = this.ranksOfBlock;
    this.blocks = Math.ceil(span / each);
    this.scale = width / this.blocks;
    this.cells = new Map();
    const { row, column, value } = this.points;
    for (let i = 0; i < value.length; i++) {
      const x = Math.floor((column[i]! - left) / each);
      const y = Math.floor((row[i]! - top) / each);
      if (x < 0 || y < 0 || x >= this.blocks || y >= this.blocks) continue;
      const key = y * this.blocks + x;
      const old = this.cells.get(key) ?? 0;
      if (value[i]! > old) this.cells.set(key, value[i]!);
    }
    this.paint(width);
  }

  private paint(width: number): void {
    const ratio = window.devicePixelRatio || 1;
    this.element.width = this.element.height = Math.round(width * ratio);
    const context = this.element.getContext("2d")!;
    context.scale(ratio, ratio);
    context.fillStyle = colour("--empty");
    context.fillRect(0, 0, width, width);
    const colourOf = heat();
    for (const [key, value] of this.cells) {
      context.fillStyle = colourOf(part(value, this.least, this.most));
      const gap = this.scale > 6 ? 1 : 0;
      context.fillRect((key % this.blocks) * this.scale, Math.floor(key / this.blocks) * this.scale, Math.max(this.scale - gap, 0.7), Math.max(this.scale - gap, 0.7));
    }
  }

  private move(left: number, top: number, span: number): void {
    span = Math.min(this.ranks, Math.max(Math.min(SMALLEST_SPAN, this.ranks), span));
    const bound = (at: number) => Math.round(Math.min(Math.max(0, at), this.ranks - span));
    this.view = { left: bound(left), top: bound(top), span: Math.round(span) };
    this.draw();
  }

  zoom(factor: number, x = 0.5, y = 0.5): void {
    const { left, top, span } = this.view;
    this.move(left + x * span * (1 - factor), top + y * span * (1 - factor), span * factor);
  }

  private listen(): void {
    const on: HTMLCanvasElement["addEventListener"] = this.element.addEventListener.bind(this.element);
    on("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey && document.activeElement !== this.element) return;
      event.preventDefault();
      this.zoom(event.deltaY < 0 ? 0.8 : 1.25, event.offsetX / this.element.clientWidth, event.offsetY / this.element.clientWidth);
    }, { passive: false });
    on("keydown", (event) => {
      const { left, top, span } = this.view;
      const step = Math.max(1, span / 8);
      const moves: Record<string, () => void> = {
        "+": () => { this.zoom(0.5); }, "-": () => { this.zoom(2); }, "0": () => { this.move(0, 0, this.ranks); },
        ArrowLeft: () => { this.move(left - step, top, span); }, ArrowRight: () => { this.move(left + step, top, span); },
        ArrowUp: () => { this.move(left, top - step, span); }, ArrowDown: () => { this.move(left, top + step, span); },
      };
      const act = moves[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    });
    this.listenToPointer(on);
  }

  private listenToPointer(on: HTMLCanvasElement["addEventListener"]): void {
    let held: { x: number; y: number; view: Box } | null = null;
    on("pointerdown", (event) => {
      held = { x: event.offsetX, y: event.offsetY, view: this.view };
      this.element.setPointerCapture(event.pointerId);
    });
    on("pointerup", () => { held = null; });
    on("pointermove", (event) => {
      const width = this.element.clientWidth;
      if (held) {
        const { view } = held;
        this.move(view.left - ((event.offsetX - held.x) / width) * view.span, view.top - ((event.offsetY - held.y) / width) * view.span, view.span);
        return;
      }
      const x = Math.min(this.blocks - 1, Math.max(0, Math.floor(event.offsetX / this.scale)));
      const y = Math.min(this.blocks - 1, Math.max(0, Math.floor(event.offsetY / this.scale)));
      const each = this.ranksOfBlock;
      const span = (from: number): [number, number] => [from, Math.min(from + each, this.ranks) - 1];
      this.read(span(this.view.top + y * each), span(this.view.left + x * each), this.cells.get(y * this.blocks + x) ?? 0);
    });
  }
}

const LOWEST = 0.12; // of the ramp: the least value differs from none

/** Returns the place of a value on the scale, which is logarithmic: volumes differ by orders of magnitude. */
function part(value: number, least: number, most: number): number {
  return value <= least ? (least < most ? LOWEST : 1) : LOWEST + ((1 - LOWEST) * Math.log(value / least)) / Math.log(most / least);
}

/** Returns the least value above 0 and the largest one. */
function range(values: Float64Array): [number, number] {
  const most = values.reduce((high, value) => Math.max(high, value), 0);
  return [values.reduce((low, value) => (value > 0 ? Math.min(low, value) : low), most), most];
}

/** Draws the matrix with its controls. `place` returns what a row or column stands for. */
export function matrix(points: Points, ranks: number, label: string, place: (index: number) => string, text: (value: number) => string): HTMLElement {
  const readout = h("p", { class: "readout", "aria-live": "polite" }, "Point at the matrix to read it. Drag to move; + and - zoom, arrows move, 0 shows all.");
  const span = ([first, last]: [number, number]) => (first === last ? place(first) : `${place(first)} to ${place(last)}`);
  const map = new Map2d(points, ranks, label, (rows, columns, value) => {
    const isOne = rows[0] === rows[1] && columns[0] === columns[1];
    readout.textContent = `from ${span(rows)} to ${span(columns)}: ${isOne ? "" : "at most "}${text(value)}${isOne ? "" : " in one pair"}`;
  });
  const [least, most] = range(points.value);
  return h("div", { class: "matrix-box" },
    h("div", { class: "axis" }, "columns: destination, rows: source"),
    map.element,
    scale(text(least), `${text(most)} (logarithmic)`),
    h("div", { class: "buttons" }, h("button", { click: () => { map.zoom(0.5); } }, "Zoom in"), h("button", { click: () => { map.zoom(2); } }, "Zoom out")),
    readout);
}
