// SPDX-License-Identifier: Apache-2.0
#include "core/base/memory.h"

#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

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

bool read_memory(const void* from, void* to, std::size_t bytes) noexcept {
  const int saved = errno;
  iovec here{to, bytes}, there{const_cast<void*>(from), bytes};
  const ssize_t n = process_vm_readv(getpid(), &here, 1, &there, 1, 0);
  const bool is_forbidden = n < 0 && errno != EFAULT;
  errno = saved;
  if (is_forbidden) std::memcpy(to, from, bytes);
  return is_forbidden || n == static_cast<ssize_t>(bytes);
}

}  // namespace commlens
