// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace commlens {

// What a call needs to know of its communicator.  Never changes after it was published, never freed.
struct alignas(64) CommView {  // aligned: a request payload may point to one
  std::uint32_t index;         // in the registry, and in keys; 0 is "no communicator"
  bool inter;                  // an intercommunicator
  int rank;                    // of this process, in its local group
  int size;                    // of the local group
  int blocks;                  // processes a collective exchanges blocks with: size, or the size of the remote group
  int sources, destinations;   // neighbours of this process that exist (not MPI_PROC_NULL)
  int source_slots, destination_slots;  // blocks a neighbourhood collective names, MPI_PROC_NULL ones included
  const int* neighbors;                 // ranks that blocks go to, MPI_PROC_NULL ones included; null: not known
  std::uint64_t absent;                 // Cartesian grids: bit i set when neighbour i is MPI_PROC_NULL (i < 64)
};

}  // namespace commlens
