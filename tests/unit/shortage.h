// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace shortage {

// While it lives, map_memory() gives memory `allowed` times more, then none.  The linker puts it before the real one
// (--wrap, CMakeLists.txt): the product has no hook for it.
class NoMemory {
 public:
  explicit NoMemory(int allowed = 0);
  ~NoMemory();
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;
};

// While it lives, map_memory() gives no more than `limit` bytes at once.
class NoLargeMemory {
 public:
  explicit NoLargeMemory(std::size_t limit);
  ~NoLargeMemory();
  NoLargeMemory(const NoLargeMemory&) = delete;
  NoLargeMemory& operator=(const NoLargeMemory&) = delete;
};

// How often map_memory() was refused so far.
int refusals();

}  // namespace shortage
