// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/hot/thread.h"

namespace commlens {

// The tables of all threads that made a call, newest first.  Threads may be added while it is walked.
Thread* first_thread() noexcept;

// What threads counted for which there was no memory at all; those that have ended, and the calling one.
Cell lost_calls() noexcept;

// Requests of all threads that there was no memory to remember.
std::uint64_t forgotten_requests() noexcept;

// How many different threads made a call; tables may be fewer.
int thread_count() noexcept;

}  // namespace commlens
