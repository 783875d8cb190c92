// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/hot/thread.h"

namespace commlens {

// Returns the list of all Threads that have counted a call, newest first.  Threads may be added while a caller walks
// it.
Thread* first_thread() noexcept;

// Returns the calls of threads for which there was no memory at all: of those that have ended, and of the calling one.
Cell lost_calls() noexcept;

// Returns the number of requests, of all threads, that could not be stored for lack of memory.
std::uint64_t forgotten_requests() noexcept;

// Returns how many threads made a call.  There may be fewer Threads, because later threads reuse them.
int thread_count() noexcept;

// From now on, requests are stored without atomic operations, until a second thread calls MPI.
void store_requests_plainly() noexcept;

// For a forked child that counts nothing: when its thread ends, the counters that it shares with its parent stay as
// they are.
void leave_to_parent() noexcept;

// Frees what the calling thread, which ends, has kept about calls inside others (enclosing.cpp).
void forget_callers() noexcept;

}  // namespace commlens
