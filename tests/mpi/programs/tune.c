// SPDX-License-Identifier: Apache-2.0
// 50 exchanges of blocks of 1,000 bytes on five duplicates of MPI_COMM_WORLD, which one call site makes, and as many
// sums on halves of it.
#include <mpi.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  static int from[1000], to[1000];  // for four processes
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm whole[5], half;
  for (int i = 0; i < argc + 4; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &whole[i]);
  MPI_Comm_split(MPI_COMM_WORLD, rank < size / 2, rank, &half);
  for (int i = 0; i < 50; ++i) {
    MPI_Alltoall(from, 250, MPI_INT, to, 250, MPI_INT, whole[i % 5]);
    MPI_Allreduce(from, to, 8, MPI_INT, MPI_SUM, half);
  }
  MPI_Finalize();
  return 0;
}
