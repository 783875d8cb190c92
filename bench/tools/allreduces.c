/* SPDX-License-Identifier: Apache-2.0
 *
 * allreduces N: N sums of a double, each process with itself, on 16 communicators in turns. */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  enum { COMMS = 16 };
  MPI_Comm comms[COMMS];
  double in = 1, out;
  MPI_Init(&argc, &argv);
  for (int i = 0; i < COMMS; ++i) MPI_Comm_dup(MPI_COMM_SELF, &comms[i]);
  const long calls = argc > 1 ? atol(argv[1]) : 1000;
  for (long i = 0; i < calls; ++i) MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, comms[i % COMMS]);
  for (int i = 0; i < COMMS; ++i) MPI_Comm_free(&comms[i]);
  MPI_Finalize();
  return 0;
}
