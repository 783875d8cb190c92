// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace commlens {

// Pages of Linux have this size or, on some processors, a multiple of it.
inline constexpr std::size_t smallest_page = 4096;

// Returns zeroed, page-aligned memory, or null.  Not from the application's heap: its allocator may itself be under
// test, and must not see calls of ours between two of its own.
void* map_memory(std::size_t bytes) noexcept;
void unmap_memory(void* memory, std::size_t bytes) noexcept;

// Copies `bytes` bytes of this process from an address that may be unmapped or unreadable; returns false if it is.
// Where the kernel does not permit process_vm_readv, as in some containers, first asks whether the memory can be read:
// that it is unmapped in between is possible then.
bool read_memory(const void* from, void* to, std::size_t bytes) noexcept;

}  // namespace commlens
