// SPDX-License-Identifier: Apache-2.0
// Identities of the names of regions.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/hot/regions.h"
#include "tests/unit/check.h"

namespace commlens {

using check::is_slow;

TEST(names_that_differ_in_one_byte_anywhere_are_different) {
  std::vector<Identity> all;
  for (const std::size_t bytes : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 9u, 15u, 16u, 17u, 31u, 64u, 255u}) {
    std::string name(bytes, 'x');
    all.push_back(identity_of_name(name.data(), bytes));
    for (std::size_t at = 0; at < bytes; ++at) {
      for (int c = 1; c < 256; ++c) {
        if (c == 'x') continue;
        name[at] = static_cast<char>(c);
        all.push_back(identity_of_name(name.data(), bytes));
      }
      name[at] = 'x';
    }
  }
  const std::size_t names = all.size();
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  CHECK_EQ(all.size(), names);
}

TEST(millions_of_random_names_have_as_many_identities_and_so_have_their_loops) {
  constexpr std::uint32_t names = is_slow ? 100'000 : 10'000'000;
  const auto name_at = [](std::uint32_t i) {
    std::uint64_t word = mixed(i + 1);
    std::string name(word % 14 + 1, ' ');
    for (char& c : name) {
      word = mixed(word);
      c = "abcdefghijklmnopqrstuvwxyz0123456789_.:/ ABCDEFGHIJKLMNOPQRSTUVWXYZ"[word % 67];
    }
    return name;
  };
  std::vector<std::pair<Identity, std::uint32_t>> all;
  all.reserve(2 * names);
  for (std::uint32_t i = 0; i < names; ++i) {
    const std::string name = name_at(i);
    const Identity identity = identity_of_name(name.data(), name.size());
    all.emplace_back(identity, i);
    if (i % 10 == 0) all.emplace_back(identity ^ mark_of_loop, i + names);
  }
  std::sort(all.begin(), all.end());
  std::uint64_t different = 1;
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (all[i].first != all[i - 1].first) {
      ++different;
      continue;
    }
    const std::uint32_t a = all[i].second, b = all[i - 1].second;
    CHECK((a < names) == (b < names) && name_at(a % names) == name_at(b % names));
  }
  CHECK(different > names / 2);  // short ones come again
}

TEST(bytes_beside_a_name_are_not_looked_at) {
  for (std::size_t bytes = 1; bytes < 40; ++bytes) {
    const std::string name(bytes, 'n');
    const std::string beside = "left" + name + "right", other = "LEFT" + name + "RIGHT";
    CHECK_EQ(identity_of_name(beside.data() + 4, bytes), identity_of_name(other.data() + 4, bytes));
    const std::vector<char> exact(name.begin(), name.end());  // asan sees what is read behind it
    CHECK_EQ(identity_of_name(exact.data(), bytes), identity_of_name(name.data(), bytes));
  }
}

}  // namespace commlens
