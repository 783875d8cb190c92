/* SPDX-License-Identifier: Apache-2.0
 * Two phases of five waits each: on the world, where rank 0 is 100 ms late every time, then on each half, where the odd
 * ranks are. */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

static void be_late(void) {
  const struct timespec delay = {0, 100 * 1000 * 1000};
  nanosleep(&delay, NULL);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &half);
  for (int i = 0; i < 5; ++i) {
    if (rank == 0) be_late();
    MPI_Barrier(MPI_COMM_WORLD);
  }
  int value = rank;
  for (int i = 0; i < 5; ++i) {
    if (rank % 2 == 1) be_late();
    MPI_Bcast(&value, 1, MPI_INT, 1, half);
    MPI_Barrier(half);
  }
  MPI_Comm_free(&half);
  MPI_Finalize();
  if (rank == 0) puts("done");
  return 0;
}
