// SPDX-License-Identifier: Apache-2.0
// The communication matrix as a heat map: sources from top to bottom, destinations from left to right.
// It can be zoomed with the wheel or + and -, and moved by dragging or with the arrow keys.

import { colour, h } from "../dom";
import { scale, shades } from "./heat";

export interface Points {
  /** Row and column of each value; the same numbers as on the axes. */
  readonly row: Float64Array;
  readonly column: Float64Array;
  readonly value: Float64Array;
}

interface Box { left: number; top: number; span: number }

const MOST_BLOCKS = 640; // from left to right
const SHADES = 256;
const SMALLEST_SPAN = 4;
const GAP_FROM = 6; // pixels of a block that is apart from the next one

class Map2d {
  readonly element = h("canvas", { class: "matrix", tabindex: "0", role: "img" });
  private view: Box;
  /** The largest value in each block, row by row. */
  private blocksOf = new Float64Array();
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
  private get ranksOfBlock(): number { return Math.max(1, Math.ceil(this.view.span / Math.min(MOST_BLOCKS, this.pixels))); }

  private get pixels(): number { return Math.round(this.element.clientWidth * (window.devicePixelRatio || 1)); }

  private draw(): void {
    const width = this.element.clientWidth;
    if (!width) return;
    const { left, top, span } = this.view;
    const each = this.ranksOfBlock;
    this.blocks = Math.ceil(span / each);
    this.scale = width / this.blocks;
    this.blocksOf = new Float64Array(this.blocks ** 2);
    const { row, column, value } = this.points;
    for (let i = 0; i < value.length; i++) {
      const x = Math.floor((column[i]! - left) / each);
      const y = Math.floor((row[i]! - top) / each);
      if (x < 0 || y < 0 || x >= this.blocks || y >= this.blocks) continue;
      const key = y * this.blocks + x;
      if (value[i]! > this.blocksOf[key]!) this.blocksOf[key] = value[i]!;
    }
    this.paint();
  }

  /** Returns a picture with one pixel for each block. */
  private picture(): HTMLCanvasElement {
    const canvas = h("canvas", { width: this.blocks, height: this.blocks });
    const context = canvas.getContext("2d")!;
    const image = context.createImageData(this.blocks, this.blocks);
    const pixels = new Uint32Array(image.data.buffer);
    const colours = shades(SHADES);
    for (let i = 0; i < pixels.length; i++) {
      const value = this.blocksOf[i]!;
      if (value > 0) pixels[i] = colours[Math.round(part(value, this.least, this.most) * (SHADES - 1))]!;
    }
    context.putImageData(image, 0, 0);
    return canvas;
  }

  private paint(): void {
    const { pixels, blocks } = this;
    this.element.width = this.element.height = pixels;
    const context = this.element.getContext("2d")!;
    context.fillStyle = colour("--empty");
    context.fillRect(0, 0, pixels, pixels);
    context.imageSmoothingEnabled = false;
    context.drawImage(this.picture(), 0, 0, pixels, pixels);
    if (this.scale < GAP_FROM) return;
    for (let i = 1; i <= blocks; i++) {
      const at = Math.round((i * pixels) / blocks) - 1;
      context.fillRect(at, 0, 1, pixels);
      context.fillRect(0, at, pixels, 1);
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
      this.read(span(this.view.top + y * each), span(this.view.left + x * each), this.blocksOf[y * this.blocks + x] ?? 0);
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
  const most = values.reduce((high, value) => (value > high ? value : high), 0);
  return [values.reduce((low, value) => (value > 0 && value < low ? value : low), most), most];
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
