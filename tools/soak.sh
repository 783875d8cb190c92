#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures resident memory over time; arguments go to fuzz/soak.py.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh
tools/setup.sh build dev mpi
tools/build.sh release
say soak "fuzz/soak.py $*"
PYTHONPATH=.:tests/mpi exec .venv/bin/python -m fuzz.soak "$@"
