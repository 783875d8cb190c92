// SPDX-License-Identifier: Apache-2.0
#include "core/base/memory.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
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

namespace {

// Asks the kernel whether it can read a word of each page: it reads the signal mask before it refuses to do what is
// none of its operations.
bool can_be_read(const void* from, std::size_t bytes) noexcept {
  constexpr std::uintptr_t word = sizeof(std::uint64_t);
  const auto begin = reinterpret_cast<std::uintptr_t>(from), end = begin + bytes;
  for (std::uintptr_t at = begin / word * word; at < end; at = (at / smallest_page + 1) * smallest_page) {
    if (syscall(SYS_rt_sigprocmask, ~0L, at, nullptr, word) != 0 && errno == EFAULT) return false;
  }
  return true;
}

}  // namespace

bool read_memory(const void* from, void* to, std::size_t bytes) noexcept {
  const int saved = errno;
  iovec here{to, bytes}, there{const_cast<void*>(from), bytes};
  const ssize_t n = process_vm_readv(getpid(), &here, 1, &there, 1, 0);
  const bool is_forbidden = n < 0 && errno != EFAULT;
  const bool is_there = is_forbidden ? can_be_read(from, bytes) : n == static_cast<ssize_t>(bytes);
  errno = saved;
  if (is_forbidden && is_there) std::memcpy(to, from, bytes);
  return is_there;
}

}  // namespace commlens
