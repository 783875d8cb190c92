// SPDX-License-Identifier: Apache-2.0
// The data of the page: unpacks the blocks that commlens.page.pack wrote.

export type Value = string | number | null;

/** A table of counters: one typed array per column, all of the same length. */
export interface Table {
  readonly rows: number;
  /** Missing columns were added up to keep to the budget. */
  readonly columns: Readonly<Record<string, Float64Array | undefined>>;
}

/** A small table, by column, and the query that returned it. */
export interface Sheet {
  readonly sql: string;
  readonly columns: Readonly<Record<string, Value[] | undefined>>;
}

export interface Finding {
  readonly text: string;
  readonly share: number;
  readonly rule: string;
  readonly title: string;
  readonly advice: string;
  readonly evidence: [string, string][];
  readonly view: string;
  readonly op: string | null;
  readonly family: string | null;
  readonly region: string | null;
}

export interface Comparison {
  readonly a: string[];
  readonly b: string[];
  readonly headline: string;
  readonly statement: string;
  readonly setup: string[];
  readonly outliers: string[];
  /** By column; the whole run comes first. */
  readonly rows: Readonly<Record<string, (Value | boolean)[]>>;
}

/** The recorded messages inside a collective, by rank of the communicator. */
export interface Drawing {
  /** World rank of each rank. */
  readonly members: number[];
  /** Null without root, or with several. */
  readonly root: number | null;
  readonly source: number[];
  readonly destination: number[];
  readonly messages: number[];
  readonly bytes: number[];
}

/** A line of commlens algorithms. */
export interface Algorithm {
  readonly line: number;
  readonly comms: number[];
  readonly family: number;
  readonly communicator: string;
  /** Name of the first communicator, whose messages are drawn. */
  readonly first: string;
  readonly ranks: number;
  readonly procedure: string;
  readonly op: number;
  readonly bins: number[];
  readonly size: string;
  readonly calls: number | null;
  readonly algorithm: string;
  readonly root: string;
  readonly shape: string;
  readonly fit: number | null;
  readonly fit_text: string;
  readonly is_named: boolean;
  readonly drawing: Drawing | null;
}

/** A line of commlens waits: the calls of a family of communicators, a procedure and a message size. */
export interface Wait {
  readonly family: number;
  readonly op: number;
  readonly bin: number;
  readonly communicator: string;
  readonly operation: string;
  readonly calls: number;
  readonly time_ns: number;
  readonly samples: number;
  readonly sampled_ns: number;
  readonly waiting_ns: number;
  readonly operation_ns: number;
  readonly waiting_share: number;
  /** The 95 % interval of the share; null with too few samples. */
  readonly share_low: number | null;
  readonly share_high: number | null;
  readonly interval: string;
  readonly spread_ns: number;
  readonly late_ns: number;
  /** Who is waited for, in a few words, and in sentences. */
  readonly last: string;
  readonly words: string;
  /** In what the ranks wait; requests may be of messages and of collectives. */
  readonly kind: "messages" | "requests" | "collectives";
  /** Whether each rank waits for others; otherwise all members wait for the same one. */
  readonly is_message: boolean;
  /** Whether so much of the time is waiting that it matters who is waited for. */
  readonly is_waited: boolean;
  /** Whether some calls were split by how long their members stayed, because clocks differ. */
  readonly is_by_stay: boolean;
}

/** Sampled calls that were not split into waiting and operation. */
export interface Unsplit {
  readonly family: number;
  readonly op: number;
  readonly bin: number;
  readonly communicator: string;
  readonly operation: string;
  readonly reason: string;
  readonly why: string;
  readonly calls: number;
}

export interface Waiting {
  /** Why there are no samples; empty if there are. */
  readonly refused: string;
  readonly waiting_ns: number;
  readonly time_ns: number;
  /** The line with the most waiting is first. */
  readonly lines: Wait[];
  readonly unsplit: Unsplit[];
  /** What limits the estimates, such as how well the clocks of several machines are related, in sentences. */
  readonly notes: string[];
  readonly sql: Readonly<Record<string, string>>;
}

export interface Facts {
  readonly program: string;
  readonly version: string;
  readonly is_summary: boolean;
  readonly slice_ns: number;
  /** From when to when the ranks were counted. */
  readonly extent: string;
  readonly run: Readonly<Record<string, Value>>;
  readonly head: [string, string][];
  readonly warnings: string[];
  readonly findings: { readonly refused: string; readonly rules: number; readonly found: Finding[] };
  /** What is known about the matrix of the whole run, by kind of traffic: name and text of each line. */
  readonly traffic: Readonly<Record<string, [string, string][]>>;
  readonly collectives: { readonly remarks: string[]; readonly lines: Algorithm[]; readonly drawn: string };
  readonly waiting: Waiting;
  readonly budget: number;
  readonly folded: string[];
  /** Why the profile is not in the page as a whole; empty if it is. */
  readonly no_sql: string;
  /** Whether a server sends the page and answers queries. */
  readonly is_served: boolean;
  readonly comparison: Comparison | null;
  readonly palette: string[];
  readonly sites: Readonly<Record<string, string>>;
  /** The names of the nodes of call paths. */
  readonly path_names: string[];
  readonly sheets: Readonly<Record<string, Sheet>>;
}

interface ColumnHead {
  readonly name: string;
  readonly bytes: number;
  readonly least: number;
}

interface Head extends Facts {
  readonly tables: Readonly<Record<string, { rows: number; columns: ColumnHead[] }>>;
}

export interface Profile {
  readonly facts: Facts;
  readonly cells: Table;
  readonly pairs: Table;
  readonly slices: Table;
  /** The ranks of the first lines of commlens waits. */
  readonly waits: Table;
  /** The tree of call paths: each node comes right before those inside it. */
  readonly paths: Table;
  /** The node of each call site. */
  readonly leaves: Table;
}

const NO_ROWS: Table = { rows: 0, columns: {} };

let canQuery = false;

/** Whether the page can be asked by SQL: it contains the profile, or a server answers. Known after unpack(). */
export function hasQueries(): boolean {
  return canQuery;
}

/** Returns a block of the page by its name, decompressed. */
export async function block(name: string): Promise<Uint8Array> {
  return inflated(decoded(document.getElementById(`data-${name}`)!.textContent.trim()));
}

function decoded(base64: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

async function inflated(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Puts the planes of a column together. Values beyond 2^53 lose their last digits. */
function column(bytes: Uint8Array, begin: number, rows: number, head: ColumnHead): Float64Array {
  const values = new Float64Array(rows).fill(head.least);
  for (let plane = 0; plane < head.bytes; plane++) {
    const weight = 256 ** plane;
    const at = begin + plane * rows;
    for (let i = 0; i < rows; i++) values[i]! += weight * bytes[at + i]!;
  }
  return values;
}

/** Unpacks the facts and counters of the page. */
export async function unpack(): Promise<Profile> {
  const text = new TextDecoder().decode(await block("head"));
  const { tables: heads, ...facts } = JSON.parse(text) as Head;
  canQuery = facts.no_sql === "";
  const tables: Record<string, Table> = {};
  for (const [name, table] of Object.entries(heads)) {
    const bytes = await block(name);
    const columns: Record<string, Float64Array> = {};
    let at = 0;
    for (const head of table.columns) {
      columns[head.name] = column(bytes, at, table.rows, head);
      at += head.bytes * table.rows;
    }
    tables[name] = { rows: table.rows, columns };
  }
  return {
    facts,
    cells: tables.cells ?? NO_ROWS,
    pairs: tables.pairs ?? NO_ROWS,
    slices: tables.slices ?? NO_ROWS,
    waits: tables.waits ?? NO_ROWS,
    paths: tables.paths ?? NO_ROWS,
    leaves: tables.leaves ?? NO_ROWS,
  };
}

/** Returns a column of a small table; empty if the profile lacks it. */
export function cellsOf(facts: Facts, sheet: string, column: string): Value[] {
  return facts.sheets[sheet]?.columns[column] ?? [];
}
