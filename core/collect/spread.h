// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/cold/wire.h"

namespace commlens {

// How the values of many ranks are spread, in the same few bytes for any number of ranks.
class Spread {
 public:
  void add(std::uint64_t value, int rank);
  void add(const Spread& other);

  // That share of the ranks has no more than this, within 1/16.
  std::uint64_t at(double share) const;

  void write(WireWriter& out) const;
  static Spread read(WireReader& in);

  std::uint64_t ranks = 0, sum = 0, min = 0, max = 0;
  int min_rank = 0, max_rank = 0;  // the lowest of several

 private:
  std::vector<std::pair<std::uint32_t, std::uint64_t>> sizes_;  // class of size, ranks with such a value
};

}  // namespace commlens
