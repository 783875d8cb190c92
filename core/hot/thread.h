// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/hot/comm_view.h"
#include "core/hot/peer_cell.h"
#include "core/hot/repeat.h"
#include "core/hot/table.h"

namespace [[gnu::visibility("hidden")]] commlens {

// Requests that were complete when they were made.  MPI gives them all one handle, so that nothing tells later which
// one is being waited for; but neither is there anything to wait for.  We count how many are out and keep the
// communicators they may belong to.  When a completion call has no other request, it counts under that communicator,
// or under the set of them.  The set only grows until none is out: taking one away would be a guess.
struct CompleteRequests {
  static constexpr int capacity = 32;
  std::uint32_t comm[capacity];
  int used;           // more than capacity: there are others, too
  std::uint64_t out;  // how many

  void add(std::uint32_t index) noexcept {
    ++out;
    for (int i = 0; i < used && i < capacity; ++i) {
      if (comm[i] == index) return;
    }
    if (used < capacity) comm[used] = index;
    if (used <= capacity) ++used;
  }

  void remove(std::uint64_t n) noexcept {
    out -= n < out ? n : out;
    if (out == 0) used = 0;
  }
};

// The communicator a thread is freeing: its callbacks may still use it, but it is no longer in the map, because MPI may
// give its handle to another one at once.
struct Going {
  std::uint64_t handle;
  const CommView* view;  // null: none, or not known
};

// The call under way, for whoever looks at a process that hangs or was killed.  It is over when `outermost` of its
// thread is null.
struct Doing {
  enum What : std::uint16_t { nothing, handle, index };
  std::uint64_t where;  // the communicator: the bits of its handle, or its index
  Ticks since;
  Site site;
  std::uint16_t op;
  What what;  // of `where`
};

struct Regions;  // hot/regions.h

// What a thread has noted of its slices of time (cold/slices.h).
inline constexpr Ticks first_slice_width = Ticks{1} << 23;  // 8.4 ms, or a little less with a time stamp counter
struct SliceSum;
struct SliceBlock;
struct SliceLog {
  Ticks width;         // of one slice
  std::uint64_t slot;  // the one that is under way
  Ticks looked;        // until when time in regions is noted
  SliceBlock* newest;
  SliceBlock* spare;  // of former generations
  std::uint64_t entries;
  SliceSum* sums;
  std::uint64_t capacity, used;  // of `sums`
};

// What one thread counts.  Lives in the arena and outlives the thread: a later thread goes on with it.
struct Thread {
  // Frame of the outermost MPI call under way, or null.  A frame address instead of a depth: when an error handler
  // leaves MPI by longjmp, the next call is at or above the old frame, or the old frame has been written over, and we
  // see that the old one is gone.
  char* outermost;
  Site outermost_return;  // its return address, which stands behind its frame pointer
  Doing doing;
  Ticks last_moment = ~Ticks{0};  // see is_due()
  std::uint32_t counting_region;  // see region()
  std::uint32_t number;           // among the threads of this process
  std::uint64_t sequence;         // of requests made by this thread
  Going going;
  std::uint32_t forgets;  // how often its counters have been cleared
  std::uint32_t telling;  // not 0: it is changing what it counts of its regions (class Telling)
  std::uint32_t call;     // size bin of the collective under way, as PeerPlace has it; 0: not known
  Ticks mpi;              // inside all calls that count
  Regions* regions;       // null until the first of this thread
  Table table;
  CompleteRequests complete;
  std::uint64_t forgotten;  // requests there was no memory to remember
  void* scratch;            // for the arrays of one completion call
  std::size_t scratch_bytes;
  SliceLog slices;
  TableOf<PeerCell> peers;
  Repeats* repeats = &Repeats::none;
  PeerCell nobody;    // counts the messages of a call that has none
  Thread* next;       // all threads, for collection
  Thread* next_idle;  // left by a thread that ended
  bool has_ended;     // and no later one has taken it over yet

  // The first call that ends at due() or later begins a slice; 0: never.  Other threads write it when they have
  // something for this one to look at.
  Ticks due() const noexcept { return __atomic_load_n(&last_moment, __ATOMIC_RELAXED) + 1; }
  bool is_due(Ticks end) const noexcept { return end > __atomic_load_n(&last_moment, __ATOMIC_RELAXED); }
  void wait_until(Ticks when) noexcept { __atomic_store_n(&last_moment, when - 1, __ATOMIC_RELAXED); }

  // The region that its calls count in.  Other threads write it when counting is paused or goes on.
  std::uint32_t region() const noexcept { return __atomic_load_n(&counting_region, __ATOMIC_RELAXED); }
  void count_in(std::uint32_t region) noexcept { __atomic_store_n(&counting_region, region, __ATOMIC_RELAXED); }

  // True for a call with this frame that is made inside another one.
  bool is_inside(const char* frame) const noexcept {
    constexpr std::ptrdiff_t near = 64 << 10;
    if (outermost == nullptr || frame >= outermost) return false;
    const bool is_there = outermost - frame < near || is_mapped(outermost);
    return is_there && return_address(outermost) == outermost_return;
  }
  void enter(char* frame) noexcept {
    outermost = frame;
    outermost_return = return_address(frame);
  }
  // Cold.  A frame far away may have been on a stack that is gone: a fiber left for good by an error handler.
  static bool is_mapped(const char* frame) noexcept;
  static Site return_address(const char* frame) noexcept {
    Site address;
    __builtin_memcpy(&address, frame + sizeof(void*), sizeof address);
    return address;
  }
};

// __thread, not thread_local: no initialiser, hence no hidden call on each access.
extern __thread Thread* current_thread;

// Cold: begins a slice, before the call that ends it is counted under `key`.
void slice_ended(Thread& thread, Key key, Ticks spent) noexcept;

// Counts one finished call, of which `doing` says when it began, and returns its cell.  A function, not inlined into
// 1,400 wrappers: all it needs fits into registers, and one copy of it stays in the cache.
//
// pre:  `thread` is the calling one.
// post: exactly one cell has calls + 1, so the sum over cells is the number of record() calls, always.
Cell* record(Thread& thread, Key key, Site site, Ticks spent, std::uint64_t sent, std::uint64_t received) noexcept;

// Where a call is to be kept that is like none, or like `same` but in another region: there, in `place`, or beside it;
// null: not this time.  At once where nothing good is there, unless communicators come and go so fast that it would not
// be for long; else one in eight: a program with more calls in turn than there are places would write all of this again
// and again, and what comes often has its turn soon.
Repeat* place_to_keep(Thread& thread, Repeat& place, Repeat* same, std::uint64_t freed) noexcept;
void grow_repeats(Thread& thread) noexcept;  // cold; forgets those that are kept

Thread* enter_thread() noexcept;  // cold: the calling thread's first call; never null

// False from the second thread on: then a cell may be another's.
extern bool is_first_thread_alone;
inline bool is_only_thread() noexcept { return __atomic_load_n(&is_first_thread_alone, __ATOMIC_RELAXED); }

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
