/* SPDX-License-Identifier: Apache-2.0
 *
 * OpenMP: an OpenMP runtime with OMPT, its interface for tools, loads this library (OMP_TOOL_LIBRARIES) when it starts,
 * and calls ompt_start_tool().  The part of the interface that is used here is declared once more, after the OpenMP
 * specification 5.2, chapter 19, so that the build needs no OpenMP.
 *
 * A parallel region becomes a region of the thread that encounters it.  The work-sharing constructs inside become
 * regions of this thread, too.  The other threads of the team have none: they would only repeat the same times. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "adapters/adapter.h"

/* ---- the interface ---- */

typedef void (*any_function)(void);
typedef any_function (*lookup_function)(const char* name);

union tool_data {
  uint64_t value;
  void* pointer;
};

struct tool {
  int (*initialize)(lookup_function lookup, int device, union tool_data* data);
  void (*finalize)(union tool_data* data);
  union tool_data data;
};

enum { event_parallel_begin = 3, event_parallel_end = 4, event_work = 20 };
enum { endpoint_begin = 1, endpoint_end = 2 };
enum { work_loop = 1, work_sections = 2, work_single = 3, work_workshare = 5, work_distribute = 6, work_taskloop = 7 };
enum { work_loop_static = 10, work_loop_other = 13 }; /* kinds of loops, since OpenMP 5.2 */
#define PARALLEL_IS_LEAGUE 0x40000000

ADAPTER_EXPORT struct tool* ompt_start_tool(unsigned version, const char* runtime);

/* ---- names ---- */

/* A region is named by its construct and the place in the program, as "function+0x1f" where the dynamic symbol table
 * has the function, and otherwise as "object+0x11f3".  Neither depends on where the object was loaded, so that all
 * processes have the same names. */
static const struct adapter_name* new_name(const char* construct, const void* place) {
  char text[256];
  Dl_info where;
  if (place == NULL || dladdr(place, &where) == 0 || where.dli_fname == NULL) {
    snprintf(text, sizeof text, "%s", construct);
  } else {
    const char* const slash = strrchr(where.dli_fname, '/');
    const bool is_named = where.dli_sname != NULL && where.dli_saddr != NULL;
    const char* const base = is_named ? where.dli_sname : slash == NULL ? where.dli_fname : slash + 1;
    const void* const from = is_named ? where.dli_saddr : where.dli_fbase;
    snprintf(text, sizeof text, "%s %.200s+0x%lx", construct, base,
             (unsigned long)((const char*)place - (const char*)from));
  }
  return adapter_name(NULL, text);
}

/* Names by construct and place, because dladdr() takes a lock.  Places that do not fit are looked up each time. */
enum { most_places = 4096, most_probes = 16 };
static struct {
  _Atomic(uintptr_t) key;
  _Atomic(const struct adapter_name*) name;
} places[most_places];

static const struct adapter_name* name_of(const char* construct, const void* place) {
  const uintptr_t key = ((uintptr_t)place * 31 + (uintptr_t)construct) | 1; /* 0: free */
  for (size_t i = 0; i < most_probes; ++i) {
    const size_t at = (key / 2 + key / 8192 + i) % most_places;
    uintptr_t there = atomic_load_explicit(&places[at].key, memory_order_acquire);
    if (there == 0 && atomic_compare_exchange_strong(&places[at].key, &there, key)) there = key;
    if (there != key) continue;
    const struct adapter_name* name = atomic_load_explicit(&places[at].name, memory_order_acquire);
    if (name == NULL) {
      name = new_name(construct, place);
      atomic_store_explicit(&places[at].name, name, memory_order_release);
    }
    return name;
  }
  return new_name(construct, place);
}

/* ---- events ---- */

static _Thread_local unsigned open_parallel; /* parallel regions that this thread has encountered */

static const char parallel[] = "omp parallel", teams[] = "omp teams";

static void parallel_begin(union tool_data* task, const void* frame, union tool_data* region, unsigned threads,
                           int flags, const void* place) {
  (void)task, (void)frame, (void)region, (void)threads;
  ++open_parallel;
  adapter_enter(parallel, name_of((flags & PARALLEL_IS_LEAGUE) != 0 ? teams : parallel, place));
}

static void parallel_end(union tool_data* region, union tool_data* task, int flags, const void* place) {
  (void)region, (void)task, (void)flags, (void)place;
  if (open_parallel == 0) return;
  --open_parallel;
  adapter_leave(parallel);
}

/* Returns the name of a work-sharing construct, or null.  A thread that does not execute a single construct only skips
 * it. */
static const char* construct_of(int work) {
  if (work == work_loop || (work >= work_loop_static && work <= work_loop_other)) return "omp for";
  switch (work) {
    case work_sections: return "omp sections";
    case work_single: return "omp single";
    case work_workshare: return "omp workshare";
    case work_distribute: return "omp distribute";
    case work_taskloop: return "omp taskloop";
    default: return NULL;
  }
}

static void work(int kind, int endpoint, union tool_data* region, union tool_data* task, uint64_t count,
                 const void* place) {
  (void)region, (void)task, (void)count;
  const char* const construct = construct_of(kind);
  if (open_parallel == 0 || construct == NULL) return;
  if (endpoint == endpoint_begin) adapter_enter(construct, name_of(construct, place));
  if (endpoint == endpoint_end) adapter_leave(construct);
}

/* ---- start ---- */

static int initialize(lookup_function lookup, int device, union tool_data* data) {
  (void)device, (void)data;
  const any_function found = lookup("ompt_set_callback");
  int (*set_callback)(int event, any_function callback);
  if (found == NULL) return 0;
  memcpy(&set_callback, &found, sizeof set_callback);
  set_callback(event_parallel_begin, (any_function)parallel_begin);
  set_callback(event_parallel_end, (any_function)parallel_end);
  set_callback(event_work, (any_function)work);
  return 1; /* the tool stays active */
}

static void finalize(union tool_data* data) { (void)data; }

/* Without the profiler the runtime gets no tool, and calls nothing. */
struct tool* ompt_start_tool(unsigned version, const char* runtime) {
  static struct tool tool = {initialize, finalize, {0}};
  (void)version, (void)runtime;
  return adapter_has_profiler() ? &tool : NULL;
}
