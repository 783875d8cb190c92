/* SPDX-License-Identifier: Apache-2.0
 * ROUNDS times: POLLS tests of a receive that cannot be complete, since nobody sends before the barrier. */
#include "app.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const long* const arguments = app_begin(argc, argv, "polling ROUNDS POLLS");
  const long rounds = arguments[0], polls = arguments[1];
  const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
  long in = -1;
  for (long i = 0; i < rounds; ++i) {
    const long out = i + rank;
    MPI_Request request;
    MPI_Irecv(&in, 1, MPI_LONG, left, 0, MPI_COMM_WORLD, &request);
    for (long poll = 0; poll < polls; ++poll) {
      int done;
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      app_check(!done);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Send(&out, 1, MPI_LONG, right, 0, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    app_check(in == i + left);
  }
  return app_end((double)in);
}
