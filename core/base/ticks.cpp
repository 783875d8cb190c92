// SPDX-License-Identifier: Apache-2.0
#include "core/base/ticks.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>

#include "core/base/processor.h"
#if defined(COMMLENS_X86_64)
#include <cpuid.h>
#endif

namespace commlens {

bool clock_is_tsc = false;
#if defined(COMMLENS_AARCH64)
unsigned clock_shift = 0;
#endif

namespace {

Reading first{};

#if defined(COMMLENS_X86_64)
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

bool has_counter() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  // CPUID 0x80000007, EDX bit 8: the TSC runs at a constant rate in all power states.
  return __get_cpuid(0x80000007u, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0 && kernel_trusts_tsc();
}
#elif defined(COMMLENS_AARCH64)
// Linux needs the counter itself, keeps it equal on all cores, and reads it for processors whose own reading is wrong.
// cntfrq_el0 is its frequency as the firmware has set it.  It only chooses the shift: the scale is measured, because
// firmware may be wrong.  A frequency that is none is firmware that has not set up the counter.
bool has_counter() noexcept {
  std::uint64_t frequency = 0;
  asm("mrs %0, cntfrq_el0" : "=r"(frequency));
  clock_shift = clock_shift_of(frequency);
  return frequency >= least_clock_frequency;
}
#else
bool has_counter() noexcept { return false; }
#endif

}  // namespace

unsigned clock_shift_of(std::uint64_t frequency) noexcept {
  unsigned shift = 0;
  while (frequency != 0 && frequency << (shift + 1) <= 1'000'000'000u) ++shift;
  return shift;
}

// Takes the fastest of 16 tries, so that an interrupt between the two clocks does not distort the reading.
Reading reading() noexcept {
  Reading found{};
  if (!clock_is_tsc) return {now(), nanoseconds()};
  Ticks best = ~Ticks{0};
  for (int i = 0; i < 16; ++i) {
    const Ticks before = time_stamp();
    const Ns here = nanoseconds();
    const Ticks after = time_stamp();
    if (after - before >= best) continue;
    best = after - before;
    found = {before + best / 2, here};
  }
  return found;
}

void choose_clock() noexcept {
  clock_is_tsc = has_counter();
  first = reading();
}

TickScale TickScale::since_start() noexcept {
  if (!clock_is_tsc) return {};
  // Waits until the two readings are 2 ms apart: in a program that ends at once, their own error would distort the
  // scale.
  while (nanoseconds() - first.ns < 2'000'000) {
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
