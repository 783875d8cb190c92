// SPDX-License-Identifier: Apache-2.0
#pragma once

// The messages that collectives, and other calls, are made of: those that the MPI library sends by its own
// point-to-point layer, below the procedures we wrap.  Open MPI shows them.

#include <cstdint>
#include <string>

#include "core/hot/requests.h"

namespace [[gnu::visibility("hidden")]] commlens {

// Begins to count them, if that is asked for (COMMLENS_MATRIX=all) and not done already.  Call when MPI is initialised
// and MPI_COMM_WORLD is known; says on rank 0 when it cannot be.
void watch_below() noexcept;

// Ends it.  Call before MPI is finalised, and before we communicate.
void leave_below() noexcept;

// The same in a child process, which shares what its parent counts in and must not write there.
void leave_below_in_child() noexcept;

// What came of it, as table meta tells it.
std::string told_of_below();

// The requests that a start call starts: what they send is caused by the procedures that made them.
struct Started {
  const RequestTable::Found* found;
  int n, next;
  // The last message of it that was met.
  std::uint64_t comm;
  int tag;
};
extern __thread Started started_now;

// Lives as long as the start call.
class Starting {
 public:
  Starting(const RequestTable::Found* found, int n) noexcept { started_now = {found, n, 0, 0, 0}; }
  ~Starting() { started_now.n = 0; }
  Starting(const Starting&) = delete;
  Starting& operator=(const Starting&) = delete;
};

}  // namespace commlens
