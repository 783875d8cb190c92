// SPDX-License-Identifier: Apache-2.0
// Two communicators of all ranks from two call sites, and a gathering on each; with an argument also a broadcast on the
// first.
#include <mpi.h>

int main(int argc, char** argv) {
  int rank, from[8] = {0}, to[512];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm comms[2];
  MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &comms[0]);
  MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &comms[1]);
  MPI_Comm_set_name(comms[0], "first");
  MPI_Comm_set_name(comms[1], "second");
  for (int i = 0; i < 2; ++i) {
    for (int k = 0; k < 10; ++k) MPI_Allgather(from, 8, MPI_INT, to, 8, MPI_INT, comms[i]);
  }
  if (argc > 1) MPI_Bcast(from, 8, MPI_INT, 0, comms[0]);
  MPI_Finalize();
  return 0;
}
