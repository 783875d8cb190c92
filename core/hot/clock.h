// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <ctime>

// Hidden, here and in the other headers of variables: with it the compiler reads them directly, without it through
// the global offset table, because -fvisibility=hidden does not reach declarations.
namespace [[gnu::visibility("hidden")]] commlens {

// A point in time or a duration as the clock counts: TSC ticks or, without an invariant TSC, nanoseconds.
// Converted to nanoseconds once, when the profile is collected (cold/ticks.h).
using Ticks = std::uint64_t;

// Written once before the first stamp is taken, read by every call.
extern bool clock_is_tsc;

// Not serialising on purpose: rdtscp costs twice as much, and the few instructions the processor may move
// across a plain rdtsc are far below what a call into MPI takes.
inline Ticks time_stamp() noexcept { return __builtin_ia32_rdtsc(); }

inline Ticks now() noexcept {
  if (__builtin_expect(clock_is_tsc, 1)) return time_stamp();
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<Ticks>(t.tv_sec) * 1'000'000'000u + static_cast<Ticks>(t.tv_nsec);
}

}  // namespace commlens
