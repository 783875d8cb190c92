// SPDX-License-Identifier: Apache-2.0
#include "core/hot/peers.h"

namespace commlens {
namespace {

std::uint32_t slice_now(const Thread& thread) noexcept {
  if (!matrix.by_slice || thread.slices.width == 0) return 0;
  const auto doublings = static_cast<std::uint32_t>(__builtin_ctzll(thread.slices.width / first_slice_width));
  return doublings << slice_bits | static_cast<std::uint32_t>(thread.slices.slot);
}

// By themselves, so that count_peer() keeps nothing across a call.
__attribute__((noinline, cold)) PeerCell* count_first(Thread& thread, PeerKey key, PeerPlace place,
                                                      std::uint64_t bytes) noexcept {
  PeerCell* const cell = find_cell(thread.peers, key, place);
  add_message(*cell, bytes);
  return cell;
}

__attribute__((noinline)) PeerCell* count_by(Thread& thread, PeerKey key, PeerPlace place,
                                             std::uint64_t bytes) noexcept {
  return count_first(thread, key | slice_now(thread), matrix.by_region ? place : without_region(place), bytes);
}

}  // namespace

PeerCell* count_peer(Thread& thread, PeerKey key, PeerPlace place, std::uint64_t bytes) noexcept {
  if (__builtin_expect(region_of_peer(place) == uncounted_region, 0)) return nullptr;
  if (__builtin_expect(matrix.by_any, 0)) return count_by(thread, key, place, bytes);
  place = without_region(place);
  PeerCell* const cell = known_cell(thread.peers, key, place);
  if (__builtin_expect(cell == nullptr, 0)) return count_first(thread, key, place, bytes);
  add_message(*cell, bytes);
  return cell;
}

}  // namespace commlens
