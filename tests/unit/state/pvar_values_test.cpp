// SPDX-License-Identifier: Apache-2.0
#include "core/state/pvar_values.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "tests/unit/check.h"

namespace commlens {
namespace {

template <class Number>
double increase(PvarType type, Number before, Number now) {
  const Number first[] = {0, before}, last[] = {0, now};
  return increase_at(type, first, last, 1);
}

}  // namespace

TEST(the_increase_of_a_narrow_variable_survives_overflow) {
  constexpr auto most = std::numeric_limits<std::uint32_t>::max();
  CHECK_EQ(increase<std::uint32_t>(PvarType::unsigned_32, 3, 10), 7.0);
  CHECK_EQ(increase<std::uint32_t>(PvarType::unsigned_32, most, 0), 1.0);
  CHECK_EQ(increase<std::uint32_t>(PvarType::unsigned_32, 0, most), 4294967295.0);
}

TEST(a_variable_that_was_reset_grew_from_0) {
  CHECK_EQ(increase<std::uint64_t>(PvarType::unsigned_64, 100, 107), 7.0);
  CHECK_EQ(increase<std::uint64_t>(PvarType::unsigned_64, 100, 7), 7.0);
  CHECK_EQ(increase<std::int64_t>(PvarType::signed_64, 100, 7), 7.0);
  CHECK_EQ(increase<std::int32_t>(PvarType::signed_32, 100, 7), 7.0);
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min(), most = -(least + 1);
  CHECK_EQ(increase<std::int64_t>(PvarType::signed_64, least, most), 18446744073709551616.0);
  CHECK_EQ(increase<double>(PvarType::real, 1.5, 1.75), 0.25);
  CHECK_EQ(increase<double>(PvarType::real, 1.5, 0.25), 0.25);
}

TEST(elements_are_read_where_they_are) {
  const std::int32_t narrow[] = {1, -2, 3};
  const std::uint64_t wide[] = {1, std::uint64_t{1} << 40};
  char unaligned[sizeof wide + 1];
  std::memcpy(unaligned + 1, wide, sizeof wide);
  CHECK_EQ(value_at(PvarType::signed_32, narrow, 1), -2.0);
  CHECK_EQ(value_at(PvarType::unsigned_64, unaligned + 1, 1), 1099511627776.0);
  CHECK_EQ(value_at(PvarType::other, narrow, 0), 0.0);
  CHECK_EQ(bytes_of(PvarType::other), 0u);
  CHECK_EQ(bytes_of(PvarType::signed_32), 4u);
  CHECK_EQ(bytes_of(PvarType::real), 8u);
}

TEST(a_timer_in_real_numbers_has_seconds_and_others_have_their_class) {
  CHECK_EQ(std::string(unit_of(PvarClass::timer, PvarType::real)), "s");
  CHECK_EQ(std::string(unit_of(PvarClass::timer, PvarType::unsigned_64)), "timer");
  CHECK_EQ(std::string(unit_of(PvarClass::generic, PvarType::real)), "generic");
  CHECK_EQ(std::string(unit_of(PvarClass::unknown, PvarType::real)), "unknown class");
  CHECK(grows(PvarClass::timer) && grows(PvarClass::counter) && grows(PvarClass::aggregate));
  CHECK(!grows(PvarClass::high_watermark) && !grows(PvarClass::generic));
}

TEST(the_last_pattern_that_matches_decides) {
  PvarChoice choice("list,a*,!ab*,abc,none,!nobody");
  CHECK(choice.wants_list());
  CHECK(choice.wants("a") && choice.wants("abc"));
  CHECK(!choice.wants("ab") && !choice.wants("b") && !choice.wants("list"));
  const auto lost = choice.without_match();
  CHECK(lost.size() == 1 && lost[0] == "none");
}

TEST(the_word_list_alone_wants_no_variable) {
  PvarChoice choice(" list ");
  CHECK(choice.wants_list() && choice.is_empty() && !choice.wants("a"));
  CHECK(PvarChoice("").is_empty());
  CHECK(PvarChoice("!a").wants("b"));
}

TEST(refused_variables_are_named_by_reason_and_long_lists_are_cut) {
  PvarRefusals refused;
  CHECK(refused.is_empty());
  refused.add("a", "no number");
  refused.add("b", "bound to a window");
  refused.add("c", "no number");
  refused.add("a", "no number");  // two classes
  CHECK_EQ(refused.text(), "a, c (no number), b (bound to a window)");
  for (int i = 0; i < 20; ++i) {
    refused.add("b" + std::to_string(i), "bound to a window");
    refused.add(std::string(1000, 'x'), "reason " + std::to_string(i));
  }
  const std::string text = refused.text();
  CHECK(text.find("b4 and 15 more (bound to a window)") != std::string::npos);
  CHECK(text.size() < 1900);
  CHECK(text.find(", and others") != std::string::npos);
}

}  // namespace commlens
