// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/patterns.h"

// What the values of performance variables mean (COMMLENS_PVARS).  Knows no MPI.
namespace commlens {

// The classes of the standard, in its order.
enum class PvarClass : std::uint8_t {
  state,
  level,
  size,
  percentage,
  high_watermark,
  low_watermark,
  counter,
  aggregate,
  timer,
  generic,
  unknown
};

enum class PvarType : std::uint8_t { other, signed_32, unsigned_32, signed_64, unsigned_64, real };

inline constexpr std::size_t most_pvars = 256;          // per process
inline constexpr std::size_t most_elements = 1u << 16;  // of one variable

std::size_t bytes_of(PvarType type) noexcept;

// Returns whether the values of the class only grow, so that the difference of two readings is what happened between.
bool grows(PvarClass klass) noexcept;

// Returns the unit under which the metric is stored: the class, because MPI has no units.  Only a timer that is a real
// number has a known one: the seconds of MPI_Wtime.
const char* unit_of(PvarClass klass, PvarType type) noexcept;

// Returns element `i` of what MPI_T_pvar_read has written.
double value_at(PvarType type, const void* values, std::size_t i) noexcept;

// Returns by how much element `i` grew.  An unsigned variable of 32 bits that became smaller has overflowed; any other
// has been reset, and grew from 0.
double increase_at(PvarType type, const void* before, const void* now, std::size_t i) noexcept;

// The variables that the user wants.
class PvarChoice {
 public:
  explicit PvarChoice(const std::string& list);  // patterns; "list" prints the names
  bool wants_list() const noexcept { return wants_list_; }
  bool is_empty() const noexcept { return patterns_.empty(); }
  bool wants(const char* name);  // remembers which patterns have matched

  // Returns the patterns of which no variable was found.
  std::vector<std::string> without_match() const;

 private:
  std::vector<Pattern> patterns_;
  std::vector<bool> has_matched_;
  bool wants_list_ = false;
};

// Variables that are not read, with the reason.
class PvarRefusals {
 public:
  void add(std::string name, std::string reason);
  bool is_empty() const noexcept { return all_.empty(); }

  // Names them in one line: "a, b (reason), c (reason)".  Shortens long lists.
  std::string text() const;

 private:
  std::vector<std::pair<std::string, std::vector<std::string>>> all_;  // by reason
};

}  // namespace commlens
