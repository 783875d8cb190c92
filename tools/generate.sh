#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes the generated files; with --check only lists those that would change.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh
usage "$@"
tools/setup.sh dev

for what in calls abi launchers bindings options settings schema dataset findings algorithms switches commands manual \
  completion coverage; do
  step gen "$what${1:+, up to date?}" .venv/bin/python "gen/$what.py" "$@"
done
