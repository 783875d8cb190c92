// SPDX-License-Identifier: Apache-2.0
// The names of what the counters are about: communicators, operations, regions, call sites, ranks.

import { cellsOf, type Facts, type Value } from "./data";
import type { Paths } from "./paths";
import type { Dimension } from "./state";
import { size } from "./units";

export interface Family {
  readonly id: number;
  readonly name: string;
  readonly userName: string;
  readonly kind: string;
  readonly communicators: number;
  readonly sizes: string;
  readonly parent: number | null;
  readonly creator: string | null;
  readonly callsite: number | null;
}

function numbers(values: Value[]): number[] {
  return values.map((value) => Number(value ?? -1));
}

function lookup(ids: Value[], values: Value[]): Map<number, string> {
  return new Map(ids.map((id, i) => [Number(id), `${values[i] ?? ""}`]));
}

function sizes(low: Value, high: Value): string {
  if (low === null || high === null) return "-";
  return low === high ? `${low}` : `${low}-${high}`;
}

/** The predefined communicators are known by the names that the MPI standard gives them. */
function predefined(name: string): string {
  return { "W0.0": "MPI_COMM_WORLD", "-": "calls without a communicator", "{*}": "requests of several communicators" }[name] ?? "";
}

export class Names {
  readonly families: Map<number, Family>;
  readonly nodes: string[];
  readonly nodeOf: Int32Array;
  readonly familyOf: Map<number, number>;
  readonly ranks: number[];
  private readonly comms: Map<number, string>;
  private readonly ops: Map<number, string>;
  private readonly regions: Map<number, string>;
  private readonly flows: Map<number, string>;

  constructor(private readonly facts: Facts, readonly paths: Paths) {
    const of = (sheet: string, column: string) => cellsOf(facts, sheet, column);
    this.comms = lookup(of("comms", "comm"), of("comms", "communicator"));
    this.ops = lookup(of("ops", "id"), of("ops", "name"));
    this.flows = lookup(of("flows", "id"), of("flows", "name"));
    this.regions = lookup(of("regions", "region"), of("regions", "path"));
    this.familyOf = new Map(numbers(of("comms", "comm")).map((id, i) => [id, Number(of("comms", "family")[i])]));
    this.ranks = numbers(of("ranks", "rank"));
    const nodes = of("ranks", "node").map((node) => `${node ?? ""}`);
    this.nodes = [...new Set(nodes)];
    this.nodeOf = new Int32Array(this.ranks.reduce((most, rank) => Math.max(most, rank + 1), 0)).fill(-1);
    const number = new Map(this.nodes.map((node, i) => [node, i]));
    this.ranks.forEach((rank, i) => { this.nodeOf[rank] = number.get(nodes[i]!)!; });
    this.families = this.readFamilies();
  }

  private readFamilies(): Map<number, Family> {
    const of = (column: string) => cellsOf(this.facts, "families", column);
    const columns = ["family", "name", "user_name", "kind", "communicators", "parent", "creator", "callsite"];
    const [ids, name, userName, kind, communicators, parent, creator, callsite] = columns.map(of);
    const low = of("size_min");
    const high = of("size_max");
    return new Map(ids!.map((id, i) => [Number(id), {
      id: Number(id),
      name: `${name![i] ?? ""}`,
      userName: `${userName![i] ?? predefined(`${name![i] ?? ""}`)}`,
      kind: `${kind![i] ?? ""}`,
      communicators: Number(communicators![i] ?? 1),
      sizes: sizes(low[i] ?? null, high[i] ?? null),
      parent: parent![i] as number | null,
      creator: creator![i] as string | null,
      callsite: callsite![i] as number | null,
    }]));
  }

  op(id: number): string { return this.ops.get(id) ?? `operation ${id}`; }
  comm(id: number): string { return this.comms.get(id) ?? `communicator ${id}`; }
  flow(id: number): string { return this.flows.get(id) ?? `kind ${id}`; }
  site(id: number): string { return this.facts.sites[`${id}`] ?? "unknown"; }
  path(id: number): string { return this.regions.get(id) ?? ""; }
  region(id: number): string { return this.path(id) || "outside all regions"; }

  family(id: number): string {
    const family = this.families.get(id);
    if (!family) return `family ${id}`;
    if (["none", "set"].includes(family.kind) && family.userName) return family.userName;
    return family.userName && family.userName !== family.name ? `${family.name} ${family.userName}` : family.name;
  }

  /** Returns the number of an operation or region by its name, as findings have them; undefined if there is none. */
  named(dimension: "op" | "region", name: string): number | undefined {
    const names = { op: this.ops, region: this.regions };
    for (const [id, each] of names[dimension]) if (each === name) return id;
    return undefined;
  }

  /** Returns the family or the communicator of a name, as findings have them. */
  communicator(name: string): { family: number } | { comm: number } | null {
    for (const [id, family] of this.families) if (family.name === name || predefined(family.name) === name) return { family: id };
    for (const [id, each] of this.comms) if (each === name) return { comm: id };
    return null;
  }

  /** Returns the name of a value of a dimension. */
  of(dimension: Dimension, id: number): string {
    switch (dimension) {
      case "family": return this.family(id);
      case "comm": return this.comm(id);
      case "op": return this.op(id);
      case "bin": return size(id);
      case "region": return this.region(id);
      case "callsite": return this.site(id);
      case "path": return this.paths.brief(id) || `call path ${id}`;
      case "node": return this.nodes[id] ?? `node ${id}`;
      case "rank": return `rank ${id}`;
    }
  }
}
