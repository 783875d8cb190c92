// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/base/processor.h"
#if defined(COMMLENS_X86_64)
#include <immintrin.h>
#elif defined(COMMLENS_PORTABLE)
#include <cfenv>
#endif

namespace commlens {

#if defined(COMMLENS_X86_64)

// Hides the floating-point exceptions of our arithmetic from the application during its lifetime.  The application gets
// no signal where it has enabled traps, and no flag that a Fortran program reports when it stops.
class QuietFloatingPoint {
 public:
  QuietFloatingPoint() noexcept {
    asm volatile("fnstenv %0" : "=m"(x87_));  // also masks all exceptions of the x87 unit
    asm volatile("stmxcsr %0" : "=m"(sse_));
    constexpr std::uint32_t all_masked = 0x1f80, flags = 0x3f;
    const std::uint32_t quiet = (sse_ | all_masked) & ~flags;
    asm volatile("ldmxcsr %0" : : "m"(quiet));
  }
  ~QuietFloatingPoint() {
    asm volatile("ldmxcsr %0" : : "m"(sse_));
    asm volatile("fldenv %0" : : "m"(x87_));
  }
  QuietFloatingPoint(const QuietFloatingPoint&) = delete;
  QuietFloatingPoint& operator=(const QuietFloatingPoint&) = delete;

 private:
  struct {
    std::uint32_t words[7];
  } x87_;
  std::uint32_t sse_;
};

// The same for a few operations on double, in the hot path: writes a register only if needed, because this is slow.
class QuietSum {
 public:
  QuietSum() noexcept : flags_(_mm_getcsr()), has_traps_((flags_ & no_traps) != no_traps) {
    if (__builtin_expect(has_traps_, 0)) _mm_setcsr(flags_ | no_traps);
  }
  ~QuietSum() {
    if (has_traps_ || _mm_getcsr() != flags_) _mm_setcsr(flags_);
  }
  QuietSum(const QuietSum&) = delete;
  QuietSum& operator=(const QuietSum&) = delete;

 private:
  static constexpr unsigned no_traps = 0x1f80;
  const unsigned flags_;
  const bool has_traps_;
};

#elif defined(COMMLENS_AARCH64)

// As above: fpcr has the traps (those of division by zero, invalid operations and so on), fpsr the flags.
class QuietFloatingPoint {
 public:
  QuietFloatingPoint() noexcept {
    asm volatile("mrs %0, fpcr" : "=r"(control_));
    asm volatile("mrs %0, fpsr" : "=r"(flags_));
    constexpr std::uint64_t traps = 0x9f00;
    has_traps_ = (control_ & traps) != 0;
    if (__builtin_expect(has_traps_, 0)) asm volatile("msr fpcr, %0" : : "r"(control_ & ~traps));
  }
  ~QuietFloatingPoint() {
    std::uint64_t flags;
    asm volatile("mrs %0, fpsr" : "=r"(flags));
    if (flags != flags_) asm volatile("msr fpsr, %0" : : "r"(flags_));
    if (__builtin_expect(has_traps_, 0)) asm volatile("msr fpcr, %0" : : "r"(control_));
  }
  QuietFloatingPoint(const QuietFloatingPoint&) = delete;
  QuietFloatingPoint& operator=(const QuietFloatingPoint&) = delete;

 private:
  std::uint64_t control_, flags_;
  bool has_traps_;
};
using QuietSum = QuietFloatingPoint;

#else

class QuietFloatingPoint {
 public:
  QuietFloatingPoint() noexcept { std::feholdexcept(&before_); }
  ~QuietFloatingPoint() { std::fesetenv(&before_); }
  QuietFloatingPoint(const QuietFloatingPoint&) = delete;
  QuietFloatingPoint& operator=(const QuietFloatingPoint&) = delete;

 private:
  std::fenv_t before_;
};
using QuietSum = QuietFloatingPoint;

#endif

}  // namespace commlens
