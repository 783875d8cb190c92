#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares random programs with the model; arguments go to fuzz/run.py.  Without arguments, writes the summary into
# docs/fuzzing.md.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh
tools/setup.sh build dev mpi
tools/build.sh release
# Two jobs on each processor: the launchers of MPI spend most of their time waiting.
(($#)) || set -- --programs 10000 --jobs "$((2 * $(nproc)))" --table docs/fuzzing.md
say fuzz "fuzz/run.py $*"
PYTHONPATH=.:tests/mpi exec .venv/bin/python -m fuzz.run "$@"
