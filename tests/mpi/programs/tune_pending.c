// SPDX-License-Identifier: Apache-2.0
// A communicator of MPI_Comm_idup is not finished on rank 0, but on the others, while the next one is created. The loop
// creates two at one call site: before the first, rank 0 has not waited, before the second it has.
#include <mpi.h>

int main(int argc, char** argv) {
  volatile int count = 2;  // so that the compiler leaves one call site
  int rank, from[512] = {0}, to[512];
  MPI_Comm pending, made[2];
  MPI_Request request;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_idup(MPI_COMM_WORLD, &pending, &request);
  if (rank != 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; i < count; ++i) {
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &made[i]);
    if (i == 0 && rank == 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Comm_set_name(made[0], "first");
  MPI_Comm_set_name(made[1], "second");
  for (int i = 0; i < 2; ++i) {
    for (int k = 0; k < 10; ++k) MPI_Alltoall(from, 8, MPI_INT, to, 8, MPI_INT, made[i]);
  }
  MPI_Finalize();
  return 0;
}
