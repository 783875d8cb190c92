// SPDX-License-Identifier: Apache-2.0
// Sums of what all threads counted for their regions.
#include <algorithm>

#include "core/state/regions.h"

namespace commlens {

void CountedRegions::add(const RegionCell& cell) {
  if (cell.calls == 0) return;
  Sum& sum = times[cell.key];
  const bool is_first = sum.calls == 0;
  sum.time_min = is_first ? cell.time_min : std::min(sum.time_min, cell.time_min);
  sum.time_max = std::max(sum.time_max, cell.time_max);
  sum.calls += cell.calls;
  sum.time += cell.time;
  sum.nested += cell.nested;
  sum.mpi += cell.mpi;
}

void CountedRegions::add(const LoopCell& cell) {
  std::array<std::uint64_t, 64>& bins = loops[cell.key];
  for (std::size_t i = 0; i < bins.size(); ++i) bins[i] += cell.bins[i];
}

void CountedRegions::add(const MetricCell& cell) {
  if (cell.count == 0 && cell.not_finite == 0) return;
  Value& value = values[{cell.key, cell.site}];
  value.not_finite += cell.not_finite;
  if (cell.count == 0) return;
  const bool is_first = value.count == 0;
  value.min = is_first ? cell.min : std::min(value.min, cell.min);
  value.max = is_first ? cell.max : std::max(value.max, cell.max);
  if (is_first) value.last = cell.last;
  value.sum += cell.sum;
  value.count += cell.count;
}

void CountedRegions::add(std::uint64_t metric, std::uint32_t thread, const SeriesValue& value) {
  series[{metric, thread}].try_emplace(value.number, value);
}

void CountedRegions::add_open(const Frame* frames, std::uint32_t depth, Ticks mpi, Ticks end, std::uint32_t changes) {
  Ticks within = 0;
  for (std::uint32_t i = depth; i > 0; --i) {
    const Frame& frame = frames[i];
    if (frame.key == 0) {
      within += frame.nested;
      continue;
    }
    if (was_paused(frame.pauses, changes)) continue;
    const Ticks nested = frame.nested + within;
    within = time_in(frame.start, end, nested);
    Sum& sum = times[frame.key];
    ++sum.open;
    sum.time += within;
    sum.nested += nested;
    sum.mpi += mpi > frame.mpi ? mpi - frame.mpi : 0;
  }
}

}  // namespace commlens
