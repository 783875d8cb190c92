// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace commlens {

// Returns zeroed, page-aligned memory, or null.  Not the application's heap: its allocator may itself be under
// test, and must not see us between two of its calls.
void* map_memory(std::size_t bytes) noexcept;
void unmap_memory(void* memory, std::size_t bytes) noexcept;

// Copies bytes of this process that may not be there, or not be readable; false when they are not.  Where the kernel
// does not let us ask, they are taken to be there.
bool read_memory(const void* from, void* to, std::size_t bytes) noexcept;

}  // namespace commlens
