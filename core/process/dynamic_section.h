// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace commlens {

// Returns the address that an entry of an object's dynamic section stands for.  `base`: how much higher the object is
// loaded than it was linked; with the upper bit, lower.  The dynamic linker has replaced the offset by the address, but
// not in the kernel's own object (vDSO), and with glibc on riscv64 in none.
inline std::uint64_t dynamic_address(std::uint64_t base, std::uint64_t value) noexcept {
  const bool is_lower = base >> 63 != 0;
  return value < base && !is_lower ? base + value : value;
}

}  // namespace commlens
