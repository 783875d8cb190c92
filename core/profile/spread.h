// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/wire.h"

namespace commlens {

// The distribution of a value over the ranks.  Its size is bounded, however many ranks there are.
class Spread {
 public:
  void add(std::uint64_t value, int rank);
  void add(const Spread& other);

  // Returns a value that this share of the ranks does not exceed, with an error of at most 1/16.
  std::uint64_t at(double share) const;

  void write(WireWriter& out) const;
  static Spread read(WireReader& in);

  std::uint64_t ranks = 0, sum = 0, min = 0, max = 0;
  int min_rank = 0, max_rank = 0;  // the lowest rank, if several have the value

 private:
  std::vector<std::pair<std::uint32_t, std::uint64_t>> sizes_;  // size class, number of ranks with a value in it
};

}  // namespace commlens
