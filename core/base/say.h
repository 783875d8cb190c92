// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace commlens {

// Writes one line to stderr, with the prefix "commlens: ".  All messages of the library go through this function or
// say_lines().  Uses one write, so that the lines of many ranks do not mix, and never stdio, whose buffers belong to
// the application.
void say(const char* format, ...) noexcept __attribute__((format(printf, 1, 2)));

// Writes complete lines in one write.  May be called from a signal handler: no lock, no allocation.
void say_lines(const char* lines, std::size_t bytes) noexcept;

// Remembers the file that stderr is now.  A program may close stderr and open another file under the same descriptor.
// From then on say() prints nothing.
void remember_stderr() noexcept;

// Returns the rank in the job that the launcher put into the environment, for use before MPI_Init; -1 without one.
int launcher_rank() noexcept;

}  // namespace commlens
