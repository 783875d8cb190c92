// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace [[gnu::visibility("hidden")]] commlens {

enum class Agreement { all_equal, different, missing, unheard, impossible };  // unheard: rank 0 says nothing

// Returns whether all ranks of MPI_COMM_WORLD call this function with equal numbers.  Either all ranks that call it get
// all_equal, or none does, even if others never call it (docs/decisions/0031-per-communicator.md).  Waits up to
// `seconds` for the others.  Call it once, at the end of MPI_Init.  Open MPI only: its messages have a tag that no call
// of the application can match.
Agreement agree_in_world(std::uint64_t number, int seconds) noexcept;

}  // namespace commlens
