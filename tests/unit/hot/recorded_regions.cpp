// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/hot/recorded_regions.h"

#include <vector>

#include "core/state/regions.h"
#include "core/state/slices.h"
#include "core/state/threads.h"
#include "tests/unit/clock.h"
#include "tests/unit/process.h"

namespace commlens {
namespace {

std::vector<std::string> paths_of(const CountedRegions& counted) {
  std::vector<std::string> paths{""};
  for (std::size_t i = 1; i < counted.names.size(); ++i) {
    const RegionFacts& facts = counted.names[i];
    const std::string name = facts.kind == RegionKind::loop ? "<" + facts.name + ">" : facts.name;
    paths.push_back((facts.parent == 0 ? "" : paths[facts.parent] + "/") + name);
  }
  return paths;
}

}  // namespace

void in_process(const std::function<void()>& body) {
  in_own_process([&body] {
    clock_is_tsc = false;
    test_clock::set(start_of_time);
    body();
  });
}

Recorded recorded_by(const Thread& thread) {
  CountedRegions counted = region_names();
  const std::vector<std::string> paths = paths_of(counted);
  const Regions& regions = *thread.regions;
  each_cell(regions.cells, [&](const RegionCell& cell) { counted.add(cell); });
  each_cell(regions.loops, [&](const LoopCell& cell) { counted.add(cell); });
  each_cell(regions.metrics, [&](const MetricCell& cell) { counted.add(cell); });
  counted.add_open(regions.frames, regions.depth, thread.mpi, counted_time(now()), pauses.changes.load());
  const auto place = [&](RegionKey key) {
    return Instance{paths[region_of(key)], execution_of(key), iteration_of(key)};
  };
  Recorded recorded;
  for (const auto& [key, s] : counted.times) {
    Sum& sum = (counts_iterations(key) ? recorded.iterations : recorded.times)[place(key)];
    sum = {s.calls, s.open, s.time, s.time_min, s.time_max, s.nested, s.mpi};
  }
  for (const auto& [key, bins] : counted.loops) {
    for (std::uint32_t i = 0; i < bins.size(); ++i) {
      if (bins[i] != 0) recorded.bins[{paths[region_of(key)], execution_of(key), i}] = bins[i];
    }
  }
  for (const auto& [key, v] : counted.values)
    recorded.values[{place(key.first), key.second}] = {v.count, v.not_finite, v.sum, v.min, v.max, v.last};
  each_cell(thread.table, [&](const Cell& cell) {
    if (region_of_key(cell.key) == uncounted_region || cell.calls == 0) return;
    auto& [calls, time] = recorded.calls[paths[region_of_key(cell.key)]];
    calls += cell.calls;
    time += cell.time;
  });
  return recorded;
}

Slices slices_by(const Thread& thread, Ticks& width) {
  const std::vector<std::string> paths = paths_of(region_names());
  const SliceLogContent sliced = added_up({slices_of(thread)});
  width = sliced.width;
  Slices slices;
  for (const SliceEntry& entry : sliced.entries) {
    if (!is_of_region(entry.key) || (entry.calls | entry.time) == 0) continue;
    auto& [calls, time] = slices[{paths[region_of_key(entry.key)], entry.slot}];
    calls += entry.calls;
    time += entry.time;
  }
  return slices;
}

}  // namespace commlens
