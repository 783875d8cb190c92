// SPDX-License-Identifier: Apache-2.0
// Preloaded: delays MPI_Reduce_scatter_block by 4 ms, and by 12 ms if I_MPI_ADJUST_REDUCE_SCATTER_BLOCK chooses another
// algorithm than 3, with which it does not: as if Intel MPI were slow in all others. commlens calls the name with P, a
// program without it the one without.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int Call(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);

static int delayed(const char* name, const void* from, void* to, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm) {
  const char* chosen = getenv("I_MPI_ADJUST_REDUCE_SCATTER_BLOCK");
  struct timespec delay = {0, chosen ? 12000000 : 4000000};
  if (!chosen || strcmp(chosen, "3")) nanosleep(&delay, NULL);
  return ((Call*)dlsym(RTLD_NEXT, name))(from, to, count, type, op, comm);
}

int MPI_Reduce_scatter_block(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return delayed("MPI_Reduce_scatter_block", from, to, count, type, op, comm);
}

int PMPI_Reduce_scatter_block(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return delayed("PMPI_Reduce_scatter_block", from, to, count, type, op, comm);
}
