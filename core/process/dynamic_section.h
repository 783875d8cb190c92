// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace commlens {

// Returns the address to which an entry of an object's dynamic section refers.  `base`: the load address minus the
// address for which the object was linked (dlpi_addr); the difference can be negative.  The dynamic linker has replaced
// the offset by the address, except in the kernel's own object (vDSO), and with glibc on riscv64 in every object.
inline std::uint64_t dynamic_address(std::uint64_t base, std::uint64_t value) noexcept {
  const bool is_lower = base >> 63 != 0;
  return value < base && !is_lower ? base + value : value;
}

}  // namespace commlens
