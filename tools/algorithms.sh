#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What Open MPI sends inside its collectives, by its own component and by commlens, against the library of algorithms;
# docs/evidence/algorithms.md.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh
tools/setup.sh dev mpi
tools/mpis.sh
tools/build.sh release
.venv/bin/python bench/algorithms.py "$@"
