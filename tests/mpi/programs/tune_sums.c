// SPDX-License-Identifier: Apache-2.0
// 50 sums of 128 numbers on a duplicate of MPI_COMM_WORLD.
#include <mpi.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  static double from[128], to[128];
  MPI_Comm whole;
  MPI_Comm_dup(MPI_COMM_WORLD, &whole);
  for (int i = 0; i < 50; ++i) MPI_Allreduce(from, to, 128, MPI_DOUBLE, MPI_SUM, whole);
  MPI_Comm_free(&whole);
  MPI_Finalize();
  return 0;
}
