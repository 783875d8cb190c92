#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests an installed commlens: profiles a job of two ranks, shows its report, and lets commlens compare a job with known
# counts.  Uses what is in PATH, and nothing of this checkout.
#     packaging/smoke.sh [LAUNCHER [OPTION...]]    mpirun if none is named; MPICC=mpicc compiles
set -eu
[ $# -gt 0 ] || set -- mpirun
MPICC=${MPICC:-mpicc}
export MPICC
# Open MPI's reservations about small machines, containers and root.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_pml=ob1
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe PRTE_MCA_hwloc_default_binding_policy=none
# Shared memory only. Its name depends on the version of Open MPI, which accepts names that it does not know here only.
export OMPI_MCA_btl=^tcp,openib,uct OMPI_MCA_btl_base_warn_component_unused=0

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >job.c <<'PROGRAM'
#include <mpi.h>
int main(int argc, char** argv) {
  MPI_Comm half;
  int rank, sum;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  for (int i = 0; i < 10; ++i) MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Barrier(half);
  MPI_Comm_free(&half);
  return MPI_Finalize();
}
PROGRAM
"$MPICC" -o job job.c
COMMLENS_OUTPUT=job.db "$@" -n 2 commlens-run ./job
commlens report job.db
counts=$(commlens sql --format csv job.db "SELECT op.name, sum(cell.calls) AS calls FROM cell JOIN key ON key.id = cell.key
  JOIN op ON op.id = key.op WHERE op.name IN ('MPI_Allreduce', 'MPI_Barrier', 'MPI_Comm_split') GROUP BY 1 ORDER BY 1")
expected='name,calls
MPI_Allreduce,20
MPI_Barrier,2
MPI_Comm_split,2'
if [ "$(printf '%s' "$counts" | tr -d '\r')" != "$expected" ]; then
  printf 'wrong counts:\n%s\n' "$counts" >&2
  exit 1
fi
commlens self-test -- "$@" -n 4
