// SPDX-License-Identifier: Apache-2.0
// Bundles the page's script and style into python/commlens/page/, where they are committed: users need no Node.
import { readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const banner = "SPDX-License-Identifier: Apache-2.0 - DO NOT EDIT: written by page/build.mjs from page/src";
const out = process.argv[2] ?? "../python/commlens/page";
for (const [entry, name] of [["src/main.ts", "_page.js"], ["src/style.css", "_page.css"]]) {
  await build({
    entryPoints: [entry],
    outfile: `${out}/${name}`,
    bundle: true,
    minify: true,
    charset: "ascii",
    legalComments: "none",
    target: ["chrome103", "firefox113", "safari16.4"],
    banner: { [name.endsWith("js") ? "js" : "css"]: `/* ${banner} */` },
  });
}

// SQLite for the view SQL stays a file of its own, unchanged below its licence: only small profiles bring it along.
const licence = readFileSync("node_modules/sql.js/LICENSE", "utf8");
const sqlite = readFileSync("node_modules/sql.js/dist/sql-wasm-inline.js", "utf8");
writeFileSync(`${out}/_sqlite.js`, `/* sql.js, unchanged; copied by page/build.mjs\n\n${licence}*/\n${sqlite}`);
