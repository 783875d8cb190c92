// SPDX-License-Identifier: Apache-2.0
// Horizontal bars, stacked from parts.

import { h } from "../dom";

export interface Part {
  readonly value: number;
  readonly colour: string;
  readonly title: string;
}

export interface Bar {
  readonly label: string;
  readonly about: string;
  readonly value: string;
  readonly parts: Part[];
  readonly isPicked: boolean;
  readonly pick: () => void;
}

/** Draws bars of one scale; each is a button. */
export function bars(items: Bar[], label: string): HTMLElement {
  const most = Math.max(1, ...items.map((item) => item.parts.reduce((sum, part) => sum + part.value, 0)));
  return h("ul", { class: "bars", "aria-label": label }, items.map((item) =>
    h("li", {}, h("button", { class: "bar", "aria-pressed": `${item.isPicked}`, click: item.pick },
      h("span", { class: "bar-label", title: item.label }, item.label, item.about ? h("small", {}, ` ${item.about}`) : null),
      h("span", { class: "bar-track" }, item.parts.filter((part) => part.value > 0).map((part) =>
        h("span", { class: "bar-part", title: part.title, style: `width:${(100 * part.value) / most}%;background:${part.colour}` }))),
      h("span", { class: "bar-value" }, item.value)))));
}
