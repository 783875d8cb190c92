#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares the messages inside Open MPI's collectives, as its own component and commlens count them, with the models in
# commlens.algorithms; writes docs/evidence/algorithms.md.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh
tools/setup.sh dev mpi
tools/mpis.sh
tools/build.sh release
.venv/bin/python bench/algorithms.py "$@"
