// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/hot/regions.h"

// What regions and quantities are called, for all threads; and what was counted of them.
namespace commlens {

inline constexpr std::uint32_t most_regions = 1u << 14;     // a process tells apart
inline constexpr std::uint32_t most_quantities = 1u << 10;  // the last one is that of all others
inline constexpr std::uint32_t most_names = 1u << 16;       // handles
inline constexpr std::uint32_t most_tags = 1u << 12;

enum class RegionKind : std::uint8_t { program, region, loop, others };

struct RegionFacts {
  std::uint32_t parent = 0;
  RegionKind kind = RegionKind::program;
  std::string name;
};

struct QuantityFacts {
  std::string name, unit;
};

struct TagFacts {
  std::uint32_t region = 0;
  std::string name, value;
  bool operator<(const TagFacts& other) const {
    return std::tie(region, name, value) < std::tie(other.region, other.name, other.value);
  }
};

// How the application says which regions count (COMMLENS_REGIONS), and how finely.  Before the first region.
void choose_regions(const std::string& patterns, unsigned long executions, unsigned long iterations);

// The region in which a thread counts that has begun none.
std::uint32_t region_outside() noexcept;

// Handles; null when there is no memory.
const Name* name_of(const char* text) noexcept;
std::uint64_t quantity_of(const char* name, const char* unit) noexcept;  // from 1; 0: none

// Of the region that the thread is in.
void tag(Thread& thread, const char* name, const char* value) noexcept;

void pause_counting() noexcept;
void resume_counting() noexcept;

// Asks the kernel for the barrier that closing, pausing and resuming want; false where it has none.  To be asked first
// while the process has one thread: with several the kernel makes the caller wait for 10 milliseconds and more.
bool may_use_barrier() noexcept;

// Ends all counting of regions, for who looks at what all threads have counted, and lets it go on.
void close_regions() noexcept;
void reopen_regions() noexcept;

// Clears all counters of all threads.  The calling one does so at once, others at their next call.
void forget_counted() noexcept;
void forget_if_asked(Thread& thread) noexcept;

// How much of the time from `since` to `until` does not count: a call may have been under way while counting was
// paused, or when all was forgotten.
Ticks left_out(Ticks since, Ticks until) noexcept;

// When counters were last cleared, by the clock of counted time.
Ticks forgotten() noexcept;

// What one process counted of its regions, all threads together.
struct CountedRegions {
  struct Sum {
    std::uint64_t calls = 0, open = 0;
    Ticks time = 0, time_min = 0, time_max = 0;
    Ticks nested = 0, mpi = 0;
  };
  struct Value {
    std::uint64_t count = 0, not_finite = 0;
    double sum = 0, min = 0, max = 0, last = 0;
  };
  std::vector<RegionFacts> names{1};         // by number; parents first, [0] is the whole program
  std::vector<QuantityFacts> quantities{1};  // [0] is none
  std::vector<TagFacts> tags;
  std::map<RegionKey, Sum> times;
  std::map<RegionKey, std::array<std::uint64_t, 64>> loops;
  std::map<std::pair<RegionKey, std::uint64_t>, Value> values;

  void add(const RegionCell& cell);
  void add(const LoopCell& cell);
  void add(const QuantityCell& cell);
  // Regions that had not ended at `end`, by the clock of counted time; `mpi`: of the thread; `changes`: Pause::changes.
  void add_open(const Frame* frames, std::uint32_t depth, Ticks mpi, Ticks end, std::uint32_t changes);
};

// Of this process, without times; when no other thread begins regions any more.
CountedRegions region_names();

}  // namespace commlens
