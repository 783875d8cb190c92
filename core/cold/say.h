// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace commlens {

// Writes one line to stderr, "commlens: " before it: the only way the library speaks.  One write, so that lines of
// many ranks do not mix; never through stdio, whose buffers belong to the application.
void say(const char* format, ...) noexcept __attribute__((format(printf, 1, 2)));

// Writes lines that are complete, in one write.  Also from a signal handler: no lock, no allocation.
void say_lines(const char* lines, std::size_t bytes) noexcept;

// Remembers what stderr is now.  A program may close it and open a file of its own under the same number; from then on
// we are silent.
void remember_stderr() noexcept;

// Rank in the job as the launcher put it into the environment, before MPI can tell; -1 when nobody did.
int launcher_rank() noexcept;

}  // namespace commlens
