// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/clock.h"

#include <atomic>

namespace {
std::atomic<commlens::Ticks> time_now{0};
}

extern "C" int __real_clock_gettime(clockid_t clock, timespec* time);
extern "C" int __wrap_clock_gettime(clockid_t clock, timespec* time) {
  const commlens::Ticks t = time_now;
  if (t == 0 || clock != CLOCK_MONOTONIC) return __real_clock_gettime(clock, time);
  time->tv_sec = static_cast<time_t>(t / 1'000'000'000);
  time->tv_nsec = static_cast<long>(t % 1'000'000'000);
  return 0;
}

namespace test_clock {

void set(commlens::Ticks now) { time_now = now; }
void go_on(commlens::Ticks by) { time_now += by; }
commlens::Ticks now() { return time_now; }

}  // namespace test_clock
