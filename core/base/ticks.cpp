// SPDX-License-Identifier: Apache-2.0
#include "core/base/ticks.h"

#include <cpuid.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstring>

namespace commlens {

bool clock_is_tsc = false;

namespace {

Reading first{};

Ns monotonic() noexcept {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<Ns>(t.tv_sec) * 1'000'000'000u + static_cast<Ns>(t.tv_nsec);
}

// The kernel removes the TSC from its list of clocks when it finds it unstable, or different on two sockets.  If the
// list cannot be read, trusts the processor's CPUID flag.
bool kernel_trusts_tsc() noexcept {
  const int file = open("/sys/devices/system/clocksource/clocksource0/available_clocksource", O_RDONLY | O_CLOEXEC);
  if (file < 0) return true;
  char names[256] = "";
  const ssize_t n = read(file, names, sizeof names - 1);
  close(file);
  return n <= 0 || std::strstr(names, "tsc") != nullptr;
}

}  // namespace

// Takes the fastest of 16 tries, so that an interrupt between the two clocks does not distort the reading.
Reading reading() noexcept {
  Reading found{};
  if (!clock_is_tsc) return {now(), monotonic()};
  Ticks best = ~Ticks{0};
  for (int i = 0; i < 16; ++i) {
    const Ticks before = __builtin_ia32_rdtsc();
    const Ns here = monotonic();
    const Ticks after = __builtin_ia32_rdtsc();
    if (after - before >= best) continue;
    best = after - before;
    found = {before + best / 2, here};
  }
  return found;
}

void choose_clock() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  // CPUID 0x80000007, EDX bit 8: the TSC runs at a constant rate in all power states.
  clock_is_tsc = __get_cpuid(0x80000007u, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0 && kernel_trusts_tsc();
  first = reading();
}

TickScale TickScale::since_start() noexcept {
  if (!clock_is_tsc) return {};
  // Waits until the two readings are 2 ms apart: in a program that ends at once, their own error would distort the
  // scale.
  while (monotonic() - first.ns < 2'000'000) {
  }
  return between(first, reading());
}

TickScale TickScale::between(const Reading& from, const Reading& to) noexcept {
  TickScale scale;
  if (to.ticks > from.ticks && to.ns > from.ns) {
    scale.ns_per_tick_ = static_cast<double>(to.ns - from.ns) / static_cast<double>(to.ticks - from.ticks);
  }
  return scale;
}

}  // namespace commlens
