/* SPDX-License-Identifier: Apache-2.0 */
#include "adapters/adapter.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/privileged.h"

enum { most_name_bytes = 255, buckets = 4096, most_names = 65536, most_open = 160, most_spans = 1024 };

/* ---- the profiler ---- */

static struct {
  commlens_region_t (*region)(const char*);
  void (*begin_region)(commlens_region_t);
  void (*end_region)(commlens_region_t);
  void (*loop_begin)(const char*, int);
  void (*loop_iteration)(void);
  void (*loop_end)(const char*);
  commlens_metric_t (*metric)(const char*, const char*);
  void (*record)(commlens_metric_t, double);
} profiler;
static bool is_there;
static struct adapter_name too_many = {NULL, NULL, "(too many names)"};
static pthread_once_t looked = PTHREAD_ONCE_INIT;

static void look(void) {
  static const struct {
    const char* name;
    void* slot;
  } functions[] = {
      {"commlens_region", &profiler.region},
      {"commlens_begin_region", &profiler.begin_region},
      {"commlens_end_region", &profiler.end_region},
      {"commlens_loop_begin", &profiler.loop_begin},
      {"commlens_loop_iteration", &profiler.loop_iteration},
      {"commlens_loop_end", &profiler.loop_end},
      {"commlens_metric", &profiler.metric},
      {"commlens_record", &profiler.record},
  };
  if (commlens_is_privileged()) return;
  for (size_t i = 0; i < sizeof functions / sizeof *functions; ++i) {
    void* const found = dlsym(RTLD_DEFAULT, functions[i].name);
    if (found == NULL) return;
    memcpy(functions[i].slot, &found, sizeof found);
  }
  too_many.region = profiler.region(too_many.text);
  is_there = true;
}

bool adapter_has_profiler(void) {
  pthread_once(&looked, look);
  return is_there;
}

/* ---- names ---- */

/* Names occur in hot loops of all threads, so they are found without a lock and never freed. */
static _Atomic(const struct adapter_name*) names[buckets];
static atomic_uint name_count;
static uint64_t add_text(uint64_t hash, const char* text, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
  return hash;
}

/* Returns whether `name` is `prefix` + `text`, of the given lengths. */
static bool is_called(const char* name, const char* prefix, size_t prefix_bytes, const char* text, size_t bytes) {
  return strncmp(name, prefix, prefix_bytes) == 0 && strncmp(name + prefix_bytes, text, bytes) == 0 &&
         name[prefix_bytes + bytes] == '\0';
}

const struct adapter_name* adapter_name(const char* prefix, const char* text) {
  if (prefix == NULL) prefix = "";
  if (text == NULL) text = "";
  const size_t prefix_bytes = strnlen(prefix, most_name_bytes);
  const size_t bytes = strnlen(text, most_name_bytes - prefix_bytes);
  const uint64_t hash = add_text(add_text(0xcbf29ce484222325u, prefix, prefix_bytes), text, bytes);
  _Atomic(const struct adapter_name*)* const bucket = &names[(hash ^ (hash >> 32)) % buckets];
  const struct adapter_name* first = atomic_load_explicit(bucket, memory_order_acquire);
  for (const struct adapter_name* name = first; name != NULL; name = name->next) {
    if (is_called(name->text, prefix, prefix_bytes, text, bytes)) return name;
  }
  if (!adapter_has_profiler() || atomic_fetch_add(&name_count, 1) >= most_names) {
    atomic_fetch_sub(&name_count, 1);
    return &too_many;
  }
  struct adapter_name* const name = malloc(sizeof *name + prefix_bytes + bytes + 1);
  if (name == NULL) return &too_many;
  memcpy(name->text, prefix, prefix_bytes);
  memcpy(name->text + prefix_bytes, text, bytes);
  name->text[prefix_bytes + bytes] = '\0';
  name->region = profiler.region(name->text);
  /* Two threads that add a name at the same time make two objects; both have the same region. */
  name->next = first;
  while (!atomic_compare_exchange_weak_explicit(bucket, &first, name, memory_order_release, memory_order_acquire)) {
    name->next = first;
  }
  return name;
}

/* ---- regions ---- */

/* Deeper than the nesting that commlens counts, so that commlens reports regions that are too deep. */
static _Thread_local struct {
  unsigned depth;
  unsigned beyond; /* open regions that did not fit into `open` */
  struct {
    const void* owner;
    const struct adapter_name* name;
    bool is_loop;
  } open[most_open];
} here;

static void enter(const void* owner, const struct adapter_name* name, bool is_loop) {
  if (!adapter_has_profiler()) return;
  if (here.depth == most_open) {
    ++here.beyond;
    return;
  }
  here.open[here.depth].owner = owner;
  here.open[here.depth].name = name;
  here.open[here.depth].is_loop = is_loop;
  ++here.depth;
  if (is_loop) {
    profiler.loop_begin(name->text, COMMLENS_LOOP_SUM);
  } else {
    profiler.begin_region(name->region);
  }
}

void adapter_enter(const void* owner, const struct adapter_name* name) { enter(owner, name, false); }
void adapter_enter_loop(const void* owner, const struct adapter_name* name) { enter(owner, name, true); }

/* Ends the regions within it one by one, so that commlens does not report them as left open. */
void adapter_leave(const void* owner) {
  if (here.beyond > 0) {
    --here.beyond;
    return;
  }
  unsigned to = here.depth;
  while (to > 0 && here.open[to - 1].owner != owner) --to;
  if (to == 0) return;
  while (here.depth >= to) {
    --here.depth;
    const struct adapter_name* const name = here.open[here.depth].name;
    if (here.open[here.depth].is_loop) {
      profiler.loop_end(name->text);
    } else {
      profiler.end_region(name->region);
    }
  }
}

void adapter_iterate(void) {
  for (unsigned i = here.depth; i > 0; --i) {
    if (here.open[i - 1].is_loop) {
      profiler.loop_iteration();
      return;
    }
  }
}

/* ---- spans ---- */

static struct {
  uint64_t id; /* 0: free */
  commlens_metric_t metric;
  struct timespec begin;
} spans[most_spans];
static uint64_t last_span;
static pthread_mutex_t spans_lock = PTHREAD_MUTEX_INITIALIZER;

uint64_t adapter_begin_span(const struct adapter_name* name) {
  if (name == NULL || !adapter_has_profiler()) return 0;
  const commlens_metric_t metric = profiler.metric(name->text, "ns");
  uint64_t id = 0;
  pthread_mutex_lock(&spans_lock);
  for (int tries = 0; tries < most_spans && id == 0; ++tries) {
    const uint64_t place = ++last_span % most_spans;
    if (spans[place].id != 0) continue;
    id = spans[place].id = last_span;
    spans[place].metric = metric;
    clock_gettime(CLOCK_MONOTONIC, &spans[place].begin);
  }
  pthread_mutex_unlock(&spans_lock);
  return id;
}

void adapter_end_span(uint64_t span) {
  if (span == 0) return;
  struct timespec end;
  clock_gettime(CLOCK_MONOTONIC, &end);
  const uint64_t place = span % most_spans;
  pthread_mutex_lock(&spans_lock);
  const bool is_open = spans[place].id == span;
  const struct timespec begin = spans[place].begin;
  const commlens_metric_t metric = spans[place].metric;
  if (is_open) spans[place].id = 0;
  pthread_mutex_unlock(&spans_lock);
  if (is_open) profiler.record(metric, (end.tv_sec - begin.tv_sec) * 1e9 + (end.tv_nsec - begin.tv_nsec));
}
