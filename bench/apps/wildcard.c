/* SPDX-License-Identifier: Apache-2.0
 * MESSAGES of each rank, to all others in turns, each received from anybody with any tag.  Those of one sender come in
 * their order, and as many as it sent; a rank sends no more before it has received as many, so none piles up. */
#include "app.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const long messages = app_begin(argc, argv, "wildcard MESSAGES")[0];
  const int others = ranks > 1 ? ranks - 1 : 1;
  long *const sent = app_array((size_t)ranks, sizeof *sent), *const received = app_array((size_t)ranks, sizeof *sent);
  double sum = 0;
  for (long i = 0; i < messages; ++i) {
    const int to = (int)((rank + 1 + i % others) % ranks);
    const long out = sent[to]++;
    long in;
    MPI_Request request;
    MPI_Status status;
    MPI_Isend(&out, 1, MPI_LONG, to, (int)(out % 32), MPI_COMM_WORLD, &request);
    MPI_Recv(&in, 1, MPI_LONG, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    app_check(in == received[status.MPI_SOURCE]++ && status.MPI_TAG == (int)(in % 32));
    sum += (double)in;
  }
  /* A sender gives this rank its message i for which i % others is how far it is away. */
  for (int from = 0; from < ranks; ++from) {
    const int turn = ranks > 1 ? (rank - from + ranks - 1) % ranks : 0;
    app_check(received[from] == (from == rank && ranks > 1 ? 0 : (messages - turn + others - 1) / others));
  }
  free(sent), free(received);
  return app_end(sum);
}
