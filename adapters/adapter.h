/* SPDX-License-Identifier: Apache-2.0
 *
 * What the adapters have in common.  An adapter is loaded by the library whose region calls it takes, into programs
 * that may run without the profiler: it looks for include/commlens/commlens.h's functions when the first region
 * begins, and does nothing where they are not.
 *
 * What nests in a thread becomes a region.  What does not, because it may overlap others or end in another thread, is a
 * span: its times are a quantity in ns. */
#ifndef COMMLENS_ADAPTER_H
#define COMMLENS_ADAPTER_H

#include <stdbool.h>
#include <stdint.h>

#include "include/commlens/commlens.h"

#define ADAPTER_EXPORT __attribute__((visibility("default")))

/* Whether the profiler is loaded. */
bool adapter_has_profiler(void);

/* A name that was met before: the same text has the same one, for ever.  Those beyond 65,536 share one. */
struct adapter_name {
  commlens_region_t region;
  const struct adapter_name* next; /* with the same hash */
  char text[];
};

/* `prefix` and `text` joined, cut where commlens cuts names.  Null is the empty text. */
const struct adapter_name* adapter_name(const char* prefix, const char* text);

/* Begins a region of this thread; ends the innermost one with the same owner, with those within it.  An owner is
 * whoever can end no region but its own: what ends an NVTX domain's says nothing of another domain's.  An end that
 * finds none does nothing. */
void adapter_enter(const void* owner, const struct adapter_name* name);
void adapter_enter_loop(const void* owner, const struct adapter_name* name);
void adapter_leave(const void* owner);

/* An iteration of the innermost loop begins. */
void adapter_iterate(void);

/* A span begins, and ends, in any thread.  0, for none: it has no name, or more than 1,024 are under way.  An end of
 * what is not under way does nothing. */
uint64_t adapter_begin_span(const struct adapter_name* name);
void adapter_end_span(uint64_t span);

#endif
