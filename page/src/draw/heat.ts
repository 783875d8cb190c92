// SPDX-License-Identifier: Apache-2.0
// Colours of heat maps, from none to the largest value: a ramp that is even for the eye and survives colour blindness.

import { h } from "../dom";

const RAMP: [number, number, number][] = [
  [255, 247, 188], [254, 217, 118], [253, 174, 82], [240, 122, 58], [214, 74, 60], [166, 37, 76], [106, 20, 84], [45, 12, 70],
];

/** The largest value differs most from the background: it is dark on a light page, and light on a dark one. */
function ramp(): [number, number, number][] {
  const isDark = getComputedStyle(document.documentElement).colorScheme === "dark";
  return isDark ? [...RAMP].reverse() : RAMP;
}

function mixed(steps: typeof RAMP, part: number): number[] {
  const at = Math.min(Math.max(part, 0), 1) * (steps.length - 1);
  const low = steps[Math.floor(at)]!;
  const high = steps[Math.ceil(at)]!;
  const rest = at - Math.floor(at);
  return [0, 1, 2].map((i) => Math.round(low[i]! + (high[i]! - low[i]!) * rest));
}

/** Returns the colours of the present theme, by a part from 0 to 1. */
export function heat(): (part: number) => string {
  const steps = ramp();
  return (part) => `rgb(${mixed(steps, part).join(",")})`;
}

/** Returns the colours of the present theme in so many shades, each as the pixel of a canvas. */
export function shades(number: number): Uint32Array {
  const steps = ramp();
  const bytes = Array.from({ length: number }, (_, i) => [...mixed(steps, i / (number - 1)), 255]);
  return new Uint32Array(Uint8Array.from(bytes.flat()).buffer);
}

/** Returns the scale below a heat map, with the texts of its ends. */
export function scale(least: string, most: string): HTMLElement {
  const gradient = `linear-gradient(90deg, ${ramp().map((each) => `rgb(${each.join(",")})`).join(",")})`;
  return h("div", { class: "ramp" }, least, h("span", { style: `background:${gradient}` }), most);
}
