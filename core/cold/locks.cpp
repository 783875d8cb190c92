// SPDX-License-Identifier: Apache-2.0
#include "core/cold/locks.h"

#include <ctime>
#include <new>

namespace commlens::locks {

std::mutex peers, threads, regions, notices, modules, handles;

namespace {

std::mutex* const all[] = {&peers, &threads, &regions, &notices, &modules, &handles};
constexpr int count = sizeof all / sizeof *all;
__thread unsigned held = 0;  // by a thread that forks: a bit for each

}  // namespace

// A handler of a signal may fork, also of one that came while its own thread had a lock: none is waited for without
// end.
void before_fork() noexcept {
  held = 0;
  int patience = 100;  // milliseconds
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
