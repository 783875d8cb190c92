// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/base/identity.h"
#include "core/hot/table.h"
#include "core/hot/thread.h"

// Code regions that the application marks.  Each thread has a stack of its open regions, and cells of its own for their
// times.  All threads share the names and parents of regions (state/regions.h).
namespace [[gnu::visibility("hidden")]] commlens {

// A name that was hashed once; the application holds a pointer to it as a handle.
struct Name {
  Identity identity;
  std::uint32_t bytes;
  char text[256];  // zero-terminated
};
inline constexpr std::size_t most_name_bytes = sizeof Name::text - 1;
inline constexpr std::uint32_t most_metrics = 1u << 10;  // the last number is shared by all further metrics

inline std::uint64_t word_at(const char* text) noexcept {
  std::uint64_t word;
  __builtin_memcpy(&word, text, sizeof word);
  return word;
}

// Returns the identity of a name: equal names have equal identities on all processes; never 0.  Reads sixteen bytes per
// step, because hot loops pass names.  The last sixteen bytes may overlap those read before.
inline Identity identity_of_name(const char* text, std::size_t bytes) noexcept {
  // UTF-8 text cannot contain the bytes of `salt`, so that the XOR with it never becomes 0.
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

// The key of a cell of regions, loops or metrics.  The top bit keeps a used key from being 0.
//
//   63   62          61..42      41..20         19..0
//   1    iterations  execution   iteration + 1  region
//
// iterations: the cell counts the iterations of a loop, not the loop itself.
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
  std::uint64_t site;   // always 0: no second key word
  std::uint64_t calls;  // completed
  Ticks time, time_min, time_max;
  Ticks nested;  // time in nested regions
  Ticks mpi;
};
static_assert(sizeof(RegionCell) == 64);

// Values of one metric in one region.
struct alignas(64) MetricCell {
  RegionKey key;
  std::uint64_t site;  // number of the metric, from 1
  std::uint64_t count;
  double sum, min, max, last;
  std::uint64_t not_finite;
};
static_assert(sizeof(MetricCell) == 64);

// Distribution of the durations of a loop's iterations.
struct alignas(64) LoopCell {
  RegionKey key;
  std::uint64_t site;  // 0
  std::uint64_t bins[64];
};

// A region that this thread has entered before; entry of its hash table Regions::known.
struct KnownRegion {
  Identity name;  // XOR mark_of_loop for a loop; 0: free
  std::uint32_t parent;
  std::uint32_t region;
  std::uint32_t executions;  // as outermost region, so far
  bool counts;               // false: excluded by COMMLENS_REGIONS
  bool is_others;            // beyond most_regions: counted together with all others
  RegionCell* cell;          // the one it was counted in last
};

inline constexpr std::uint32_t region_place(std::uint32_t parent, Identity name) noexcept {
  return static_cast<std::uint32_t>(name) + parent * 0x9e3779b9u;
}

// An open region, on the stack of its thread.
struct alignas(64) Frame {
  RegionKey key;  // 0: its time is not counted
  RegionCell* cell;
  Ticks start;        // in counted time
  Ticks nested, mpi;  // time in nested regions; Thread::mpi at the start
  Identity name;
  Site begun;  // address of the call that began it
  std::uint32_t region;
  std::uint32_t in_region;  // in which its MPI calls are counted
  std::uint32_t execution;
  std::int32_t iteration;  // of nested regions; -1: iterations are counted together
  std::uint32_t pauses;    // Pause::changes at the start
  // Loops only:
  bool is_loop, keeps_apart;  // keeps_apart: each iteration has its own cells
  std::uint32_t iterations;   // begun so far
  std::uint32_t iteration_pauses;
  LoopCell* loop;  // null: no iteration has ended yet
  Ticks iteration_start, iteration_nested, iteration_mpi;
};

struct Series;  // hot/series.h

struct Regions {
  static constexpr std::uint32_t most_frames = 128;
  std::uint32_t depth;   // of the innermost open region; frames[0] is the whole program
  std::uint32_t beyond;  // open regions inside the innermost one, without a frame
  Ticks last;            // when a region last began or ended
  KnownRegion* known;    // open addressing; the capacity is a power of two
  std::uint32_t capacity, used;
  KnownRegion others;
  TableOf<RegionCell> cells;
  TableOf<MetricCell> metrics;
  TableOf<LoopCell> loops;
  Series** series;    // by number of the metric; null: none yet
  bool lacks_series;  // there was no memory for one: not tried again for others
  Frame frames[most_frames + 1];
};

// XORed into the identity of a loop's name: a loop and a region of the same name are different.
inline constexpr Identity mark_of_loop = 0x6c6f6f70;

// State of pausing.  Counted time does not advance during a pause.
struct Pause {
  std::atomic<std::uint32_t> changes;  // odd: paused
  std::atomic<Ticks> held;             // counted time when the current or last pause began
  std::atomic<Ticks> before;           // total length of all pauses that are over
};
extern Pause pauses;

inline bool is_paused(std::uint32_t changes) noexcept { return (changes & 1) != 0; }

// True if `pauses_then` was read during a pause that still lasts: nothing since then counts.
inline bool was_paused(std::uint32_t pauses_then, std::uint32_t changes) noexcept {
  return is_paused(changes) && pauses_then == changes;
}

// Converts a time stamp to counted time.  Never goes back, even if `t` was taken before a pause that is over by now.
inline Ticks counted_time(Ticks t) noexcept {
  const std::uint32_t changes = pauses.changes.load(std::memory_order_acquire);
  const Ticks before = pauses.before.load(std::memory_order_acquire);
  const Ticks held = pauses.held.load(std::memory_order_relaxed);
  if (__builtin_expect(is_paused(changes) || t < held + before, 0)) return held;
  return t - before;
}

// Returns the time in a region, at least the time in its nested regions.  `end - start` may be too small for three
// reasons.  A thread may move to a core whose counter is slightly behind; another thread may pause counting between two
// reads of the clock; for a process that was killed, `end` is an estimate.
inline Ticks time_in(Ticks start, Ticks end, Ticks nested) noexcept {
  return end > start + nested ? end - start : nested;
}

// True while a thread in MPI_Finalize, or at the end of the process, reads the counters of all threads.  Other threads
// may still begin and end regions: those calls are ignored, and close_regions() waits for threads that are inside one.
extern std::atomic<bool> regions_are_closed;

// Scope in which this thread changes the counters of its regions.  Converts to false while regions are closed: the
// caller must then change nothing.
class RegionUpdate {
 public:
  explicit RegionUpdate(Thread& thread) noexcept : thread_(thread) {
    __atomic_store_n(&thread.updating_regions, 1, __ATOMIC_RELAXED);
    // close_regions() has a kernel barrier (membarrier) between its store and its load of `updating_regions`.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    may_ = !regions_are_closed.load(std::memory_order_acquire);
  }
  ~RegionUpdate() { __atomic_store_n(&thread_.updating_regions, 0, __ATOMIC_RELEASE); }
  RegionUpdate(const RegionUpdate&) = delete;
  RegionUpdate& operator=(const RegionUpdate&) = delete;
  explicit operator bool() const noexcept { return may_; }

 private:
  Thread& thread_;
  bool may_;
};

// How often commlens_reset() was called.  A thread whose Thread::clears differs has not cleared its counters yet.
extern std::atomic<std::uint32_t> clears;

// Limits that the user set: executions and iterations with cells of their own, and values in the series of a metric.
struct RegionLimits {
  std::uint32_t executions, iterations;
  std::uint32_t values;  // even; 0: no series
};
extern RegionLimits region_limits;

// Length of a tick in nanoseconds, times 2^32; measured when the first loop began.
extern std::uint64_t loop_scale;

// A name as the caller passed it: its bytes, and identity_of_name() of them.
struct RegionName {
  Identity identity;  // 0 when a region ends: the innermost one
  const char* text;
  std::size_t bytes;
};
// What a call begins: a region, or a loop whose iterations are counted together or separately.
enum class OpeningKind : std::uint8_t { region, loop_as_sum, loop_one_by_one };
void begin_region(Thread& thread, const RegionName& name, Site site, OpeningKind kind) noexcept;
void end_region(Thread& thread, const RegionName& name, Site site) noexcept;
void begin_iteration(Thread& thread, Site site) noexcept;

// Begins a loop at its iteration `number`, from 0; the end of the loop ends the iteration.
void begin_numbered_iteration(Thread& thread, const RegionName& name, Site site, OpeningKind kind,
                              long number) noexcept;

// Ends all open regions of a thread that ends.
void end_regions(Thread& thread) noexcept;

// Records a value of metric number `metric` in the current region.
void record_value(Thread& thread, std::uint64_t metric, double value) noexcept;

// The same, and stores the value in the series of the metric.  A function of its own, so that record_value() costs
// nothing for it.  pre: region_limits.values is not 0.
void record_in_series(Thread& thread, std::uint64_t metric, double value) noexcept;

// ---- cold (state/regions.cpp) ----

// Creates the thread's Regions; returns null when there is no memory.
Regions* enter_regions(Thread& thread) noexcept;

// Adds a region that this thread enters for the first time; returns null when there is no memory.
KnownRegion* meet_region(Regions& regions, const RegionName& name, bool is_loop) noexcept;

// Notes that more regions are nested than there are frames.
void too_deep(const RegionName& name, Site site) noexcept;

// For an end that does not match the innermost region: returns the depth of the region that it ends, or 0 if none
// matches.
std::uint32_t end_of_another(const Thread& thread, const RegionName& name, Site site) noexcept;

// For an iteration outside the innermost region: returns the depth of the innermost loop, or 0.
std::uint32_t loop_of_iteration(const Thread& thread, Site site) noexcept;

// Called when a slice has ended at the begin or end of a region (state/slices.cpp).
void end_slice_at_region(Thread& thread, Ticks now) noexcept;

// Called when the thread has to clear its counters before it records a value (state/pauses.cpp).
void forget_before_value(Thread& thread) noexcept;

}  // namespace commlens
