// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace [[gnu::visibility("hidden")]] commlens {

// Makes the arena of this process, before anything is counted.
void open_arena();

// From the end of MPI_Init on: how this process ends is noted in the arena, and the arena copied to `directory`, as far
// as that can still be done.  The directory is made when it is needed.
void survive(const std::string& directory, int rank) noexcept;

// Copies the arena as it is now, over an earlier copy; the process goes on.  False when it cannot.
bool flush_arena() noexcept;

// The same to a folder that the application names: the copy stays when a profile is written.
bool flush_arena_to(const char* folder) noexcept;

// The same for COMMLENS_FLUSH_EVERY: rank 0 says it when the first one fails.
void flush_now_and_then() noexcept;

// This process ends, and not by a signal.  Returns the path of the copy, or of the arena when it could not be copied,
// or an empty text where there is neither.
const char* leave_arena(unsigned state) noexcept;

// The profile is written: neither the arena nor a copy is needed any more.
void end_arena() noexcept;

}  // namespace commlens
