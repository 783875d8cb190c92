// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/hot/key.h"

// The communication matrix: messages and bytes between this process and each of its peers.
namespace [[gnu::visibility("hidden")]] commlens {

// The kind of traffic, and its direction as seen from this process.
enum class Flow : std::uint32_t {
  sent,        // two-sided, by the application's own calls
  received,    // the same, counted by the receiver
  put,         // one-sided: put and accumulate, counted by the origin
  get,         // one-sided: get, counted by the origin
  collective,  // sent inside a collective, counted below the MPI procedures; posted as a non-blocking send
  internal,    // sent inside any other call, also counted below the MPI procedures
  share,  // the block of a collective for that peer (all-to-one: the block that the root receives from it), independent
          // of the messages that the MPI library sends
  one_to_all,  // calls and bytes of collectives by their shape; these flows have no peer
  all_to_one,
  all_to_all,
  collective_send,   // as collective, posted as a blocking send
  collective_start,  // as collective, posted by starting a persistent request
  count
};
inline constexpr bool is_collective(Flow f) noexcept {
  return f == Flow::collective || f == Flow::collective_send || f == Flow::collective_start;
}

// First key word of a PeerCell.  The top bit keeps a used key from being 0.
//
//   63   62..59  58..52  51..27         26..17      16..7     6..0
//   1    flow    bin     communicator   procedure   doublings slice
//
// procedure: of flows inside calls, that call; else 0.
// doublings, slice: 0 unless the matrix is kept by slice.  `doublings`: how often the slice width had doubled when the
// message was counted.
using PeerKey = std::uint64_t;

inline constexpr PeerKey make_peer_key(Flow flow, std::uint32_t bin, std::uint32_t comm, std::uint32_t op,
                                       std::uint32_t slice) noexcept {
  return (PeerKey{1} << 63) | (PeerKey{static_cast<std::uint32_t>(flow)} << 59) | (PeerKey{bin} << 52) |
         (PeerKey{comm} << 27) | (PeerKey{op} << 17) | slice;
}
inline constexpr Flow flow_of(PeerKey k) noexcept { return static_cast<Flow>((k >> 59) & 0xf); }
inline constexpr std::uint32_t bin_of_peer(PeerKey k) noexcept { return static_cast<std::uint32_t>(k >> 52) & 0x7f; }
inline constexpr std::uint32_t comm_of_peer(PeerKey k) noexcept {
  return static_cast<std::uint32_t>(k >> 27) & max_comm;
}
inline constexpr std::uint32_t op_of_peer(PeerKey k) noexcept { return static_cast<std::uint32_t>(k >> 17) & 0x3ff; }
inline constexpr std::uint32_t slice_of_peer(PeerKey k) noexcept { return static_cast<std::uint32_t>(k) & 0x1ffff; }
inline constexpr std::uint32_t slice_bits = 7;

// Second key word: the peer, and the region if the matrix is kept by region.
//
//   63..57  56..52  51..32  31..0
//   call    shift   region  rank of the peer in the communicator (of the remote group of an intercommunicator); no_peer
//
// call: of messages inside a collective, the size bin of the collective plus 1; 0: unknown.
// shift: the cell counts a block of 2^shift peers together; the rank is that of the first one.
using PeerPlace = std::uint64_t;
inline constexpr std::uint32_t no_peer = 0xffffffff;

inline constexpr PeerPlace make_peer_place(std::uint32_t peer, std::uint32_t region, unsigned shift = 0,
                                           std::uint32_t call = 0) noexcept {
  return (PeerPlace{call} << 57) | (PeerPlace{shift} << 52) | (PeerPlace{region} << 32) | peer;
}
inline constexpr std::uint32_t peer_of(PeerPlace p) noexcept { return static_cast<std::uint32_t>(p); }
inline constexpr std::uint32_t region_of_peer(PeerPlace p) noexcept {
  return static_cast<std::uint32_t>(p >> 32) & max_region;
}
inline constexpr PeerPlace without_region(PeerPlace p) noexcept { return p & ~(PeerPlace{max_region} << 32); }
inline constexpr std::uint32_t call_of_peer(PeerPlace p) noexcept { return static_cast<std::uint32_t>(p >> 57); }
inline constexpr unsigned shift_of(PeerPlace p) noexcept { return static_cast<unsigned>(p >> 52) & 31; }

struct Channel;  // hot/messages.h

// Counts the messages of one size bin to or from one peer, on one thread.
struct PeerCell {
  PeerKey key;  // 0: free
  PeerPlace site;
  std::uint64_t messages;
  std::uint64_t bytes;
  std::int32_t world;  // rank of the peer in MPI_COMM_WORLD
  Channel* channel;    // of flows sent and received; an address valid in this process only
};
inline void add_message(PeerCell& cell, std::uint64_t bytes) noexcept {
  // Atomic, because each_peer() may read them on another thread meanwhile.
  __atomic_store_n(&cell.messages, cell.messages + 1, __ATOMIC_RELAXED);
  __atomic_store_n(&cell.bytes, cell.bytes + bytes, __ATOMIC_RELAXED);
}

inline constexpr std::int32_t world_not_known = -1, of_another_world = -2;

// Which part of the communication matrix is kept (COMMLENS_MATRIX, COMMLENS_MATRIX_BY).  Written before anything is
// counted.
struct MatrixChoice {
  bool peers;   // messages of the application's own calls
  bool inside;  // also messages inside collectives
  bool by_region, by_slice;
  bool by_any;         // by_region || by_slice
  std::uint32_t most;  // cells per thread; beyond that, new peers are counted in blocks
};
extern MatrixChoice matrix_choice;

}  // namespace commlens
