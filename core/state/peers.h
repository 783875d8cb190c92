// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "core/base/locks.h"
#include "core/hot/peer_cell.h"
#include "core/hot/regions.h"
#include "core/hot/thread.h"
#include "core/state/threads.h"

// The communication matrix of all threads.
namespace commlens {

// Sets which part of the matrix is kept: COMMLENS_MATRIX, COMMLENS_MATRIX_BY, COMMLENS_MATRIX_PAIRS.
void choose_matrix(const std::string& which, const std::string& by, unsigned long most);

// Sets the function that returns the MPI_COMM_WORLD rank of a peer, which is rank `peer` in the communicator with this
// index.  It is called for each new cell and must not communicate.
void ask_for_world_ranks(std::int32_t (*world_rank)(std::uint32_t comm, std::uint32_t peer) noexcept) noexcept;

// Messages of one kind and size bin, to or from one peer or block of peers; the sum of all threads.
struct PeerSum {
  std::uint64_t messages = 0, bytes = 0;
  std::int32_t world = world_not_known;
};
using Peers = std::map<std::pair<PeerKey, PeerPlace>, PeerSum>;

void add_peer_to(Peers& peers, const PeerCell& cell);

// Calls visit(cell) with a copy of each cell that has messages since the last commlens_reset().  Other threads may go
// on counting.
template <class Visit>
void each_peer(Visit visit);

// Clears the cells of one thread.
void forget_peers(Thread& thread) noexcept;

// Adds a cell to the table (threads.cpp); returns the overflow cell when there is no memory.  pre: locks::peers is
// held.
PeerCell* new_cell(TableOf<PeerCell>& table, PeerKey key, PeerPlace place) noexcept;

// ---- implementation ----

template <class Visit>
void each_peer(Visit visit) {
  const std::lock_guard<std::mutex> stay(locks::peers);  // keeps threads from adding cells
  for (const Thread* t = first_thread(); t != nullptr; t = t->next) {
    if (__atomic_load_n(&t->clears, __ATOMIC_ACQUIRE) != clears.load()) continue;
    each_cell(t->peers, [&visit](const PeerCell& cell) {
      const PeerCell now{cell.key,
                         cell.site,
                         __atomic_load_n(&cell.messages, __ATOMIC_RELAXED),
                         __atomic_load_n(&cell.bytes, __ATOMIC_RELAXED),
                         cell.world,
                         nullptr};
      if (now.messages != 0) visit(now);
    });
  }
}

}  // namespace commlens
