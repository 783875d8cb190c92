// SPDX-License-Identifier: Apache-2.0
// Queries on the profile. It is in the page, where SQLite is compiled to WebAssembly and starts when a query needs it; or
// the server that sent the page answers.

import { block, type Value } from "./data";

interface Statement {
  step(): boolean;
  get(): (Value | Uint8Array)[];
  getColumnNames(): string[];
  free(): void;
}

interface Database {
  prepare(sql: string): Statement;
}

type Start = () => Promise<{ Database: new (file: Uint8Array) => Database }>;

const MOST_ROWS = 10_000;

let opened: Promise<Database> | null = null;

async function open(): Promise<Database> {
  const script = document.createElement("script");
  script.textContent = new TextDecoder().decode(await block("sqlite"));
  document.head.append(script);
  const sqlite = await (window as unknown as { initSqlJs: Start }).initSqlJs();
  return new sqlite.Database(await block("profile"));
}

export interface Answer {
  readonly names: string[];
  readonly rows: Value[][];
  /** Whether there are more rows than the page shows. */
  readonly isCut: boolean;
}

async function asked(sql: string): Promise<Answer> {
  const response = await fetch("sql", { method: "POST", body: sql });
  if (!response.ok) throw new Error(`the server answers ${response.status}`);
  const answer = (await response.json()) as Answer & { error?: string };
  if (answer.error !== undefined) throw new Error(answer.error);
  return answer;
}

/** Runs one statement. An error of SQLite is thrown as it words it. */
export async function run(sql: string): Promise<Answer> {
  if (document.getElementById("data-profile") === null) return asked(sql);
  opened ??= open();
  const statement = (await opened).prepare(sql);
  try {
    const rows: Value[][] = [];
    let isCut = false;
    while (statement.step()) {
      if (rows.length === MOST_ROWS) {
        isCut = true;
        break;
      }
      rows.push(statement.get().map((value) => (value instanceof Uint8Array ? `${value.length} bytes` : value)));
    }
    return { names: statement.getColumnNames(), rows, isCut };
  } finally {
    statement.free();
  }
}
