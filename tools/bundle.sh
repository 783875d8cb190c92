#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks page/src and bundles it into python/commlens/page/; with --check only says whether the bundle there is its.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh
tools/setup.sh dev
export PATH=$PWD/.venv/bin:$PATH # Node is in the environment, as a Python package

# npm's own record of what it installed is older than the lock file after a change.
install() {
  [ page/node_modules/.package-lock.json -nt page/package-lock.json ] || npm --prefix page ci --no-audit --no-fund
}

is_bundled() {
  local made=$PWD/build/page file
  mkdir -p "$made"
  (cd page && node build.mjs "$made") || return
  for file in _page.js _page.css _sqlite.js; do
    cmp "$made/$file" "python/commlens/page/$file" || return
  done
}

step page "packages of npm" install
code=0
step page "TypeScript: types" npm --prefix page run --silent types || code=1
step page "TypeScript: eslint" npm --prefix page run --silent lint || code=1
if [ "${1:-}" = --check ]; then
  step page "the bundle in python/commlens/page is that of page/src" is_bundled || code=1
  exit $code
fi
[ "$code" = 0 ] && step page "bundle" npm --prefix page run --silent build
exit $code
