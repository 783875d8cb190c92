// SPDX-License-Identifier: Apache-2.0
// The algorithms of collectives, as `commlens algorithms` names them, and who sends to whom inside one of them.

import { type Context, pick } from "../context";
import type { Algorithm, Drawing } from "../data";
import { type Child, h } from "../dom";
import { type Edge, graph } from "../draw/graph";
import { listed, panel, type Result } from "../panel";
import { fragment } from "../state";
import { bytes, count, many } from "../units";

const MOST_NAMES = 3; // of an ambiguous algorithm

function wanted(context: Context): Algorithm[] {
  const { comm, family, op, bin } = context.state.filter;
  return context.profile.facts.collectives.lines.filter((line) =>
    (comm === undefined || line.comms.includes(comm)) && (family === undefined || line.family === family)
    && (op === undefined || line.op === op) && (bin === undefined || line.bins.includes(bin)));
}

/** Returns the name of an algorithm; of many that send the same messages, the first ones. */
function brief(algorithm: string): string {
  const names = algorithm.split(" or ");
  return names.length <= MOST_NAMES + 1 ? algorithm
    : `${names.slice(0, MOST_NAMES).join(", ")} or ${count(names.length - MOST_NAMES)} others that send the same messages`;
}

function table(context: Context, lines: Algorithm[], chosen: Algorithm): Result {
  return {
    columns: [
      { name: "communicator", title: "communicator", unit: "text" }, { name: "procedure", title: "procedure", unit: "text" },
      { name: "size", title: "size", unit: "text" }, { name: "calls", title: "calls", unit: "count" },
      { name: "fit", title: "fit", unit: "number", hidden: true }, { name: "fit_text", title: "fit", unit: "text" },
      { name: "algorithm", title: "algorithm", unit: "text" }, { name: "root", title: "root", unit: "text" },
      { name: "shape", title: "shape", unit: "text" }, { name: "ranks", title: "ranks", unit: "count" },
      { name: "line", title: "line", unit: "number" },
    ],
    ...listed(lines.map((line) => [line.communicator, line.procedure, line.size, line.calls, line.fit, line.fit_text, line.algorithm, line.root,
      line.shape, line.ranks, line.line])),
    pickTitle: "draw it below",
    pick: (row) => { context.go({ choices: { ...context.state.choices, inside: `${lines[row]!.line}` } }); },
    isPicked: (row) => lines[row] === chosen,
  };
}

/** Returns the query for the messages of a drawing, by rank of the communicator. */
function sql(line: Algorithm, drawing: Drawing): string {
  const isWorld = drawing.members.every((world, rank) => world === rank);
  const [source, destination] = isWorld ? ["peer.rank", "peer.peer"] : ["sender.rank", "receiver.rank"];
  const ranks = drawing.members.map((world, rank) => `(${rank}, ${world})`).join(", ");
  const to = `COALESCE(${destination}, peer.first)`;
  return `${isWorld ? "" : `WITH member (rank, world) AS (VALUES ${ranks})\n`}SELECT ${source} AS source, ${to} AS destination,
       SUM(peer.messages) AS messages, SUM(peer.bytes) AS bytes
  FROM peer JOIN flow ON flow.id = peer.flow${isWorld ? "" : `
       JOIN member AS sender ON sender.world = peer.rank
       LEFT JOIN member AS receiver ON receiver.world = peer.peer`}
 WHERE flow.name = 'collective' AND peer.comm = ${line.comms[0]!} AND peer.op = ${line.op} AND peer.peers = 1
   AND (peer.call_bin IN (${line.bins.join(", ")}) OR peer.call_bin IS NULL)
   AND ${to} IS NOT NULL
 GROUP BY 1, 2 HAVING SUM(peer.messages) > 0
 ORDER BY 1, 2`;
}

function messages(line: Algorithm, drawing: Drawing): Result {
  const { source, destination, members } = drawing;
  return {
    columns: [
      { name: "source", title: "from rank", unit: "number" }, { name: "destination", title: "to rank", unit: "number" },
      { name: "source_world", title: "from world rank", unit: "number", extra: true },
      { name: "destination_world", title: "to world rank", unit: "number", extra: true },
      { name: "messages", title: "messages", unit: "count" }, { name: "bytes", title: "bytes", unit: "bytes" },
    ],
    ...listed(source.map((from, i) => [from, destination[i]!, members[from]!, members[destination[i]!]!, drawing.messages[i]!, drawing.bytes[i]!])),
    sql: sql(line, drawing),
  };
}

/** Says what a rank sends and receives. */
function said(rank: number, drawing: Drawing): string {
  const { source, destination, members } = drawing;
  const side = (verb: string, own: number[], others: number[], word: string) => {
    const mine = own.flatMap((each, i) => (each === rank ? [i] : []));
    if (!mine.length) return `${verb} nothing`;
    const sum = (values: number[]) => mine.reduce((total, i) => total + values[i]!, 0);
    return `${verb} ${many(sum(drawing.messages), "message")}, ${bytes(sum(drawing.bytes))}, ${word} ${mine.map((i) => others[i]!).join(", ")}`;
  };
  return `rank ${rank}${members[rank] === rank ? "" : ` (world ${members[rank]!})`} ${side("sends", source, destination, "to")}; ${side("receives", destination, source, "from")}`;
}

function picture(context: Context, line: Algorithm, drawing: Drawing): HTMLElement {
  const { source, destination } = drawing;
  const most = Math.max(...drawing.bytes);
  const edges = source.map((from, i): Edge => ({
    source: from, destination: destination[i]!, part: most ? drawing.bytes[i]! / most : 0,
    title: `${from} → ${destination[i]!}: ${many(drawing.messages[i]!, "message")}, ${bytes(drawing.bytes[i]!)}`,
  }));
  const nodes = drawing.members.map((world, rank) => ({
    title: said(rank, drawing), isPicked: context.state.filter.rank === world, pick: () => { pick(context, "rank", world); },
  }));
  return graph(nodes, edges, drawing.root, `messages inside ${line.procedure} on ${line.first}`);
}

/** Says why a line is not drawn, with a link to the matrix of its communicator. */
function undrawn(context: Context, line: Algorithm): HTMLElement {
  const { state } = context;
  const address = fragment({ ...state, filter: { comm: line.comms[0]! }, choices: { ...state.choices, kind: "collective", order: "traffic" } });
  return h("p", {}, `No drawing: the page draws messages of known ranks only, ${context.profile.facts.collectives.drawn}. `,
    h("a", { href: address }, "The matrix of this communicator"), " shows its collectives together.");
}

function drawn(context: Context, line: Algorithm): HTMLElement {
  const { drawing } = line;
  const what = `${line.procedure}${line.size ? ` of ${line.size}` : ""}: ${brief(line.algorithm)}`;
  const several = line.comms.length > 1 ? ` Drawn is ${line.first}, the first of ${count(line.comms.length)} communicators with the same algorithm.` : "";
  const calls = line.calls === null ? "all starts" : line.comms.length > 1 ? "all its calls" : line.calls === 1 ? "the only call" : `all ${count(line.calls)} calls`;
  const unnamed = line.is_named ? "" : " No known algorithm sends these messages.";
  const fit = line.fit === null ? "" : ` Fit${line.is_named ? "" : " of the nearest one"}: ${line.fit_text}.`;
  return panel("inside", {
    title: `Inside ${line.procedure} on ${line.communicator}`,
    about: `${what}${line.root ? `, root ${line.root}` : ""}${line.shape ? `, ${line.shape}` : ""}.${fit}${unnamed}${several}`
      + (drawing ? ` The arrows are the recorded messages of ${calls} of this operation and size together; wider ones carry more bytes. Numbers are ranks of the communicator.` : ""),
    chart: drawing ? picture(context, line, drawing) : undrawn(context, line),
    ...(drawing ? { result: messages(line, drawing) } : {}),
  });
}

export function collectives(context: Context): Child[] {
  const { remarks, lines: all } = context.profile.facts.collectives;
  const notes = remarks.map((remark) => h("p", { class: "about" }, `${remark[0]!.toUpperCase()}${remark.slice(1)}.`));
  if (!all.length) {
    return notes.length ? [h("section", { class: "panel", id: "algorithms" }, h("h2", {}, "Algorithms of collectives"), notes)] : [];
  }
  const lines = wanted(context);
  const { inside } = context.state.choices;
  const chosen = lines.find((line) => `${line.line}` === inside) ?? lines.find((line) => line.is_named && line.drawing) ?? lines.find((line) => line.drawing) ?? lines[0];
  if (!chosen) return [];
  const deaf = (["region", "callsite", "path", "node", "rank"] as const).some((each) => context.state.filter[each] !== undefined);
  return [panel("algorithms", {
    title: "Algorithms of collectives",
    about: "What commlens algorithms names: the fit is 100 % if every pair of ranks exchanged exactly the messages and bytes of the algorithm. A click draws the line below."
      + (deaf ? " Regions, call sites, nodes and ranks of the filter have no effect here." : ""),
    chart: notes,
    result: table(context, lines, chosen),
    open: true,
  }), drawn(context, chosen)];
}
