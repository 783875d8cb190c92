// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/cold/counted.h"

namespace commlens {

// How fine the slices of a profile are: their width, as a power of two over the first one, and whether communicators of
// a family are kept apart.
struct SlicePlan {
  unsigned doublings = 0;
  bool folded = false;
};

// The rows that table slice would have, for each plan; of several ranks when added up.
class SliceRows {
 public:
  static constexpr std::size_t max_doublings = 34;  // some years; more would not fit into ticks
  SliceRows() = default;
  explicit SliceRows(const Counted& counted);

  void add(const SliceRows& other);

  // The finest plan with no more rows than that; the coarsest one when all have more.
  SlicePlan within(std::uint64_t rows) const;

  // First the doublings that some rank has already, then rows: for ranks to send each other.
  static constexpr std::size_t size = 1 + 2 * max_doublings;
  std::array<std::uint64_t, size> numbers{};
};

// A point in time, and the clock that told it; virtual ranks have one of their own.
struct Clocked {
  // Mostly the clock is that of this process.
  Clocked(Ticks begin, Ticks (*of)() = now) : since(begin), clock(of) {}
  Ticks since;  // 0: nobody asks
  Ticks (*clock)();
};

// What one rank sends, for Profile::add().  collecting: when it began to.
std::vector<char> packed(const Counted& counted, Clocked collecting, const SlicePlan& plan);

// The same for a summary: no slices, and communicators as those that one call made on all ranks.
std::vector<char> packed_for_summary(const Counted& counted, Clocked collecting);

// What the slices of a profile may add to its cells.
inline constexpr std::uint64_t slice_rows_for(std::uint64_t cells) {
  constexpr std::uint64_t always = 1 << 16;
  return cells / 8 > always ? cells / 8 : always;
}

}  // namespace commlens
