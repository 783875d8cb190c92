/* SPDX-License-Identifier: Apache-2.0
 * Rank 0 and 1 exchange BYTES both ways at once, TIMES; rank 0 prints the bytes a second that each of them received. */
#include "apps/app.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const long* const arguments = app_begin(argc, argv, "link BYTES TIMES");
  if (ranks != 2) app_refuse("needs 2 ranks");
  const int bytes = (int)arguments[0];
  char *out = app_array((size_t)bytes, 1), *in = app_array((size_t)bytes, 1);
  double begin = 0;
  for (long i = -1; i < arguments[1]; ++i) { /* the first exchange makes the connection */
    if (i == 0) begin = MPI_Wtime();
    MPI_Sendrecv(out, bytes, MPI_BYTE, 1 - rank, 0, in, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  }
  const double seconds = MPI_Wtime() - begin;
  free(out), free(in);
  return app_end((double)bytes * (double)arguments[1] / seconds);
}
