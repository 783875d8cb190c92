// SPDX-License-Identifier: Apache-2.0
// A value over iterations: a line for the average, and a band from the least to the largest.

import { s } from "../dom";

export interface Point {
  readonly place: number;
  readonly least: number;
  readonly average: number;
  readonly most: number;
}

interface Scale {
  readonly ticks: number[];
  /** Returns the place of a value, from 0 at the bottom to 1 at the top. */
  readonly part: (value: number) => number;
}

const LEFT = 96, BOTTOM = 40, TOP = 10, RIGHT = 34, HEIGHT = 220, WIDTH = 900;
const MANY_DECADES = 100; // ratio from which on a linear scale hides the smaller values

function logarithmic(low: number, high: number): Scale {
  const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  const every = Math.ceil((last - first) / 6);
  const ticks = Array.from({ length: Math.floor((last - first) / every) + 1 }, (_, i) => 10 ** (first + i * every));
  return { ticks, part: (value) => (Math.log10(value) - first) / (last - first) };
}

function linear(low: number, high: number): Scale {
  const raw = (high - low) / 4 || Math.abs(high) || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= raw * (1 - 1e-9))!;
  const [first, last] = [Math.floor(low / step), Math.max(Math.ceil(high / step), Math.floor(low / step) + 1)];
  const ticks = Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step);
  return { ticks, part: (value) => (value / step - first) / (last - first) };
}

/** Returns round values around all points; from 0 on, unless the values differ by less than a half or by decades. */
function scaleOf(points: Point[]): Scale {
  const low = points.reduce((least, point) => Math.min(least, point.least), Infinity);
  const high = points.reduce((most, point) => Math.max(most, point.most), -Infinity);
  if (low > 0 && high / low > MANY_DECADES) return logarithmic(low, high);
  return linear(low > 0 && low < high / 2 ? 0 : low, high);
}

/** Draws the points; `text` formats their values. */
export function series(points: Point[], text: (value: number) => string, label: string): SVGSVGElement {
  const { ticks, part } = scaleOf(points);
  const last = points.at(-1)!.place;
  const first = points[0]!.place;
  const x = (place: number) => LEFT + ((WIDTH - LEFT - RIGHT) * (place - first)) / Math.max(1, last - first);
  const y = (value: number) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - part(value));
  const grid = ticks.map((value) => s("g", {},
    s("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }),
    s("text", { class: "tick", x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, text(value))));
  const every = Math.ceil(points.length / 14);
  const names = points.filter((_, i) => i % every === 0).map(({ place }) =>
    s("text", { class: "tick", x: x(place), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" }, `${place}`));
  const top = points.map((point) => `${x(point.place)},${y(point.most)}`);
  const bottom = points.map((point) => `${x(point.place)},${y(point.least)}`).reverse();
  const wide = (WIDTH - LEFT - RIGHT) / points.length;
  return s("svg", { class: "columns", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label },
    grid, names,
    s("text", { class: "tick", x: WIDTH - RIGHT, y: HEIGHT - 4, "text-anchor": "end" }, "iteration"),
    s("polygon", { class: "band", points: [...top, ...bottom].join(" ") }),
    s("polyline", { class: "line series", points: points.map((point) => `${x(point.place)},${y(point.average)}`).join(" ") }),
    points.map((point) => s("rect", { class: "hit", x: x(point.place) - wide / 2, y: TOP, width: wide, height: HEIGHT - TOP - BOTTOM },
      s("title", {}, `iteration ${point.place}: ${text(point.average)} on average, ${text(point.least)} to ${text(point.most)}`))));
}
