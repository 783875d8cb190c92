// SPDX-License-Identifier: Apache-2.0
#include "core/history/difference.h"

namespace commlens::history {

void DifferenceWriter::number(std::uint64_t n) {
  for (; n >= 0x80; n >>= 7) bytes_.push_back(static_cast<char>(n | 0x80));
  bytes_.push_back(static_cast<char>(n));
}

void DifferenceWriter::add(const Line& line) {
  unsigned mask = 0;
  for (std::size_t i = 0; i < line_words; ++i) mask |= line.words[i] != 0 ? 1u << i : 0;
  if (mask == 0) return;
  number(line.number - next_);
  next_ = line.number + 1;
  bytes_.push_back(static_cast<char>(mask));
  for (const std::uint64_t word : line.words) {
    // Small negative numbers stay short: 1, -1, 2, -2, ... become 2, 1, 4, 3, ...
    if (word != 0) number(word << 1 ^ (~(word >> 63) + 1));
  }
}

bool DifferenceReader::number(std::uint64_t& n) {
  n = 0;
  for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    n |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  is_damaged_ = true;
  return false;
}

bool DifferenceReader::next(Line& line) {
  if (rest_.empty() || is_damaged_) return false;
  std::uint64_t gap = 0;
  if (!number(gap)) return false;
  line.number = next_ + gap;
  is_damaged_ = line.number < next_ || line.number == ~std::uint64_t{0} || rest_.empty() || rest_.front() == 0;
  if (is_damaged_) return false;
  next_ = line.number + 1;
  const auto mask = static_cast<unsigned char>(rest_.front());
  rest_.remove_prefix(1);
  for (std::size_t i = 0; i < line_words; ++i) {
    std::uint64_t n = 0;
    if ((mask >> i & 1) != 0 && !number(n)) return false;
    line.words[i] = n >> 1 ^ (~(n & 1) + 1);
  }
  return true;
}

std::string sum_of(std::string_view first, std::string_view second) {
  DifferenceReader a(first), b(second);
  DifferenceWriter sum;
  Line of_a, of_b;
  bool has_a = a.next(of_a), has_b = b.next(of_b);
  while (has_a || has_b) {
    const bool takes_a = has_a && (!has_b || of_a.number <= of_b.number);
    const bool takes_b = has_b && (!has_a || of_b.number <= of_a.number);
    Line line = takes_a ? of_a : of_b;
    if (takes_a && takes_b) {
      for (std::size_t i = 0; i < line_words; ++i) line.words[i] += of_b.words[i];
    }
    sum.add(line);
    if (takes_a) has_a = a.next(of_a);
    if (takes_b) has_b = b.next(of_b);
  }
  return sum.take();
}

}  // namespace commlens::history
