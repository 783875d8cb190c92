/* SPDX-License-Identifier: Apache-2.0
 * CALLS times a broadcast of one number and a barrier, as benchmarks do that start each measurement together. */
#include "app.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const long calls = app_begin(argc, argv, "bcast_barrier CALLS")[0];
  long sum = 0;
  for (long i = 0; i < calls; ++i) {
    long value = rank == 0 ? i : -1;
    MPI_Bcast(&value, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    sum += value;
  }
  app_check(sum == calls * (calls - 1) / 2);
  return app_end((double)sum);
}
