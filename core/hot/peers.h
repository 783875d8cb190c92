// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/hot/peer_cell.h"
#include "core/hot/table.h"
#include "core/hot/thread.h"

namespace [[gnu::visibility("hidden")]] commlens {

// Counts one message, or one collective by its shape: of a key without a slice, and a place with the region that the
// call counts in.
// pre: matrix.peers
// post: the cell that counted it, or null.
PeerCell* count_peer(Thread& thread, PeerKey key, PeerPlace place, std::uint64_t bytes) noexcept;

// The same by what they are made of.  pre: peer >= 0.
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

// The same for what a request moves: like its bytes it is of the call that made the request, in the communicator and
// region that it was made in, wherever it is started or completed.
inline void count_message_of(Thread& thread, Key maker, Flow flow, std::uint32_t op, int peer,
                             std::uint64_t bytes) noexcept {
  count_peer(thread, make_peer_key(flow, bin_of(bytes), comm_of_key(maker), op, 0),
             make_peer_place(static_cast<std::uint32_t>(peer), region_of_key(maker)), bytes);
}
inline void count_shape_of(Thread& thread, Key maker, Flow shape, std::uint64_t bytes) noexcept {
  count_peer(thread, make_peer_key(shape, bin_of(bytes), comm_of_key(maker), op_of_key(maker), 0),
             make_peer_place(no_peer, region_of_key(maker)), bytes);
}

}  // namespace commlens
