/* SPDX-License-Identifier: Apache-2.0
 * Around a ring: WINDOWS times, WINDOW messages of 8 bytes are under way to each rank at once. */
#include "app.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const long* const arguments = app_begin(argc, argv, "message_rate WINDOWS WINDOW");
  const long windows = arguments[0], window = arguments[1];
  const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
  long *const in = app_array((size_t)window, sizeof *in), *const out = app_array((size_t)window, sizeof *out);
  MPI_Request* const requests = app_array(2 * (size_t)window, sizeof *requests);
  for (long w = 0; w < windows; ++w) {
    for (long i = 0; i < window; ++i) {
      out[i] = w * window + i + rank;
      MPI_Irecv(&in[i], 1, MPI_LONG, left, 0, MPI_COMM_WORLD, &requests[i]);
    }
    for (long i = 0; i < window; ++i) MPI_Isend(&out[i], 1, MPI_LONG, right, 0, MPI_COMM_WORLD, &requests[window + i]);
    MPI_Waitall((int)(2 * window), requests, MPI_STATUSES_IGNORE);
    for (long i = 0; i < window; ++i) app_check(in[i] == w * window + i + left);
  }
  const double last = (double)in[window - 1];
  free(in), free(out), free(requests);
  return app_end(last);
}
