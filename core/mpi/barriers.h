// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include "core/mpi/bind.h"

// COMMLENS_WAITING=barrier: a barrier before each blocking collective, so that all members wait there for the last one.
// It is slow and changes the run, but shows exactly how long they wait, also in collectives in which nobody would.  The
// wrappers are the same: what they take for the MPI library's function has the barrier in it.
namespace [[gnu::visibility("hidden")]] commlens {

// Fills in the functions with a barrier, for both entries of each blocking collective (generated/barriers.cpp).
void add_barriers(void* functions[]) noexcept;

// What these functions call after the barrier: the next definition of each entry.
extern void* behind_barriers[2 * slot_count];

template <class R, class... A>
inline auto behind_barrier(R (*)(A...), Entry entry, int slot) noexcept -> R (*)(A...) {
  void* const next = __atomic_load_n(&behind_barriers[2 * slot + static_cast<int>(entry)], __ATOMIC_RELAXED);
  return reinterpret_cast<R (*)(A...)>(next);
}

// Waits until all members of the communicator have called the collective, in a communicator of our own with the same
// members.  Does nothing in a call inside another MPI call, for intercommunicators, and if a member is not in
// MPI_COMM_WORLD.  All ranks must do so, or those that do wait for ever.
void wait_in_barrier(Op op, MPI_Comm comm) noexcept;

// Frees our communicator for one that the application is about to free.  Collective.
void free_barrier(MPI_Comm comm) noexcept;

}  // namespace commlens
