// SPDX-License-Identifier: Apache-2.0
#include "core/profile/spread.h"

#include <algorithm>
#include <cmath>

namespace commlens {
namespace {

// Size classes: each power of two is divided into eight; each value below 16 has a class of its own.
constexpr unsigned cut_bits = 3;

std::uint32_t class_of(std::uint64_t value) {
  unsigned shift = 0;
  while (value >> shift >= 2u << cut_bits) ++shift;
  return (shift << cut_bits) + static_cast<std::uint32_t>(value >> shift);
}

std::uint64_t middle_of(std::uint32_t size_class) {
  const std::uint32_t cuts = 1u << cut_bits;
  if (size_class < 2 * cuts) return size_class;
  const unsigned shift = (size_class >> cut_bits) - 1;
  return (static_cast<std::uint64_t>(cuts + size_class % cuts) << shift) + (std::uint64_t{1} << shift) / 2;
}

}  // namespace

void Spread::add(std::uint64_t value, int rank) {
  Spread one;
  one.ranks = 1;
  one.sum = one.min = one.max = value;
  one.min_rank = one.max_rank = rank;
  one.sizes_ = {{class_of(value), 1}};
  add(one);
}

void Spread::add(const Spread& other) {
  if (other.ranks == 0) return;
  if (ranks == 0) {
    *this = other;
    return;
  }
  if (std::make_pair(other.min, other.min_rank) < std::make_pair(min, min_rank)) {
    min = other.min;
    min_rank = other.min_rank;
  }
  if (other.max > max || (other.max == max && other.max_rank < max_rank)) {
    max = other.max;
    max_rank = other.max_rank;
  }
  ranks += other.ranks;
  sum += other.sum;
  for (const auto& [size_class, count] : other.sizes_) {
    const auto at = std::lower_bound(sizes_.begin(), sizes_.end(), std::make_pair(size_class, std::uint64_t{0}));
    if (at != sizes_.end() && at->first == size_class) {
      at->second += count;
    } else {
      sizes_.insert(at, {size_class, count});
    }
  }
}

std::uint64_t Spread::at(double share) const {
  const auto wanted = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(ranks)));
  std::uint64_t seen = 0;
  for (const auto& [size_class, count] : sizes_) {
    seen += count;
    if (seen >= wanted) return std::clamp(middle_of(size_class), min, max);
  }
  return max;
}

void Spread::write(WireWriter& out) const {
  for (const std::uint64_t n : {ranks, sum, min, max}) out.number(n);
  out.signed_number(min_rank);
  out.signed_number(max_rank);
  out.number(sizes_.size());
  for (const auto& [size_class, count] : sizes_) {
    out.number(size_class);
    out.number(count);
  }
}

Spread Spread::read(WireReader& in) {
  Spread spread;
  for (std::uint64_t* const n : {&spread.ranks, &spread.sum, &spread.min, &spread.max}) *n = in.number();
  spread.min_rank = static_cast<int>(in.signed_number());
  spread.max_rank = static_cast<int>(in.signed_number());
  for (std::uint64_t n = in.number(); in.ok() && n > 0; --n) {
    const auto size_class = static_cast<std::uint32_t>(in.number());
    spread.sizes_.emplace_back(size_class, in.number());
  }
  return spread;
}

}  // namespace commlens
