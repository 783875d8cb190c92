#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Kills jobs of many ranks that take snapshots, and checks the last one; arguments go to fuzz/snapshots.py.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh
tools/setup.sh build dev mpi
tools/mpis.sh
tools/build.sh release
say snapshots "fuzz/snapshots.py $*"
PYTHONPATH=.:tests/mpi exec .venv/bin/python -m fuzz.snapshots "$@"
