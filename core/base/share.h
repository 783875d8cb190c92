// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "core/base/identity.h"

namespace commlens {

constexpr std::int64_t whole_share = 1'000'000'000;

// Returns a number from 0 to 1, such as 0.25, in billionths; -1: the text is none.  The decimal point does not depend
// on the locale of the application, as it would with strtod().
inline std::int64_t billionths(const std::string& text) noexcept {
  if (text.empty() || text.size() > 11 || (text[0] != '0' && text[0] != '1')) return -1;
  if (text.size() > 1 && text[1] != '.') return -1;
  std::int64_t share = (text[0] - '0') * whole_share;
  std::int64_t place = whole_share / 10;
  for (std::size_t i = 2; i < text.size(); ++i, place /= 10) {
    if (text[i] < '0' || text[i] > '9') return -1;
    share += (text[i] - '0') * place;
  }
  return share <= whole_share ? share : -1;
}

// Returns whether the job with this key is in the sample that takes `share` billionths of all jobs.  The same key
// always gives the same answer, and a larger share only adds jobs.
inline bool is_sampled(const std::string& key, std::int64_t share) noexcept {
  constexpr Identity salt = 0x73616d706c65;  // "sample": another number than that of a launch
  const Identity number = combine(salt, identity_of(key.data(), key.size())) >> 1;
  return static_cast<std::int64_t>(number % static_cast<Identity>(whole_share)) < share;
}

}  // namespace commlens
