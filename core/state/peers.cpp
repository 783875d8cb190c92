// SPDX-License-Identifier: Apache-2.0
#include "core/state/peers.h"

#include <algorithm>
#include <mutex>
#include <new>

#include "core/base/locks.h"
#include "core/hot/messages.h"
#include "core/state/messages.h"
#include "core/state/notices.h"

namespace commlens {

MatrixChoice matrix_choice{false, false, false, false, false, 0};

namespace {

std::int32_t (*world_rank_of)(std::uint32_t, std::uint32_t) noexcept = nullptr;

// Returns whether messages that have no cell of their own would be missing in the numbers of a channel.
bool is_two_sided(PeerKey key) noexcept { return flow_of(key) == Flow::sent || flow_of(key) == Flow::received; }

// Returns the shift of the blocks in which new peers are counted: 0, or blocks of 64 and later larger ones when there
// are too many cells.
unsigned shift_for(std::uint64_t used) noexcept {
  constexpr unsigned all = 31;
  if (used < matrix_choice.most) return 0;
  if (used < 2ull * matrix_choice.most) return 6;
  return used < 3ull * matrix_choice.most ? 12 : all;
}

}  // namespace

void choose_matrix(const std::string& which, const std::string& by, unsigned long most) {
  matrix_choice.peers = which != "off";
  matrix_choice.inside = which == "all";
  matrix_choice.by_region = by == "region" || by == "both";
  matrix_choice.by_slice = by == "slice" || by == "both";
  matrix_choice.by_any = matrix_choice.by_region || matrix_choice.by_slice;
  matrix_choice.most = static_cast<std::uint32_t>(std::clamp(most, 64ul, 1ul << 30));
}

void ask_for_world_ranks(std::int32_t (*world_rank)(std::uint32_t comm, std::uint32_t peer) noexcept) noexcept {
  world_rank_of = world_rank;
}

PeerCell* add_cell(TableOf<PeerCell>& table, PeerKey key, PeerPlace place) noexcept try {
  const std::uint32_t peer = peer_of(place);
  if (const unsigned shift = shift_for(table.used + table.left_out); shift > shift_of(place) && peer != no_peer) {
    if (!is_noticed(Notice::peers))
      notice(Notice::peers,
             "more than " + std::to_string(matrix_choice.most) +
                 " pairs of a communicator and a peer: from here on new peers are counted in blocks of 64 "
                 "(COMMLENS_MATRIX_PAIRS)");
    if (is_two_sided(key)) stop_messages(comm_of_peer(key));
    const std::uint32_t first = peer >> shift << shift;
    return find_cell(table, key, make_peer_place(first, region_of_peer(place), shift));
  }
  const bool is_one = shift_of(place) == 0 && peer != no_peer;
  // For communicators that the MPI library made for itself, the caller passes the world rank as peer.
  const bool is_of_world = comm_of_peer(key) == 0 && (is_collective(flow_of(key)) || flow_of(key) == Flow::internal);
  std::int32_t world = world_not_known;
  if (is_one && is_of_world) world = static_cast<std::int32_t>(peer);
  if (is_one && !is_of_world && world_rank_of != nullptr) world = world_rank_of(comm_of_peer(key), peer);
  Channel* const channel = channel_of(this_thread(), key, place);
  const std::lock_guard<std::mutex> lock(locks::peers);
  PeerCell* const cell = new_cell(table, key, place);
  cell->world = world;
  if (cell != &table.overflow) {
    cell->channel = channel;
  } else if (is_two_sided(key)) {
    stop_messages(comm_of_peer(key));
  }
  return cell;
} catch (const std::bad_alloc&) {
  if (is_two_sided(key)) stop_messages(comm_of_peer(key));
  return &table.overflow;
}

void add_peer_to(Peers& peers, const PeerCell& cell) {
  PeerSum& sum = peers[{cell.key, cell.site}];
  sum.messages += cell.messages;
  sum.bytes += cell.bytes;
  if (cell.world != world_not_known) sum.world = cell.world;
}

void forget_peers(Thread& thread) noexcept {
  each_cell(thread.peers, [](PeerCell& cell) {
    __atomic_store_n(&cell.messages, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&cell.bytes, 0, __ATOMIC_RELAXED);
  });
}

}  // namespace commlens
