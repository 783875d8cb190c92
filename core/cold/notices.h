// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace commlens {

// What is odd about how a program uses commlens.h, the first of each kind.  All ranks may do the same: it is said once,
// when the profile is written, and not by each of them.
enum class Notice : std::uint8_t {
  no_begin,
  no_end,
  no_loop,
  depth,
  others,
  names,
  quantities,
  tags,
  units,
  peers,
  level,
  count
};

struct NoticeText {
  Notice kind;
  std::string text;
};

bool is_noticed(Notice kind) noexcept;
void notice(Notice kind, std::string text) noexcept;  // does nothing for a kind that is noticed
std::vector<NoticeText> notices();

}  // namespace commlens
