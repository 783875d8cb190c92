/* SPDX-License-Identifier: Apache-2.0
 * A classic PMPI tool in twenty lines: counts MPI_Send and says so in MPI_Finalize. */
#include <mpi.h>
#include <stdio.h>

static int sends;

int MPI_Send(void const* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  ++sends;
  return PMPI_Send(buffer, count, type, to, tag, comm);
}

int MPI_Finalize(void) {
  printf("tool saw %d sends\n", sends);
  fflush(stdout);
  return PMPI_Finalize();
}
