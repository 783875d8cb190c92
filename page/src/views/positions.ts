// SPDX-License-Identifier: Apache-2.0
// Time in MPI by the position in a communicator: along its ranks, or in its Cartesian grid.

import { type Context, pick } from "../context";
import { cellsOf } from "../data";
import { h } from "../dom";
import { heat, scale } from "../draw/heat";
import { coordinates, grid, members } from "../members";
import { panel } from "../panel";
import { time } from "../units";

const MOST = 4096; // members of a communicator that are drawn

interface Chosen {
  readonly name: string;
  readonly ranks: number[];
  readonly dimensions: number[];
  readonly isGrid: boolean;
}

/** Returns the communicator of the filter, or the first one of the run with a Cartesian grid. */
function chosen(context: Context): Chosen | null {
  const { facts } = context.profile;
  const of = (column: string) => cellsOf(facts, "comms", column);
  const ids = of("comm").map(Number);
  const { comm, family } = context.state.filter;
  const fits = (i: number) => of("members")[i] !== null && of("members")[i] !== undefined
    && (comm === undefined || ids[i] === comm) && (family === undefined || of("family")[i] === family);
  const places = ids.map((_, i) => i).filter(fits);
  const isChosen = comm !== undefined || family !== undefined;
  const at = places.find((i) => grid(of("topology")[i] as string | null)) ?? (isChosen ? places[0] : undefined);
  if (at === undefined) return null;
  const ranks = members(String(of("members")[at]));
  const cart = grid(of("topology")[at] as string | null);
  const isGrid = cart !== null && cart.reduce((product, size) => product * size, 1) === ranks.length;
  return ranks.length < 2 || ranks.length > MOST ? null
    : { name: context.names.comm(ids[at]!), ranks, dimensions: isGrid ? cart : [ranks.length], isGrid };
}

export function positions(context: Context): HTMLElement | null {
  const found = chosen(context);
  if (!found) return null;
  const spent = new Map(context.cells.groups(["rank"], context.state.filter).map((group) => [group.keys[0]!, group.time]));
  const values = found.ranks.map((rank) => spent.get(rank) ?? 0);
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const colourOf = heat();
  const across = found.isGrid ? found.dimensions.at(-1)! : Math.ceil(Math.sqrt(found.ranks.length));
  const boxes = found.ranks.map((rank, i) => {
    const where = found.isGrid ? `(${coordinates(i, found.dimensions).join(", ")})` : `rank ${i}`;
    return h("button", {
      class: "place", title: `${where} of ${found.name}, rank ${rank} of the world: ${time(values[i]!)} in MPI`, "aria-label": `${where}: ${time(values[i]!)}`,
      "aria-pressed": `${context.state.filter.rank === rank}`, click: () => { pick(context, "rank", rank); },
      style: `background:${colourOf(most > least ? (values[i]! - least) / (most - least) : 0.5)}`,
    });
  });
  const size = found.isGrid ? across * (found.dimensions.at(-2) ?? 1) : boxes.length;
  const planes = Array.from({ length: Math.ceil(boxes.length / size) }, (_, i) =>
    h("div", { class: "places", style: `grid-template-columns:repeat(${across}, minmax(0, 2.2rem))` }, boxes.slice(i * size, (i + 1) * size)));
  return panel("positions", {
    title: found.isGrid ? `Time in MPI in the grid ${found.dimensions.join(" × ")} of ${found.name}` : `Time in MPI by position in ${found.name}`,
    about: found.isGrid
      ? `Each box is a process at its Cartesian coordinates: the last one to the right, the one before downwards.${planes.length > 1 ? " The planes are in the order of the others." : ""}`
      : "Each box is a process, row by row in the order of the ranks of the communicator.",
    chart: [h("div", { class: "planes" }, planes), scale(time(least), time(most))],
  });
}
