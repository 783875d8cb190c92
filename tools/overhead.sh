#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures what commlens costs and writes docs/overhead.md; arguments go to bench/overhead.py.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh
. tools/openmpi.sh
tools/setup.sh build reader mpi
tools/build.sh release
say overhead "bench/overhead.py $*"
exec .venv/bin/python bench/overhead.py "$@"
