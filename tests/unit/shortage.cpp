// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/shortage.h"

#include <atomic>
#include <limits>

namespace {

constexpr int plenty = std::numeric_limits<int>::max();
std::atomic<int> left{plenty};
std::atomic<std::size_t> largest{std::numeric_limits<std::size_t>::max()};
std::atomic<int> refused{0};

}  // namespace

// commlens::map_memory(std::size_t), as the linker calls it.
extern "C" void* __real__ZN8commlens10map_memoryEm(std::size_t bytes) noexcept;
extern "C" void* __wrap__ZN8commlens10map_memoryEm(std::size_t bytes) noexcept {
  const bool enough = left == plenty || left-- > 0;
  if (enough && bytes <= largest) return __real__ZN8commlens10map_memoryEm(bytes);
  if (!enough) left = 0;
  ++refused;
  return nullptr;
}

namespace shortage {

NoMemory::NoMemory(int allowed) { left = allowed; }
NoMemory::~NoMemory() { left = plenty; }
NoLargeMemory::NoLargeMemory(std::size_t limit) { largest = limit; }
NoLargeMemory::~NoLargeMemory() { largest = std::numeric_limits<std::size_t>::max(); }
int refusals() { return refused; }

}  // namespace shortage
