// SPDX-License-Identifier: Apache-2.0
#include "core/hot/thread.h"

#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "tests/unit/check.h"
#include "tests/unit/shortage.h"

namespace commlens {
namespace {

using shortage::NoLargeMemory;
using shortage::NoMemory;

// What a cell must hold, counted in the plainest way.
struct Sum {
  std::uint64_t calls = 0, time = 0, sent = 0, received = 0;
  Ticks shortest = 0, longest = 0;

  void add(Ticks spent, std::uint64_t s, std::uint64_t r) {
    shortest = calls == 0 ? spent : std::min(shortest, spent);
    longest = std::max(longest, spent);
    ++calls;
    time += spent;
    sent += s;
    received += r;
  }
};

void check_same(const Cell& cell, const Sum& sum) {
  CHECK_EQ(cell.calls, sum.calls);
  CHECK_EQ(cell.time, sum.time);
  CHECK_EQ(cell.time_min, sum.shortest);
  CHECK_EQ(cell.time_max, sum.longest);
  CHECK_EQ(cell.bytes_sent, sum.sent);
  CHECK_EQ(cell.bytes_received, sum.received);
}

// The sums of all cells a collection would find.
Sum total(const Table& table) {
  Sum all;
  const auto add = [&all](const Cell& cell) {
    all.calls += cell.calls;
    all.time += cell.time;
    all.sent += cell.bytes_sent;
    all.received += cell.bytes_received;
  };
  for (std::uint64_t i = 0; i <= table.mask; ++i) {
    if (table.index[i] != nullptr) add(*table.index[i]);
  }
  add(table.overflow);
  return all;
}

Key key_number(std::uint32_t n) { return make_key(n, 1, 0, 0); }

}  // namespace

TEST(a_cell_keeps_sum_shortest_and_longest) {
  std::mt19937_64 random(1);
  Cell cell{};
  Sum sum;
  for (int i = 0; i < 10'000; ++i) {
    const Ticks spent = random() >> 20;
    const std::uint64_t sent = random() & 0xffff, received = random() & 0xffff;
    add_call(cell, spent, sent, received);
    sum.add(spent, sent, received);
    if (i < 3) check_same(cell, sum);
  }
  check_same(cell, sum);
}

TEST(a_call_that_took_no_time_is_the_shortest) {
  Cell cell{};
  add_call(cell, 5, 0, 0);
  add_call(cell, 0, 0, 0);
  add_call(cell, 7, 0, 0);
  CHECK_EQ(cell.time_min, 0u);
  CHECK_EQ(cell.time_max, 7u);
}

TEST(a_cell_that_held_only_bytes_takes_its_first_call_as_the_shortest) {
  Cell cell{};
  cell.bytes_received = 100;  // of a request another thread made
  add_call(cell, 9, 0, 0);
  CHECK_EQ(cell.time_min, 9u);
  CHECK_EQ(cell.bytes_received, 100u);
}

TEST(a_random_stream_counts_like_a_map_and_no_cell_moves) {
  std::mt19937_64 random(2);
  Thread thread{};
  Table& table = thread.table;
  std::map<std::pair<Key, Site>, Sum> oracle;
  std::map<std::pair<Key, Site>, Cell*> first_seen;
  for (int i = 0; i < 300'000; ++i) {
    // Few values a field: calls that differ in one field only must not meet.
    const auto n = static_cast<std::uint32_t>(random());
    const Key key = make_key(n % 50, (n >> 8) % 10, (n >> 16) % 8, 0);
    const Site site = 0x400000 + random() % 10;
    const Ticks spent = random() % 1000;
    Cell* const cell = record(thread, key, site, spent, n % 7, n % 11);
    oracle[{key, site}].add(spent, n % 7, n % 11);
    CHECK_EQ(first_seen.try_emplace({key, site}, cell).first->second, cell);
  }
  CHECK(oracle.size() > 30'000);  // beyond many segments and several sizes of the index
  CHECK_EQ(table.used, oracle.size());
  CHECK(table.used * 2 <= table.mask + 1);
  for (const auto& [what, sum] : oracle) {
    Cell* const cell = find_cell(table, what.first, what.second);
    CHECK_EQ(cell, first_seen[what]);
    check_same(*cell, sum);
  }
  CHECK_EQ(table.overflow.calls, 0u);
}

TEST(keys_that_differ_in_one_bit_have_their_own_cells) {
  Thread thread{};
  Table& table = thread.table;
  std::map<Cell*, int> cells;
  for (int bit = 0; bit < 63; ++bit) ++cells[find_cell(table, make_key(0, 0, 0, 0) ^ (Key{1} << bit), 0)];
  for (int bit = 0; bit < 63; ++bit) ++cells[find_cell(table, make_key(0, 0, 0, 0), Site{1} << bit)];
  CHECK_EQ(cells.size(), 126u);
}

TEST(a_table_without_any_memory_counts_into_overflow_and_loses_nothing) {
  Thread thread{};
  Table& table = thread.table;
  const NoMemory none;
  for (std::uint32_t i = 0; i < 1000; ++i) record(thread, key_number(i), 0, 2, 3, 4);
  CHECK_EQ(table.overflow.calls, 1000u);
  CHECK_EQ(table.overflow.time, 2000u);
  CHECK_EQ(table.overflow.bytes_sent, 3000u);
  CHECK_EQ(table.overflow.bytes_received, 4000u);
}

TEST(a_table_that_cannot_grow_keeps_its_cells_and_counts_the_rest_into_overflow) {
  for (int allowed = 1; allowed <= 12; ++allowed) {
    const int refused = shortage::refusals();
    Thread thread{};
    Table& table = thread.table;
    const NoMemory soon(allowed);
    std::uint64_t calls = 0;
    for (int round = 0; round < 3; ++round) {
      for (std::uint32_t i = 0; i < 6000; ++i, ++calls) record(thread, key_number(i), 0, i, 1, 2);
    }
    CHECK(shortage::refusals() > refused);
    CHECK_EQ(total(table).calls, calls);
    CHECK_EQ(total(table).sent, calls);
    CHECK_EQ(total(table).received, 2 * calls);
    CHECK_EQ(total(table).time, 3 * (5999u * 6000u / 2));
    // Those it had before go on in their own cells.
    CHECK(table.overflow.calls == 3 * (6000 - table.used));
    CHECK(table.used < 6000);
    CHECK(table.used <= table.mask);
    for (std::uint32_t i = 0; i < table.used; ++i) CHECK_EQ(find_cell(table, key_number(i), 0)->calls, 3u);
  }
}

TEST(an_index_that_cannot_grow_is_filled_up_to_its_last_free_entry_and_probes_still_end) {
  Thread thread{};
  Table& table = thread.table;
  const NoLargeMemory segments_only(16 * 1024);  // 2,048 entries of an index
  for (int round = 0; round < 2; ++round) {
    for (std::uint32_t i = 0; i < 3000; ++i) record(thread, key_number(i), 0, 1, 0, 0);
  }
  CHECK_EQ(table.mask + 1, 2048u);
  CHECK_EQ(table.used, 2047u);
  CHECK_EQ(table.overflow.calls, 2 * (3000u - 2047));
  CHECK_EQ(total(table).calls, 6000u);
}

TEST(a_table_that_could_not_grow_does_when_there_is_memory_again) {
  Thread thread{};
  Table& table = thread.table;
  {
    const NoMemory soon(2);  // the first index and the first segment
    for (std::uint32_t i = 0; i < 1000; ++i) record(thread, key_number(i), 0, 1, 0, 0);
  }
  const std::uint64_t lost = table.overflow.calls;
  CHECK(lost > 0);
  for (std::uint32_t i = 0; i < 1000; ++i) record(thread, key_number(i), 0, 1, 0, 0);
  CHECK_EQ(table.overflow.calls, lost);
  CHECK_EQ(table.used, 1000u);
  CHECK_EQ(total(table).calls, 2000u);
}

}  // namespace commlens
