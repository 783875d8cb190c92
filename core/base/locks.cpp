// SPDX-License-Identifier: Apache-2.0
#include "core/base/locks.h"

#include <ctime>
#include <new>

namespace commlens::locks {

std::mutex peers, threads, regions, notices, modules, paths, samples, handles;

namespace {

std::mutex* const all[] = {&peers, &threads, &regions, &notices, &modules, &paths, &samples, &handles};
constexpr int count = sizeof all / sizeof *all;
__thread unsigned held = 0;  // the locks that the forking thread holds, one bit each

}  // namespace

// A signal handler may fork while its own thread holds one of the locks.  Waits at most 100 ms for all locks together,
// so that this cannot deadlock.
void before_fork() noexcept {
  held = 0;
  int patience = 100;  // milliseconds, for all locks together
  for (int i = 0; i < count; ++i) {
    bool is_held = all[i]->try_lock();
    for (; !is_held && patience > 0; --patience) {
      constexpr timespec millisecond{0, 1'000'000};
      nanosleep(&millisecond, nullptr);
      is_held = all[i]->try_lock();
    }
    if (is_held) held |= 1u << i;
  }
}

void after_fork_in_parent() noexcept {
  for (int i = count - 1; i >= 0; --i) {
    if ((held >> i & 1) != 0) all[i]->unlock();
  }
}

void after_fork_in_child() noexcept {
  for (std::mutex* const lock : all) new (lock) std::mutex;
}

}  // namespace commlens::locks
