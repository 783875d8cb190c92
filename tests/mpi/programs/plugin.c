/* SPDX-License-Identifier: Apache-2.0
 * A plugin that calls MPI, loaded and unloaded by programs/plugins.c. */
#include <mpi.h>

#ifndef TIMES
#define TIMES 3
#endif

int work(MPI_Comm comm);
int work(MPI_Comm comm) {
  int one = 1, sum = 0;
  for (int i = 0; i < TIMES; ++i) MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  return sum;
}
