// SPDX-License-Identifier: Apache-2.0
#include "core/base/signals.h"

#include <strings.h>

#include <cstdlib>
#include <cstring>

namespace commlens {
namespace {

// Returns a number of one to three digits; -1 for anything else.
int small_number(const std::string& text) {
  if (text.empty() || text.size() > 3 || text.find_first_not_of("0123456789") != std::string::npos) return -1;
  return std::atoi(text.c_str());
}

}  // namespace

int signal_named(const std::string& text) {
  if (text.empty()) return 0;
  const auto in_range = [](int number) { return number >= 0 && number <= SIGRTMAX ? number : -1; };
  if (const int number = small_number(text); number >= 0) return in_range(number);
  const std::string name = strncasecmp(text.c_str(), "SIG", 3) == 0 ? text.substr(3) : text;
  for (int number = 1; number < NSIG; ++number) {
    const char* const known = sigabbrev_np(number);
    if (known != nullptr && strcasecmp(name.c_str(), known) == 0) return number;
  }
  for (const bool from_below : {true, false}) {
    if (strncasecmp(name.c_str(), from_below ? "RTMIN" : "RTMAX", 5) != 0) continue;
    const int from = from_below ? SIGRTMIN : SIGRTMAX;
    if (name.size() == 5) return from;
    const int distance = name[5] == (from_below ? '+' : '-') ? small_number(name.substr(6)) : -1;
    const int number = from_below ? from + distance : from - distance;
    return distance >= 0 && number >= SIGRTMIN && number <= SIGRTMAX ? number : -1;
  }
  return -1;
}

}  // namespace commlens
