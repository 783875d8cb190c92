/* SPDX-License-Identifier: Apache-2.0
 * ROUNDS times two communicators are made, used once and freed: a copy, and one with the ranks in reverse. */
#include "app.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const long rounds = app_begin(argc, argv, "comm_churn ROUNDS")[0];
  double checksum = 0;
  for (long i = 0; i < rounds; ++i) {
    MPI_Comm copy, reverse;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    long value = rank == 0 ? i : -1;
    MPI_Bcast(&value, 1, MPI_LONG, 0, copy);
    app_check(value == i);
    MPI_Comm_split(copy, 0, -rank, &reverse);
    long sum;
    MPI_Scan(&value, &sum, 1, MPI_LONG, MPI_SUM, reverse);
    app_check(sum == i * (ranks - rank));
    MPI_Comm_free(&copy);
    MPI_Comm_free(&reverse);
    checksum += (double)sum;
  }
  return app_end(checksum);
}
