// SPDX-License-Identifier: Apache-2.0
// The code regions that the application marks, with time in and out of MPI, and its metrics over iterations.

import { type Context, pick, result } from "../context";
import { cellsOf, type Value } from "../data";
import { type Child, h } from "../dom";
import { columns } from "../draw/columns";
import { icicle } from "../draw/icicle";
import { type Point, series } from "../draw/series";
import { panel } from "../panel";
import { count, many, share, time } from "../units";
import { sheet } from "./sheets";

const TITLES = {
  path: "region", ranks: "ranks", calls: "entered", time_ns: "time", exclusive_ns: "exclusive", mpi_ns: "in MPI", rank_max_ns: "slowest rank",
  load_balance: "load balance", parallel_efficiency: "efficiency",
};

function tree(context: Context): HTMLElement {
  const { facts } = context.profile;
  const of = (column: string) => cellsOf(facts, "regions", column);
  const number = (value: Value | undefined) => Number(value ?? 0);
  const [ids, parents, names, times, exclusive, mpi] = ["region", "parent", "name", "time_ns", "exclusive_ns", "mpi_ns"].map(of);
  const leaves = ids!.map((id, i) => {
    const part = number(times![i]) ? number(mpi![i]) / number(times![i]) : 0;
    const name = Number(id) === 0 ? "whole program" : `${names![i] ?? ""}`;
    return {
      id: Number(id),
      parent: parents![i] as number | null,
      label: name,
      title: `${name}: ${time(number(times![i]))} in all ranks, ${share(part)} in MPI; a click restricts all views to the calls ${Number(id) === 0 ? "outside all regions" : "directly in it"}`,
      own: number(exclusive![i]),
      whole: number(times![i]),
      part,
    };
  });
  return icicle(leaves, "code regions", (id) => context.state.filter.region === id, (id) => { pick(context, "region", id); });
}

function loops(context: Context): HTMLElement | null {
  const found = sheet(context, "loops", { path: "loop", bin: "time of an iteration", iterations: "iterations" });
  if (!found.length) return null;
  const of = (column: string) => cellsOf(context.profile.facts, "loops", column);
  const paths = [...new Set(of("path").map((path) => `${path ?? ""}`))];
  const charts = paths.slice(0, 4).map((path) => {
    const rows = of("bin").flatMap((bin, i) => (of("path")[i] === path ? [{ bin: Number(bin), iterations: Number(of("iterations")[i]) }] : []));
    return h("figure", {}, h("figcaption", {}, path), columns(rows.map(({ bin, iterations }) => ({
      label: bin ? `≥ ${time(2 ** (bin - 1))}` : "0 ns",
      parts: [{ value: iterations, colour: "var(--bar-even)", title: `${time(2 ** (bin - 1))} to ${time(2 ** bin)}: ${many(iterations, "iteration")}` }],
    })), count, `iterations of ${path} by their time`));
  });
  return panel("loops", { title: "Loops: how long iterations take", chart: charts, result: found });
}

const MOST_CHARTS = 6;

/** Returns the rows of a sheet with an iteration and values, as points by the title of their chart. */
function points(context: Context, name: string, title: (row: (column: string) => Value) => string, number: string, [sum, least, most]: [string, string, string]): Map<string, Point[]> {
  const { facts } = context.profile;
  const found = new Map<string, Point[]>();
  cellsOf(facts, name, "iteration").forEach((iteration, i) => {
    const row = (column: string) => cellsOf(facts, name, column)[i] ?? null;
    const values = [row(sum), row(number), row(least), row(most)];
    if (Number(iteration) < 0 || values.some((value) => value === null) || !Number(row(number))) return;
    const each = found.get(title(row)) ?? [];
    found.set(title(row), each);
    each.push({ place: Number(iteration), least: Number(row(least)), average: Number(row(sum)) / Number(row(number)), most: Number(row(most)) });
  });
  return new Map([...found].filter(([, each]) => each.length > 1));
}

function charts(found: Map<string, Point[]>, text: (title: string) => (value: number) => string): Child[] {
  const drawn = [...found].slice(0, MOST_CHARTS).map(([title, each]) =>
    h("figure", { tabindex: "0" }, h("figcaption", {}, title), series(each, text(title), `${title} by iteration`)));
  return [...drawn, found.size > MOST_CHARTS ? h("p", { class: "about" }, `${many(found.size - MOST_CHARTS, "further series")} in the table.`) : null];
}

function iterations(context: Context): HTMLElement | null {
  const found = sheet(context, "iterations", {
    path: "loop", iteration: "iteration", ranks: "ranks", iterations: "iterations", time_ns: "time", least_ns: "shortest", most_ns: "longest", mpi_ns: "in MPI",
  });
  if (!found.length) return null;
  const lines = points(context, "iterations", (row) => `${row("path") ?? ""}`, "iterations", ["time_ns", "least_ns", "most_ns"]);
  return panel("iterations", {
    title: "Loops: time of each iteration",
    about: "The line is the average over the ranks, and over the runs of the loop if there are several. The band lies between the shortest and the longest. This chart shows the whole run.",
    chart: charts(lines, () => time),
    result: found,
  });
}

function metrics(context: Context): HTMLElement | null {
  const found = sheet(context, "metrics");
  if (!found.length) return null;
  const units = new Map<string, string>();
  const title = (row: (column: string) => Value) => {
    const text = `${row("name") ?? ""} in ${`${row("region") ?? ""}` || "the whole program"}`;
    units.set(text, `${row("unit") ?? ""}`);
    return text;
  };
  const lines = points(context, "metrics", title, "count", ["sum", "min", "max"]);
  return panel("metrics", {
    title: "Metrics that the application recorded",
    about: lines.size ? "The line is the average of the values of all ranks in an iteration, the band lies between the least and the largest. This chart shows the whole run." : "",
    chart: lines.size ? charts(lines, (each) => (value) => `${Number(value.toPrecision(4))} ${units.get(each) ?? ""}`.trim()) : null,
    result: found,
    open: true,
  });
}

export function regions(context: Context): Child[] {
  const { cells, state, profile } = context;
  if (!cellsOf(profile.facts, "regions", "region").some((id) => id !== 0)) {
    return [h("section", { class: "panel" }, h("h2", {}, "Regions"), h("p", {}, "The application marks no code regions. With commlens_begin() and commlens_end(), or NVTX, Caliper or Kokkos annotations, this view shows where in the program the time goes."))];
  }
  return [
    panel("region-tree", {
      title: "Code regions",
      about: "Each box is a region, below the region that encloses it, as wide as its time. The line at the bottom of a box is the share of MPI. This chart and its table show the whole run.",
      chart: tree(context),
      result: sheet(context, "regions", TITLES),
    }),
    cells.has("region")
      ? panel("region-comms", { title: "Calls by region and communicator", result: result(context, ["region", "family"], cells.groups(["region", "family"], state.filter)), open: true })
      : null,
    loops(context),
    iterations(context),
    metrics(context),
  ];
}
