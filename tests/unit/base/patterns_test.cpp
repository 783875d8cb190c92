// SPDX-License-Identifier: Apache-2.0
#include "core/base/patterns.h"

#include <string>

#include "tests/unit/check.h"

namespace commlens {

TEST(a_list_of_patterns_has_no_blanks_and_no_empty_ones) {
  const auto all = patterns_in(" a* ,,!b, ! ,!,c d ,");
  CHECK_EQ(all.size(), 3u);
  CHECK(all[0].text == "a*" && !all[0].leaves_out);
  CHECK(all[1].text == "b" && all[1].leaves_out);
  CHECK(all[2].text == "c d" && !all[2].leaves_out);
  CHECK(patterns_in("").empty());
}

TEST(a_list_that_only_excludes_wants_all_others) {
  CHECK(only_leave_out(patterns_in("!a,!b*")));
  CHECK(!only_leave_out(patterns_in("!a,b")));
  CHECK(only_leave_out({}));
}

TEST(a_star_matches_any_text) {
  for (const char* pattern : {"*", "abc", "a*", "*c", "a*c", "*b*", "**", "abc*", "*abc", "a**c"})
    CHECK(matches(pattern, "abc"));
  for (const char* pattern : {"", "ab", "b*", "*b", "abcd", "a*d*", "ABC", "?bc"}) CHECK(!matches(pattern, "abc"));
  CHECK(matches("*", "") && matches("", "") && !matches("a", ""));
  const std::string long_text(100'000, 'a');
  CHECK(!matches("*a*a*a*a*a*a*a*a*b", long_text.c_str()));  // ends
}

}  // namespace commlens
