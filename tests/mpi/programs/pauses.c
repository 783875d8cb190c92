// SPDX-License-Identifier: Apache-2.0
// 100 barriers.  Rank 1 pauses counting for 30 of them.
#include <mpi.h>

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 100; ++i) {
    if (rank == 1 && i == 40) MPI_Pcontrol(0);
    if (rank == 1 && i == 70) MPI_Pcontrol(1);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
