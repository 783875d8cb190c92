// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <thread>

#include "core/hot/thread.h"
#include "core/recover/read.h"
#include "core/state/regions.h"
#include "core/state/series.h"
#include "core/state/threads.h"
#include "tests/unit/rank.h"

// What the tests of arenas have in common: a process that is killed inside regions, and what a reader finds of it.
namespace commlens {

inline RegionName called(const char* name) {
  return {identity_of_name(name, std::strlen(name)), name, std::strlen(name)};
}

// Regions, loops, values and tags of two threads; both have some open, and the process is killed.
inline void live_in_regions() {
  const std::uint64_t metric = metric_of("residual", "1");
  choose_series(16);
  begin_slices(now());
  const auto work = [metric](int rounds) {
    Thread& thread = this_thread();
    begin_region(thread, called("main"), 1, OpeningKind::region);
    begin_region(thread, called("steps"), 1, OpeningKind::loop_one_by_one);
    for (int i = 0; i < rounds; ++i) {
      begin_iteration(thread, 1);
      begin_region(thread, called(i % 2 == 0 ? "even" : "odd"), 1, OpeningKind::region);
      thread.current.since = now();
      record(thread, make_key(world, 3, 1, thread.region()), 1, 100, 8, 0);
      record_in_series(thread, metric, i);
      tag(thread, "kind", "COMP");
      if (i + 1 < rounds) end_region(thread, {0, "", 0}, 1);
    }
  };
  std::atomic<bool> is_done{false};
  std::thread([&] {
    work(20);
    is_done = true;
    for (;;) pause();
  }).detach();
  while (!is_done) std::this_thread::yield();
  work(30);
  raise(SIGKILL);
}

inline std::uint64_t calls_of(arena::Reader& reader) {
  std::uint64_t calls = 0;
  for (const auto& [key, cell] : reader.counted().cells) calls += cell.calls;
  return calls;
}

}  // namespace commlens
