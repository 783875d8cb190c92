// SPDX-License-Identifier: Apache-2.0
#include "core/base/identity.h"

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "tests/unit/check.h"

namespace commlens {
namespace {

bool all_different(std::vector<Identity>& identities) {
  std::sort(identities.begin(), identities.end());
  return std::adjacent_find(identities.begin(), identities.end()) == identities.end();
}

}  // namespace

TEST(a_million_creations_that_differ_in_little_have_different_identities) {
  // As communicators are told apart: parent, procedure, n-th creation, leader.
  std::vector<Identity> made;
  for (Identity world = 0; world < 4; ++world) {
    for (Identity op = 50; op < 55; ++op) {
      for (Identity n = 0; n < 50; ++n) {
        for (Identity leader = 0; leader < 1000; ++leader) {
          made.push_back(combine(combine(combine(mixed(world), op), n), leader));
        }
      }
    }
  }
  CHECK_EQ(made.size(), 1'000'000u);
  CHECK(all_different(made));
}

TEST(a_million_random_inputs_have_different_identities) {
  std::mt19937_64 random(1);
  std::vector<Identity> made;
  for (int i = 0; i < 1'000'000; ++i) made.push_back(combine(random(), random()));
  CHECK(all_different(made));
}

TEST(long_chains_of_duplicates_have_different_identities) {
  std::vector<Identity> made;
  for (Identity first = 0; first < 10; ++first) {
    Identity parent = first;
    for (int depth = 0; depth < 20'000; ++depth) made.push_back(parent = combine(parent, 0));
  }
  CHECK(all_different(made));
}

TEST(groups_have_different_identities) {
  // Every list of up to five ranks out of eight, in every order.
  std::vector<Identity> made;
  for (std::uint32_t size = 0; size <= 5; ++size) {
    for (std::uint32_t n = 0; n < 1u << (3 * size); ++n) {
      std::uint32_t ranks[5];
      for (std::uint32_t i = 0; i < size; ++i) ranks[i] = (n >> (3 * i)) & 7;
      made.push_back(identity_of(ranks, size * sizeof *ranks));
    }
  }
  CHECK_EQ(made.size(), 1u + 8 + 64 + 512 + 4096 + 32768);
  CHECK(all_different(made));
}

TEST(the_order_of_what_is_combined_matters) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 10'000; ++i) {
    const Identity a = i < 100 ? static_cast<Identity>(i) : random();
    const Identity b = a + 1 + random() % 5;
    CHECK(combine(a, b) != combine(b, a));
  }
}

TEST(every_bit_that_goes_in_changes_about_half_of_those_that_come_out) {
  std::mt19937_64 random(3);
  for (int bit = 0; bit < 64; ++bit) {
    int changed_by_first = 0, changed_by_second = 0;
    constexpr int tries = 200;
    for (int i = 0; i < tries; ++i) {
      const Identity a = random(), b = random(), flip = Identity{1} << bit;
      changed_by_first += __builtin_popcountll(combine(a, b) ^ combine(a ^ flip, b));
      changed_by_second += __builtin_popcountll(combine(a, b) ^ combine(a, b ^ flip));
    }
    CHECK(changed_by_first > 30 * tries && changed_by_first < 34 * tries);
    CHECK(changed_by_second > 30 * tries && changed_by_second < 34 * tries);
  }
}

}  // namespace commlens
