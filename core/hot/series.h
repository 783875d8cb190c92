// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/hot/regions.h"

// The values of metrics in the order in which a thread recorded them (COMMLENS_METRIC_SERIES).
namespace [[gnu::visibility("hidden")]] commlens {

// One recorded value.
struct SeriesValue {
  RegionKey key;         // its region, execution and iteration; 0: free, or being written
  std::uint64_t number;  // among the finite values of this thread and metric, from 0
  Ticks time;
  double value;
};
static_assert(sizeof(SeriesValue) == 32);

// The values of one metric on one thread, in a segment of the arena: at most `capacity`, evenly spaced over the run.
// All values are stored until the series is full.  From then on only every second one is: `stride` doubles, and new
// values replace those whose numbers are no multiples of it.  When all of them are replaced, it doubles again.
//
// Invariant: stride is a power of two, and capacity is even.  The number with which the stride doubles is therefore a
// multiple of the new stride, and half of the values are not, so that the search for a place ends.
struct alignas(64) Series {
  std::uint64_t metric;  // its number, from 1; 0: not ready
  std::uint64_t capacity;
  std::uint64_t count;  // values so far, stored or not
  std::uint64_t stride;
  std::uint64_t next;  // index below capacity: values before it stay until the stride doubles

  SeriesValue* values() noexcept { return reinterpret_cast<SeriesValue*>(this + 1); }
  const SeriesValue* values() const noexcept { return reinterpret_cast<const SeriesValue*>(this + 1); }
};
static_assert(sizeof(Series) == 64);

// Adds a value.  Visits two slots on average.
inline void add_value(Series& series, RegionKey key, Ticks time, double value) noexcept {
  const std::uint64_t number = series.count;
  // Before the value: readers of the arena take no number beyond the count.
  __atomic_store_n(&series.count, number + 1, __ATOMIC_RELEASE);
  if ((number & (series.stride - 1)) != 0) return;
  const auto stays = [&series](const SeriesValue& v) { return v.key != 0 && (v.number & (series.stride - 1)) == 0; };
  while (stays(series.values()[series.next])) {
    if (++series.next < series.capacity) continue;
    __atomic_store_n(&series.stride, series.stride * 2, __ATOMIC_RELEASE);
    series.next = 0;
  }
  SeriesValue& place = series.values()[series.next];
  __atomic_store_n(&place.key, RegionKey{0}, __ATOMIC_RELEASE);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  place.number = number;
  place.time = time;
  place.value = value;
  __atomic_store_n(&place.key, key, __ATOMIC_RELEASE);
}

// Cold (state/series.cpp).  Creates the series of a metric on this thread; null: no memory, or no such metric.
Series* add_series(Thread& thread, std::uint64_t metric) noexcept;

}  // namespace commlens
