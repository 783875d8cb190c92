// SPDX-License-Identifier: Apache-2.0
// Queries of the reader's own on the profile.

import type { Context } from "../context";
import { type Child, h } from "../dom";
import { type Column, listed, panel } from "../panel";
import { type Answer, run } from "../sqlite";
import { many } from "../units";

const EXAMPLES: [string, string][] = [
  ["Communicators with the most time", `SELECT communicator, operation, SUM(calls) AS calls, SUM(time_ns) / 1e9 AS seconds
  FROM counter GROUP BY comm, operation ORDER BY seconds DESC LIMIT 20`],
  ["Ranks by time in MPI", `SELECT rank, node, mpi_ns / 1e9 AS seconds, 100.0 * mpi_ns / app_ns AS percent
  FROM rank ORDER BY mpi_ns DESC LIMIT 20`],
  ["Small messages", `SELECT communicator, operation, size_high AS bytes_at_most, SUM(calls) AS calls, SUM(time_ns) / SUM(calls) AS ns_per_call
  FROM counter WHERE size_high BETWEEN 1 AND 127 GROUP BY comm, operation, bin ORDER BY calls DESC LIMIT 20`],
  ["Tables and views", `SELECT type, name FROM sqlite_schema WHERE type IN ('table', 'view') ORDER BY type, name`],
];

function shownAnswer(sql: string, answer: Answer): HTMLElement {
  const columns = answer.names.map((name, i): Column => ({
    name, title: name, unit: answer.rows.some((row) => typeof row[i] === "string") ? "text" : "number",
  }));
  return panel("answer", {
    title: many(answer.rows.length, "row"),
    about: answer.isCut ? "There are more rows; these are the first." : "",
    result: { columns, ...listed(answer.rows), sql },
    open: true,
  });
}

/** What was typed since the address changed: the view is drawn again when the theme changes. */
let typed = { address: "", sql: "" };

export function query(context: Context): Child[] {
  const { no_sql: reason } = context.profile.facts;
  if (reason) return [h("section", { class: "panel" }, h("h2", {}, "SQL"), h("p", {}, reason))];
  const { choices } = context.state;
  const text = h("textarea", { id: "query", rows: 6, spellcheck: "false", "aria-label": "SQL" });
  const address = choices.sql ?? EXAMPLES[0]![1];
  if (typed.address !== address) typed = { address, sql: address };
  text.value = typed.sql;
  text.addEventListener("input", () => { typed.sql = text.value; });
  const answer = h("div", { id: "answers", "aria-live": "polite" });
  const execute = async () => {
    answer.replaceChildren(h("p", { class: "about" }, "Running …"));
    const sql = text.value;
    try {
      answer.replaceChildren(shownAnswer(sql, await run(sql)));
    } catch (error) {
      answer.replaceChildren(h("p", { class: "panel warnings", role: "alert" }, error instanceof Error ? error.message : String(error)));
    }
  };
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void execute();
  });
  const examples = EXAMPLES.map(([title, sql]) => h("button", { click: () => { text.value = typed.sql = sql; void execute(); } }, title));
  if (choices.sql) void execute();
  return [
    h("section", { class: "panel" }, h("h2", {}, "SQL"),
      h("p", { class: "about" }, `${context.profile.facts.is_served ? "The server reads the profile." : "The profile is in this page."} Queries cannot change it. Its tables and views are described in docs/reference/tables.md.`),
      text,
      h("div", { class: "buttons" }, h("button", { class: "main", click: () => { void execute(); } }, "Run (Ctrl+Enter)"),
        h("button", { click: () => { context.go({ choices: { ...choices, sql: text.value } }); } }, "Run and keep in the address")),
      h("h3", {}, "Examples"), h("div", { class: "buttons" }, examples)),
    answer,
  ];
}
