// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace commlens {

// Misuse of commlens.h by the program, and limits that it exceeded; only the first case of each kind is kept.  All
// ranks may make the same mistake, so one rank prints the text, when the profile is written.
enum class Notice : std::uint8_t {
  no_begin,
  no_end,
  no_loop,
  depth,
  others,
  names,
  metrics,
  tags,
  units,
  series,
  peers,
  level,
  paths,
  events,
  pvars,
  count
};

struct NoticeText {
  Notice kind;
  std::string text;
};

bool is_noticed(Notice kind) noexcept;
void notice(Notice kind, std::string text) noexcept;  // does nothing if this kind has a notice already
std::vector<NoticeText> notices();

}  // namespace commlens
