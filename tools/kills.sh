#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Kills jobs at random moments and recovers them; arguments go to fuzz/kills.py.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh
tools/setup.sh build dev mpi
tools/build.sh release
(($#)) || set -- --kills 500 --jobs "$(nproc)"
say kills "fuzz/kills.py $*"
PYTHONPATH=.:tests/mpi exec .venv/bin/python -m fuzz.kills "$@"
