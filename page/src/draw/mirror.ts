// SPDX-License-Identifier: Apache-2.0
// Two values of each of many ranks: one as a bar upwards from the axis, one downwards.

import { canvas, colour, h } from "../dom";

export interface Mirrored {
  readonly rank: number;
  readonly up: number;
  readonly down: number;
  readonly isPicked: boolean;
}

export interface Sides {
  readonly label: string;
  /** Colours and largest values, as texts: upwards and downwards. */
  readonly colours: readonly [string, string];
  readonly most: readonly [string, string];
  readonly hint: string;
  readonly read: (item: Mirrored) => string;
  readonly pick: (item: Mirrored) => void;
}

const HEIGHT = 230, AXIS = 20, LABEL = 46; // pixels; LABEL: from the number of a rank to the next

/** Draws ranks from left to right; each side has its own scale. */
export function mirror(items: Mirrored[], sides: Sides): HTMLElement {
  const most = (of: (item: Mirrored) => number) => items.reduce((high, item) => Math.max(high, of(item)), 0) || 1;
  const [mostUp, mostDown] = [most((item) => item.up), most((item) => item.down)];
  const element = canvas(HEIGHT, sides.label, (context, width, height) => {
    const step = width / items.length;
    const half = (height - AXIS) / 2;
    // Of the ranks of one pixel, the largest values are drawn, and the selected rank in any case. Edges between pixels would make a pattern of their own.
    const each = Math.max(1, Math.round(1 / (step * window.devicePixelRatio)));
    const pixel = (x: number) => Math.round(x * window.devicePixelRatio) / window.devicePixelRatio;
    const bar = (i: number, up: number, down: number, isPicked: boolean) => {
      const left = pixel(i * step);
      const wide = Math.max(pixel((i + each) * step) - left - (step > 4 ? 1 : 0), isPicked ? 2 : 1);
      const tall = (up / mostUp) * half;
      context.fillStyle = isPicked ? colour("--accent") : sides.colours[0];
      context.fillRect(left, half - tall, wide, tall);
      context.fillStyle = isPicked ? colour("--accent") : sides.colours[1];
      context.fillRect(left, half + AXIS, wide, (down / mostDown) * half);
    };
    for (let i = 0; i < items.length; i += each) {
      const here = items.slice(i, i + each);
      bar(i, Math.max(...here.map((item) => item.up)), Math.max(...here.map((item) => item.down)), false);
    }
    items.forEach((item, i) => { if (item.isPicked) bar(i, item.up, item.down, true); });
    context.fillStyle = colour("--soft");
    context.font = "12.5px sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    const every = Math.ceil(LABEL / step);
    for (let i = 0; i < items.length; i += every) context.fillText(`${items[i]!.rank}`, Math.max(10, (i + 0.5) * step), half + AXIS / 2);
  });
  const at = (event: MouseEvent) => items[Math.min(items.length - 1, Math.max(0, Math.floor((event.offsetX / element.clientWidth) * items.length)))]!;
  const readout = h("p", { class: "readout", "aria-live": "polite" }, sides.hint);
  element.addEventListener("mousemove", (event) => { readout.textContent = sides.read(at(event)); });
  element.addEventListener("click", (event) => { sides.pick(at(event)); });
  return h("div", { class: "mirror" }, h("div", { class: "scale" }, `↑ ${sides.most[0]}`), element, h("div", { class: "scale" }, `↓ ${sides.most[1]}`), readout);
}
