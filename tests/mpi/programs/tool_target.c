/* SPDX-License-Identifier: Apache-2.0
 * Three sends a rank, for the tools that count them: 2 ranks. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, in = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 3; ++i) {
    MPI_Send(&rank, 1, MPI_INT, 1 - rank, i, MPI_COMM_WORLD);
    MPI_Recv(&in, 1, MPI_INT, 1 - rank, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  if (rank == 0) puts("done");
  fflush(stdout);
  MPI_Finalize();
  return 0;
}
