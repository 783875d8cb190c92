#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the presets named (CMakePresets.json): tools/build.sh release asan
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh
tools/setup.sh build

for preset in "$@"; do
  step build "configure $preset" cmake --preset "$preset"
  step build "compile $preset" cmake --build "build/$preset" --parallel "$(nproc)"
done
