// SPDX-License-Identifier: Apache-2.0
#include "core/hot/key.h"

#include <iterator>
#include <random>
#include <set>
#include <tuple>

#include "generated/procedures.h"
#include "tests/unit/check.h"

namespace commlens {
namespace {

constexpr std::uint32_t max_op = 1023, max_bin = 127;

void check_round_trip(std::uint32_t comm, std::uint32_t op, std::uint32_t bin, std::uint32_t region) {
  const Key key = make_key(comm, op, bin, region);
  CHECK(key != 0);
  CHECK_EQ(comm_of_key(key), comm);
  CHECK_EQ(op_of_key(key), op);
  CHECK_EQ(bin_of_key(key), bin);
  CHECK_EQ(region_of_key(key), region);
}

}  // namespace

TEST(every_field_of_a_key_comes_back) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    check_round_trip(static_cast<std::uint32_t>(random()) & max_comm, static_cast<std::uint32_t>(random()) & max_op,
                     static_cast<std::uint32_t>(random()) & max_bin, static_cast<std::uint32_t>(random()) & max_region);
  }
}

TEST(a_field_at_its_limit_does_not_reach_its_neighbour) {
  for (const std::uint32_t comm : {0u, 1u, max_comm}) {
    for (const std::uint32_t op : {0u, 1u, max_op}) {
      for (const std::uint32_t bin : {0u, 1u, max_bin}) {
        for (const std::uint32_t region : {0u, 1u, max_region}) check_round_trip(comm, op, bin, region);
      }
    }
  }
}

TEST(different_fields_make_different_keys) {
  std::mt19937_64 random(2);
  std::set<Key> keys;
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>> fields;
  for (int i = 0; i < 50'000; ++i) {
    const auto n = static_cast<std::uint32_t>(random());
    const std::uint32_t comm = n & 15, op = (n >> 4) & 15, bin = (n >> 8) & 15, region = (n >> 12) & 15;
    keys.insert(make_key(comm, op, bin, region));
    fields.emplace(comm, op, bin, region);
  }
  CHECK_EQ(keys.size(), fields.size());
}

TEST(every_procedure_fits_into_a_key) { CHECK(std::size(op_facts) <= max_op + 1); }

TEST(a_bin_begins_at_a_power_of_two_and_ends_before_the_next) {
  CHECK_EQ(bin_of(0), 0u);
  for (std::uint32_t k = 1; k <= 64; ++k) {
    const std::uint64_t low = std::uint64_t{1} << (k - 1);
    const std::uint64_t high = low + (low - 1);
    CHECK_EQ(bin_of(low), k);
    CHECK_EQ(bin_of(high), k);
    CHECK_EQ(bin_of(low - 1), k - 1);
    if (k < 64) CHECK_EQ(bin_of(high + 1), k + 1);
  }
}

TEST(no_size_falls_into_the_bin_of_v_collectives) {
  CHECK(bin_of(~std::uint64_t{0}) < v_bin);
  CHECK_EQ(bin_of_key(make_key(0, 0, v_bin, 0)), v_bin);
}

}  // namespace commlens
