// SPDX-License-Identifier: Apache-2.0
#include "core/state/paths.h"

#include <cstdint>
#include <string>

#include "core/state/counted.h"
#include "core/state/notices.h"
#include "core/state/registry.h"
#include "tests/unit/check.h"
#include "tests/unit/process.h"

namespace commlens {
namespace {

// Returns the path of a call in code without unwind tables, whose path is its call site alone.
Site path_from(Site site) {
  const std::uint64_t frame[2] = {0, site};
  return add_path(PathCache::none, site, site, reinterpret_cast<const char*>(frame));
}

std::string said() {
  for (const NoticeText& notice : counted_here(Registry(), 0).notices) {
    if (notice.kind == Notice::paths) return notice.text;
  }
  return "";
}

}  // namespace

TEST(when_there_is_no_room_for_another_path_calls_are_counted_at_their_call_site_and_that_is_said) {
  in_own_process([] {
    constexpr Site most = 1u << 16, first = 4096;
    choose_frames(4);
    for (Site i = 0; i < most; ++i) CHECK(is_path(path_from(first + i)));
    CHECK_EQ(said(), "");
    for (int i = 0; i < 3; ++i) CHECK_EQ(path_from(first + most), first + most);
    CHECK_EQ(path_from(first + most + 1), first + most + 1);
    CHECK(is_path(path_from(first)));  // is known
    CHECK_EQ(said(),
             "more than 65536 call sites and callers: 4 calls on new paths are counted at their call site alone");
  });
}

}  // namespace commlens
