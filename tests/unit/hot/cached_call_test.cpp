// SPDX-License-Identifier: Apache-2.0
#include "core/hot/cached_call.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "core/hot/peers.h"
#include "core/hot/thread.h"
#include "core/state/regions.h"
#include "tests/unit/check.h"
#include "tests/unit/process.h"

namespace commlens {
namespace {

constexpr Site site = 0x55555555a123;
constexpr std::uint64_t freed = 5;
const std::uint64_t subject = CachedCall::subject_of(7, 0x44000000);

// One of a call that was kept.
CachedCall kept(Cell& cell, PeerCell& out, PeerCell& in) {
  CachedCall r{};
  r.note(site, subject, std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{3}, std::uint64_t{4}, std::uint64_t{5});
  r.cell = &cell;
  r.out = &out;
  r.in = &in;
  r.sent = 100;
  r.received = 20;
  r.out_bytes = 300;
  r.freed = freed;
  return r;
}

bool is(const CachedCall& r, Site s, std::uint64_t of, std::uint64_t now, const std::array<std::uint64_t, 5>& word) {
  return r.is(s, of, now, word[0], word[1], word[2], word[3], word[4]);
}

std::uint64_t places_of(const CallCache& call_cache) { return call_cache.mask / sizeof(CachedCall) + 1; }

}  // namespace

TEST(a_call_is_like_one_before_only_where_all_of_it_is) {
  Cell cell{};
  PeerCell out{}, in{};
  const CachedCall r = kept(cell, out, in);
  const std::array<std::uint64_t, 5> same{1, 2, 3, 4, 5};
  CHECK(is(r, site, subject, freed, same));
  // Each bit of each of them.
  for (unsigned bit = 0; bit < 64; ++bit) {
    const std::uint64_t other = std::uint64_t{1} << bit;
    CHECK(!is(r, site ^ other, subject, freed, same));
    CHECK(!is(r, site, subject ^ other, freed, same));
    CHECK(!is(r, site, subject, freed ^ other, same));
    for (std::size_t i = 0; i < same.size(); ++i) {
      std::array<std::uint64_t, 5> odd = same;
      odd[i] ^= other;
      CHECK(!is(r, site, subject, freed, odd));
    }
  }
}

TEST(procedures_and_handles_are_told_apart) {
  std::set<std::uint64_t> seen;
  for (std::uint32_t op : {1u, 2u, 512u, 1023u}) {
    for (std::uint64_t where :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{0x44000000}, (std::uint64_t{1} << 54) - 1}) {
      seen.insert(CachedCall::subject_of(op, where));
    }
  }
  CHECK_EQ(seen.size(), 16u);
  CHECK_EQ(seen.count(0), 0u);  // of one that was never used
}

TEST(what_has_only_been_noted_is_like_no_call) {
  Cell cell{};
  PeerCell out{}, in{};
  CachedCall r = kept(cell, out, in);
  r.note(site, subject, std::uint64_t{1});
  for (std::uint64_t now : {std::uint64_t{0}, std::uint64_t{1}, freed}) {
    CHECK(!r.is(site, subject, now, std::uint64_t{1}));
  }
}

TEST(a_call_like_another_counts_as_one_that_is_looked_up) {
  std::mt19937_64 random(3);
  Cell cell{}, oracle{};
  PeerCell out{}, in{};
  add_call(cell, 50, 100, 20);
  add_call(oracle, 50, 100, 20);
  const CachedCall r = kept(cell, out, in);
  constexpr unsigned all = CachedCall::sends | CachedCall::receives | CachedCall::out_message | CachedCall::in_message;
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
  const CachedCall r = kept(cell, out, in);
  for (const Ticks behind : {Ticks{1}, Ticks{1000}}) CHECK_EQ(r.add<CachedCall::nothing>(5000, 5000 - behind), 0u);
  CHECK_EQ(cell.calls, 3u);
  CHECK_EQ(cell.time, 50u);
  CHECK_EQ(cell.time_min, 0u);
  CHECK_EQ(cell.time_max, 50u);
}

TEST(a_part_that_a_procedure_does_not_have_is_left_alone) {
  Cell cell{};
  PeerCell out{}, in{};
  add_call(cell, 1, 0, 0);
  const CachedCall r = kept(cell, out, in);
  r.add<CachedCall::nothing>(7, 8);
  CHECK_EQ(cell.calls, 2u);
  CHECK_EQ(cell.bytes_sent + cell.bytes_received + out.messages + in.messages, 0u);
  r.add<CachedCall::sends>(7, 8);
  CHECK_EQ(cell.bytes_sent, 100u);
  r.add<CachedCall::receives>(7, 8);
  CHECK_EQ(cell.bytes_received, 20u);
  r.add<CachedCall::out_message>(7, 8);
  CHECK_EQ(out.messages, 1u);
  r.add<CachedCall::in_message>(7, 8);
  CHECK_EQ(in.messages, 1u);
  CHECK_EQ(cell.bytes_sent + cell.bytes_received, 120u);
  CHECK_EQ(out.messages + in.messages, 2u);
}

TEST(a_call_has_two_places_and_many_calls_have_many) {
  in_own_process([] {
    CallCache* call_cache = this_thread().call_cache;
    for (const std::uint64_t places : {CallCache::first, CallCache::most}) {
      CHECK_EQ(places_of(*call_cache), places);
      std::set<const CachedCall*> used;
      for (std::uint64_t i = 0; i < 20 * places; ++i) {
        const std::uint64_t of = CachedCall::subject_of(3, 0x84000000 + i % 50), count = i / 50;
        CachedCall& place = call_cache->place(site + 0x40 * (i % 7), of, count, ~i);
        CHECK_EQ(&place, &call_cache->place(site + 0x40 * (i % 7), of, count, ~i));
        CHECK(&place >= call_cache->call && &place < call_cache->call + places);
        CachedCall& neighbor = CallCache::neighbor(place);
        CHECK(&neighbor >= call_cache->call && &neighbor < call_cache->call + places);
        CHECK_EQ((&neighbor - call_cache->call) ^ 1, &place - call_cache->call);
        used.insert(&place);
      }
      CHECK(used.size() > places * 9 / 10);
      grow_call_cache(this_thread());
      call_cache = this_thread().call_cache;
    }
  });
}

namespace {

// Makes calls as a wrapper does it, with what was kept as the oracle; returns how many of them were like one that was.
int repeated(Thread& thread, int calls, std::mt19937_64& random, const std::function<std::uint64_t()>& draw,
             std::uint64_t& now, unsigned freed_in, unsigned cleared_in) {
  static std::map<std::tuple<Site, std::uint64_t, std::uint64_t, std::uint64_t>, Cell> cells;
  int found = 0;
  for (int i = 0; i < calls; ++i) {
    const std::uint64_t n = draw();
    const Site from = site + n % 3;
    const std::uint64_t count = n / 3, type = n % 2 == 0 ? count : 1000 * count;
    const std::uint64_t of = CachedCall::subject_of(static_cast<std::uint32_t>(1 + n % 5 / 4), 0x44000000);
    if (random() % freed_in == 0) ++now;
    if (random() % cleared_in == 0) {
      thread.call_cache->forget();
      for (std::uint64_t k = 0; k < places_of(*thread.call_cache); ++k)
        CHECK_EQ(thread.call_cache->call[k].freed, CachedCall::never);
    }
    Cell& cell = cells[{from, of, count, type}];
    CachedCall& place = thread.call_cache->place(from, of, count, type);
    if (CachedCall* const known = thread.call_cache->find(from, of, now, count, type)) {
      ++found;
      CHECK(known == &place || known == &CallCache::neighbor(place));
      CHECK_EQ(known->cell, &cell);
      CHECK_EQ(known->sent, count);
      CHECK_EQ(known->word[0], count);
      thread.call_cache->look_ahead(*known);
      const CachedCall* const begin = thread.call_cache->call;
      CHECK(known->next >= begin && known->next < begin + places_of(*thread.call_cache));
    } else if (CachedCall* const at = slot_to_fill(thread, place, nullptr, now)) {
      CHECK(at == &place || at == &CallCache::neighbor(place));
      at->note(from, of, count, type);
      thread.call_cache->follow(*at);
      CHECK_EQ(at->freed, CachedCall::never);
      at->cell = &cell;
      at->sent = count;
      at->freed = now;
    }
  }
  return found;
}

}  // namespace

TEST(repeats_never_find_another_call_and_what_comes_often_is_found) {
  in_own_process([] {
    std::mt19937_64 random(4);
    std::uint64_t now = 0;
    Thread& thread = this_thread();
    constexpr int calls = 200'000;
    // Far more calls than there are places at first, and a few of them most of the time.
    const auto few_often = [&] { return random() % 4 != 0 ? random() % 20 : random() % 2000; };
    CHECK(repeated(thread, calls, random, few_often, now, 5000, 5000) > calls / 2);
    CHECK_EQ(places_of(*thread.call_cache), CallCache::most);
  });
}

TEST(calls_of_many_communicators_in_turn_get_places_that_do) {
  in_own_process([] {
    std::mt19937_64 random(4);
    std::uint64_t now = 0, next = 0;
    Thread& thread = this_thread();
    constexpr unsigned rarely = 1'000'000'000;
    const auto in_turn = [&] { return next++ % 2000; };
    CHECK_EQ(places_of(*thread.call_cache), CallCache::first);
    repeated(thread, 20 * 2000, random, in_turn, now, rarely, rarely);
    CHECK_EQ(places_of(*thread.call_cache), CallCache::most);
    // 2,000 calls in 2,048 times two places: 1,802 of them have one (Poisson), some of them in turns.
    const int found = repeated(thread, 10 * 2000, random, in_turn, now, rarely, rarely);
    CHECK(found > 10 * 1650);
    // After communicators were freed all but the first few of them are kept at once.
    ++now;
    repeated(thread, 2000, random, in_turn, now, rarely, rarely);
    CHECK(repeated(thread, 2000, random, in_turn, now, rarely, rarely) > 1500);
  });
}

TEST(where_communicators_come_and_go_fast_few_calls_are_kept) {
  in_own_process([] {
    Thread& thread = this_thread();
    int kept = 0;
    constexpr std::uint64_t calls = 8000;
    for (std::uint64_t now = 1; now <= calls; ++now) {
      CachedCall& place = thread.call_cache->place(site, CachedCall::subject_of(1, now));
      kept += slot_to_fill(thread, place, nullptr, now) != nullptr ? 1 : 0;
    }
    CHECK_EQ(kept, static_cast<int>(calls / 8));
  });
}

TEST(handles_that_follow_each_other_do_not_crowd) {
  in_own_process([] {
    CallCache& call_cache = *this_thread().call_cache;
    for (const std::uint64_t stride : {1, 2, 4, 8, 16, 64, 448}) {
      std::map<const CachedCall*, int> pairs;
      constexpr std::uint64_t handles = 128;
      for (std::uint64_t i = 0; i < handles; ++i) {
        const CachedCall& place = call_cache.place(site, CachedCall::subject_of(7, 0x44000000 + i * stride));
        pairs[&call_cache.call[(&place - call_cache.call) / 2 * 2]] += 1;
      }
      // Half as many as there are places: by chance 13 of them would have none.
      int without = 0;
      for (const auto& [pair, calls] : pairs) without += std::max(0, calls - 2);
      CHECK(without < 5);
    }
  });
}

TEST(a_call_that_changes_its_region_is_kept_where_it_is_one_time_in_eight) {
  in_own_process([] {
    Thread& thread = this_thread();
    CachedCall& place = thread.call_cache->place(site, subject);
    place.note(site, subject);
    place.freed = freed;
    int kept = 0;
    for (int i = 0; i < 80'000; ++i) {
      CachedCall* const at = slot_to_fill(thread, place, &place, freed);
      CHECK(at == nullptr || at == &place);
      kept += at != nullptr ? 1 : 0;
    }
    CHECK_EQ(kept, 10'000);
    CHECK_EQ(places_of(*thread.call_cache), CallCache::first);  // nothing was crowded
  });
}

TEST(of_calls_in_turn_each_knows_the_next) {
  in_own_process([] {
    Thread& thread = this_thread();
    grow_call_cache(thread);
    CachedCall* call[3];
    for (std::uint64_t i = 0; i < 3; ++i) {
      call[i] = &thread.call_cache->place(site, subject, i);
      call[i]->note(site, subject, i);
      CHECK_EQ(call[i]->next, call[i]);
      thread.call_cache->follow(*call[i]);
    }
    // From the second time on.
    for (int i = 0; i < 2; ++i) CHECK_EQ(call[i]->next, call[i + 1]);
    for (int i = 0; i < 9; ++i) thread.call_cache->look_ahead(*call[i % 3]);
    for (int i = 0; i < 3; ++i) CHECK_EQ(call[i]->next, call[(i + 1) % 3]);
  });
}

TEST(a_thread_without_memory_keeps_no_call) {
  in_own_process([] {
    Thread& thread = this_thread();
    thread.call_cache = &CallCache::none;
    for (std::uint64_t i = 0; i < 1000; ++i) {
      CachedCall& r = thread.call_cache->place(site, CachedCall::subject_of(1, i), i);
      CHECK_EQ(&r, &CallCache::none.call[0]);
      CHECK(!r.is(site, CachedCall::subject_of(1, i), 0, i));
      CHECK(thread.call_cache->find(site, CachedCall::subject_of(1, i), 0, i) == nullptr);
      CHECK(slot_to_fill(thread, r, nullptr, i / 100) == nullptr);
    }
  });
}

TEST(a_receive_counts_what_arrived_and_from_whom) {
  in_own_process([] {
    matrix_choice.peers = true;
    matrix_choice.most = 1000;
    Thread& thread = this_thread();
    Cell* const cell = record(thread, make_key(3, 7, 5, 0), site, 1, 0, 16);
    thread.wait_until(~Ticks{0});
    PeerCell* const first = count_message(thread, Flow::received, 3, 0, 2, 16);
    CachedCall r{};
    r.note(site, subject);
    r.cell = cell;
    r.out = &thread.nobody;
    r.in = first;
    r.source = 2;
    r.received = 16;
    std::map<std::pair<int, std::uint32_t>, std::pair<std::uint64_t, std::uint64_t>> oracle;
    oracle[{2, bin_of(16)}] = {1, 16};
    std::uint64_t bytes = 16;
    std::mt19937_64 random(5);
    for (int i = 0; i < 1000; ++i) {
      // Often the same as before; -1 is MPI_PROC_NULL or the like.
      const int source = random() % 2 == 0 ? r.source : static_cast<int>(random() % 5) - 1;
      const std::uint64_t received = random() % 2 == 0 ? r.received : random() % 40;
      thread.current.since = 100;
      count_as<CachedCall::receives | CachedCall::in_message>(thread, r, 110, received, source, 0);
      bytes += received;
      if (source < 0) continue;
      auto& [messages, sum] = oracle[{source, bin_of(received)}];
      messages += 1;
      sum += received;
    }
    CHECK_EQ(cell->calls, 1001u);
    CHECK_EQ(cell->bytes_received, bytes);
    std::size_t cells = 0;
    each_cell(thread.peers, [&](const PeerCell& p) {
      ++cells;
      const auto& [messages, sum] = oracle.at({static_cast<int>(peer_of(p.site)), bin_of_peer(p.key)});
      CHECK_EQ(p.messages, messages);
      CHECK_EQ(p.bytes, sum);
      CHECK(flow_of(p.key) == Flow::received);
      CHECK_EQ(comm_of_peer(p.key), 3u);
    });
    CHECK_EQ(cells, oracle.size());
  });
}

TEST(what_requests_receive_is_counted_as_a_model_has_it) {
  in_own_process([] {
    matrix_choice.peers = true;
    matrix_choice.most = 1000;
    Thread& thread = this_thread();
    std::mt19937_64 random(6);
    std::vector<const Cell*> makers;
    for (std::uint32_t comm = 1; comm <= 6; ++comm)
      makers.push_back(record(thread, make_key(comm, 7, 0, 0), site, 1, 0, 0));
    makers.push_back(record(thread, make_key(1, 7, 0, uncounted_region), site, 1, 0, 0));
    std::map<std::tuple<std::uint32_t, int, std::uint32_t>, std::pair<std::uint64_t, std::uint64_t>> oracle;
    for (int i = 0; i < 20'000; ++i) {
      const Cell& maker = *makers[random() % makers.size()];
      const int source = static_cast<int>(random() % 20);
      const std::uint64_t bytes = random() % 4 == 0 ? random() % 100 : 8;
      count_received_of(thread, maker, source, bytes);
      if (region_of_key(maker.key) == uncounted_region) continue;
      auto& [messages, sum] = oracle[{comm_of_key(maker.key), source, bin_of(bytes)}];
      messages += 1;
      sum += bytes;
      if (random() % 1000 == 0) thread.call_cache->forget();
    }
    std::size_t cells = 0;
    each_cell(thread.peers, [&](const PeerCell& p) {
      ++cells;
      const auto& [messages, sum] =
          oracle.at({comm_of_peer(p.key), static_cast<int>(peer_of(p.site)), bin_of_peer(p.key)});
      CHECK_EQ(p.messages, messages);
      CHECK_EQ(p.bytes, sum);
      CHECK(flow_of(p.key) == Flow::received);
    });
    CHECK_EQ(cells, oracle.size());
    // The next one like the last is counted without being looked for; not so when counters were cleared.
    const Cell& maker = *makers[0];
    count_received_of(thread, maker, 3, 8);
    const Arrival& last = thread.call_cache->arrival(&maker, 3);
    CHECK(last.is(&maker, 3, 8));
    CHECK(!last.is(&maker, 3, 9) && !last.is(&maker, 4, 8) && !last.is(makers[1], 3, 8));
    forget_counted();
    forget_if_asked(thread);
    CHECK(!last.is(&maker, 3, 8));
  });
}

TEST(where_matrices_are_by_region_or_slice_no_arrival_is_kept) {
  in_own_process([] {
    matrix_choice.peers = matrix_choice.by_region = matrix_choice.by_any = true;
    matrix_choice.most = 1000;
    Thread& thread = this_thread();
    const Cell* const maker = record(thread, make_key(1, 7, 0, 2), site, 1, 0, 0);
    for (int i = 0; i < 3; ++i) {
      count_received_of(thread, *maker, 3, 8);
      CHECK(!thread.call_cache->arrival(maker, 3).is(maker, 3, 8));
    }
    std::uint64_t messages = 0;
    each_cell(thread.peers, [&](const PeerCell& p) { messages += p.messages; });
    CHECK_EQ(messages, 3u);
  });
}

TEST(a_call_that_went_otherwise_counts_where_it_belongs) {
  in_own_process([] {
    matrix_choice.peers = true;
    matrix_choice.most = 1000;
    Thread& thread = this_thread();
    Cell* const cell = record(thread, make_key(3, 7, 5, 0), site, 10, 100, 20);
    thread.wait_until(~Ticks{0});
    PeerCell out{}, in{};
    CachedCall r = kept(*cell, out, in);
    r.source = 1;
    thread.current.site = site;
    thread.current.since = 1000;
    constexpr unsigned all =
        CachedCall::sends | CachedCall::receives | CachedCall::out_message | CachedCall::in_message;
    // Nothing has changed but that somebody looks.
    CHECK_EQ(count_late(thread, r, all, 1005, true, 20, 1, 0), cell);
    CHECK_EQ(cell->calls, 2u);
    CHECK_EQ(cell->time, 15u);
    CHECK_EQ(cell->bytes_sent, 200u);
    CHECK_EQ(cell->bytes_received, 40u);
    CHECK_EQ(out.messages + in.messages, 2u);
    // A call that failed moves nothing, and has no size.
    const Cell* const failed = count_late(thread, r, all, 1005, false, 0, -1, 0);
    CHECK_EQ(failed->key, make_key(3, 7, 0, 0));
    CHECK_EQ(failed->calls, 1u);
    CHECK_EQ(failed->bytes_sent + failed->bytes_received, 0u);
    CHECK_EQ(out.messages + in.messages, 2u);
    // A callback has gone into another region.
    thread.count_in(4);
    const Cell* const elsewhere = count_late(thread, r, all, 1005, true, 20, 1, 0);
    CHECK_EQ(elsewhere->key, make_key(3, 7, 5, 4));
    // One in eight of these says where the next ones are expected.
    CHECK_EQ(r.cell, elsewhere);
    CHECK_EQ(r.region, 4u);
    CHECK_EQ(elsewhere->bytes_sent, 100u);
    CHECK_EQ(out.messages + in.messages, 4u);
    // Another thread has paused counting.
    thread.count_in(uncounted_region);
    count_late(thread, r, all, 1005, true, 20, 1, 0);
    CHECK_EQ(r.cell, elsewhere);
    CHECK_EQ(r.region, 4u);
    CHECK_EQ(cell->calls, 2u);
    CHECK_EQ(elsewhere->calls, 1u);
    CHECK_EQ(out.messages + in.messages, 4u);
    // It ended before it began.
    thread.count_in(0);
    CHECK_EQ(count_late(thread, r, all, 995, true, 20, 1, 0), cell);
    CHECK_EQ(cell->time, 15u);
    CHECK_EQ(cell->time_min, 0u);
    CHECK_EQ(r.cell, elsewhere);
    for (int i = 0; i < 7; ++i) count_late(thread, r, all, 1005, true, 20, 1, 0);
    CHECK_EQ(r.cell, cell);
    CHECK_EQ(r.region, 0u);
  });
}

TEST(when_counters_are_cleared_no_call_of_the_thread_is_kept) {
  in_own_process([] {
    Thread& thread = this_thread();
    CHECK(thread.call_cache != &CallCache::none);
    CachedCall& r = thread.call_cache->place(site, subject);
    r.note(site, subject);
    r.freed = freed;
    CHECK(thread.call_cache->place(site, subject).is(site, subject, freed));
    forget_counted();
    CHECK(!thread.call_cache->place(site, subject).is(site, subject, freed));
  });
}

}  // namespace commlens
