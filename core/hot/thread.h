// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/hot/table.h"

namespace [[gnu::visibility("hidden")]] commlens {

// Requests that were complete when they were made.  MPI gives them all one handle, so that nothing tells later which
// one is being waited for; but neither is there anything to wait for.  We count, by communicator, how many are out.
// When a completion call has no other request, it counts under the communicator they belong to, if that is only one,
// and under the set of those it may be otherwise.
struct CompleteRequests {
  static constexpr int capacity = 16;  // communicators; more than that at once are not told apart
  struct {
    std::uint32_t comm;
    std::uint32_t count;
  } out[capacity];
  int used;

  void add(std::uint32_t comm) noexcept {
    for (int i = 0; i < used; ++i) {
      if (out[i].comm == comm) {
        ++out[i].count;
        return;
      }
    }
    if (used < capacity) out[used++] = {comm, 1};
  }

  // One of them completed: the first communicator in the order of their making.
  void remove() noexcept {
    if (used == 0 || --out[0].count > 0) return;
    --used;
    for (int i = 0; i < used; ++i) out[i] = out[i + 1];
  }
};

// What one thread counts.  Lives in mapped memory and outlives the thread: a later thread goes on with it.
struct Thread {
  // Frame of the outermost MPI call under way, or null.  A frame address instead of a depth: when an error handler
  // leaves MPI by longjmp, the next call is at or above the old frame, and we see that the old one is gone.
  char* outermost;
  std::uint32_t region;
  std::uint64_t sequence;  // of requests made by this thread
  Table table;
  CompleteRequests complete;
  std::uint64_t forgotten;  // requests there was no memory to remember
  void* scratch;            // for the arrays of one completion call
  std::size_t scratch_bytes;
  Thread* next;       // all threads, for collection
  Thread* next_idle;  // left by a thread that ended
};

// __thread, not thread_local: no initialiser, hence no hidden call on each access.
extern __thread Thread* current_thread;

Thread* enter_thread() noexcept;  // cold: the calling thread's first call; never null

inline Thread& this_thread() noexcept {
  Thread* const t = current_thread;
  return __builtin_expect(t != nullptr, 1) ? *t : *enter_thread();
}

// Cold.  Returns at least `bytes` of scratch memory, or null.  The memory is valid until the next call.
void* grow_scratch(Thread& t, std::size_t bytes) noexcept;

inline void* scratch(Thread& t, std::size_t bytes) noexcept {
  return __builtin_expect(bytes <= t.scratch_bytes, 1) ? t.scratch : grow_scratch(t, bytes);
}

}  // namespace commlens
