#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds what is installed, for the named presets of CMakePresets.json: tools/build.sh release debug
# --unit: the unit tests and what they need instead: tools/build.sh --unit debug
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh
tools/setup.sh build

target=all
if [ "${1:-}" = --unit ]; then
  target=unit_tests
  shift
fi
for preset in "$@"; do
  step build "configure $preset" cmake --preset "$preset"
  step build "compile $preset" cmake --build "build/$preset" --parallel "$(nproc)" --target "$target"
done
