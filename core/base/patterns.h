// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace commlens {

// A pattern of an option: * matches any text; ! before a pattern excludes the names that it matches.
struct Pattern {
  std::string text;
  bool leaves_out;
};

// Returns the patterns of a list separated by commas.
std::vector<Pattern> patterns_in(const std::string& list);

// Returns whether the list only excludes names.  Then a name that no pattern matches is wanted; otherwise it is not.
bool only_leave_out(const std::vector<Pattern>& patterns) noexcept;

bool matches(const char* pattern, const char* text) noexcept;

}  // namespace commlens
