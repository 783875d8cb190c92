// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/hot/messages.h"
#include "core/hot/peer_cell.h"
#include "core/hot/table.h"
#include "core/hot/thread.h"

namespace [[gnu::visibility("hidden")]] commlens {

// Counts one message, or one collective by its shape.  `key` has no slice; `place` has the region of the call.
// pre:  matrix_choice.peers
// post: returns the cell that counted it, or null if the region is not counted.
PeerCell* count_peer(Thread& thread, PeerKey key, PeerPlace place, std::uint64_t bytes) noexcept;

// The same, with the parts of key and place as arguments.  pre: peer >= 0
inline PeerCell* count_message(Thread& thread, Flow flow, std::uint32_t comm, std::uint32_t op, int peer,
                               std::uint64_t bytes, std::uint32_t call = 0) noexcept {
  return count_peer(thread, make_peer_key(flow, bin_of(bytes), comm, op, 0),
                    make_peer_place(static_cast<std::uint32_t>(peer), thread.region(), 0, call), bytes);
}
inline PeerCell* count_shape(Thread& thread, Flow shape, std::uint32_t comm, std::uint32_t op,
                             std::uint64_t bytes) noexcept {
  return count_peer(thread, make_peer_key(shape, bin_of(bytes), comm, op, 0), make_peer_place(no_peer, thread.region()),
                    bytes);
}

// The same for a message of a request.  Like its bytes, the message is attributed to the call that made the request, in
// the communicator and region of that call, wherever the request is started or completed.
inline PeerCell* count_message_of(Thread& thread, Key maker, Flow flow, std::uint32_t op, int peer,
                                  std::uint64_t bytes) noexcept {
  return count_peer(thread, make_peer_key(flow, bin_of(bytes), comm_of_key(maker), op, 0),
                    make_peer_place(static_cast<std::uint32_t>(peer), region_of_key(maker)), bytes);
}
inline void count_shape_of(Thread& thread, Key maker, Flow shape, std::uint64_t bytes) noexcept {
  count_peer(thread, make_peer_key(shape, bin_of(bytes), comm_of_key(maker), op_of_key(maker), 0),
             make_peer_place(no_peer, region_of_key(maker)), bytes);
}

// Counts a message that a request received, as count_message_of() does.  pre: matrix_choice.peers, source >= 0
PeerCell* count_received_anew(Thread& thread, const Cell& maker, int source, std::uint64_t bytes) noexcept;
inline PeerCell* count_received_of(Thread& thread, const Cell& maker, int source, std::uint64_t bytes) noexcept {
  const Arrival& a = thread.call_cache->arrival(&maker, source);
  if (__builtin_expect(!a.is(&maker, source, bytes), 0)) return count_received_anew(thread, maker, source, bytes);
  add_message(*a.in, bytes);
  return a.in;
}

// Counts a two-sided message and samples it if it is its turn.  flow: sent or received.  Returns the cell that counted
// it, or null if the region is not counted.  pre: matrix_choice.peers, peer >= 0
PeerCell* count_sampled_message(Thread& thread, Flow flow, std::uint32_t comm, int peer, std::uint64_t bytes, int tag,
                                const MessageCall& call) noexcept;

// Samples the message that a call like `r` has sent, or received.
void take_sent(Thread& thread, const CachedCall& r, Ticks end) noexcept;
void take_received(Thread& thread, const CachedCall& r, Ticks end, int tag) noexcept;
void take_untimed(Thread& thread, const CachedCall& r) noexcept;  // sent by a call that was not timed

// Counts a message that arrived in a call like `r`, but from another process or with another size.  Updates `r` to that
// source and size.  Returns false if the region is not counted.
bool count_arrival(Thread& thread, CachedCall& r, std::uint64_t received, int source) noexcept;

// Cold.  Numbers a message that is not counted.
void pass_arrival(Thread& thread, const CachedCall& r, unsigned parts, int source, int tag) noexcept;

// Counts a call that ended at `end` in the cells of the cached call `r`; for a receive also the received message.
// pre: the call succeeded, no slice has ended, and the thread is in the same region as `r`.
template <unsigned parts>
inline __attribute__((always_inline)) void count_as(Thread& thread, CachedCall& r, Ticks end) noexcept {
  thread.mpi += r.add<parts>(thread.current.since, end);
  if constexpr (CachedCall::samples_what_it_sends(parts)) {
    if (count_and_check_due(*r.out->channel, thread.current.to.tag)) take_sent(thread, r, end);
  }
}
template <unsigned parts>
inline __attribute__((always_inline)) void count_as(Thread& thread, CachedCall& r, Ticks end, std::uint64_t received,
                                                    int source, int tag) noexcept {
  count_as<parts & ~(CachedCall::receives | CachedCall::in_message)>(thread, r, end);
  r.cell->bytes_received += received;
  if constexpr ((parts & CachedCall::in_message) != 0) {
    if (__builtin_expect(r.received == received && r.source == source, 1)) {
      add_message(*r.in, received);
    } else if (!count_arrival(thread, r, received, source)) {
      return pass_arrival(thread, r, parts, source, tag);
    }
    if constexpr ((parts & CachedCall::messages) != 0) {
      if (count_and_check_due(*r.in->channel, tag)) take_received(thread, r, end, tag);
    }
  }
}
// The same for a call that was not timed; returns the cell that counted it.
template <unsigned parts>
inline __attribute__((always_inline)) Cell& count_untimed(Thread& thread, CachedCall& r) noexcept {
  Cell& cell = r.add_untimed<parts>();
  if constexpr (CachedCall::samples_what_it_sends(parts)) {
    if (count_and_check_due(*r.out->channel, thread.current.to.tag)) take_untimed(thread, r);
  }
  return cell;
}
// Decides whether the call that begins goes untimed.  A call whose message is sampled is timed, and so is one in
// another region than last time, whose cell may have few calls; they belong to no block.
template <unsigned parts>
inline __attribute__((always_inline)) bool goes_untimed(const Thread& thread, CachedCall& r) noexcept {
  if (r.gap(parts).turn <= 0 || r.region != thread.region()) return false;
  if constexpr (CachedCall::samples_what_it_sends(parts)) {
    if (__builtin_expect(r.out->channel->skips <= 0, 0)) return false;
  }
  return true;
}
// Call after a call that may stand for its block was counted in `counted`.
inline __attribute__((always_inline)) void after_timed(Thread& thread, CachedCall& r, unsigned parts,
                                                       const Cell& counted, Ticks end) noexcept {
  Gap& gap = r.gap(parts);
  if (__builtin_expect(++gap.turn <= 0, 1)) return;
  const Ticks since = thread.current.since;
  plan_untimed(thread, r, counted, r.untimed(parts), gap, end > since ? end - since : 0);
}
// The same as count_as() for a call that may go untimed and was timed.
template <unsigned parts>
inline __attribute__((always_inline)) void count_timed(Thread& thread, CachedCall& r, Ticks end) noexcept {
  thread.mpi += r.add<parts>(thread.current.since, end);
  if constexpr (CachedCall::samples_what_it_sends(parts)) {
    if (count_and_check_due(*r.out->channel, thread.current.to.tag)) {  // stands for itself
      if (r.gap(parts).turn < 0) ++r.gap(parts).turn;                   // one of the first calls, which are all timed
      return take_sent(thread, r, end);
    }
  }
  after_timed(thread, r, parts, *r.cell, end);
}
// False if a callback has changed the region, if this thread has something else to do now, or if the entry is of
// another call by now.
template <unsigned parts>
inline __attribute__((always_inline)) bool is_as_decided(const Thread& thread, CachedCall& r) noexcept {
  return r.region == thread.region() && !thread.is_due(thread.current.since) && r.gap(parts).turn > 0;
}
// The same as count_late() for a call that was not timed.
Cell* count_untimed_late(Thread& thread, CachedCall& r, unsigned parts, bool has_succeeded) noexcept;

// The same without these preconditions; returns the cell that counted the call.  If the region differs from that of
// `r`, every eighth call moves `r` to the new region.  If it may go untimed, also what after_timed() does.
Cell* count_late(Thread& thread, CachedCall& r, unsigned parts, Ticks end, bool has_succeeded, std::uint64_t received,
                 int source, int tag) noexcept;
// The same for a procedure that is sampled.  Ends the call, and returns `rc`.
int count_sampled_late(int rc, Thread& thread, CachedCall& r, unsigned parts, Ticks end, bool has_succeeded) noexcept;
// Samples a call that is counted already, so that a process that is killed leaves no sample of a call without a count.
void sample_counted(Thread& thread, Stratum& stratum, Ticks end, std::uint32_t flags, bool is_valid) noexcept;
// The same for a call that was counted as `r`; returns `rc`.
int sample_counted(int rc, Thread& thread, CachedCall& r, Ticks end) noexcept;

}  // namespace commlens
