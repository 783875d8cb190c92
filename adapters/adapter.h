/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the adapters.  An adapter is loaded by the library whose region calls it receives, into programs that
 * may run without the profiler.  It looks for the functions of include/commlens/commlens.h when the first region
 * begins, and does nothing if they are missing.
 *
 * A region that nests in its thread becomes a region of commlens.  One that does not, because it may overlap others
 * or end in another thread, is a span: its duration in ns is recorded as a metric. */
#ifndef COMMLENS_ADAPTER_H
#define COMMLENS_ADAPTER_H

#include <stdbool.h>
#include <stdint.h>

#include "include/commlens/commlens.h"

#define ADAPTER_EXPORT __attribute__((visibility("default")))

/* Returns whether the profiler is loaded. */
bool adapter_has_profiler(void);

/* A name.  Equal texts have the same object, which is never freed.  All names beyond the first 65,536 share one. */
struct adapter_name {
  commlens_region_t region;
  const struct adapter_name* next; /* with the same hash */
  char text[];
};

/* Returns the name `prefix` + `text`, cut off at 255 bytes as commlens does.  Null counts as an empty text.  May be
 * called from any thread; takes no lock. */
const struct adapter_name* adapter_name(const char* prefix, const char* text);

/* Begins a region of this thread, or ends the innermost one with the same owner and all regions within it.  An owner
 * stands for regions that only it can end: a pop in one NVTX domain ends no region of another domain.  An end
 * without a matching region does nothing. */
void adapter_enter(const void* owner, const struct adapter_name* name);
void adapter_enter_loop(const void* owner, const struct adapter_name* name);
void adapter_leave(const void* owner);

/* Begins an iteration of the innermost loop of this thread. */
void adapter_iterate(void);

/* Begin and end a span, in any thread.  The id 0 stands for no span: it has no name, there is no profiler, or 1,024
 * spans are open already.  Ending a span that is not open does nothing. */
uint64_t adapter_begin_span(const struct adapter_name* name);
void adapter_end_span(uint64_t span);

#endif
