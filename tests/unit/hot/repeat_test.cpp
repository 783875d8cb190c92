// SPDX-License-Identifier: Apache-2.0
#include "core/hot/repeat.h"

#include <array>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <tuple>

#include "core/cold/regions.h"
#include "core/hot/thread.h"
#include "tests/unit/check.h"
#include "tests/unit/process.h"

namespace commlens {
namespace {

constexpr Site site = 0x55555555a123;
constexpr std::uint64_t where = 0x44000000, freed = 5;
const std::uint64_t what = Repeat::what_of(7, 3);

// One of a call that was kept.
Repeat kept(Cell& cell, PeerCell& out, PeerCell& in) {
  Repeat r{};
  r.note(site, where, what, std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{3}, std::uint64_t{4}, std::uint64_t{5},
         std::uint64_t{6});
  r.cell = &cell;
  r.out = &out;
  r.in = &in;
  r.sent = 100;
  r.received = 20;
  r.out_bytes = 300;
  r.freed = freed;
  return r;
}

bool is(const Repeat& r, Site s, std::uint64_t w, std::uint64_t of, std::uint64_t now,
        const std::array<std::uint64_t, 6>& word) {
  return r.is(s, w, of, now, word[0], word[1], word[2], word[3], word[4], word[5]);
}

}  // namespace

TEST(a_call_is_like_one_before_only_where_all_of_it_is) {
  Cell cell{};
  PeerCell out{}, in{};
  const Repeat r = kept(cell, out, in);
  const std::array<std::uint64_t, 6> same{1, 2, 3, 4, 5, 6};
  CHECK(is(r, site, where, what, freed, same));
  // Each bit of each of them.
  for (unsigned bit = 0; bit < 64; ++bit) {
    const std::uint64_t other = std::uint64_t{1} << bit;
    CHECK(!is(r, site ^ other, where, what, freed, same));
    CHECK(!is(r, site, where ^ other, what, freed, same));
    CHECK(!is(r, site, where, what ^ other, freed, same));
    CHECK(!is(r, site, where, what, freed ^ other, same));
    for (std::size_t i = 0; i < same.size(); ++i) {
      std::array<std::uint64_t, 6> odd = same;
      odd[i] ^= other;
      CHECK(!is(r, site, where, what, freed, odd));
    }
  }
}

TEST(procedures_and_regions_are_told_apart) {
  std::set<std::uint64_t> seen;
  for (std::uint32_t op : {1u, 2u, 512u, 1023u}) {
    for (std::uint32_t region : {0u, 1u, 2u, max_region - 1, max_region}) seen.insert(Repeat::what_of(op, region));
  }
  CHECK_EQ(seen.size(), 20u);
  CHECK_EQ(seen.count(0), 0u);  // of one that was never used
}

TEST(what_has_only_been_noted_is_like_no_call) {
  Cell cell{};
  PeerCell out{}, in{};
  Repeat r = kept(cell, out, in);
  r.note(site, where, what, std::uint64_t{1});
  for (std::uint64_t now : {std::uint64_t{0}, std::uint64_t{1}, freed}) {
    CHECK(!r.is(site, where, what, now, std::uint64_t{1}));
  }
}

TEST(a_call_like_another_counts_as_one_that_is_looked_up) {
  std::mt19937_64 random(3);
  Cell cell{}, oracle{};
  PeerCell out{}, in{};
  add_call(cell, 50, 100, 20);
  add_call(oracle, 50, 100, 20);
  const Repeat r = kept(cell, out, in);
  constexpr unsigned all = Repeat::sends | Repeat::receives | Repeat::out_message | Repeat::in_message;
  for (std::uint64_t i = 1; i <= 1000; ++i) {
    const Ticks begin = random(), spent = random() % 1000;
    CHECK_EQ(r.add<all>(begin, begin + spent), spent);
    add_call(oracle, spent, 100, 20);
    CHECK_EQ(cell.calls, oracle.calls);
    CHECK_EQ(cell.time, oracle.time);
    CHECK_EQ(cell.time_min, oracle.time_min);
    CHECK_EQ(cell.time_max, oracle.time_max);
    CHECK_EQ(cell.bytes_sent, oracle.bytes_sent);
    CHECK_EQ(cell.bytes_received, oracle.bytes_received);
    CHECK_EQ(out.messages, i);
    CHECK_EQ(out.bytes, 300 * i);
    CHECK_EQ(in.messages, i);
    CHECK_EQ(in.bytes, 20 * i);
  }
}

TEST(a_call_that_ended_before_it_began_took_no_time) {
  Cell cell{};
  PeerCell out{}, in{};
  add_call(cell, 50, 0, 0);
  const Repeat r = kept(cell, out, in);
  for (const Ticks behind : {Ticks{1}, Ticks{1000}}) CHECK_EQ(r.add<Repeat::nothing>(5000, 5000 - behind), 0u);
  CHECK_EQ(cell.calls, 3u);
  CHECK_EQ(cell.time, 50u);
  CHECK_EQ(cell.time_min, 0u);
  CHECK_EQ(cell.time_max, 50u);
}

TEST(a_part_that_a_procedure_does_not_have_is_left_alone) {
  Cell cell{};
  PeerCell out{}, in{};
  add_call(cell, 1, 0, 0);
  const Repeat r = kept(cell, out, in);
  r.add<Repeat::nothing>(7, 8);
  CHECK_EQ(cell.calls, 2u);
  CHECK_EQ(cell.bytes_sent + cell.bytes_received + out.messages + in.messages, 0u);
  r.add<Repeat::sends>(7, 8);
  CHECK_EQ(cell.bytes_sent, 100u);
  r.add<Repeat::receives>(7, 8);
  CHECK_EQ(cell.bytes_received, 20u);
  r.add<Repeat::out_message>(7, 8);
  CHECK_EQ(out.messages, 1u);
  r.add<Repeat::in_message>(7, 8);
  CHECK_EQ(in.messages, 1u);
  CHECK_EQ(cell.bytes_sent + cell.bytes_received, 120u);
  CHECK_EQ(out.messages + in.messages, 2u);
}

TEST(a_call_has_one_place_and_many_calls_have_many) {
  const auto repeats = std::make_unique<Repeats>();
  std::set<const Repeat*> used;
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    const std::uint64_t handle = 0x84000000 + i % 50, count = i / 50;
    Repeat& place = repeats->place(site + 0x40 * (i % 7), handle, count, ~i);
    CHECK_EQ(&place, &repeats->place(site + 0x40 * (i % 7), handle, count, ~i));
    CHECK(&place >= std::begin(repeats->call) && &place < std::end(repeats->call));
    used.insert(&place);
  }
  CHECK_EQ(used.size(), std::size(repeats->call));
}

TEST(repeats_never_find_another_call_and_what_comes_often_is_found) {
  // As a wrapper does it, with what was kept as the oracle: far more calls than there are places, and a few of them
  // most of the time.
  using Call = std::tuple<Site, std::uint64_t, std::uint64_t, std::uint64_t>;
  const auto repeats = std::make_unique<Repeats>();
  std::map<Call, Cell> cells;
  std::mt19937_64 random(4);
  std::uint64_t now = 0;
  int found = 0;
  constexpr int calls = 200'000;
  for (int i = 0; i < calls; ++i) {
    const std::uint64_t n = random() % 4 != 0 ? random() % 20 : random() % 2000;
    const Site from = site + n % 3;
    const std::uint64_t count = n / 3, type = n % 2 == 0 ? count : 1000 * count;
    const std::uint64_t of = Repeat::what_of(static_cast<std::uint32_t>(1 + n % 5 / 4), 0);
    if (random() % 5000 == 0) ++now;
    if (random() % 5000 == 0) {
      repeats->forget();
      for (const Repeat& r : repeats->call) CHECK_EQ(r.freed, Repeat::never);
    }
    Cell& cell = cells[Call{from, of, count, type}];
    Repeat& r = repeats->place(from, where, count, type);
    if (r.is(from, where, of, now, count, type)) {
      ++found;
      CHECK_EQ(r.cell, &cell);
      CHECK_EQ(r.sent, count);
      CHECK_EQ(r.word[0], count);
    } else if (repeats->is_turn()) {
      r.note(from, where, of, count, type);
      r.cell = &cell;
      r.sent = count;
      r.freed = now;
    }
  }
  CHECK(found > calls / 2);
}

TEST(when_counters_are_cleared_no_call_of_the_thread_is_kept) {
  in_own_process([] {
    Thread& thread = this_thread();
    CHECK(thread.repeats != &Repeats::none);
    Repeat& r = thread.repeats->place(site, where);
    r.note(site, where, what);
    r.freed = freed;
    CHECK(thread.repeats->place(site, where).is(site, where, what, freed));
    forget_counted();
    CHECK(!thread.repeats->place(site, where).is(site, where, what, freed));
  });
}

}  // namespace commlens
