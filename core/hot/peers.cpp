// SPDX-License-Identifier: Apache-2.0
#include "core/hot/peers.h"

namespace commlens {
namespace {

std::uint32_t slice_now(const Thread& thread) noexcept {
  if (__builtin_expect(!matrix.by_slice, 1) || thread.slices.width == 0) return 0;
  const auto doublings = static_cast<std::uint32_t>(__builtin_ctzll(thread.slices.width / first_slice_width));
  return doublings << slice_bits | static_cast<std::uint32_t>(thread.slices.slot);
}

void count(Thread& thread, std::uint32_t region, Flow flow, std::uint32_t comm, std::uint32_t op, std::uint32_t peer,
           std::uint64_t bytes, std::uint32_t call) noexcept {
  if (__builtin_expect(region == uncounted_region, 0)) return;
  const PeerKey key = make_peer_key(flow, bin_of(bytes), comm, op, slice_now(thread));
  PeerCell& cell = *find_cell(thread.peers, key, make_peer_place(peer, matrix.by_region ? region : 0, 0, call));
  // Who reads them meanwhile (each_peer) gets them whole.
  __atomic_store_n(&cell.messages, cell.messages + 1, __ATOMIC_RELAXED);
  __atomic_store_n(&cell.bytes, cell.bytes + bytes, __ATOMIC_RELAXED);
}

}  // namespace

void count_message(Thread& thread, Flow flow, std::uint32_t comm, std::uint32_t op, int peer, std::uint64_t bytes,
                   std::uint32_t call) noexcept {
  count(thread, thread.region(), flow, comm, op, static_cast<std::uint32_t>(peer), bytes, call);
}

void count_shape(Thread& thread, Flow shape, std::uint32_t comm, std::uint32_t op, std::uint64_t bytes) noexcept {
  count(thread, thread.region(), shape, comm, op, no_peer, bytes, 0);
}

void count_message_of(Thread& thread, Key maker, Flow flow, std::uint32_t op, int peer, std::uint64_t bytes) noexcept {
  count(thread, region_of_key(maker), flow, comm_of_key(maker), op, static_cast<std::uint32_t>(peer), bytes, 0);
}

void count_shape_of(Thread& thread, Key maker, Flow shape, std::uint64_t bytes) noexcept {
  count(thread, region_of_key(maker), shape, comm_of_key(maker), op_of_key(maker), no_peer, bytes, 0);
}

}  // namespace commlens
