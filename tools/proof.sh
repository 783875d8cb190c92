#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs public test programs without and with commlens and writes docs/evidence/transparency.md; arguments go to the package
# proof (proof/README.md).
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh
tools/setup.sh build dev mpi test proof
tools/build.sh release
exec .venv/bin/python -m proof "$@"
