// SPDX-License-Identifier: Apache-2.0
#include "core/out/output_name.h"

#include <cstdint>

#include "core/base/identity.h"
#include "tests/unit/check.h"

namespace commlens::out {
namespace {

const NameFields fields{"app", "node7", "4711", 64, "alice", "20261127"};

}  // namespace

TEST(the_fields_of_a_pattern_are_filled_in) {
  CHECK_EQ(output_name("commlens-%p-%j.db", fields), std::string("commlens-app-4711.db"));
  CHECK_EQ(output_name("/scratch/%h/%n/%p%p.db", fields), std::string("/scratch/node7/64/appapp.db"));
  CHECK_EQ(output_name("plain.db", fields), std::string("plain.db"));
  CHECK_EQ(output_name("", fields), std::string());
}

TEST(a_pattern_may_have_the_user_and_the_date) {
  CHECK_EQ(output_name("/p/%u/%Y-%m/%d-%j.db", fields), std::string("/p/alice/2026-11/27-4711.db"));
  CHECK_EQ(output_name("%Y|%m|%d|%u", {"", "", "", 1, "", ""}), std::string("|||"));
  CHECK_EQ(output_name("%Y|%m|%d", {"", "", "", 1, "", "20261"}), std::string("2026|1|"));
}

TEST(a_value_is_no_folder_by_itself) {
  CHECK_EQ(output_name("/p/%u/%h/x.db", {"", ".", "", 1, "..", ""}), std::string("/p/_./_/x.db"));
}

TEST(the_root_ends_before_the_first_folder_with_a_field) {
  CHECK_EQ(root_length("/p/q/%u/%Y-%m/x.db"), 5u);
  CHECK_EQ(root_length("/p/q-%u/x.db"), 3u);
  CHECK_EQ(root_length("/%u/x.db"), 1u);
  CHECK_EQ(root_length("%u/x.db"), 0u);
  CHECK_EQ(root_length("/p/100%%/x.db"), 3u);
  CHECK_EQ(root_length("/p/q/%u/"), 5u);
  for (const char* const none : {"", "x.db", "/p/q/x.db", "/p/q/%u-%j.db", "%j.db", "/p/", "%"}) {
    CHECK_EQ(root_length(none), std::string::npos);
  }
}

// Patterns from all characters that have a meaning, and some that have none, in an order that a generator chooses.
TEST(random_patterns_give_a_name_whose_root_is_the_beginning_of_the_pattern) {
  const std::string letters = "%%%%/p/hjnuYmdx.\xff";
  std::uint64_t state = 1;
  for (int round = 0; round < 20'000; ++round) {
    std::string pattern;
    for (state = mixed(state + 1); pattern.size() < state % 40; state = mixed(state + 1)) {
      pattern += letters[(state >> 32) % letters.size()];
    }
    const std::string name = output_name(pattern, {"../p", "", std::string(300, 'j'), -5, "/../", "2026"});
    CHECK(name.size() <= 100 * pattern.size());
    const std::size_t root = root_length(pattern);
    if (root == std::string::npos) continue;
    CHECK(root <= name.size() && root < pattern.size());
    CHECK_EQ(name.substr(0, root), pattern.substr(0, root));
    CHECK(root == 0 || name[root - 1] == '/');
    CHECK_EQ(name.substr(0, root).find('%'), std::string::npos);
  }
}

TEST(a_percent_sign_is_two_and_an_unknown_field_stays) {
  CHECK_EQ(output_name("%%p-100%%.db", fields), std::string("%p-100%.db"));
  CHECK_EQ(output_name("%x-%P-%", fields), std::string("%x-%P-%"));
  CHECK_EQ(output_name("%%%p", fields), std::string("%app"));
}

TEST(a_value_is_one_part_of_the_path_and_is_not_looked_into) {
  const NameFields odd{"../bin/%j", "a/b", "x%n", 2, "", ""};
  CHECK_EQ(output_name("%p|%h|%j|%n", odd), std::string(".._bin_%j|a_b|x%n|2"));
}

TEST(a_long_value_is_cut_between_characters) {
  const NameFields title{std::string(300, 't'), "", "", 1, "", ""};
  CHECK_EQ(output_name("%p", title), std::string(100, 't'));
  const NameFields accents{"a" + std::string("\u00e9\u00e9") + std::string(300, 'x'), "", "", 1, "", ""};
  CHECK_EQ(output_name("%p", accents).size(), 100u);
  std::string many = "a";
  for (int i = 0; i < 100; ++i) many += "\u00e9";  // two bytes each: the 100th byte is in the middle of one
  CHECK_EQ(output_name("%p", {many, "", "", 1, "", ""}).size(), 99u);
}

TEST(a_number_goes_before_the_ending) {
  CHECK_EQ(numbered_name("a.db", 1), std::string("a.1.db"));
  CHECK_EQ(numbered_name("a.tar.db", 12), std::string("a.tar.12.db"));
  CHECK_EQ(numbered_name("/x.y/a.db", 2), std::string("/x.y/a.2.db"));
}

TEST(a_mark_goes_before_the_ending) {
  CHECK_EQ(marked_name("/x.y/a.db", ".rank3"), std::string("/x.y/a.rank3.db"));
  CHECK_EQ(marked_name("profile", ".rank3"), std::string("profile.rank3"));
}

TEST(a_name_without_an_ending_gets_the_number_at_its_end) {
  CHECK_EQ(numbered_name("profile", 1), std::string("profile.1"));
  CHECK_EQ(numbered_name("/x.y/profile", 1), std::string("/x.y/profile.1"));
  CHECK_EQ(numbered_name(".hidden", 1), std::string(".hidden.1"));
  CHECK_EQ(numbered_name("dir/.hidden", 3), std::string("dir/.hidden.3"));
}

}  // namespace commlens::out
