// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace [[gnu::visibility("hidden")]] commlens {

// Creates the arena of this process, in the folder `wanted` if it is not empty.  Call before anything is counted.
void open_arena(const std::string& wanted);

// Call at the end of MPI_Init.  From then on, if the process ends early, its end is recorded in the arena, and the
// arena is copied to `directory` as far as possible.  The directory is created when it is needed.
void enable_crash_copies(const std::string& directory, int rank) noexcept;

// Copies the arena as it is now, replacing an earlier copy; the process continues.  Returns false if it cannot.
bool flush_arena() noexcept;

// The same to a folder that the application names.  This copy stays when a profile is written.
bool flush_arena_to(const char* folder) noexcept;

// Makes the last copy when the process ends other than by a signal.  Returns the path of the copy, of the arena if it
// could not be copied, or an empty text if there is neither.
const char* make_last_copy(unsigned state) noexcept;

// Removes the arena and its copy, after the profile was written.
void remove_arena() noexcept;

}  // namespace commlens
