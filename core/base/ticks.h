// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/base/clock.h"

namespace commlens {

using Ns = std::uint64_t;

// Chooses the clock.  Call before the first time stamp.
void choose_clock() noexcept;

// By how many bits a counter of this frequency (Hz) is shifted: as far as its unit stays at least a nanosecond.
unsigned clock_shift_of(std::uint64_t frequency) noexcept;
// A counter with a lower frequency is not used.
inline constexpr std::uint64_t least_clock_frequency = 1'000'000;

// The values of both clocks at one moment.
struct Reading {
  Ticks ticks;
  Ns ns;  // CLOCK_MONOTONIC
};
Reading reading() noexcept;

// Converts ticks to nanoseconds, by two readings of both clocks.  The further apart they are, the more exact the scale.
class TickScale {
 public:
  static TickScale since_start() noexcept;
  static TickScale between(const Reading& from, const Reading& to) noexcept;  // scale 1 if they are at the same moment
  // Limited to 2^62 ns (146 years): a damaged arena may contain any number, and the profile stores 64-bit signed
  // integers.
  Ns ns(Ticks duration) const noexcept {
    const double exact = static_cast<double>(duration) * ns_per_tick_ + 0.5;
    return exact < 0x1p62 ? static_cast<Ns>(exact) : Ns{1} << 62;
  }
  double ns_per_tick() const noexcept { return ns_per_tick_; }
  Ticks ticks(Ns duration) const noexcept { return static_cast<Ticks>(static_cast<double>(duration) / ns_per_tick_); }

 private:
  double ns_per_tick_ = 1;
};

}  // namespace commlens
