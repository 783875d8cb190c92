#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures what commlens costs; arguments go to bench/run.py, which bench/README.md explains.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh
. tools/openmpi.sh
tools/setup.sh build reader mpi
tools/build.sh release
say bench "bench/run.py $*"
exec .venv/bin/python bench/run.py "$@"
