// SPDX-License-Identifier: Apache-2.0
// The code regions that the application marks, with time in and out of MPI.

import { type Context, pick, result } from "../context";
import { cellsOf, type Value } from "../data";
import { type Child, h } from "../dom";
import { columns } from "../draw/columns";
import { icicle } from "../draw/icicle";
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
      title: `${name}: ${time(number(times![i]))} in all ranks, ${share(part)} in MPI`,
      own: number(exclusive![i]),
      whole: number(times![i]),
      part,
    };
  });
  return icicle(leaves, "code regions", (id) => context.state.filter.region === id, (id) => { pick(context, "region", id); });
}

function loops(context: Context): HTMLElement | null {
  const found = sheet(context, "loops", { path: "loop", bin: "time of an iteration", iterations: "iterations" });
  if (!found.rows.length) return null;
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

export function regions(context: Context): Child[] {
  const { cells, state, profile } = context;
  if (!cellsOf(profile.facts, "regions", "region").some((id) => id !== 0)) {
    return [h("section", { class: "panel" }, h("h2", {}, "Regions"), h("p", {}, "The application marks no code regions. With commlens_begin() and commlens_end(), or NVTX, Caliper or Kokkos annotations, this view shows where in the program the time goes."))];
  }
  const metrics = sheet(context, "metrics");
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
    metrics.rows.length ? panel("metrics", { title: "Metrics that the application recorded", result: metrics, open: true }) : null,
  ];
}
