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
#include "core/hot/series.h"

// Names of regions and metrics, for all threads; and the sums of their counters.
namespace commlens {

inline constexpr std::uint32_t most_regions = 1u << 14;  // per process; further ones are counted together
inline constexpr std::uint32_t most_names = 1u << 16;    // handles; further names share one
inline constexpr std::uint32_t most_tags = 1u << 12;

enum class RegionKind : std::uint8_t { program, region, loop, others };

struct RegionFacts {
  std::uint32_t parent = 0;
  RegionKind kind = RegionKind::program;
  std::string name;
};

struct MetricFacts {
  std::string name, unit;
};

struct TagFacts {
  std::uint32_t region = 0;
  std::string name, value;
  bool operator<(const TagFacts& other) const {
    return std::tie(region, name, value) < std::tie(other.region, other.name, other.value);
  }
};

// Sets which regions are counted (COMMLENS_REGIONS), and how many executions and iterations have cells of their own.
// Call before the first region.
void choose_regions(const std::string& patterns, unsigned long executions, unsigned long iterations);

// Returns the region for calls outside any region.
std::uint32_t region_outside() noexcept;

// Return the handle of a name or metric; null when there is no memory.
const Name* name_of(const char* text) noexcept;
std::uint64_t metric_of(const char* name, const char* unit) noexcept;  // from 1; 0: no memory

// Attaches a tag to the region that the thread is in.
void tag(Thread& thread, const char* name, const char* value) noexcept;

void pause_counting() noexcept;
void resume_counting() noexcept;

// Registers for the kernel's barrier (membarrier), which closing, pausing and resuming need; returns false if the
// kernel has none.  Call it first while the process has one thread: with several threads, the kernel blocks the caller
// for 10 ms or more.
bool may_use_barrier() noexcept;

// close_regions() stops all counting of regions, before the counters of all threads are read; reopen_regions() allows
// it again.
void close_regions() noexcept;
void reopen_regions() noexcept;

// Clears the counters of all threads: of the calling thread at once, of each other one at its next call
// or value.
void forget_counted() noexcept;
void forget_if_asked(Thread& thread) noexcept;

// Returns how much of the time from `since` to `until` does not count, because counting was paused or all counters were
// cleared during a call.
Ticks left_out(Ticks since, Ticks until) noexcept;

// Returns when counters were last cleared, in counted time.
Ticks forgotten() noexcept;

// The counters of the regions of one process; the sum of all threads.
struct CountedRegions {
  struct Sum {
    std::uint64_t calls = 0, open = 0;
    Ticks time = 0, time_min = 0, time_max = 0;
    Ticks nested = 0, mpi = 0;

    void add(const Sum& other) noexcept;
  };
  struct Value {
    std::uint64_t count = 0, not_finite = 0;
    double sum = 0, min = 0, max = 0, last = 0;
  };
  std::vector<RegionFacts> names{1};    // by number; parents come first, [0] is the whole program
  std::vector<MetricFacts> metrics{1};  // [0] is unused
  std::vector<TagFacts> tags;
  std::map<RegionKey, Sum> times;
  std::map<RegionKey, std::array<std::uint64_t, 64>> loops;
  std::map<std::pair<RegionKey, std::uint64_t>, Value> values;
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::map<std::uint64_t, SeriesValue>> series;  // by metric, thread

  void add(const RegionCell& cell);
  void add(const LoopCell& cell);
  void add(const MetricCell& cell);
  void add(std::uint64_t metric, std::uint32_t thread, const SeriesValue& value);
  // Adds the regions that were open at `end`, in counted time.  `mpi`: Thread::mpi; `changes`: Pause::changes.
  void add_open(const Frame* frames, std::uint32_t depth, Ticks mpi, Ticks end, std::uint32_t changes);
};

// Returns the names of this process's regions and metrics, without counters.  pre: no other thread begins regions any
// more.
CountedRegions region_names();

}  // namespace commlens
