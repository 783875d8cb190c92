// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/hot/series.h"
#include "core/hot/thread.h"

namespace commlens {

// Sets how many values of each metric a thread stores (COMMLENS_METRIC_SERIES); 0: none.  Call before the first one.
void choose_series(unsigned long values) noexcept;

// Empties the series of a thread.
void forget_series(Regions& regions) noexcept;

// True for a value that belongs to its series: its number is a multiple of the stride.  Others are about to be
// replaced.
inline bool is_in_series(const Series& series, const SeriesValue& value) noexcept {
  return value.key != 0 && value.number < series.count && (value.number & (series.stride - 1)) == 0;
}

// Calls visit(metric, value) for each value in the series of a thread, in no order.  pre: the thread has regions.
template <class Visit>
void each_value(const Thread& thread, Visit visit) {
  Series* const* const all = thread.regions->series;
  for (std::uint32_t metric = 1; all != nullptr && metric <= most_metrics; ++metric) {
    const Series* const series = all[metric];
    for (std::uint64_t i = 0; series != nullptr && i < series->capacity; ++i) {
      if (is_in_series(*series, series->values()[i])) visit(series->metric, series->values()[i]);
    }
  }
}

}  // namespace commlens
