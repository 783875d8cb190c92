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
  const auto outer_begin = steady_clock::now();
  const Ticks first = now();
  const auto inner_begin = steady_clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const auto inner_end = steady_clock::now();
  const Ticks last = now();
  const auto outer_end = steady_clock::now();
  const auto ns = [](auto duration) { return static_cast<double>(std::chrono::nanoseconds(duration).count()); };
  // The thread may lose its processor between any two readings.
  const double counted = static_cast<double>(TickScale::since_start().ns(last - first));
  CHECK(counted >= ns(inner_end - inner_begin) * 0.9999);
  CHECK(counted <= ns(outer_end - outer_begin) * 1.0001);
}

TEST(the_unit_of_a_slow_counter_is_about_a_nanosecond) {
  struct {
    std::uint64_t frequency;
    unsigned shift;
  } const counters[] = {
      {1'000'000'000, 0}, {500'000'000, 1}, {501'000'000, 0},   {121'875'000, 3},   {62'500'000, 4}, {25'000'000, 5},
      {19'200'000, 5},    {1'000'000, 9},   {3'000'000'000, 0}, {4'294'967'295, 0}, {0, 0}};
  for (const auto& counter : counters) {
    CHECK_EQ(clock_shift_of(counter.frequency), counter.shift);
    const std::uint64_t units = counter.frequency << counter.shift;  // in a second
    if (counter.frequency >= least_clock_frequency) CHECK(units > 500'000'000);
  }
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
