// SPDX-License-Identifier: Apache-2.0
#include "core/state/series.h"

#include <algorithm>
#include <new>

#include "core/arena/arena.h"
#include "core/base/memory.h"
#include "core/state/notices.h"

namespace commlens {
namespace {

constexpr unsigned long most_values = 1ul << 20;  // 32 MiB for each metric

void empty(Series& series) noexcept {
  series.count = series.next = 0;
  series.stride = 1;
  for (std::uint64_t i = 0; i < series.capacity; ++i) series.values()[i].key = 0;
}

void say_lacking() noexcept try {
  notice(Notice::series,
         "no memory for the values of further metrics one by one (COMMLENS_METRIC_SERIES); their count, sum, "
         "minimum, maximum and last value are complete");
} catch (const std::bad_alloc&) {
  return;
}

}  // namespace

void choose_series(unsigned long values) noexcept {
  const unsigned long even = std::min(values, most_values - 1) + 1;
  region_limits.values = values == 0 ? 0 : static_cast<std::uint32_t>(even & ~1ul);
}

Series* add_series(Thread& thread, std::uint64_t metric) noexcept {
  Regions& regions = *thread.regions;
  if (metric == 0 || metric > most_metrics) return nullptr;
  if (regions.lacks_series) return nullptr;  // each value comes here: no lock, and no message for each
  if (regions.series == nullptr)
    regions.series = static_cast<Series**>(map_memory((most_metrics + 1) * sizeof(Series*)));
  const std::size_t bytes = sizeof(Series) + region_limits.values * sizeof(SeriesValue);
  auto* const series = regions.series == nullptr
                           ? nullptr
                           : static_cast<Series*>(arena::allocate(arena::Kind::series, bytes, thread.number));
  if (series == nullptr) {
    regions.lacks_series = true;
    say_lacking();
    return nullptr;
  }
  series->capacity = region_limits.values;
  series->stride = 1;
  __atomic_store_n(&series->metric, metric, __ATOMIC_RELEASE);  // last: readers of the arena ignore it until then
  regions.series[metric] = series;
  return series;
}

void forget_series(Regions& regions) noexcept {
  for (std::uint32_t metric = 1; regions.series != nullptr && metric <= most_metrics; ++metric) {
    if (regions.series[metric] != nullptr) empty(*regions.series[metric]);
  }
}

}  // namespace commlens
