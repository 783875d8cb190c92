// SPDX-License-Identifier: Apache-2.0
// Samples of the messages of requests: what is not in the path of every call.
#include "core/hot/messages.h"

#include "core/mpi/batch.h"
#include "core/mpi/wrap.h"

namespace commlens {
namespace {

// Returns the key under which the current call, which completes or starts requests, is counted.
Key key_of_current(const Thread& t) noexcept {
  const bool is_known = t.current.comm_by == CurrentCall::index;
  return make_key(is_known ? static_cast<std::uint32_t>(t.current.comm) : 0, t.current.op, 0, t.region());
}

// Returns when the receive of a request was posted; 0: unknown.  Only the latest receives of this thread are known, and
// no persistent ones.
Ticks posted_at(const Thread& t, Payload payload) noexcept {
  constexpr int sequence_bit = 48;
  const CallCache* const cache = t.call_cache;
  if ((payload & RequestFlag::persistent) != 0 || !is_only_thread() || cache == &CallCache::none) return 0;
  const auto age = static_cast<std::uint16_t>(t.sequence - (payload >> sequence_bit));
  return age < CallCache::most_posted ? cache->posted[(payload >> sequence_bit) % CallCache::most_posted] : 0;
}

}  // namespace

Payload forget_request(Thread& thread, const Cell& maker) noexcept {
  ++thread.forgotten;
  stop_messages(comm_of_key(maker.key));
  return 0;
}

void remember_sampled(Thread& thread, MPI_Request request, Cell& maker, Payload flags, OperationOf of) noexcept {
  const Payload payload = remember(thread, request, maker, flags | RequestFlag::awaited);
  begin_operation(thread, *of.channel, payload & ~RequestFlag::all, of.flags);
}

Payload begin_started(Thread& t, const PersistentRequest& p, Payload payload) noexcept {
  begin_operation(t, *p.operations, payload & ~RequestFlag::all, static_cast<std::uint32_t>(p.tag));
  return RequestFlag::awaited;
}

void awaited_completed(Thread& t, Payload payload, bool succeeded) noexcept {
  if (!succeeded) drop_operation(payload & ~RequestFlag::all);
  end_operation(t, payload & ~RequestFlag::all, key_of_current(t), now());
  creation_completed(payload, succeeded);
}

void take_completed(Thread& t, Channel& channel, Payload payload, int tag) noexcept {
  take_message(t, channel, tag, {key_of_current(t), now(), posted_at(t, payload)});
}

void credit_departure(Thread& t, const PersistentRequest& p) noexcept {
  if (!matrix_choice.peers) return;
  const Key maker = p.maker->key;
  const PeerCell* const cell = count_message_of(t, maker, Flow::sent, 0, p.to, p.sent);
  if (p.tag == PersistentRequest::no_tag) return;
  if (cell == nullptr) {
    pass_message(t, Flow::sent, comm_of_key(maker), static_cast<std::uint32_t>(p.to), p.tag);
  } else if (count_and_check_due(*cell->channel, p.tag)) {
    take_message(t, *cell->channel, p.tag, {key_of_current(t), now(), 0});
  }
}

}  // namespace commlens
