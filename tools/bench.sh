#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures what commlens costs with a program of bench/, which bench/README.md explains: tools/bench.sh run.py --rounds 20
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh
. tools/openmpi.sh
tools/setup.sh build reader mpi
tools/build.sh release
say bench "bench/$*"
exec .venv/bin/python "bench/$1" "${@:2}"
