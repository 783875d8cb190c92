// SPDX-License-Identifier: Apache-2.0
#include "core/base/ticks.h"

#include <chrono>
#include <cmath>
#include <thread>

#include "tests/unit/check.h"

namespace commlens {

TEST(ticks_become_the_nanoseconds_another_clock_counts) {
  using std::chrono::steady_clock;
  choose_clock();
  const auto begin = steady_clock::now();
  const Ticks first = now();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const Ticks last = now();
  const auto end = steady_clock::now();
  const double counted = static_cast<double>(TickScale::since_start().ns(last - first));
  const double real = static_cast<double>(std::chrono::nanoseconds(end - begin).count());
  CHECK(counted <= real * 1.0001);  // read inside
  CHECK(counted >= real * 0.9);     // unless we were held up between two readings
}

TEST(without_an_invariant_tsc_ticks_are_nanoseconds) {
  choose_clock();
  const bool had_tsc = clock_is_tsc;
  clock_is_tsc = false;
  const TickScale scale = TickScale::since_start();
  for (const Ticks t : {Ticks{0}, Ticks{1}, Ticks{12'345}, Ticks{1} << 50}) CHECK_EQ(scale.ns(t), t);
  const Ticks a = now(), b = now();
  CHECK(b >= a);
  clock_is_tsc = had_tsc;
}

}  // namespace commlens
