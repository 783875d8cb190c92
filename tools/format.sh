#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Formats the hand-written sources; with --check only lists the files that would change.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh
usage "$@"
tools/setup.sh dev

mapfile -t sources < <(find adapters core slurm include proof/programs python/commlens tests bench fuzz -name '*.h' -o -name '*.hpp' -o -name '*.c' -o -name '*.cpp')
if [ "${1:-}" = --check ]; then
  code=0
  step format "C++" .venv/bin/clang-format --dry-run -Werror "${sources[@]}" || code=1
  step format "Python" .venv/bin/ruff format --check . || code=1
  exit $code
fi
step format "C++" .venv/bin/clang-format -i "${sources[@]}"
step format "Python" .venv/bin/ruff format .
step format "Python, safe fixes" .venv/bin/ruff check --fix-only .
