// SPDX-License-Identifier: Apache-2.0
#include "core/collect/package_threads.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace commlens {
namespace {

// Adds the time of a thread to that of the threads before it, and returns it in nanoseconds: as the difference of the
// two sums, so that the times of all threads add up to exactly the time of all threads together.
Ns share_of(Ticks time, Ticks& sum, const TickScale& scale) {
  const Ns before = scale.ns(sum);
  sum += time;
  return scale.ns(sum) - before;
}

struct RegionSum {
  std::uint64_t calls = 0, open = 0;
  Ns time = 0, nested = 0, mpi = 0;
};

// Returns the row that the sum of one key becomes (package.cpp): the time in nested regions is at most the time.
RegionSum row_of(const CountedRegions::Sum& sum, const TickScale& scale, bool is_estimated) {
  const Ns time = scale.ns(sum.time);
  return {sum.calls + sum.open, sum.open, time, std::min(scale.ns(sum.nested), time),
          mpi_ns(sum, time, scale, is_estimated)};
}

void add_difference(RegionSum& to, const RegionSum& now, const RegionSum& before) {
  to.calls += now.calls - before.calls;
  to.open += now.open - before.open;
  to.time += now.time - before.time;
  to.nested += now.nested - before.nested;
  to.mpi += now.mpi - before.mpi;
}

using Sums = std::map<RegionKey, CountedRegions::Sum>;

// Returns the times of a thread by region, over all executions and iterations.  `before`: of the threads before it.
std::map<std::uint32_t, RegionSum> regions_of(const Sums& own, Sums& before, const TickScale& scale,
                                              bool is_estimated) {
  std::map<std::uint32_t, RegionSum> regions;
  for (const auto& [key, one] : own) {
    if (counts_iterations(key)) continue;
    CountedRegions::Sum& sum = before[key];
    const RegionSum earlier = row_of(sum, scale, is_estimated);
    sum.add(one);
    add_difference(regions[region_of(key)], row_of(sum, scale, is_estimated), earlier);
  }
  return regions;
}

}  // namespace

Ns error_ns(const CountedCell& cell, const TickScale& scale) {
  const auto error = static_cast<Ticks>(std::ceil(std::sqrt(cell.variance)));
  return error == 0 ? 0 : std::max<Ns>(scale.ns(error), 1);
}

bool has_estimates(const Cells& cells) {
  return std::any_of(cells.begin(), cells.end(), [](const auto& entry) { return entry.second.variance > 0; });
}

Ns mpi_ns(const CountedRegions::Sum& sum, Ns time, const TickScale& scale, bool is_estimated) {
  const Ns mpi = scale.ns(sum.mpi);
  return is_estimated && sum.mpi > sum.time ? mpi : std::min(mpi, time);
}

void write_threads(WireWriter& out, const CountedThreads& threads, const Cells& cells, const TickScale& scale) {
  out.number(threads.size());
  if (threads.empty()) return;
  std::map<std::pair<Key, Site>, std::uint64_t> numbers;  // of cells
  for (const auto& [key, cell] : cells) numbers.emplace_hint(numbers.end(), key, numbers.size());
  std::map<std::pair<Key, Site>, Ticks> times;
  Sums regions_before;
  const bool is_estimated = has_estimates(cells);
  for (const auto& [number, thread] : threads) {
    out.signed_number(number == other_threads ? -1 : static_cast<std::int64_t>(number));
    out.number(thread.is_main ? 1 : 0);
    out.number(thread.threads);
    out.signed_number(thread.id);
    out.text(thread.name);
    const auto is_there = [&numbers](const auto& entry) { return numbers.count(entry.first) != 0; };
    out.number(static_cast<std::uint64_t>(std::count_if(thread.cells.begin(), thread.cells.end(), is_there)));
    for (const auto& entry : thread.cells) {
      if (!is_there(entry)) continue;  // in a difference of two snapshots
      const auto& [key, cell] = entry;
      out.number(numbers[key]);
      out.number(cell.calls);
      out.number(share_of(cell.time, times[key], scale));
      out.number(scale.ns(cell.time_min));
      out.number(scale.ns(cell.time_max));
      out.number(cell.bytes_sent);
      out.number(cell.bytes_received);
      out.number(cell.untimed);
    }
    const auto regions = regions_of(thread.regions.times, regions_before, scale, is_estimated);
    out.number(regions.size());
    for (const auto& [region, sum] : regions) {
      out.number(region);
      for (const std::uint64_t n : {sum.calls, sum.open, sum.time, sum.nested, sum.mpi}) out.number(n);
    }
  }
}

}  // namespace commlens
