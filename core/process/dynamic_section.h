// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace commlens {

// Returns the address that an entry of an object's dynamic section stands for; `base`: where the object is loaded.  The
// dynamic linker has replaced the offset by the address, but not in the kernel's own object (vDSO), and on riscv64 in
// none, because the section is read-only there.
inline std::uint64_t dynamic_address(std::uint64_t base, std::uint64_t value) noexcept {
  return value < base ? base + value : value;
}

}  // namespace commlens
