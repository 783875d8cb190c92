/* SPDX-License-Identifier: Apache-2.0
 *
 * A tool whose cost is known: it looks at the clock in each MPI_Allreduce until WAITS nanoseconds are over. */
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

static long long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1000000000LL * t.tv_sec + t.tv_nsec;
}

int MPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  static long long waits = -1;
  const long long begin = now();
  if (waits < 0) waits = getenv("WAITS") == NULL ? 1000 : atoll(getenv("WAITS"));
  while (now() - begin < waits) {
  }
  return PMPI_Allreduce(in, out, count, type, op, comm);
}
