#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Records profiles of healthy runs of real applications, as Debian packages them, here as applications/NAME.db: on two
# ranks, for some seconds each, on a machine that does nothing else.  tests/python/test_findings.py expects no finding in
# any of them.  Overwrites what lies there.
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

# record NAME MPI COMMAND...: runs an application on two ranks.
record() {
  local name=$1 mpi=$2
  shift 2
  COMMLENS_OUTPUT=$room/$name.db "mpirun.$mpi" -n 2 "$runner" "$@" >"$name.log" 2>&1 ||
    { tail -n 20 "$name.log" >&2; exit 1; }
  cp "$name.db" "$here/"
  du -b "$here/$name.db" | sed "s|$here/||"
}

sed 's/^run .*/run 3000/' "$inputs/lammps.in" >lammps.in
record lammps openmpi lmp -in lammps.in

sed 's/CUTOFF 120/CUTOFF 500/; s/ABC 5.0 5.0 5.0/ABC 8.0 8.0 8.0/' "$inputs/hydrogen.inp" >hydrogen.inp
record cp2k openmpi cp2k.psmp -i hydrogen.inp

cp "$inputs/helium.nw" .
record nwchem openmpi nwchem.openmpi helium.nw

cp "$inputs/pseudopotential.in" .
ld1.x -in pseudopotential.in >/dev/null
sed 's/ecutwfc = 10.0/ecutwfc = 40.0/; s/2 2 2 0 0 0/6 6 6 0 0 0/' "$inputs/silicon.in" >silicon.in
record quantum-espresso openmpi pw.x -nk 2 -in silicon.in

sed 's/^3 .*matrix sizes/1 matrix sizes/; s/^5 16 29 .*/1000 M/; s/^6 14 29 .*/1000 N/; s/^2 .*block sizes/1 block sizes/
  s/^2 5 .*/32 NB/; s/^2 .*right-hand/1 right-hand/; s/^1 4 .*/1 NRHS/; s/^3 .*process grids/1 process grids/
  s/^1 2 1 .*/1 P/; s/^1 1 2 .*/2 Q/' "$inputs/LU.dat" >LU.dat
record scalapack mpich /usr/lib/x86_64-linux-gnu/scalapack/mpich-tests/xdlu
