#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures the cost of collecting a profile with many ranks; with --page, writes docs/evidence/scale.md.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh
tools/setup.sh build dev
tools/build.sh release
step build "the scale laboratory" cmake --build build/release --target commlens-scale
.venv/bin/python bench/scale.py "$@"
