// SPDX-License-Identifier: Apache-2.0
// Vertical columns, stacked from parts, with an axis of round numbers.

import { s } from "../dom";
import type { Part } from "./bars";

export interface StackedColumn {
  readonly label: string;
  readonly parts: Part[];
  readonly isPicked?: boolean;
  readonly pick?: () => void;
}

const LEFT = 74, BOTTOM = 40, TOP = 8, RIGHT = 34, HEIGHT = 260, WIDTH = 900;

/** Returns about so many round values from 0 to the largest. */
export function ticks(most: number, about = 4): number[] {
  if (most <= 0) return [0];
  const raw = most / about;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= raw)!;
  return Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, i) => i * step);
}

/** The axis below columns that each stand for the same width of a value. */
export interface Below {
  readonly width: number;
  readonly text: (value: number) => string;
}

/** Draws columns over an axis; `text` formats its values. Without `below`, every column or some of them have their label. */
export function columns(items: StackedColumn[], text: (value: number) => string, label: string, fixedMost?: number, below?: Below): SVGSVGElement {
  const most = fixedMost ?? Math.max(1e-9, ...items.map((item) => item.parts.reduce((sum, part) => sum + part.value, 0)));
  const y = (value: number) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / most);
  const step = (WIDTH - LEFT - RIGHT) / Math.max(items.length, 1);
  const every = Math.ceil(items.length / 14);
  const axis = ticks(most).map((value) => s("g", {},
    s("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }),
    s("text", { class: "tick", x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, text(value))));
  const marks = !below ? [] : ticks(items.length * below.width, 10).map((value) =>
    s("text", { class: "tick", x: LEFT + value / below.width * step, y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" }, below.text(value)));
  const stacks = items.map((item, i) => {
    let sum = 0;
    const x = LEFT + i * step + step * 0.1;
    const parts = item.parts.filter((part) => part.value > 0).map((part) => {
      sum += part.value;
      return s("rect", { x, y: y(sum), width: Math.max(step * 0.8, 0.5), height: Math.max(y(sum - part.value) - y(sum), 0.5), fill: part.colour },
        s("title", {}, part.title));
    });
    const name = !below && i % every === 0
      ? s("text", { class: "tick", x: LEFT + (i + 0.5) * step, y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" }, item.label) : null;
    const { pick } = item;
    if (!pick) return s("g", {}, parts, name);
    return s("g", {
      class: item.isPicked ? "column picked" : "column", role: "button", tabindex: "0", "aria-label": `${item.label}: ${text(sum)}`, "aria-pressed": `${item.isPicked ?? false}`,
      click: pick, keydown: (event) => { if (["Enter", " "].includes((event as KeyboardEvent).key)) { event.preventDefault(); pick(); } },
    }, s("rect", { class: "hit", x: LEFT + i * step, y: TOP, width: step, height: HEIGHT - TOP - BOTTOM + 24 }), parts, name);
  });
  return s("svg", { class: "columns", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "group", "aria-label": label }, axis, marks, stacks);
}
