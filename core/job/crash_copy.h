// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

namespace [[gnu::visibility("hidden")]] commlens {

// Creates the arena of this process, in the folder `wanted` if it is not empty.  Call before anything is counted.
void open_arena(const std::string& wanted);

// Where the copies of a job go.
struct PlaceOfCopies {
  std::string folder;                    // is created when it is needed
  std::size_t root = std::string::npos;  // the length up to the folders around it that are created, too; npos: none
  mode_t mode = 0700;                    // of these
  std::string elsewhere;                 // the folder to use if that fails
};

// Call at the end of MPI_Init.  From then on, if the process ends early, its end is recorded in the arena, and the
// arena is copied to `place` as far as possible.
void enable_crash_copies(const PlaceOfCopies& place, int rank) noexcept;

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
