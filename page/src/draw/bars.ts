// SPDX-License-Identifier: Apache-2.0
// Horizontal bars, stacked from parts.

import { h } from "../dom";

export interface Part {
  readonly value: number;
  readonly colour: string;
  readonly title: string;
}

/** An interval on the scale of the bars. */
export interface Whisker {
  readonly low: number;
  readonly high: number;
  readonly title: string;
}

export interface Bar {
  /** Keeps the focus when the view is drawn again. */
  readonly id?: string;
  readonly label: string;
  readonly about: string;
  readonly value: string;
  readonly parts: Part[];
  readonly whisker?: Whisker | undefined;
  readonly isPicked: boolean;
  readonly pick: () => void;
}

/** Draws bars of one scale; each is a button. */
export function bars(items: Bar[], label: string): HTMLElement {
  const most = Math.max(1, ...items.map((item) => item.parts.reduce((sum, part) => sum + part.value, 0)));
  return h("ul", { class: "bars", "aria-label": label }, items.map((item) =>
    h("li", {}, h("button", { id: item.id, class: "bar", "aria-pressed": `${item.isPicked}`, click: item.pick },
      h("span", { class: "bar-label", title: item.label }, item.label, item.about ? h("small", {}, ` ${item.about}`) : null),
      h("span", { class: "bar-track" }, item.parts.filter((part) => part.value > 0).map((part) =>
        h("span", { class: "bar-part", title: part.title, style: `width:${(100 * part.value) / most}%;background:${part.colour}` })),
        item.whisker ? h("span", { class: "whisker", title: item.whisker.title,
          style: `left:${(100 * item.whisker.low) / most}%;width:${(100 * (item.whisker.high - item.whisker.low)) / most}%` }) : null),
      h("span", { class: "bar-value" }, item.value)))));
}
