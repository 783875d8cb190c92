#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests with MPI, notes which procedures they use, and writes docs/coverage.md.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh
. tools/openmpi.sh
tools/setup.sh build dev demo mpi test
tools/build.sh release

export COMMLENS_TEST_EVIDENCE=$PWD/build/evidence
rm -rf "$COMMLENS_TEST_EVIDENCE"
.venv/bin/python -m pytest --quiet --no-header -p no:cacheprovider tests/mpi </dev/null
.venv/bin/python tests/mpi/evidence.py write "$COMMLENS_TEST_EVIDENCE"
.venv/bin/python gen/coverage.py
