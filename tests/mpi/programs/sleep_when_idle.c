/* SPDX-License-Identifier: Apache-2.0
 * Preloaded into MPICH programs, which have more ranks than there are cores.
 *
 * MPICH over UCX polls ucp_worker_progress() without ever giving the core away, so a rank that waits takes the time
 * slices of the rank it waits for.  After a few polls that found nothing we yield, and then sleep: two ranks that wait
 * would only yield to each other, and keep the cores from other tests. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <time.h>

/* Defined by a benchmark, whose ranks must not sleep. */
#ifndef POLLS_BEFORE_SLEEP
#define POLLS_BEFORE_SLEEP 64
#endif
enum { POLLS_BEFORE_YIELD = 16, SLEEP_NS = 20000 };

static void give_way(int empty_polls) {
  const struct timespec sleep = {0, SLEEP_NS};
  if (empty_polls >= POLLS_BEFORE_SLEEP)
    nanosleep(&sleep, NULL);
  else if (empty_polls >= POLLS_BEFORE_YIELD)
    sched_yield();
}

unsigned ucp_worker_progress(void* worker) {
  static unsigned (*real)(void*);
  static __thread int empty_polls;
  if (!real) {
    /* Python loads its extensions RTLD_LOCAL: then the library behind us is in no scope of ours. */
    void* library = dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD);
    real = (unsigned (*)(void*))dlsym(library ? library : RTLD_NEXT, "ucp_worker_progress");
  }
  unsigned events = real(worker);
  if (events)
    empty_polls = 0;
  else if (empty_polls < POLLS_BEFORE_SLEEP)
    ++empty_polls;
  give_way(empty_polls);
  return events;
}
