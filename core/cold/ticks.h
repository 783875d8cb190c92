// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/hot/clock.h"

namespace commlens {

using Ns = std::uint64_t;

// Chooses the clock; before the first stamp.
void choose_clock() noexcept;

// Both clocks at one moment.
struct Reading {
  Ticks ticks;
  Ns ns;  // CLOCK_MONOTONIC
};
Reading reading() noexcept;

// Converts ticks to nanoseconds by two readings of both clocks, at the start and now: the longer the run, the better.
class TickScale {
 public:
  static TickScale since_start() noexcept;
  static TickScale between(const Reading& from, const Reading& to) noexcept;  // 1 where they are the same moment
  // At most 146 years: a damaged arena may say anything, and what is stored are integers of 63 bits.
  Ns ns(Ticks duration) const noexcept {
    const double exact = static_cast<double>(duration) * ns_per_tick_ + 0.5;
    return exact < 0x1p62 ? static_cast<Ns>(exact) : Ns{1} << 62;
  }
  Ticks ticks(Ns duration) const noexcept { return static_cast<Ticks>(static_cast<double>(duration) / ns_per_tick_); }

 private:
  double ns_per_tick_ = 1;
};

}  // namespace commlens
