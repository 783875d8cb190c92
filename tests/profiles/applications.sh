#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Records profiles of healthy runs of real applications, here as applications/NAME.db: on two ranks, for some seconds
# each, on a machine that does nothing else.  Debian's packages lammps, cp2k, quantum-espresso, abinit, abinit-data,
# python3-meep-openmpi and python3-matplotlib have them.  tests/python/test_findings.py expects no finding in any of
# them.  Overwrites what lies there.
#
#     make build && tests/profiles/applications.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
. tools/openmpi.sh
export OMPI_MCA_hwloc_base_binding_policy=none OMP_NUM_THREADS=1 COMMLENS_CONFIG=/dev/null COMMLENS_SETTINGS=labels

here=$PWD/tests/profiles/applications inputs=$PWD/tests/mpi/apps_inputs runner=$PWD/build/release/bin/commlens-run
# Profiles name the folder of the program: the same neutral one for all of them.  mkdir fails where somebody else has it.
room=/tmp/applications
mkdir "$room"
trap 'rm -rf "$room"' EXIT
mkdir -p "$here"
cd "$room"

# record NAME COMMAND...: runs an application on two ranks.
record() {
  local name=$1
  shift
  COMMLENS_OUTPUT=$room/$name.db mpirun.openmpi -n 2 "$runner" "$@" >"$name.log" 2>&1 ||
    { tail -n 20 "$name.log" >&2; exit 1; }
  cp "$name.db" "$here/"
  du -b "$here/$name.db" | sed "s|$here/||"
}

sed 's/^run .*/run 3000/' "$inputs/lammps.in" >lammps.in
record lammps lmp -in lammps.in

sed 's/CUTOFF 120/CUTOFF 500/; s/ABC 5.0 5.0 5.0/ABC 8.0 8.0 8.0/' "$inputs/hydrogen.inp" >hydrogen.inp
record cp2k cp2k.psmp -i hydrogen.inp

cp "$inputs/pseudopotential.in" .
ld1.x -in pseudopotential.in >/dev/null
sed 's/ecutwfc = 10.0/ecutwfc = 60.0/; s/2 2 2 0 0 0/8 8 8 0 0 0/' "$inputs/silicon.in" >silicon.in
record quantum-espresso pw.x -nk 2 -in silicon.in

cp "$inputs/silicon.abi" "$inputs/waveguide.py" .
record abinit abinit silicon.abi
record meep /usr/bin/python3 waveguide.py
