// SPDX-License-Identifier: Apache-2.0
#include "core/base/patterns.h"

#include <algorithm>
#include <utility>

namespace commlens {

std::vector<Pattern> patterns_in(const std::string& list) {
  std::vector<Pattern> patterns;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    std::string text = list.substr(at, end - at);
    at = end + 1;
    text.erase(0, text.find_first_not_of(' '));
    text.erase(text.find_last_not_of(' ') + 1);
    const bool leaves_out = !text.empty() && text[0] == '!';
    if (leaves_out) text.erase(0, 1);
    if (!text.empty()) patterns.push_back({std::move(text), leaves_out});
  }
  return patterns;
}

bool only_leave_out(const std::vector<Pattern>& patterns) noexcept {
  return std::all_of(patterns.begin(), patterns.end(), [](const Pattern& one) { return one.leaves_out; });
}

// Backtracks to the last * only: each earlier * may keep its shortest match.
bool matches(const char* pattern, const char* text) noexcept {
  const char* behind_star = nullptr;
  const char* tried = nullptr;  // where in the text the pattern behind the * was last compared
  while (*text != '\0') {
    if (*pattern == '*') {
      behind_star = ++pattern;
      tried = text;
    } else if (*pattern == *text) {
      ++pattern;
      ++text;
    } else if (behind_star != nullptr) {
      pattern = behind_star;
      text = ++tried;
    } else {
      return false;
    }
  }
  while (*pattern == '*') ++pattern;
  return *pattern == '\0';
}

}  // namespace commlens
