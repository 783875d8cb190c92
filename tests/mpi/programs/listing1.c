/* SPDX-License-Identifier: Apache-2.0
 * Listing 1 of the mpisee paper: 30 reductions on WORLD, 100 on each of two halves. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);

  int one = 1, sum = 0, total = 0;
  for (int i = 0; i < 30; ++i) {
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    total += sum;
  }
  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, rank < size / 2, rank, &half);
  double ones[2] = {1, 1}, sums[2];
  for (int i = 0; i < 100; ++i) {
    MPI_Allreduce(ones, sums, 2, MPI_DOUBLE, MPI_SUM, half);
    total += (int)sums[1];
  }
  MPI_Comm_free(&half);
  if (rank == 0) printf("%d\n", total);
  MPI_Finalize();
  return 0;
}
