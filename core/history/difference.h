// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// Differences between two states of an arena.
//
// An arena is an array of lines of 64 bytes, each of eight words.  A difference holds the lines that changed, in
// ascending order: the distance from the line before, a mask of the words that changed, and by how much each of these
// has grown, modulo 2^64.  A counter cell, of which the number of calls, their time and bytes grow, thus takes about 14
// bytes.
//
// Differences add up, because addition modulo 2^64 has no limits: the state at some time is the sum of all differences
// until then, and two consecutive differences are replaced by their sum.
namespace commlens::history {

inline constexpr std::size_t line_words = 8, line_bytes = line_words * sizeof(std::uint64_t);

struct Line {
  std::uint64_t number = 0;
  std::uint64_t words[line_words] = {};
};

// Writes the lines of a difference.
class DifferenceWriter {
 public:
  // Writes one line, unless all its words are 0.  pre: its number is greater than those of the lines before.
  void add(const Line& line);

  std::string take() { return std::move(bytes_); }

 private:
  void number(std::uint64_t n);

  std::string bytes_;
  std::uint64_t next_ = 0;  // the smallest number of the next line
};

// Reads the lines of a difference.  The bytes may be damaged.
class DifferenceReader {
 public:
  explicit DifferenceReader(std::string_view bytes) : rest_(bytes) {}

  // Returns false at the end, and where the bytes are damaged.
  bool next(Line& line);
  bool is_damaged() const { return is_damaged_; }

 private:
  bool number(std::uint64_t& n);

  std::string_view rest_;
  std::uint64_t next_ = 0;
  bool is_damaged_ = false;
};

// Returns the sum of two differences.  Of a damaged one, it has the lines before the damage.
std::string sum_of(std::string_view first, std::string_view second);

}  // namespace commlens::history
