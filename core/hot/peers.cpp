// SPDX-License-Identifier: Apache-2.0
#include "core/hot/peers.h"

namespace commlens {
namespace {

std::uint32_t slice_now(const Thread& thread) noexcept {
  if (!matrix_choice.by_slice || thread.slices.width == 0) return 0;
  const auto doublings = static_cast<std::uint32_t>(__builtin_ctzll(thread.slices.width / first_slice_width));
  return doublings << slice_bits | static_cast<std::uint32_t>(thread.slices.slot);
}

// Not inlined, so that count_peer() saves no registers across a call.
__attribute__((noinline, cold)) PeerCell* count_first(Thread& thread, PeerKey key, PeerPlace place,
                                                      std::uint64_t bytes) noexcept {
  PeerCell* const cell = find_cell(thread.peers, key, place);
  add_message(*cell, bytes);
  return cell;
}

__attribute__((noinline)) PeerCell* count_by(Thread& thread, PeerKey key, PeerPlace place,
                                             std::uint64_t bytes) noexcept {
  return count_first(thread, key | slice_now(thread), matrix_choice.by_region ? place : without_region(place), bytes);
}

}  // namespace

PeerCell* count_peer(Thread& thread, PeerKey key, PeerPlace place, std::uint64_t bytes) noexcept {
  if (__builtin_expect(region_of_peer(place) == uncounted_region, 0)) return nullptr;
  if (__builtin_expect(matrix_choice.by_any, 0)) return count_by(thread, key, place, bytes);
  place = without_region(place);
  PeerCell* const cell = known_cell(thread.peers, key, place);
  if (__builtin_expect(cell == nullptr, 0)) return count_first(thread, key, place, bytes);
  add_message(*cell, bytes);
  return cell;
}

PeerCell* count_received_anew(Thread& thread, const Cell& maker, int source, std::uint64_t bytes) noexcept {
  PeerCell* const in = count_message_of(thread, maker.key, Flow::received, 0, source, bytes);
  if (in == nullptr || matrix_choice.by_any || thread.call_cache == &CallCache::none) return in;
  thread.call_cache->arrival(&maker, source) = {&maker, in, bytes, source};
  return in;
}

PeerCell* count_sampled_message(Thread& thread, Flow flow, std::uint32_t comm, int peer, std::uint64_t bytes, int tag,
                                const MessageCall& call) noexcept {
  PeerCell* const cell = count_message(thread, flow, comm, 0, peer, bytes);
  if (cell == nullptr) {
    pass_message(thread, flow, comm, static_cast<std::uint32_t>(peer), tag);
  } else if (count_and_check_due(*cell->channel, tag)) {
    take_message(thread, *cell->channel, tag, call);
  }
  return cell;
}

bool count_arrival(Thread& thread, CachedCall& r, std::uint64_t received, int source) noexcept {
  PeerCell* in = &thread.nobody;
  if (matrix_choice.peers && source >= 0) {
    in = count_message(thread, Flow::received, comm_of_key(r.cell->key), 0, source, received);
    if (in == nullptr) return false;  // another thread has paused counting since the call began
  }
  r.in = in;
  r.received = received;
  r.source = source;
  return true;
}

void take_sent(Thread& thread, const CachedCall& r, Ticks end) noexcept {
  take_message(thread, *r.out->channel, thread.current.to.tag, {r.cell->key, end, 0});
}

void take_received(Thread& thread, const CachedCall& r, Ticks end, int tag) noexcept {
  take_message(thread, *r.in->channel, tag, {r.cell->key, end, thread.current.since});
}

void take_untimed(Thread& thread, const CachedCall& r) noexcept {
  thread.current.since = now();
  take_sent(thread, r, thread.current.since);
}

void pass_arrival(Thread& thread, const CachedCall& r, unsigned parts, int source, int tag) noexcept {
  if (!matrix_choice.peers || source < 0 || (parts & CachedCall::messages) == 0) return;
  pass_message(thread, Flow::received, comm_of_key(r.cell->key), static_cast<std::uint32_t>(source), tag);
}

namespace {

// Counts and samples the messages of count_late().  key: of its cell.
void count_messages_late(Thread& thread, CachedCall& r, unsigned parts, Key key, Ticks end, std::uint64_t received,
                         int source, int tag) noexcept {
  const bool is_counted = thread.region() != uncounted_region, is_sampled = (parts & CachedCall::messages) != 0;
  if ((parts & CachedCall::out_message) != 0) {
    if (is_counted) add_message(*r.out, r.out_bytes);
    const int out_tag = thread.current.to.tag;
    if (is_sampled && count_and_check_due(*r.out->channel, out_tag))
      take_message(thread, *r.out->channel, out_tag, {key, end, 0});
  }
  if ((parts & CachedCall::in_message) == 0) return;
  if (!is_counted) return pass_arrival(thread, r, parts, source, tag);
  if (r.received == received && r.source == source) {
    add_message(*r.in, received);
  } else if (!count_arrival(thread, r, received, source)) {
    return pass_arrival(thread, r, parts, source, tag);
  }
  if (is_sampled && count_and_check_due(*r.in->channel, tag)) {
    take_message(thread, *r.in->channel, tag, {key, end, thread.current.since});
  }
}

}  // namespace

namespace {

Cell* record_late(Thread& thread, CachedCall& r, unsigned parts, Ticks end, bool has_succeeded, std::uint64_t received,
                  int source, int tag) noexcept {
  const Ticks since = thread.current.since, spent = end > since ? end - since : 0;
  const Key key = r.cell->key;
  const std::uint32_t region = thread.region();
  if (!has_succeeded) {
    if ((parts & CachedCall::messages) != 0) stop_messages(comm_of_key(key));
    if ((parts & CachedCall::operation) != 0) stop_operations(comm_of_key(key));
    const Key failed = make_key(comm_of_key(key), op_of_key(key), 0, region);
    return record(thread, failed, thread.current.site, spent, 0, 0);
  }
  Cell* const cell =
      record(thread, (key & ~Key{max_region}) | region, r.cell->site, spent,
             (parts & CachedCall::sends) != 0 ? r.sent : 0, (parts & CachedCall::receives) != 0 ? received : 0);
  // A program moves from one region to the next, or back and forth between two.  Every eighth such call updates the
  // cached region, as in slot_to_fill().  The overflow cell has no procedure and is never cached.
  if ((parts & CachedCall::stays) == 0 && region != uncounted_region && region != r.region &&
      thread.call_cache->count_miss() && op_of_key(cell->key) == op_of_key(key)) {
    r.cell = cell;
    r.region = region;
    if ((parts & CachedCall::may_skip) != 0) r.time_all(parts, cell->calls);
  }
  count_messages_late(thread, r, parts, make_key(comm_of_key(key), op_of_key(key), bin_of_key(key), region), end,
                      received, source, tag);
  return cell;
}

}  // namespace

Cell* count_late(Thread& thread, CachedCall& r, unsigned parts, Ticks end, bool has_succeeded, std::uint64_t received,
                 int source, int tag) noexcept {
  if ((parts & CachedCall::may_skip) == 0)
    return record_late(thread, r, parts, end, has_succeeded, received, source, tag);
  const bool is_sampled = CachedCall::samples_what_it_sends(parts) && r.out->channel->skips <= 0;
  const bool is_in_region = (parts & CachedCall::stays) != 0 || r.region == thread.region();
  Gap& gap = r.gap(parts);
  const bool stands = !is_sampled && is_in_region && gap.turn <= 0;
  if (is_sampled && is_in_region && gap.turn < 0) ++gap.turn;
  Cell* const cell = record_late(thread, r, parts, end, has_succeeded, received, source, tag);
  if (stands) after_timed(thread, r, parts, *cell, end);
  return cell;
}

Cell* count_untimed_late(Thread& thread, CachedCall& r, unsigned parts, bool has_succeeded) noexcept {
  Gap& gap = r.gap(parts);
  if (gap.turn > 0) --gap.turn;
  const Ticks end = now();
  thread.current.since = end;  // of its time, only the end is known
  const Key key = r.cell->key;
  const std::uint32_t region = thread.region();
  if (!has_succeeded) {
    if ((parts & CachedCall::messages) != 0) stop_messages(comm_of_key(key));
    const Key failed = make_key(comm_of_key(key), op_of_key(key), 0, region);
    return record_untimed(thread, failed, thread.current.site, end, 0, 0);
  }
  const std::uint64_t sent = (parts & CachedCall::sends) != 0 ? r.sent : 0;
  const std::uint64_t received = (parts & CachedCall::receives) != 0 ? r.received : 0;
  Cell* const cell = record_untimed(thread, (key & ~Key{max_region}) | region, r.cell->site, end, sent, received);
  count_messages_late(thread, r, parts, make_key(comm_of_key(key), op_of_key(key), bin_of_key(key), region), end,
                      r.received, r.source, 0);
  return cell;
}

int count_sampled_late(int rc, Thread& thread, CachedCall& r, unsigned parts, Ticks end, bool has_succeeded) noexcept {
  Stratum& stratum = *r.stratum;
  const auto flags = static_cast<std::uint32_t>(r.source);
  count_late(thread, r, parts, end, has_succeeded, r.received, -1, 0);
  if (count_and_check_due(stratum)) sample_counted(thread, stratum, end, flags, has_succeeded);
  thread.outermost = nullptr;
  return rc;
}

int sample_counted(int rc, Thread& thread, CachedCall& r, Ticks end) noexcept {
  sample_counted(thread, *r.stratum, end, static_cast<std::uint32_t>(r.source), true);
  return rc;
}

void sample_counted(Thread& thread, Stratum& stratum, Ticks end, std::uint32_t flags, bool is_valid) noexcept {
  const Ticks spent = end > thread.current.since ? end - thread.current.since : 0;
  thread.mpi -= spent;  // as it was when the call began
  take_sample(thread, stratum, end, flags, is_valid);
  thread.mpi += spent;
}

}  // namespace commlens
