// SPDX-License-Identifier: Apache-2.0
#pragma once

// Counts the point-to-point messages that the MPI library sends internally, for example inside collectives.  Hooks Open
// MPI's PML; no other library exposes this layer.

#include <cstdint>
#include <string>

#include "core/hot/requests.h"
#include "core/hot/thread.h"

namespace [[gnu::visibility("hidden")]] commlens {

// Installs the hook if COMMLENS_MATRIX=all asks for it and it is not there yet.  Call after MPI is initialised and
// MPI_COMM_WORLD is known; prints a message on rank 0 if the hook cannot be installed.
void install_pml_hook() noexcept;

// Removes the hook.  Call before MPI is finalised and before commlens communicates.
void remove_pml_hook() noexcept;

// The same in a forked child, which shares the parent's counters and must not write to them.
void remove_pml_hook_in_child() noexcept;

// From now until the thread's call in progress ends, messages that the library sends for this call are not counted:
// commlens makes the call.  Those of earlier non-blocking collectives, and of other threads, still are.  Needs nothing
// at the end of the call, which an error handler may leave by an exception.
void hide_messages(const Thread& thread) noexcept;

// Returns the outcome of the hook, as stored in `meta.inside`.
std::string pml_hook_outcome();

// The persistent requests that a start call starts.  Their messages are attributed to the procedures that created the
// requests.
struct StartedRequests {
  const RequestTable::Found* found;
  int n, next;
  // The last message that was attributed.
  std::uint64_t comm;
  int tag;
};
extern __thread StartedRequests started_now;

// Sets `started_now` for the duration of a start call.
class Starting {
 public:
  Starting(const RequestTable::Found* found, int n) noexcept { started_now = {found, n, 0, 0, 0}; }
  ~Starting() { started_now.n = 0; }
  Starting(const Starting&) = delete;
  Starting& operator=(const Starting&) = delete;
};

}  // namespace commlens
