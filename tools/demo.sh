#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Profiles a real application: Debian's LAMMPS on four ranks with Open MPI.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/step.sh
tools/setup.sh build reader demo
tools/build.sh release
. tools/openmpi.sh

command -v lmp >/dev/null || { say demo "needs LAMMPS: package lammps, or lmp in PATH"; exit 1; }
command -v mpirun.openmpi >/dev/null || { say demo "needs Open MPI: package openmpi-bin"; exit 1; }

profile=$PWD/build/demo.db
rm -f "$profile"
export COMMLENS_OUTPUT=$profile OMP_NUM_THREADS=1
step demo "mpirun -n 4 commlens-run lmp -partition 2x2 -in lj.in" \
  mpirun.openmpi -n 4 build/release/bin/commlens-run lmp -partition 2x2 -in tools/demo/lj.in -log none -screen none
say demo "commlens report build/demo.db"
echo
.venv/bin/commlens report build/demo.db
echo
page=$PWD/build/demo.html
rm -f "$page"
.venv/bin/commlens html "$profile" -o "$page" >/dev/null
say demo "the same and more as a page for a browser: build/demo.html"
say demo "next: .venv/bin/commlens comms build/demo.db"
say "" "      .venv/bin/commlens report --help, docs/guide/README.md"
