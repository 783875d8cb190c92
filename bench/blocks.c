// SPDX-License-Identifier: Apache-2.0
// Blocking collectives with blocks of 64 bytes to 256 KiB on a duplicate of MPI_COMM_WORLD, to choose algorithms for
// (docs/evidence/tuning.md).  An argument is the number of repetitions, 60 without one.
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  enum { smallest = 64, largest = 256 << 10 };
  MPI_Init(&argc, &argv);
  const int repetitions = argc > 1 ? atoi(argv[1]) : 60;
  int ranks;
  MPI_Comm comm;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  char* const from = calloc((size_t)ranks, largest);
  char* const to = calloc((size_t)ranks, largest);
  for (int i = 0; i < repetitions; ++i) {
    for (int block = smallest; block <= largest; block *= 8) {
      const int numbers = block / (int)sizeof(double);
      MPI_Allreduce(from, to, numbers, MPI_DOUBLE, MPI_SUM, comm);
      MPI_Bcast(from, block, MPI_BYTE, 0, comm);
      MPI_Allgather(from, block, MPI_BYTE, to, block, MPI_BYTE, comm);
      MPI_Alltoall(from, block, MPI_BYTE, to, block, MPI_BYTE, comm);
      MPI_Reduce(from, to, numbers, MPI_DOUBLE, MPI_SUM, 0, comm);
      MPI_Gather(from, block, MPI_BYTE, to, block, MPI_BYTE, 0, comm);
      MPI_Reduce_scatter_block(from, to, numbers, MPI_DOUBLE, MPI_SUM, comm);
    }
  }
  free(from);
  free(to);
  MPI_Finalize();
  return 0;
}
