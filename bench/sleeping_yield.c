/* SPDX-License-Identifier: Apache-2.0
 * Preloaded into ranks of Open MPI that outnumber the processors, with mpi_yield_when_idle: a rank that waits sleeps,
 * in place of calling sched_yield() all the time, so that those with work get a processor at once. */
#include <sched.h>
#include <time.h>

int sched_yield(void) {
  const struct timespec pause = {0, 100000};
  return nanosleep(&pause, NULL);
}
