// SPDX-License-Identifier: Apache-2.0
// Starts the page: reads the data, and draws the view, filter and theme that the address names.

import { Colours, type Context } from "./context";
import { unpack, type Profile } from "./data";
import { type Child, h } from "./dom";
import { Names } from "./names";
import { Paths } from "./paths";
import { present, selected } from "./pairs";
import { csv, keepOpen, results } from "./panel";
import { Counters } from "./query";
import { current, DIMENSIONS, fragment, type State, toggled } from "./state";
import { callsites } from "./views/callsites";
import { communicators } from "./views/communicators";
import { comparison } from "./views/comparison";
import { cost } from "./views/cost";
import { peers } from "./views/peers";
import { ranks } from "./views/ranks";
import { regions } from "./views/regions";
import { query } from "./views/query";
import { sizes } from "./views/sizes";
import { summary } from "./views/summary";
import { timeline } from "./views/timeline";
import { waiting } from "./views/waiting";

type View = [string, string, (context: Context) => Child[]];

const COMPARISON: View = ["comparison", "Comparison", comparison];
const VIEWS: View[] = [
  ["summary", "Summary", summary],
  ["communicators", "Communicators", communicators],
  ["sizes", "Operations", sizes],
  ["waiting", "Waiting", waiting],
  ["ranks", "Ranks and nodes", ranks],
  ["peers", "Who talks to whom", peers],
  ["regions", "Regions", regions],
  ["callsites", "Call sites", callsites],
  ["timeline", "Timeline", timeline],
  ["cost", "Cost and limits", cost],
  ["query", "SQL", query],
];

const PAUSE_MS = 50; // between sums in advance, so that a click is not kept waiting

const WORDS = { family: "communicator", comm: "communicator", op: "operation", bin: "size", region: "region", callsite: "call site", path: "call path", node: "node", rank: "rank" };
const THEMES: [string, string][] = [["", "Theme: as the system"], ["light", "Theme: light"], ["dark", "Theme: dark"]];

function chips(context: Context): HTMLElement {
  const { filter } = context.state;
  const set = DIMENSIONS.filter((dimension) => filter[dimension] !== undefined);
  if (!set.length) return h("div", { class: "chips" });
  return h("div", { class: "chips", role: "group", "aria-label": "filter" },
    h("span", {}, "Only"),
    set.map((dimension) => h("button", {
      class: "chip", title: "remove", click: () => { context.go({ filter: toggled(filter, dimension, filter[dimension]!) }); },
    }, `${WORDS[dimension]} ${context.names.of(dimension, filter[dimension]!).replace(/^rank /, "")} ✕`)),
    set.length > 1 ? h("button", { class: "chip", click: () => { context.go({ filter: {} }); } }, "All ✕") : null);
}

function views(context: Context): View[] {
  return context.profile.facts.comparison ? [COMPARISON, ...VIEWS] : VIEWS;
}

function navigation(context: Context, view: string): HTMLElement {
  return h("nav", { "aria-label": "views" }, views(context).map(([name, title]) =>
    h("a", { href: fragment({ ...context.state, view: name }), "aria-current": name === view ? "page" : undefined }, title)));
}

function themeButton(context: Context): HTMLElement {
  const at = Math.max(0, THEMES.findIndex(([name]) => name === (context.state.choices.theme ?? "")));
  const [next] = THEMES[(at + 1) % THEMES.length]!;
  return h("button", { id: "theme", class: "theme", click: () => { context.go({ choices: { ...context.state.choices, theme: next } }); } }, THEMES[at]![1]);
}

class Page {
  private readonly names: Names;
  private readonly cells: Counters;
  private readonly slices: Counters;
  private readonly colours: Colours;
  private view = "";

  constructor(private readonly profile: Profile, private readonly root: HTMLElement) {
    this.names = new Names(profile.facts, new Paths(profile));
    this.cells = new Counters(profile, this.names);
    this.slices = new Counters(profile, this.names, profile.slices);
    this.colours = new Colours(profile.facts.palette, this.cells);
  }

  private context(state: State): Context {
    const go = (change: Partial<State>) => { location.hash = fragment({ ...state, ...change }); };
    return { profile: this.profile, names: this.names, cells: this.cells, slices: this.slices, colours: this.colours, state, go };
  }

  draw(): void {
    const state = current();
    const context = this.context(state);
    const [view, title, content] = views(context).find(([name]) => name === state.view) ?? views(context)[0]!;
    const { theme } = state.choices;
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    document.title = `${title} - ${this.profile.facts.program} - commlens`;
    results.clear();
    const focus = document.activeElement?.id ?? "";
    keepOpen(view === this.view);
    this.root.replaceChildren(
      h("header", { class: "top" },
        h("div", { class: "title" }, h("h1", {}, this.profile.facts.program), h("p", {}, this.about())),
        themeButton(context)),
      navigation(context, view),
      chips(context),
      h("div", { class: "view" }, content(context) as (Node | string)[]));
    if (view === this.view) {
      if (focus) document.getElementById(focus)?.focus();
    } else if (this.view) window.scrollTo(0, 0);
    this.view = view;
    this.root.removeAttribute("aria-busy");
  }

  /** Adds up the whole run by what the views need, one sum at a time while the reader looks at the first view. */
  prepare(): void {
    const sums = [["family"], ["family", "op"], ["op", "bin"], ["op"], ["rank"], ["node"], ["callsite", "op"], ["path", "op"], ["region", "family"]];
    const context = this.context({ view: "", filter: {}, choices: {} });
    const wanted = [
      ...sums.filter((by) => by.every((dimension) => this.cells.has(dimension))).map((by) => () => { this.cells.groups(by, {}); }),
      ...present(context).map(([, , flows]) => () => { selected(context, flows); }),
    ];
    const next = () => {
      const add = wanted.shift();
      if (!add) return;
      add();
      setTimeout(next, PAUSE_MS);
    };
    setTimeout(next, PAUSE_MS);
  }

  private about(): string {
    const head = new Map(this.profile.facts.head);
    // Open MPI goes on with package, identity and date, which the summary has.
    return [head.get("where"), head.get("MPI")?.split(", package:")[0]].filter(Boolean).join(", ");
  }
}

/** In the frame of a notebook, a link to a fragment would leave the page: its base is the address of the notebook. */
function followFragments(event: MouseEvent): void {
  const href = (event.target as Element | null)?.closest("a")?.getAttribute("href");
  if (!href?.startsWith("#") || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  location.hash = href;
}

async function start(): Promise<void> {
  const root = document.getElementById("page")!;
  try {
    const profile = await unpack();
    const page = new Page(profile, root);
    document.addEventListener("click", followFragments);
    window.addEventListener("hashchange", () => { page.draw(); });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { page.draw(); });
    page.draw();
    page.prepare();
    // For tests: the numbers of every panel, as its CSV, with its SQL.
    Object.assign(window, { commlens: () => Object.fromEntries([...results].map(([id, result]) => [id, { csv: csv(result), sql: result.sql ?? null, extra: result.columns.filter((column) => column.extra).map((column) => column.name) }])) });
  } catch (error) {
    root.textContent = `This page cannot be shown: ${String(error)}. It needs Chrome 103, Firefox 113, Safari 16.4 or later.`;
    root.removeAttribute("aria-busy");
    throw error;
  }
}

void start();
