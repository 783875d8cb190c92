// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <ctime>

#include "core/base/processor.h"

// Hidden visibility, here and in the other headers that declare variables: the compiler then reads them directly.
// Without the attribute it reads them through the global offset table, because -fvisibility=hidden does not apply to
// `extern` declarations.
namespace [[gnu::visibility("hidden")]] commlens {

// A point in time or a duration in units of the clock: ticks of the processor's counter (x86-64: TSC; aarch64:
// cntvct_el0, multiplied), or nanoseconds without a counter that can be trusted.  TickScale (base/ticks.h) converts to
// nanoseconds when the profile is collected.
using Ticks = std::uint64_t;

// True if time_stamp() reads a counter of the processor.  Written once, before the first time stamp is taken; read by
// every call.
extern bool clock_is_tsc;

inline Ticks nanoseconds() noexcept {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<Ticks>(t.tv_sec) * 1'000'000'000u + static_cast<Ticks>(t.tv_nsec);
}

#if defined(COMMLENS_X86_64)
// Not serialising on purpose.  rdtscp costs twice as much, and the few instructions that the processor may move across
// a plain rdtsc take far less time than a call into MPI.
inline Ticks time_stamp() noexcept { return __builtin_ia32_rdtsc(); }
inline constexpr const char* counter_name = "tsc";
#elif defined(COMMLENS_AARCH64)
// The counter of aarch64 runs at 1 MHz to 1 GHz, at 25 MHz in many machines.  Shifted to the left, its unit is about a
// nanosecond in each of them, so that limits in ticks mean similar times on all processors.  Written with clock_is_tsc.
extern unsigned clock_shift;
// Not serialising on purpose, as above: no isb.
inline Ticks time_stamp() noexcept {
  Ticks count;
  asm volatile("mrs %0, cntvct_el0" : "=r"(count));
  return count << clock_shift;
}
inline constexpr const char* counter_name = "cntvct_el0";
#else
inline Ticks time_stamp() noexcept { return nanoseconds(); }
inline constexpr const char* counter_name = "clock_gettime";
#endif

inline Ticks now() noexcept {
  if (__builtin_expect(clock_is_tsc, 1)) return time_stamp();
  return nanoseconds();
}

}  // namespace commlens
