// SPDX-License-Identifier: Apache-2.0
// Sums of what all threads counted for their regions.
#include <algorithm>

#include "core/state/regions.h"

namespace commlens {

void CountedRegions::Sum::add(const Sum& other) noexcept {
  if (other.calls != 0) {
    time_min = calls == 0 ? other.time_min : std::min(time_min, other.time_min);
    time_max = std::max(time_max, other.time_max);
  }
  calls += other.calls;
  open += other.open;
  time += other.time;
  nested += other.nested;
  mpi += other.mpi;
}

void CountedRegions::add(const RegionCell& cell) {
  if (cell.calls == 0) return;
  times[cell.key].add({cell.calls, 0, cell.time, cell.time_min, cell.time_max, cell.nested, cell.mpi});
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
    times[frame.key].add({0, 1, within, 0, 0, nested, mpi > frame.mpi ? mpi - frame.mpi : 0});
  }
}

}  // namespace commlens
