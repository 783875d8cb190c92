// SPDX-License-Identifier: Apache-2.0
// innerHTML and its relatives are forbidden: names in a profile come from strangers, and enter the page as text only.
import js from "@eslint/js";
import tseslint from "typescript-eslint";

const MARKUP = ["innerHTML", "outerHTML", "insertAdjacentHTML", "write", "writeln", "srcdoc"];

export default tseslint.config(
  { ignores: ["node_modules", "build.mjs", "eslint.config.js"] },
  js.configs.recommended,
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/no-non-null-assertion": "off",
      "no-eval": "error",
      "no-restricted-properties": ["error", ...MARKUP.map((property) => ({ property, message: "Show names as text." }))],
    },
  },
);
