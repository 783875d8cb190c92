// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace commlens {

// The facts of a communicator that calls read.  Immutable once published; never freed.
struct alignas(64) CommView {  // aligned, because a request payload may point to one
  std::uint32_t index;         // in the registry and in keys; 0: "no communicator"
  bool inter;                  // an intercommunicator
  bool is_sampled;             // some of its blocking collectives are sampled (hot/samples.h)
  int rank;                    // of this process, in its local group
  int size;                    // of the local group
  int blocks;  // processes that a collective exchanges blocks with: size, or the size of the remote group
  int sources, destinations;            // neighbours that exist (not MPI_PROC_NULL)
  int source_slots, destination_slots;  // blocks of a neighbourhood collective, including those of MPI_PROC_NULL
  const int* neighbors;                 // ranks that blocks are sent to, including MPI_PROC_NULL; null: unknown
  std::uint64_t absent;                 // Cartesian grids: bit i is set if neighbour i is MPI_PROC_NULL (i < 64)
  std::uint64_t identity;               // of the communicator, the same on all members
};

}  // namespace commlens
