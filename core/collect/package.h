// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/state/counted.h"

namespace commlens {

// How fine the slices of a profile are.  doublings: their width, as a power of two times the first width.  folded: the
// communicators of a family share a row.
struct SlicePlan {
  unsigned doublings = 0;
  bool folded = false;
};

// The number of rows that table slice would have under each plan.  add() adds up those of several ranks.
class SliceRows {
 public:
  static constexpr std::size_t max_doublings = 34;  // a slice of several years; more would not fit into ticks
  SliceRows() = default;
  explicit SliceRows(const Counted& counted);

  void add(const SliceRows& other);

  // Returns the finest plan with at most `rows` rows, or the coarsest plan if all have more.
  SlicePlan within(std::uint64_t rows) const;

  // First the largest number of doublings of any rank so far, then the rows per plan.  An array, so that ranks can send
  // it.
  static constexpr std::size_t size = 1 + 2 * max_doublings;
  std::array<std::uint64_t, size> numbers{};
};

// A point in time and the clock that measured it.  Virtual ranks in tests have clocks of their own.
struct Clocked {
  // By default the clock of this process.
  Clocked(Ticks begin, Ticks (*of)() = now) : since(begin), clock(of) {}
  Ticks since;  // 0: not measured
  Ticks (*clock)();
};

// How many samples each rank sends.
struct SampleLimits {
  std::uint32_t calls = most_samples;        // of each stratum
  std::uint32_t messages = most_messages;    // of each channel of messages
  std::uint32_t operations = most_messages;  // of each channel of operations: all members need the same ones
  std::uint32_t receivers = 0;               // only messages to one process of each 2^receivers
};

// Returns the package of one rank, for Profile::add().  collecting: when this rank began to collect.
std::vector<char> packed(const Counted& counted, Clocked collecting, const SlicePlan& plan,
                         const SampleLimits& limits = {});

// Returns the limits for the ranks of a job, so that one that receives the samples of all is done in a fraction of a
// second.  most_strata, most_channels: the largest numbers of a rank.
inline SampleLimits limits_for(std::uint64_t world_size, std::uint64_t most_strata, std::uint64_t most_channels) {
  constexpr std::uint64_t of_all = 1 << 18;
  const auto each = [&](std::uint64_t lists) { return of_all / std::max<std::uint64_t>(1, world_size * lists); };
  SampleLimits limits;
  limits.calls = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(each(most_strata), fewest_samples, most_samples));
  limits.messages =
      static_cast<std::uint32_t>(std::clamp<std::uint64_t>(each(most_channels), fewest_messages, most_messages));
  limits.operations = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(each(most_channels), 1, most_messages));
  if (are_all_sampled()) limits.calls = ~std::uint32_t{0};
  while (world_size * most_channels * fewest_messages >> limits.receivers > of_all) ++limits.receivers;
  return limits;
}

// The same for a summary: without slices, peers and samples, and with one communicator for all siblings that one
// collective call created.
std::vector<char> packed_for_summary(const Counted& counted, Clocked collecting);

// Returns how many rows of slices a profile with so many cells may have.
inline constexpr std::uint64_t slice_rows_for(std::uint64_t cells) {
  constexpr std::uint64_t always = 1 << 16;
  return cells / 8 > always ? cells / 8 : always;
}

}  // namespace commlens
