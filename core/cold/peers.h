// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "core/cold/locks.h"
#include "core/cold/threads.h"
#include "core/hot/peer_cell.h"
#include "core/hot/thread.h"

// What was counted of peers, for all threads.
namespace commlens {

// How the application's peers are kept: COMMLENS_MATRIX, COMMLENS_MATRIX_BY, COMMLENS_MATRIX_PAIRS.
void choose_matrix(const std::string& which, const std::string& by, unsigned long most);

// Who asks for the rank in MPI_COMM_WORLD of a peer, when it is first met: rank `peer` of the communicator with this
// index.  Local.
void ask_for_world_ranks(std::int32_t (*world_rank)(std::uint32_t comm, std::uint32_t peer) noexcept) noexcept;

// Messages of one kind and size, to or from one peer or block of peers.
struct PeerSum {
  std::uint64_t messages = 0, bytes = 0;
  std::int32_t world = world_not_known;
};
using Peers = std::map<std::pair<PeerKey, PeerPlace>, PeerSum>;

void add_peer_to(Peers& peers, const PeerCell& cell);

// All cells of all threads, which may go on counting: visit(cell).
template <class Visit>
void each_peer(Visit visit);

// Clears those of one thread.
void forget_peers(Thread& thread) noexcept;

// Adds a cell to the table (threads.cpp); its overflow cell where there is no memory.
PeerCell* new_cell(TableOf<PeerCell>& table, PeerKey key, PeerPlace place) noexcept;

// ---- implementation ----

template <class Visit>
void each_peer(Visit visit) {
  const std::lock_guard<std::mutex> stay(locks::peers);  // no cell is added
  for (const Thread* t = first_thread(); t != nullptr; t = t->next) {
    each_cell(t->peers, [&visit](const PeerCell& cell) {
      const PeerCell now{cell.key, cell.site, __atomic_load_n(&cell.messages, __ATOMIC_RELAXED),
                         __atomic_load_n(&cell.bytes, __ATOMIC_RELAXED), cell.world};
      if (now.messages != 0) visit(now);
    });
  }
}

}  // namespace commlens
