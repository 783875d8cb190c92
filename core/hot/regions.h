// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/cold/identity.h"
#include "core/hot/table.h"
#include "core/hot/thread.h"

// Code regions: what the application says it is doing.  Each thread has a stack of those it is in, and cells of its own
// for their times; what a region is called and lies in is known to all threads (cold/regions.h).
namespace [[gnu::visibility("hidden")]] commlens {

// A name that was looked at once: a handle of the application's.
struct Name {
  Identity identity;
  std::uint32_t bytes;
  char text[256];  // ends with a zero
};
inline constexpr std::size_t most_name_bytes = sizeof Name::text - 1;

inline std::uint64_t word_at(const char* text) noexcept {
  std::uint64_t word;
  __builtin_memcpy(&word, text, sizeof word);
  return word;
}

// Equal names have equal identities on all processes; never 0.  Names are looked at in hot loops: sixteen bytes at a
// time, of which the last ones may have been among those before.
inline Identity identity_of_name(const char* text, std::size_t bytes) noexcept {
  // No text of UTF-8 has the bytes of `salt` in it: what it is combined with does not become 0.
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15u, salt = 0xfffef7c1ff91e10bu;
  std::uint64_t h = bytes * odd, first = 0, last = 0;
  if (__builtin_expect(bytes >= 8, 1)) {
    for (std::size_t i = 0; i + 16 < bytes; i += 16) h = folded(word_at(text + i) ^ salt, word_at(text + i + 8) ^ h);
    first = word_at(bytes >= 16 ? text + bytes - 16 : text);
    last = word_at(text + bytes - 8);
  } else if (bytes >= 4) {
    std::uint32_t front, back;
    __builtin_memcpy(&front, text, sizeof front);
    __builtin_memcpy(&back, text + bytes - 4, sizeof back);
    first = front;
    last = back;
  } else if (bytes != 0) {
    const auto byte = [text](std::size_t i) { return std::uint64_t{static_cast<unsigned char>(text[i])}; };
    first = byte(0) << 16 | byte(bytes / 2) << 8 | byte(bytes - 1);
  }
  const Identity identity = folded(folded(first ^ salt, last ^ h) ^ salt, bytes ^ odd);
  return identity != 0 ? identity : 1;
}

// What a cell of regions, loops or quantities counts.  The top bit keeps a used key from being 0.
//
//   63   62          61..42      41..20         19..0
//   1    iterations  execution   iteration + 1  region
//
// iterations: of a loop, as told apart from the loop itself.
using RegionKey = std::uint64_t;
inline constexpr std::uint32_t max_execution = (1u << 20) - 1;
inline constexpr std::uint32_t max_iteration = (1u << 22) - 2;

inline constexpr RegionKey make_region_key(std::uint32_t region, std::uint32_t execution, std::int32_t iteration,
                                           bool iterations = false) noexcept {
  return (RegionKey{1} << 63) | (RegionKey{iterations} << 62) | (RegionKey{execution} << 42) |
         (RegionKey{static_cast<std::uint32_t>(iteration + 1)} << 20) | region;
}
inline constexpr std::uint32_t region_of(RegionKey k) noexcept { return static_cast<std::uint32_t>(k) & max_region; }
inline constexpr std::uint32_t execution_of(RegionKey k) noexcept {
  return static_cast<std::uint32_t>(k >> 42) & max_execution;
}
inline constexpr std::int32_t iteration_of(RegionKey k) noexcept {
  return static_cast<std::int32_t>((k >> 20) & 0x3fffff) - 1;
}
inline constexpr bool counts_iterations(RegionKey k) noexcept { return ((k >> 62) & 1) != 0; }

struct alignas(64) RegionCell {
  RegionKey key;        // 0: free
  std::uint64_t site;   // 0: there is no second word of key
  std::uint64_t calls;  // that ended
  Ticks time, time_min, time_max;
  Ticks nested;  // in regions within it
  Ticks mpi;
};
static_assert(sizeof(RegionCell) == 64);

// A quantity of the application's, in a region.
struct alignas(64) QuantityCell {
  RegionKey key;
  std::uint64_t site;  // which quantity, from 1
  std::uint64_t count;
  double sum, min, max, last;
  std::uint64_t not_finite;
};
static_assert(sizeof(QuantityCell) == 64);

// How the times of a loop's iterations are distributed.
struct alignas(64) LoopCell {
  RegionKey key;
  std::uint64_t site;  // 0
  std::uint64_t bins[64];
};

// A region that a thread has met: where it is found again.
struct KnownRegion {
  Identity name;  // with mark_of_loop for a loop; 0: free
  std::uint32_t parent;
  std::uint32_t region;
  std::uint32_t executions;  // as outermost region, so far
  bool counts;               // false: not asked for (COMMLENS_REGIONS)
  bool is_others;            // beyond the regions that are told apart
  RegionCell* cell;          // the last one
};

inline constexpr std::uint32_t region_place(std::uint32_t parent, Identity name) noexcept {
  return static_cast<std::uint32_t>(name) + parent * 0x9e3779b9u;
}

// A region that is under way.
struct alignas(64) Frame {
  RegionKey key;  // 0: does not count
  RegionCell* cell;
  Ticks start;        // by the clock of counted time
  Ticks nested, mpi;  // of regions within it; Thread::mpi at its start
  Identity name;
  Site begun;  // where the application began it
  std::uint32_t region;
  std::uint32_t in_region;  // that its MPI calls count in
  std::uint32_t execution;
  std::int32_t iteration;  // of regions within it; -1: none is told apart
  std::uint32_t pauses;    // Pause::changes at its start
  // Of a loop:
  bool is_loop, keeps_apart;  // its iterations
  std::uint32_t iterations;   // begun so far
  std::uint32_t iteration_pauses;
  LoopCell* loop;  // null: none yet
  Ticks iteration_start, iteration_nested, iteration_mpi;
};

struct Regions {
  static constexpr std::uint32_t most_frames = 128;
  std::uint32_t depth;   // of the innermost region; frames[0] is the whole program
  std::uint32_t beyond;  // regions within it there is no frame for
  Ticks last;            // when one last began or ended
  KnownRegion* known;    // open addressing; capacity is a power of two
  std::uint32_t capacity, used;
  KnownRegion others;
  TableOf<RegionCell> cells;
  TableOf<QuantityCell> quantities;
  TableOf<LoopCell> loops;
  Frame frames[most_frames + 1];
};

// A loop and a region of one name are two.
inline constexpr Identity mark_of_loop = 0x6c6f6f70;

// Counting may be paused: time that passes meanwhile is none.
struct Pause {
  std::atomic<std::uint32_t> changes;  // odd: paused
  std::atomic<Ticks> held;             // counted time at the beginning of the present or last pause
  std::atomic<Ticks> before;           // length of all pauses that are over
};
extern Pause pauses;

inline bool is_paused(std::uint32_t changes) noexcept { return (changes & 1) != 0; }

// True when nothing of what began at `pauses_then` counts: in a pause that still lasts.
inline bool was_paused(std::uint32_t pauses_then, std::uint32_t changes) noexcept {
  return is_paused(changes) && pauses_then == changes;
}

// The clock of counted time.  It never goes back, also for who took `t` before a pause that is over by now.
inline Ticks counted_time(Ticks t) noexcept {
  const std::uint32_t changes = pauses.changes.load(std::memory_order_acquire);
  const Ticks before = pauses.before.load(std::memory_order_acquire);
  const Ticks held = pauses.held.load(std::memory_order_relaxed);
  if (__builtin_expect(is_paused(changes) || t < held + before, 0)) return held;
  return t - before;
}

// The time in a region: at least what was spent further in.  A thread may move to a core whose counter is a little
// behind, another one may pause it between two looks at the clock, and of a process that was killed `end` is a guess.
inline Ticks time_in(Ticks start, Ticks end, Ticks nested) noexcept {
  return end > start + nested ? end - start : nested;
}

// True from when a thread in MPI_Finalize, or at the end of the process, looks at what all threads have counted. Others
// may still begin and end regions: that is passed by, and whoever is in the middle of it is waited for.
extern std::atomic<bool> regions_are_closed;

// While it lives, the thread may change what it counts of its regions; unless it is false.
class Telling {
 public:
  explicit Telling(Thread& thread) noexcept : thread_(thread) {
    __atomic_store_n(&thread.telling, 1, __ATOMIC_RELAXED);
    // Who closes has a barrier of the kernel between its store and its look at ours.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    may_ = !regions_are_closed.load(std::memory_order_acquire);
  }
  ~Telling() { __atomic_store_n(&thread_.telling, 0, __ATOMIC_RELEASE); }
  Telling(const Telling&) = delete;
  Telling& operator=(const Telling&) = delete;
  explicit operator bool() const noexcept { return may_; }

 private:
  Thread& thread_;
  bool may_;
};

// Limits, as the user wants them.
struct RegionLimits {
  std::uint32_t executions, iterations;
};
extern RegionLimits region_limits;

// The length of a tick in nanoseconds, times 2^32, as it was known when the first loop began.
extern std::uint64_t loop_scale;

// What the calling thread says.  Each name as its bytes, and as identity_of_name() of them.
struct Called {
  Identity identity;  // 0 at an end: the innermost
  const char* text;
  std::size_t bytes;
};
enum class Opened : std::uint8_t { region, loop_as_sum, loop_one_by_one };
void begin_region(Thread& thread, const Called& name, Site site, Opened kind) noexcept;
void end_region(Thread& thread, const Called& name, Site site) noexcept;
void begin_iteration(Thread& thread, Site site) noexcept;

// All regions of a thread that is ending.
void end_regions(Thread& thread) noexcept;

// A value of quantity number `quantity`.
void record_value(Thread& thread, std::uint64_t quantity, double value) noexcept;

// ---- cold (cold/regions.cpp) ----

// Makes the thread's Regions; null when there is no memory.
Regions* enter_regions(Thread& thread) noexcept;

// A region that this thread meets for the first time; null when there is no memory.
KnownRegion* meet_region(Regions& regions, const Called& name, bool is_loop) noexcept;

// There are more regions within each other than there are frames for.
void too_deep(const Called& name, Site site) noexcept;

// An end of what is not the innermost region: the depth of the region that it ends, or 0 when there is none.
std::uint32_t end_of_another(const Thread& thread, const Called& name, Site site) noexcept;

// The same for an iteration: the depth of the innermost loop, or 0.
std::uint32_t loop_of_iteration(const Thread& thread, Site site) noexcept;

// A slice of time is over when a region begins or ends (cold/slices.cpp).
void slice_over(Thread& thread, Ticks now) noexcept;

}  // namespace commlens
