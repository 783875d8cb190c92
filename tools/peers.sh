#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds other MPI profilers and compares commlens with them: writes docs/comparison.md.  Arguments go to bench/peers
# (--help lists them); from make, PEERS, PARTS, AGAIN, BUDGET, ROUNDS, RANKS, HOSTS and SIZE come by the environment.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh
. tools/openmpi.sh
tools/setup.sh build reader dev mpi peers ${HOSTS:+hosts}
tools/build.sh release
say peers "python -m bench.peers"
exec .venv/bin/python -m bench.peers ${PEERS:+--peers "$PEERS"} ${PARTS:+--parts "$PARTS"} \
  ${AGAIN:+--again "$AGAIN"} ${BUDGET:+--minutes "$BUDGET"} ${ROUNDS:+--rounds "$ROUNDS"} ${RANKS:+--ranks "$RANKS"} \
  ${HOSTS:+--hosts "$HOSTS"} ${SIZE:+--size "$SIZE"} "$@"
