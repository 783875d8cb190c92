#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures the cost of commlens with a program of bench/ (bench/README.md): tools/bench.sh run.py --rounds 20
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh
. tools/openmpi.sh
tools/setup.sh build reader mpi
tools/build.sh release
say bench "bench/$*"
exec .venv/bin/python "bench/$1" "${@:2}"
