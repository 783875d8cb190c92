/* SPDX-License-Identifier: Apache-2.0
 * Preloaded into MPICH programs with more ranks than cores.
 *
 * MPICH over UCX polls ucp_worker_progress() without ever giving the core away, so a rank that waits
 * takes the time slices of the rank it waits for.  After a few polls that found nothing we yield. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>

enum { PATIENCE = 16 };

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
  else if (++empty_polls >= PATIENCE) {
    empty_polls = 0;
    sched_yield();
  }
  return events;
}
