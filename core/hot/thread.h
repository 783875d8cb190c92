// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/hot/cached_call.h"
#include "core/hot/comm_view.h"
#include "core/hot/paths.h"
#include "core/hot/peer_cell.h"
#include "core/hot/table.h"

namespace [[gnu::visibility("hidden")]] commlens {

// Counts requests that were complete when they were made.  MPI gives all of them the same handle, so a completion call
// does not show which one it completes; but it does not wait for any of them either.  We count how many are outstanding
// and keep the communicators that they may belong to.  A completion call without other requests is counted under that
// communicator, or under the set of them.  The set only grows until none is outstanding: removing a communicator
// earlier would be a guess.
struct CompleteRequests {
  static constexpr int capacity = 32;
  std::uint32_t comm[capacity];
  int used;           // more than capacity: further communicators are not listed
  std::uint64_t out;  // number of outstanding requests

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

// The communicator that a thread is freeing.  Its callbacks may still use it, but it is no longer in the map, because
// MPI may give its handle to another communicator at once.
struct FreeingComm {
  std::uint64_t handle;
  const CommView* view;  // null: none, or unknown
};

// The other end of a message: a rank of the communicator, and a tag.
struct Partner {
  int rank;
  int tag;
};

// The call in progress, for tools that inspect a process that hangs or was killed.  The call has ended if `outermost`
// of its thread is null.
struct CurrentCall {
  enum CommBy : std::uint8_t { nothing, handle, index };
  std::uint64_t comm;  // the communicator: the bits of its handle, or its index
  Ticks since;
  Site site;
  std::uint16_t op;
  CommBy comm_by;  // meaning of `comm`
  // 1: `since` is the begin of an earlier call, plus one tick for each call after it, so that it identifies the call.
  std::uint8_t is_untimed;
  // As the application passed them.  Valid if `op` has them (OpFacts::partners); other calls leave those of an earlier
  // one here.
  Partner to, from;
};

// One by one, because an aggregate would clear the partners.
inline void begin_call(CurrentCall& call, std::uint64_t comm, Ticks since, Site site, std::uint32_t op,
                       CurrentCall::CommBy comm_by, bool is_untimed = false) noexcept {
  call.comm = comm;
  call.since = since;
  call.site = site;
  call.op = static_cast<std::uint16_t>(op);
  call.comm_by = comm_by;
  call.is_untimed = is_untimed ? 1 : 0;
}

// What the address of a frame leads to: the frame pointer of the caller, and the return address.  Compilers for x86-64
// and aarch64 store it in every function that asks for its frame address.  Elsewhere, a function that needs a frame has
// this variable in it.
class FrameRecord {
 public:
  explicit FrameRecord(Site return_address) noexcept : words_{0, return_address} {}
  char* address() noexcept { return reinterpret_cast<char*>(words_); }

 private:
  Site words_[2];
};

struct Regions;       // hot/regions.h
struct ThreadEvents;  // state/events.h

// The slices that a thread has logged (state/slices.h).
inline constexpr Ticks first_slice_width = Ticks{1} << 23;  // 8.4 ms, or 3.5 ms with a TSC of 2.4 GHz
struct SliceSum;
struct SliceBlock;
struct SliceLog {
  Ticks width;         // of one slice
  std::uint64_t slot;  // the current slice
  Ticks logged_until;  // time in regions is logged up to this time
  SliceBlock* newest;
  SliceBlock* spare;  // blocks of former generations, for reuse
  std::uint64_t entries;
  SliceSum* sums;
  std::uint64_t capacity, used;  // entries of `sums`
};

// Whose calls a Thread counts.  Filled in with COMMLENS_THREADS=each only (state/thread_owners.h).
struct ThreadOwner {
  enum Kind : std::uint32_t {
    any,    // of one thread after the other
    one,    // of a single thread
    others  // as `any`: there are too many threads to count each one apart
  };
  Kind kind;
  std::uint32_t threads;  // number of threads so far
  std::int32_t id;        // of the last one, as gettid() returns it
  std::uint32_t is_main;  // 1: of the first thread of the process
  char name[16];          // as the kernel has it; zero-terminated
};

// Whether the application has made an error handler: a function that may leave the MPI call that calls it by longjmp.
// No other callback is expected to.  Attributes and operations, which many libraries make, thus cost nothing.
extern bool has_error_handlers;
inline void note_error_handler() noexcept { __atomic_store_n(&has_error_handlers, true, __ATOMIC_RELAXED); }

// The counters of one thread.  Stored in the arena; it remains when the thread ends, and a later thread continues it
// (unless its owner is `one`).
struct Thread {
  // Frame of the outermost MPI call in progress, or null.  A frame address instead of a depth, because an error handler
  // may leave MPI by longjmp.  Then the next call is at or above the old frame, the old frame has been overwritten, or
  // it is none of its callers' (encloses()): each shows that the old call has ended.
  char* outermost;
  Site outermost_return;  // its return address, stored behind its frame pointer
  CurrentCall current;
  Ticks last_moment = ~Ticks{0};  // see is_due()
  std::uint32_t counting_region;  // see region()
  std::uint32_t number;           // among the threads of this process
  std::uint64_t sequence;         // number of requests that this thread has made
  FreeingComm freeing;
  std::uint32_t clears;            // number of times its counters were cleared
  std::uint32_t updating_regions;  // not 0: the thread is changing the counters of its regions (class RegionUpdate)
  std::uint32_t call;              // size bin of the collective in progress, as in PeerPlace; 0: unknown
  Ticks mpi;                       // time inside all counted calls
  Regions* regions;                // null until the thread begins its first region
  ThreadEvents* events;            // null: none are counted
  ThreadOwner owner;               // here, because a Table begins on a line of its own
  Table table;
  CompleteRequests complete;
  std::uint64_t forgotten;    // requests that could not be stored for lack of memory
  void* scratch;              // memory for the arrays of one completion call
  std::size_t scratch_bytes;  // 0: a call uses it
  SliceLog slices;
  TableOf<PeerCell> peers;
  CallCache* call_cache = &CallCache::none;
  PathCache* paths = &PathCache::none;
  PeerCell nobody;    // dummy cell for calls without a message
  Thread* next;       // list of all threads, for collection
  Thread* next_idle;  // list of those whose thread has ended
  bool has_ended;     // the thread has ended, and no later one has taken this over yet

  // The first call that ends at due() or later begins a slice; 0: never.  Other threads write it to make this thread
  // check for a request of theirs.
  Ticks due() const noexcept { return __atomic_load_n(&last_moment, __ATOMIC_RELAXED) + 1; }
  bool is_due(Ticks end) const noexcept { return end > __atomic_load_n(&last_moment, __ATOMIC_RELAXED); }
  void wait_until(Ticks when) noexcept { __atomic_store_n(&last_moment, when - 1, __ATOMIC_RELAXED); }

  // The region in which the thread's calls are counted.  Other threads write it when they pause or resume counting.
  std::uint32_t region() const noexcept { return __atomic_load_n(&counting_region, __ATOMIC_RELAXED); }
  void count_in(std::uint32_t region) noexcept { __atomic_store_n(&counting_region, region, __ATOMIC_RELAXED); }

  // True if a call with this frame was made inside another MPI call.  Often so where ROMIO works on a file.
  bool is_inside(const char* frame) const noexcept {
    constexpr std::ptrdiff_t near = 64 << 10;
    if (outermost == nullptr || frame >= outermost) return false;
    const bool is_there = outermost - frame < near || is_mapped(outermost);
    if (!is_there || return_address(outermost) != outermost_return) return false;
    return !__atomic_load_n(&has_error_handlers, __ATOMIC_RELAXED) || encloses(frame);
  }
  void enter(char* frame) noexcept {
    outermost = frame;
    outermost_return = return_address(frame);
  }
  // Cold.  A distant frame may have been on a stack that no longer exists: of a fiber that an error handler left for
  // good.
  static bool is_mapped(const char* frame) noexcept;
  // Returns whether the outermost call has not ended, as seen from a call with a frame below its own, if its return
  // address is there.
  bool encloses(const char* frame) const noexcept;
  // The call may have returned, and the variables of another be there: the address sanitizer would report this read.
  __attribute__((no_sanitize("address"))) static Site return_address(const char* frame) noexcept {
    Site address;
    __builtin_memcpy(&address, frame + sizeof(void*), sizeof address);
    return address;
  }
};

// __thread, not thread_local: without an initialiser there is no hidden call on each access.
extern __thread Thread* current_thread;

// Cold.  Begins a slice, before the call that ended the previous one is counted under `key`.
void end_slice_after_call(Thread& thread, Key key, Ticks spent) noexcept;

// Counts one finished call, which began at `doing.since`, and returns its cell.  A function, not inlined into 1,400
// wrappers: its data fit into registers, and one copy of it stays in the instruction cache.
//
// pre:  `thread` is the calling one.
// post: exactly one cell has calls + 1, so the sum over all cells is always the number of record() calls.
Cell* record(Thread& thread, Key key, Site site, Ticks spent, std::uint64_t sent, std::uint64_t received) noexcept;

// The same for a call that was not timed, and that ends at `end`: it is counted in the cell of the untimed calls of
// `key`.
Cell* record_untimed(Thread& thread, Key key, Site site, Ticks end, std::uint64_t sent,
                     std::uint64_t received) noexcept;

// Chooses how many calls like `r` go untimed before the next one that is timed, after one that stands for its block,
// took `spent`, and was counted in `counted`.  Adds the estimate of the time of the others of its block.  untimed, gap:
// of r.  pre: after_timed() has incremented gap.turn, so that 1 means: this call stands for its block.  Larger values:
// the call was timed for another reason.
void plan_untimed(Thread& thread, const CachedCall& r, const Cell& counted, Cell*& untimed, Gap& gap,
                  Ticks spent) noexcept;

// Returns the slot of the call cache for a call that missed: `place` or the slot beside it; `same` if that entry
// differs only in its region; null: do not cache it this time.  pre: `freed` is HandleMap::freed.
// Returns a slot without a valid entry at once, unless handles are freed so often that the entry would soon be invalid.
// Otherwise returns a slot for every eighth miss only: a program with more distinct calls than slots would rewrite the
// cache continuously, and frequent calls get their slot soon anyway.  If such misses are frequent and the cache is
// small, grows it and returns null.
CachedCall* slot_to_fill(Thread& thread, CachedCall& place, CachedCall* same, std::uint64_t freed) noexcept;
void grow_call_cache(Thread& thread) noexcept;  // cold; drops the entries of the old cache

Thread* enter_thread() noexcept;  // cold: for the first call of the calling thread; never null

// False once a second thread has made a call: the cell of a request may then belong to another thread.
extern bool is_first_thread_alone;
inline bool is_only_thread() noexcept { return __atomic_load_n(&is_first_thread_alone, __ATOMIC_RELAXED); }

inline Thread& this_thread() noexcept {
  Thread* const t = current_thread;
  return __builtin_expect(t != nullptr, 1) ? *t : *enter_thread();
}

// Cold.  Returns at least `bytes` bytes of scratch memory, or null.
void* grow_scratch(Thread& t, std::size_t bytes) noexcept;

inline void* scratch(Thread& t, std::size_t bytes) noexcept {
  return __builtin_expect(bytes <= t.scratch_bytes, 1) ? t.scratch : grow_scratch(t, bytes);
}
// Takes the scratch memory for a call, and returns its size: while MPI waits, it may run another stack of this thread,
// whose calls then use other memory.  A call that an error handler leaves does not give it back: the memory is lost
// (decision 50).
inline std::size_t take_scratch(Thread& t) noexcept { return std::exchange(t.scratch_bytes, 0); }
void keep_one_scratch(Thread& t, void* memory, std::size_t bytes) noexcept;  // cold
inline void give_scratch_back(Thread& t, void* memory, std::size_t bytes) noexcept {
  if (__builtin_expect(t.scratch != memory, 0)) return keep_one_scratch(t, memory, bytes);
  t.scratch_bytes = bytes;
}

}  // namespace commlens
