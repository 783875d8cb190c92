// SPDX-License-Identifier: Apache-2.0
#include "core/recover/between.h"

#include <algorithm>
#include <cstdint>
#include <set>

#include "core/state/slices.h"

namespace commlens {
namespace {

// Counters only grow; but a call may have been read with its count and without its time.
template <class N>
N rest(N now, N before) {
  return now > before ? now - before : 0;
}

// Of cells and of sums by datatypes.
template <class Counters>
void subtract_counters(Counters& now, const Counters& before) {
  now.calls = rest(now.calls, before.calls);
  now.time = rest(now.time, before.time);
  now.bytes_sent = rest(now.bytes_sent, before.bytes_sent);
  now.bytes_received = rest(now.bytes_received, before.bytes_received);
}

// The first and the last block of the time between may be incomplete: what the variance has for the whole run covers
// only the last one.
void subtract_cell(CountedCell& now, const CountedCell& before) {
  constexpr double largest_block = 64;
  const double each = now.calls == 0 ? 0 : static_cast<double>(now.time) / static_cast<double>(now.calls);
  subtract_counters(now, before);
  now.untimed = std::min(rest(now.untimed, before.untimed), now.calls);
  now.variance = rest(now.variance, before.variance);
  if (now.untimed != 0) now.variance += largest_block * each * largest_block * each / 2;
}

bool is_empty(const CountedCell& cell) { return (cell.calls | cell.time | cell.bytes_sent | cell.bytes_received) == 0; }

bool is_empty(const DatatypeSum& sum) { return (sum.calls | sum.time | sum.bytes_sent | sum.bytes_received) == 0; }

Key without_size(Key key) { return make_key(comm_of_key(key), op_of_key(key), 0, region_of_key(key)); }

// Moves the time of a call that was open from its cell without bytes to the cell that counted the call when it
// returned.  Of the cells that have more calls now, this is the one whose time has grown most.
void move_open_call(Cells& before, const Cells& now, const arena::OpenCall& call) {
  const auto open = before.find({call.key, call.site});
  if (open == before.end()) return;
  const CountedCell* counted = nullptr;
  Ticks most = 0;
  for (const auto& [place, cell] : now) {
    if (without_size(cell.key) != call.key || without_datatypes(cell.site) != call.site) continue;
    const auto earlier = before.find(place);
    const bool was_there = earlier != before.end();
    if (cell.calls <= (was_there ? earlier->second.calls : 0)) continue;
    const Ticks got = rest(cell.time, was_there ? earlier->second.time : 0);
    if (got >= most) counted = &cell;
    most = std::max(most, got);
  }
  if (counted == nullptr) return;
  open->second.time = rest(open->second.time, call.time);
  CountedCell& cell = before[{counted->key, counted->site}];
  cell.key = counted->key;
  cell.site = counted->site;
  cell.time += call.time;
}

// The cells of the earlier time, without calls that have returned since.  is_of: whether a thread is one of theirs.
template <class IsOf>
Cells without_open_calls(const arena::Reader& now, const arena::Reader& before, const Cells& of_now, Cells cells,
                         IsOf is_of) {
  for (const arena::OpenCall& call : before.open_calls()) {
    const auto is_it = [&call](const arena::OpenCall& one) {
      return one.thread == call.thread && one.since == call.since;
    };
    const bool is_open = std::any_of(now.open_calls().begin(), now.open_calls().end(), is_it);
    if (!is_open && is_of(call.thread)) move_open_call(cells, of_now, call);
  }
  return cells;
}

void subtract_sum(CountedRegions::Sum& now, const CountedRegions::Sum& before) {
  now.calls = rest(now.calls, before.calls);
  now.time = rest(now.time, before.time);
  now.nested = std::min(rest(now.nested, before.nested), now.time);
  now.mpi = rest(now.mpi, before.mpi);
}

bool is_empty(const CountedRegions::Sum& sum) { return (sum.calls | sum.open | sum.time) == 0; }

void subtract_bins(std::array<std::uint64_t, 64>& now, const std::array<std::uint64_t, 64>& before) {
  for (std::size_t i = 0; i < now.size(); ++i) now[i] = rest(now[i], before[i]);
}

bool is_empty(const std::array<std::uint64_t, 64>& bins) {
  return std::all_of(bins.begin(), bins.end(), [](std::uint64_t n) { return n == 0; });
}

void subtract_value(CountedRegions::Value& now, const CountedRegions::Value& before) {
  now.count = rest(now.count, before.count);
  now.not_finite = rest(now.not_finite, before.not_finite);
  now.sum -= before.sum;
}

bool is_empty(const CountedRegions::Value& value) { return (value.count | value.not_finite) == 0; }

void subtract_peer(PeerSum& now, const PeerSum& before) {
  now.messages = rest(now.messages, before.messages);
  now.bytes = rest(now.bytes, before.bytes);
}

void subtract_events(EventSum& now, const EventSum& before) {
  now.count = rest(now.count, before.count);
  now.enabled = rest(now.enabled, before.enabled);
  now.running = rest(now.running, before.running);
}

bool is_empty(const EventSum& sum) { return (sum.count | sum.enabled | sum.running) == 0; }

bool is_empty(const PeerSum& sum) { return (sum.messages | sum.bytes) == 0; }

// Subtracts what both maps have, and removes what is empty then.
template <class Map, class Subtract>
void subtract_each(Map& now, const Map& before, Subtract subtract_one) {
  for (auto at = now.begin(); at != now.end();) {
    const auto found = before.find(at->first);
    if (found != before.end()) subtract_one(at->second, found->second);
    at = found != before.end() && is_empty(at->second) ? now.erase(at) : std::next(at);
  }
}

// A slice that was the current one at the earlier time may have got less meanwhile: a thread assigns the time of an
// open region when it ends.
void subtract_slices(SliceLogContent& now, const SliceLogContent& before) {
  SliceLogContent negative = before;
  for (SliceEntry& entry : negative.entries) {
    entry.calls = -entry.calls;
    entry.time = -entry.time;
    entry.bytes_sent = -entry.bytes_sent;
    entry.bytes_received = -entry.bytes_received;
  }
  now = added_up({now, negative});
  const auto positive = [](std::uint64_t& n) {
    if (n >> 63 != 0) n = 0;
  };
  for (SliceEntry& entry : now.entries) {
    for (std::uint64_t* const n : {&entry.calls, &entry.time, &entry.bytes_sent, &entry.bytes_received}) positive(*n);
  }
  const auto is_nothing = [](const SliceEntry& entry) {
    return (entry.calls | entry.time | entry.bytes_sent | entry.bytes_received) == 0;
  };
  now.entries.erase(std::remove_if(now.entries.begin(), now.entries.end(), is_nothing), now.entries.end());
}

// Removes the samples that were there before; the number of a call or message identifies it.
template <class Samples>
void subtract_samples(std::vector<Samples>& now, const std::vector<Samples>& before) {
  std::set<std::pair<std::uint64_t, std::uint64_t>> known;
  for (const Samples& one : before) {
    for (const auto& sample : one.samples) known.emplace(one.key, sample.number);
  }
  for (Samples& one : now) {
    const auto is_known = [&](const auto& sample) { return known.count({one.key, sample.number}) != 0; };
    one.samples.erase(std::remove_if(one.samples.begin(), one.samples.end(), is_known), one.samples.end());
  }
  now.erase(std::remove_if(now.begin(), now.end(), [](const Samples& one) { return one.samples.empty(); }), now.end());
}

// Removes the values up to the last one that was there before.  Values in between may be missing: a full series drops
// every second one.
void subtract_series(CountedRegions& now, const CountedRegions& before) {
  for (const auto& [key, values] : before.series) {
    const auto found = now.series.find(key);
    if (found == now.series.end() || values.empty()) continue;
    found->second.erase(found->second.begin(), found->second.upper_bound(values.rbegin()->first));
    if (found->second.empty()) now.series.erase(found);
  }
}

}  // namespace

void subtract(arena::Reader& now, const arena::Reader& before) {
  if (now.cleared() != before.cleared()) return;
  Counted& counted = now.counted();
  const Counted& earlier = before.counted();
  const auto all = [](std::uint32_t) { return true; };
  subtract_each(counted.cells, without_open_calls(now, before, counted.cells, earlier.cells, all), subtract_cell);
  subtract_each(counted.datatypes.sums, earlier.datatypes.sums, subtract_counters<DatatypeSum>);
  subtract_each(counted.regions.times, earlier.regions.times, subtract_sum);
  subtract_each(counted.regions.loops, earlier.regions.loops, subtract_bins);
  subtract_each(counted.regions.values, earlier.regions.values, subtract_value);
  for (auto& [number, thread] : counted.threads) {
    const auto found = earlier.threads.find(number);
    // A thread that began while the earlier snapshot was read may have its cells there among those of the others: then
    // it keeps them here, too.
    if (found == earlier.threads.end()) continue;
    const auto is_of = [&earlier, number = number](std::uint32_t one) {
      return number == (earlier.threads.count(one) != 0 ? one : other_threads);
    };
    subtract_each(thread.cells, without_open_calls(now, before, thread.cells, found->second.cells, is_of),
                  subtract_cell);
    subtract_each(thread.regions.times, found->second.regions.times, subtract_sum);
  }
  subtract_series(counted.regions, earlier.regions);
  subtract_each(counted.events, earlier.events, subtract_events);
  subtract_each(counted.peers, earlier.peers, subtract_peer);
  subtract_slices(counted.slices, earlier.slices);
  subtract_samples(counted.samples, earlier.samples);
  subtract_samples(counted.messages, earlier.messages);
  counted.lost = rest(counted.lost, earlier.lost);
  RankFacts& facts = counted.facts;
  facts.app_ns = rest(facts.app_ns, earlier.facts.app_ns);
  facts.init_ns = rest(facts.init_ns, earlier.facts.init_ns);
  facts.own_init_ns = rest(facts.own_init_ns, earlier.facts.own_init_ns);
}

}  // namespace commlens
