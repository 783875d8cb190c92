// SPDX-License-Identifier: Apache-2.0
#include "core/profile/members.h"

#include <algorithm>
#include <cstdio>
#include <random>
#include <sstream>

#include "tests/unit/check.h"

namespace commlens {
namespace {

std::vector<int> expanded(const std::string& text) {
  std::vector<int> ranks;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    int first = 0, last = 0, stride = 1;
    if (std::sscanf(part.c_str(), "%d-%d:%d", &first, &last, &stride) < 2) last = first;
    for (int r = first; r <= last; r += stride) ranks.push_back(r);
  }
  return ranks;
}

std::vector<int> random_group(std::mt19937& random) {
  std::vector<int> group(1 + random() % 40);
  int world = static_cast<int>(random() % 5), stride = 1;
  for (int& member : group) {
    if (random() % 4 == 0) stride = 1 + static_cast<int>(random() % 3);
    member = world;
    world += stride;
  }
  if (random() % 3 == 0) std::shuffle(group.begin(), group.end(), random);
  return group;
}

}  // namespace

TEST(the_text_of_members_that_come_in_any_order_gives_them_back) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    const std::vector<int> group = random_group(random);
    std::vector<int> ranks(group.size());
    for (std::size_t r = 0; r < ranks.size(); ++r) ranks[r] = static_cast<int>(r);
    if (i % 2 == 0) std::shuffle(ranks.begin(), ranks.end(), random);
    MemberRuns members;
    for (const int rank : ranks) members.add({rank, group[static_cast<std::size_t>(rank)], 1, 1});
    CHECK(expanded(members.text()) == group);
  }
}

TEST(members_of_two_blocks_are_the_members_of_both) {
  std::mt19937 random(2);
  for (int i = 0; i < 2000; ++i) {
    const std::vector<int> group = random_group(random);
    const int cut = static_cast<int>(random() % 120);
    MemberRuns all, low, high;
    for (std::size_t r = 0; r < group.size(); ++r)
      (group[r] < cut ? low : high).add({static_cast<int>(r), group[r], 1, 1});
    all.add(low);
    all.add(high);
    CHECK(expanded(all.text()) == group);
  }
}

TEST(a_hundred_thousand_ranks_that_follow_a_rule_are_one_run) {
  MemberRuns world, column;
  for (int r = 0; r < 100'000; ++r) world.add({r, r, 1, 1});
  for (int r = 0; r < 1000; ++r) column.add({r, 7 + 100 * r, 1, 1});
  CHECK_EQ(world.runs().size(), 1u);
  CHECK_EQ(world.text(), std::string("0-99999"));
  CHECK_EQ(column.text(), std::string("7-99907:100"));
  CHECK(world.are({0, 100'000}) && !world.are({0, 99'999}) && !world.are({1, 100'000}));
  CHECK(!column.are({7, 99'908}));
}

}  // namespace commlens
