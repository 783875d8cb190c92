// SPDX-License-Identifier: Apache-2.0
#include "core/hot/peers.h"

namespace commlens {
namespace {

std::uint32_t slice_now(const Thread& thread) noexcept {
  if (!matrix.by_slice || thread.slices.width == 0) return 0;
  const auto doublings = static_cast<std::uint32_t>(__builtin_ctzll(thread.slices.width / first_slice_width));
  return doublings << slice_bits | static_cast<std::uint32_t>(thread.slices.slot);
}

inline void add(PeerCell& cell, std::uint64_t bytes) noexcept {
  // Who reads them meanwhile (each_peer) gets them whole.
  __atomic_store_n(&cell.messages, cell.messages + 1, __ATOMIC_RELAXED);
  __atomic_store_n(&cell.bytes, cell.bytes + bytes, __ATOMIC_RELAXED);
}

// By themselves, so that count_peer() keeps nothing across a call.
__attribute__((noinline, cold)) void count_first(Thread& thread, PeerKey key, PeerPlace place,
                                                 std::uint64_t bytes) noexcept {
  add(*find_cell(thread.peers, key, place), bytes);
}

__attribute__((noinline)) void count_by(Thread& thread, PeerKey key, PeerPlace place, std::uint64_t bytes) noexcept {
  count_first(thread, key | slice_now(thread), matrix.by_region ? place : without_region(place), bytes);
}

}  // namespace

void count_peer(Thread& thread, PeerKey key, PeerPlace place, std::uint64_t bytes) noexcept {
  if (__builtin_expect(region_of_peer(place) == uncounted_region, 0)) return;
  if (__builtin_expect(matrix.by_any, 0)) return count_by(thread, key, place, bytes);
  place = without_region(place);
  PeerCell* const cell = known_cell(thread.peers, key, place);
  if (__builtin_expect(cell == nullptr, 0)) return count_first(thread, key, place, bytes);
  add(*cell, bytes);
}

}  // namespace commlens
