// SPDX-License-Identifier: Apache-2.0
#include "core/cold/memory.h"

#include <sys/mman.h>

#include <cerrno>

namespace commlens {

void* map_memory(std::size_t bytes) noexcept {
  const int saved = errno;
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  errno = saved;
  return memory == MAP_FAILED ? nullptr : memory;
}

void unmap_memory(void* memory, std::size_t bytes) noexcept {
  const int saved = errno;
  munmap(memory, bytes);
  errno = saved;
}

}  // namespace commlens
