// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace commlens {

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

}  // namespace commlens
