// SPDX-License-Identifier: Apache-2.0
// Bars to the left for less and to the right for more.

import { h } from "../dom";

export interface ChangeBar {
  readonly label: string;
  readonly value: number;
  readonly text: string;
  /** Whether the change is more than chance. */
  readonly isSure: boolean;
}

/** Draws changes on one scale with 0 in the middle; unsure ones are hatched. */
export function changes(items: ChangeBar[], label: string): HTMLElement {
  const most = Math.max(1e-12, ...items.map((item) => Math.abs(item.value)));
  return h("ul", { class: "changes", "aria-label": label }, items.map((item) => {
    const wide = (50 * Math.abs(item.value)) / most;
    const side = item.value < 0 ? "less" : "more";
    return h("li", {},
      h("span", { class: "bar-label", title: item.label }, item.label),
      h("span", { class: "change-track" }, h("span", {
        class: `change-part ${side}${item.isSure ? "" : " unsure"}`, style: `width:${wide}%;left:${item.value < 0 ? 50 - wide : 50}%`,
      })),
      h("span", { class: "bar-value" }, item.text));
  }));
}
