// SPDX-License-Identifier: Apache-2.0
// A preloaded library that takes a digest of the messages that MPICH sends with UCX. Ranks of one machine use UCX only
// with MPIR_CVAR_NOLOCAL=1. SLOW_BYTES makes the messages of this size slow, by SLOW_MICROSECONDS each.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

static uint64_t sends;

// Returns the digest of the sizes of all messages since the last call.
uint64_t sends_since(void) {
  uint64_t found = sends;
  sends = 0;
  return found;
}

void* ucp_tag_send_nbx(void* end, const void* buffer, size_t count, uint64_t tag, const void* parameters) {
  static void* (*next)(void*, const void*, size_t, uint64_t, const void*);
  const char *slow = getenv("SLOW_BYTES"), *time = getenv("SLOW_MICROSECONDS");
  if (!next) next = (void* (*)(void*, const void*, size_t, uint64_t, const void*))dlsym(RTLD_NEXT, "ucp_tag_send_nbx");
  if (slow && time && count == (size_t)atoi(slow)) usleep((useconds_t)atoi(time));
  sends = (sends + count + 1) * 0x9e3779b97f4a7c15u;
  return next(end, buffer, count, tag, parameters);
}
