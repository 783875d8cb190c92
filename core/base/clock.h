// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <ctime>

// Hidden visibility, here and in the other headers that declare variables: the compiler then reads them directly.
// Without the attribute it reads them through the global offset table, because -fvisibility=hidden does not apply to
// `extern` declarations.
namespace [[gnu::visibility("hidden")]] commlens {

// A point in time or a duration in units of the clock: TSC ticks, or nanoseconds without an invariant TSC.  TickScale
// (base/ticks.h) converts to nanoseconds when the profile is collected.
using Ticks = std::uint64_t;

// Written once, before the first time stamp is taken; read by every call.
extern bool clock_is_tsc;

// Not serialising on purpose.  rdtscp costs twice as much, and the few instructions that the processor may move across
// a plain rdtsc take far less time than a call into MPI.
inline Ticks time_stamp() noexcept { return __builtin_ia32_rdtsc(); }

inline Ticks now() noexcept {
  if (__builtin_expect(clock_is_tsc, 1)) return time_stamp();
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<Ticks>(t.tv_sec) * 1'000'000'000u + static_cast<Ticks>(t.tv_nsec);
}

}  // namespace commlens
