// SPDX-License-Identifier: Apache-2.0
// Makes elements. Texts enter the page as text nodes only, never as markup.

export type Child = Node | string | null | undefined | false | Child[];
type Attributes = Record<string, string | number | boolean | undefined | ((event: Event) => void)>;

const SVG = "http://www.w3.org/2000/svg";

function fill(element: Element, attributes: Attributes, children: Child[]): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== undefined && value !== false) element.setAttribute(name, `${value}`);
  }
  append(element, children);
}

export function append(element: Element, children: Child[]): void {
  for (const child of children) {
    if (Array.isArray(child)) append(element, child);
    else if (child !== null && child !== undefined && child !== false) element.append(child);
  }
}

/** Makes an element of HTML; functions among the attributes listen to events. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Attributes = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  fill(element, attributes, children);
  return element;
}

/** Makes an element of SVG. */
export function s<K extends keyof SVGElementTagNameMap>(
  tag: K, attributes: Attributes = {}, ...children: Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS<K>(SVG, tag);
  fill(element, attributes, children);
  return element;
}

/** Returns the colour that the style sheet gives to a variable. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Draws a canvas as wide as its parent, and again when the parent changes its width. */
export function canvas(
  height: number, label: string, draw: (context: CanvasRenderingContext2D, width: number, height: number) => void,
): HTMLCanvasElement {
  const element = h("canvas", { role: "img", "aria-label": label, style: `height:${height}px` });
  const redraw = () => {
    const width = element.clientWidth;
    if (!width) return;
    const scale = window.devicePixelRatio || 1;
    element.width = Math.round(width * scale);
    element.height = Math.round(height * scale);
    const context = element.getContext("2d")!;
    context.scale(scale, scale);
    draw(context, width, height);
  };
  new ResizeObserver(redraw).observe(element);
  return element;
}
