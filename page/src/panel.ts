// SPDX-License-Identifier: Apache-2.0
// A part of a view: a title, a chart, the table of its numbers, which can be copied, and the SQL that gives them.

import { type Child, h } from "./dom";
import { hasQueries, type Value } from "./data";
import { current, fragment } from "./state";
import { many, shown, type Unit } from "./units";

export interface Column {
  /** Name in CSV; the same as in the result of the SQL, unless `extra`. */
  readonly name: string;
  readonly title: string;
  readonly unit: Unit;
  /** The result of the SQL lacks this column: the page knows it from elsewhere. */
  readonly extra?: boolean;
  /** In CSV only. */
  readonly hidden?: boolean;
}

export interface Result {
  readonly columns: Column[];
  readonly length: number;
  /** Returns the values of a row; nobody needs all rows at once but the CSV. */
  readonly row: (index: number) => Value[];
  /** Missing if no query of one profile returns the numbers. */
  readonly sql?: string;
  /** Restricts the views to a row; the first shown column gets a button. */
  readonly pick?: (row: number) => void;
  readonly isPicked?: (row: number) => boolean;
  /** What `pick` does, if it does something else. */
  readonly pickTitle?: string;
}

const LONGEST_TEXT = 80; // characters; the whole text is in the tooltip and in CSV
const LONG = 20; // rows of a table that is as high as a table may be
const SHOWN_AT_FIRST = 30;
const SHOWN_BY_SCROLLING = 100;
const MOST_SHOWN = 2000;

function field(value: Value): string {
  const text = value === null ? "" : `${value}`;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function csv(result: Result): string {
  const rows = Array.from({ length: result.length }, (_, i) => result.row(i));
  const lines = [result.columns.map((column) => column.name), ...rows].map((row) => row.map(field).join(","));
  return `${lines.join("\n")}\n`;
}

/** Returns rows as a result has them. */
export function listed(rows: Value[][]): Pick<Result, "length" | "row"> {
  return { length: rows.length, row: (index) => rows[index]! };
}

/** Returns a long text without its end; call paths differ at their end, so that they lose their beginning. */
function shortened(text: string): string {
  if (text.length <= LONGEST_TEXT) return text;
  return text.includes(" > ") ? `…${text.slice(1 - LONGEST_TEXT)}` : `${text.slice(0, LONGEST_TEXT - 1)}…`;
}

function tableRow(result: Result, row: number): HTMLTableRowElement {
  const values = result.row(row);
  const isPicked = result.isPicked?.(row) ?? false;
  let isFirst = true;
  const cells = result.columns.map((column, i) => {
    if (column.hidden) return null;
    const whole = shown(values[i] ?? null, column.unit);
    const text = shortened(whole);
    const kind = column.unit === "text" || column.unit === "size" ? "text" : "number";
    const full = whole === text ? undefined : whole;
    const button = isFirst && result.pick
      ? h("button", { class: "pick", "aria-pressed": `${isPicked}`, title: full ?? result.pickTitle ?? "restrict all views to this", click: () => { result.pick!(row); } }, text)
      : text;
    const tag = isFirst ? "th" : "td";
    const cell = h(tag, { class: kind, title: full, scope: isFirst ? "row" : undefined }, button);
    isFirst = false;
    return cell;
  });
  return h("tr", { class: isPicked ? "picked" : undefined }, cells);
}

/** Returns a table, the first rows at first; scrolling or a button shows more. */
function table(result: Result, title: string): HTMLElement {
  const body = h("tbody");
  const more = h("div", { class: "more" });
  const show = (until: number) => {
    for (let row = body.rows.length; row < Math.min(until, result.length); row++) body.append(tableRow(result, row));
    const left = result.length - body.rows.length;
    more.replaceChildren();
    if (!left) return;
    if (body.rows.length >= MOST_SHOWN) more.append(`${many(left, "further row")}: see the CSV.`);
    else more.append(h("button", { click: () => { show(MOST_SHOWN); } }, `Show ${many(left, "more row")}`));
  };
  show(SHOWN_AT_FIRST);
  const heads = result.columns.filter((column) => !column.hidden).map((column) =>
    h("th", { scope: "col", class: column.unit === "text" || column.unit === "size" ? "text" : "number" }, column.title));
  const scrolled = (event: Event) => {
    const { scrollTop, clientHeight, scrollHeight } = event.target as HTMLElement;
    if (scrollTop + 2 * clientHeight > scrollHeight) show(Math.min(body.rows.length + SHOWN_BY_SCROLLING, MOST_SHOWN));
  };
  return h("div", { class: result.length > LONG ? "table long" : "table", tabindex: "0", role: "region", "aria-label": `table: ${title}`, scroll: scrolled },
    h("table", {}, h("thead", {}, h("tr", {}, heads)), body), more);
}

async function copy(button: HTMLButtonElement, text: string): Promise<void> {
  const old = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Pages from files may not reach the clipboard in some browsers; the old way works there.
    const area = h("textarea", { class: "offscreen" });
    area.value = text;
    document.body.append(area);
    area.select();
    // eslint-disable-next-line @typescript-eslint/no-deprecated
    document.execCommand("copy");
    area.remove();
  }
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = old; }, 1200);
}

function copier(title: string, text: () => string): HTMLButtonElement {
  const button: HTMLButtonElement = h("button", { click: () => { void copy(button, text()); } }, title);
  return button;
}

export interface Panel {
  readonly title: string;
  /** One sentence: what to read from the chart. */
  readonly about?: string;
  readonly controls?: Child;
  readonly chart?: Child;
  readonly legend?: Child;
  readonly result?: Result;
  /** Whether the table is open at first. */
  readonly open?: boolean;
}

/** Returns the part of a panel that opens to the table, which is made when it is opened. */
function numbers(result: Result, title: string, isOpen: boolean): HTMLElement {
  const make = () => { if (!element.querySelector(".table")) element.append(table(result, title)); };
  const element: HTMLElement = h("details", { class: "numbers", open: isOpen, toggle: make }, h("summary", {}, `Table (${many(result.length, "row")})`));
  if (isOpen) make();
  return element;
}

/** The panels whose table was open before the view was drawn again. */
const opened = new Set<string>();

/** Lets the tables that are open now be open when the same view is drawn again. */
export function keepOpen(isSameView: boolean): void {
  opened.clear();
  if (isSameView) for (const each of document.querySelectorAll("details.numbers[open]")) opened.add(each.parentElement!.id);
}

/** Results by the id of their panel, for tests: what each shows and its SQL. */
export const results = new Map<string, Result>();

/** Returns the address of view SQL with a query. */
function queryAddress(sql: string): string {
  const state = current();
  return fragment({ ...state, view: "query", choices: { ...state.choices, sql } });
}

export function panel(id: string, parts: Panel): HTMLElement {
  const { result } = parts;
  if (result) results.set(id, result);
  const sql = result?.sql;
  const tools = result && h("div", { class: "tools" },
    copier("Copy as CSV", () => csv(result)),
    sql === undefined ? null : h("details", {}, h("summary", {}, "SQL"),
      h("div", { class: "sql" }, h("pre", { tabindex: "0" }, sql), copier("Copy SQL", () => sql))),
    sql !== undefined && hasQueries() ? h("a", { href: queryAddress(sql) }, "Change the query") : null);
  const isEmpty = result?.length === 0;
  return h("section", { class: "panel", id, "aria-labelledby": `${id}-title` },
    h("header", {}, h("h2", { id: `${id}-title` }, parts.title), parts.controls ?? null),
    parts.about ? h("p", { class: "about" }, parts.about) : null,
    isEmpty ? h("p", { class: "empty" }, "Nothing is left under this filter.") : [parts.legend ?? null, parts.chart ?? null],
    result && !isEmpty
      ? numbers(result, parts.title, (parts.open ?? !parts.chart) || opened.has(id))
      : null,
    tools ?? null);
}

/** A choice of one from several, as radio buttons that look like one control. */
export function choice(label: string, name: string, options: [string, string][], chosen: string, pick: (value: string) => void): HTMLElement {
  return h("fieldset", { class: "choice" }, h("legend", {}, label), options.map(([value, text]) =>
    h("label", {}, h("input", { type: "radio", id: `choice-${name}-${value}`, name, value, checked: value === chosen, change: () => { pick(value); } }), h("span", {}, text))));
}

export function legend(entries: [string, string][]): HTMLElement {
  return h("ul", { class: "legend" }, entries.map(([text, colour]) =>
    h("li", {}, h("span", { class: "swatch", style: `background:${colour}` }), text)));
}
