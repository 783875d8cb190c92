/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls on communicators that MPI_Comm_idup has not finished: mpi4py gives every new one its error handler at once. */
#include <mpi.h>
#include <stdio.h>

static void copy(MPI_Comm from) {
  MPI_Comm made;
  MPI_Request request;
  MPI_Comm_idup(from, &made, &request);
  MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Barrier(made);
  MPI_Comm_free(&made);
}

/* The same calls at the same places, on communicators that get the handles of freed ones; and on their parent, while
 * two of them are not finished. */
static void repeat(void) {
  for (int i = 0; i < 100; ++i) {
    MPI_Comm made[2];
    MPI_Request requests[2];
    int one = 1, sum = 0, flag = 0;
    for (int k = 0; k < 2; ++k) MPI_Comm_idup(MPI_COMM_WORLD, &made[k], &requests[k]);
    for (int k = 0; k < 3; ++k) MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int k = 0; k < 5; ++k) MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, made[k < 3]);
    for (int k = 0; k < 2; ++k) MPI_Comm_free(&made[k]);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, there;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc > 1) {
    repeat();
    MPI_Finalize();
    return 0;
  }
  MPI_Comm half, inter;
  copy(MPI_COMM_WORLD);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 7, &inter);
  MPI_Comm_free(&half);
  copy(inter);
  MPI_Comm_remote_size(inter, &there);
  printf("%d sees %d\n", rank, there);
  MPI_Comm_free(&inter);
  MPI_Finalize();
  return 0;
}
