// SPDX-License-Identifier: Apache-2.0
// Lines over message sizes, with a logarithmic scale.

import { s } from "../dom";

export interface Line {
  readonly colour: string;
  readonly points: { readonly place: number; readonly value: number; readonly title: string }[];
}

const LEFT = 74, BOTTOM = 40, TOP = 10, RIGHT = 34, HEIGHT = 260, WIDTH = 900;

/** Draws lines of positive values over places that have labels. */
export function lines(items: Line[], labels: string[], text: (value: number) => string, label: string): SVGSVGElement {
  const values = items.flatMap((line) => line.points.map((point) => point.value)).filter((value) => value > 0);
  const low = Math.floor(Math.log10(Math.min(...values)));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values))));
  const y = (value: number) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - (Math.log10(value) - low) / (high - low));
  const step = (WIDTH - LEFT - RIGHT) / Math.max(labels.length, 1);
  const x = (place: number) => LEFT + (place + 0.5) * step;
  const every = Math.ceil(labels.length / 14);
  const grid = Array.from({ length: high - low + 1 }, (_, i) => 10 ** (low + i)).map((value) => s("g", {},
    s("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }),
    s("text", { class: "tick", x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, text(value))));
  const names = labels.map((name, i) => (i % every ? null
    : s("text", { class: "tick", x: x(i), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" }, name)));
  const drawn = items.map((line) => {
    const points = line.points.filter((point) => point.value > 0);
    return s("g", {},
      s("polyline", { class: "line", points: points.map((point) => `${x(point.place)},${y(point.value)}`).join(" "), stroke: line.colour }),
      points.map((point) => s("circle", { cx: x(point.place), cy: y(point.value), r: 4, fill: line.colour }, s("title", {}, point.title))));
  });
  return s("svg", { class: "columns", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label }, grid, names, drawn);
}
