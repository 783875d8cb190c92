// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

namespace commlens {

// Adds the counters that cells, rows and slices have in common.
template <class Sum, class One>
void add_counters(Sum& sum, const One& one) {
  sum.calls += one.calls;
  sum.time += one.time;
  sum.bytes_sent += one.bytes_sent;
  sum.bytes_received += one.bytes_received;
}

// The same, with the shortest and the longest call.  A cell without calls may hold the bytes of a request that another
// thread made.
template <class Sum, class One>
void add_calls(Sum& sum, const One& one) {
  if (one.calls != 0) {
    sum.time_min = sum.calls == 0 ? one.time_min : std::min(sum.time_min, one.time_min);
    sum.time_max = std::max(sum.time_max, one.time_max);
  }
  add_counters(sum, one);
}

// The same if some of the calls were not timed: the shortest and the longest are of those that were.
template <class Sum, class One>
void add_calls_and_untimed(Sum& sum, const One& one) {
  if (one.calls > one.untimed) {
    sum.time_min = sum.calls == sum.untimed ? one.time_min : std::min(sum.time_min, one.time_min);
    sum.time_max = std::max(sum.time_max, one.time_max);
  }
  add_counters(sum, one);
  sum.untimed += one.untimed;
}

}  // namespace commlens
