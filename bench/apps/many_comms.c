/* SPDX-License-Identifier: Apache-2.0
 * CALLS sums of one number, on COMMUNICATORS in turns. */
#include "app.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const long* const arguments = app_begin(argc, argv, "many_comms COMMUNICATORS CALLS");
  const long n_comms = arguments[0], calls = arguments[1];
  MPI_Comm* const comms = app_array((size_t)n_comms, sizeof *comms);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* MPICH has room for some 2,000 */
  for (long i = 0; i < n_comms; ++i) {
    if (MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]) == MPI_SUCCESS) continue;
    char line[80];
    snprintf(line, sizeof line, "the MPI library makes no more than %ld communicators", i);
    app_refuse(line);
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  double last = 0;
  for (long i = 0; i < calls; ++i) {
    const double mine = (double)(i + rank);
    MPI_Allreduce(&mine, &last, 1, MPI_DOUBLE, MPI_SUM, comms[i % n_comms]);
    app_check(last == (double)ranks * (double)i + ranks * (ranks - 1) / 2.0);
  }
  for (long i = 0; i < n_comms; ++i) MPI_Comm_free(&comms[i]);
  free(comms);
  return app_end(last);
}
