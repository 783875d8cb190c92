// SPDX-License-Identifier: Apache-2.0
#include "core/base/thread_stack.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

// Of the main thread; the dynamic linker defines it.
// NOLINTNEXTLINE(readability-identifier-naming,bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
extern "C" void* __libc_stack_end;

namespace commlens {

ThreadStack stack_of_thread() noexcept {
  if (getpid() == static_cast<pid_t>(syscall(SYS_gettid))) {
    constexpr std::size_t most = 1u << 30;
    rlimit limit{};
    const bool is_limited = getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < most;
    const auto* const end = static_cast<const char*>(__libc_stack_end);
    return {end - (is_limited ? limit.rlim_cur : most), end};
  }
  pthread_attr_t attributes;
  void* stack = nullptr;
  std::size_t bytes = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    pthread_attr_getstack(&attributes, &stack, &bytes);
    pthread_attr_destroy(&attributes);
  }
  const auto* const begin = static_cast<const char*>(stack);
  return {begin, begin + bytes};
}

}  // namespace commlens
