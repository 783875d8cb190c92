/* SPDX-License-Identifier: Apache-2.0
 * What the programs here measure with: a clock, and a core for each rank.  Include after defining _GNU_SOURCE. */
#ifndef BENCH_CLOCK_H
#define BENCH_CLOCK_H

#include <sched.h>
#include <time.h>

static inline double ns_of(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}
static inline double now_ns(void) { return ns_of(CLOCK_MONOTONIC); }

/* Each rank on a core of its own, as far as there are enough. */
static inline void pin(int rank) {
  cpu_set_t allowed, mine;
  sched_getaffinity(0, sizeof allowed, &allowed);
  int wanted = rank % CPU_COUNT(&allowed);
  CPU_ZERO(&mine);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed) && wanted-- == 0) CPU_SET(cpu, &mine);
  sched_setaffinity(0, sizeof mine, &mine);
}

#endif
