// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/cold/registry.h"

namespace commlens {

// Who speaks.
struct Who {
  int rank;                // as MPI or the launcher says; -1: neither
  const char* unmeasured;  // what to call a procedure that is not measured: MPI_Init or MPI_Finalize
};

// Writes to stderr where the threads of this process are: a line for each that is in MPI or has been there, all in one
// write as long as they fit into what a pipe takes at once.
//
// For a signal handler: no lock, no allocation, no stdio; one call at a time, which the caller sees to.
void say_where(const Registry& registry, const Who& who) noexcept;

// The name of a communicator as the profile will have it, into `text`, which ends with a zero; "?" stands in place of
// what this process cannot tell.  The number in it is the leader's, and so read from the leader's arena.  The same
// rules.
void name_of_comm(const Registry& registry, std::uint32_t index, int rank, char* text, std::size_t bytes) noexcept;

}  // namespace commlens
