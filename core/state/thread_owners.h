// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/hot/thread.h"

// COMMLENS_THREADS=each: a Thread counts the calls of a single thread, and has its name.
namespace commlens {

inline constexpr std::uint32_t most_threads_apart = 256;  // per process; further threads are counted together

// Sets whether threads are counted apart.  Call before the first one is counted.
void choose_threads(bool each) noexcept;

// Stores that the calling thread counts in `thread` from now on.
void note_owner(Thread& thread) noexcept;

// Stores the present name of the calling thread, because programs name their threads late.  Does nothing unless threads
// are counted apart.
void note_own_name(Thread& thread) noexcept;

// The same for all threads that have not ended.  May be called from a signal handler.
void note_names() noexcept;

}  // namespace commlens
