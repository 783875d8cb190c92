#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds what is installed, for the named presets of CMakePresets.json: tools/build.sh release debug
# --target NAME: that target instead, such as the unit tests: tools/build.sh --target unit_tests debug
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh
usage "$@"
tools/setup.sh build

target=all
if [ "${1:-}" = --target ]; then
  target=$2
  shift 2
fi

# Ninja and ccache save time where they are installed; nothing needs them. A build folder keeps its generator. ccache
# takes the dependencies from the compiler, because a run of the preprocessor takes a third of the time of a compilation.
generator=()
export CCACHE_DEPEND=1
if command -v ninja >/dev/null; then generator=(-G Ninja); fi
if command -v ccache >/dev/null; then export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi

for preset in "$@"; do
  if [ -e "build/$preset/CMakeCache.txt" ]; then generator=(); fi
  step build "configure $preset" cmake --preset "$preset" "${generator[@]}"
  step build "compile $preset" cmake --build "build/$preset" --parallel "$(nproc)" --target "$target"
done
