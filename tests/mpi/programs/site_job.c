/* SPDX-License-Identifier: Apache-2.0
 * A job of a user who has never heard of commlens: `site_job CODE` sums up 20 times, prints the result on rank 0 and
 * ends with this exit code; `site_job wait` never ends. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
  int rank = 0, sum = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 20; ++i) MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("sum %d\n", sum);
    fflush(stdout);
  }
  while (argc > 1 && strcmp(argv[1], "wait") == 0) sleep(1);
  MPI_Finalize();
  return argc > 1 ? atoi(argv[1]) : 0;
}
