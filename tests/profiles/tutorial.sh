#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Records the profiles whose reports docs/guide/tutorial.md and docs/questions/ show, here as tutorial/NAME.db: LAMMPS with
# the inputs of tools/demo/.  Debian's package lammps has the application.  The pages show other numbers afterwards:
# tests/python/test_doc_examples.py names each line that differs.
#
#     make build && tests/profiles/tutorial.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
. tools/openmpi.sh
export OMPI_MCA_hwloc_base_binding_policy=none OMP_NUM_THREADS=1 COMMLENS_CONFIG=/dev/null COMMLENS_SETTINGS=labels

here=$PWD/tests/profiles/tutorial runner=$PWD/build/release/bin/commlens-run commlens=$PWD/.venv/bin/commlens
# Profiles name the folder of the program: the same neutral one for all of them.  mkdir fails where somebody else has it.
room=/tmp/tutorial
mkdir "$room"
trap 'rm -rf "$room"' EXIT
mkdir -p "$here"
cp tools/demo/drop.in tools/demo/slab.in "$room"
cd "$room"

# record NAME RANKS ARGUMENT...: runs LAMMPS, and stores the names of its functions in the profile.
record() {
  local name=$1 ranks=$2
  shift 2
  COMMLENS_OUTPUT=$room/$name.db mpirun.openmpi -n "$ranks" "$runner" lmp "$@" -log none -screen none
  "$commlens" symbols "$name.db"
  mv "$name.db" "$here/"
}

record before 2 -in drop.in
record after 2 -in drop.in -var cuts moved
COMMLENS_WAITING=0 record slab 8 -in slab.in
