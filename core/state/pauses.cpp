// SPDX-License-Identifier: Apache-2.0
// Pausing, closing and clearing the counters of all threads.
#include <linux/membarrier.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <iterator>
#include <mutex>

#include "core/arena/arena.h"
#include "core/base/locks.h"
#include "core/base/ticks.h"
#include "core/state/events.h"
#include "core/state/messages.h"
#include "core/state/peers.h"
#include "core/state/processor_use.h"
#include "core/state/readings.h"
#include "core/state/regions.h"
#include "core/state/samples.h"
#include "core/state/series.h"
#include "core/state/slices.h"
#include "core/state/threads.h"

namespace commlens {

Pause pauses;
std::atomic<bool> regions_are_closed{false};
std::atomic<std::uint32_t> clears{0};

namespace {

std::mutex& mutex = locks::regions;
std::atomic<Ticks> forgotten_at{0};  // counted time

// Times that do not count, for calls that were in progress then: the last pauses, and the last clearing of all
// counters.
struct Span {
  Ticks begin, end;
};
constexpr std::size_t most_spans = 64;
Span spans[most_spans];
std::size_t span_count = 0;  // pauses so far
Ticks forgotten_until = 0;

// As Pause::held and Pause::before, and forgotten_at, for what the process used of the CPUs.
ProcessorUse use_held, use_before, use_forgotten;

// pre: the caller holds the mutex.
ProcessorUse counted_use_now() noexcept {
  return is_paused(pauses.changes.load()) ? use_held : processor_use() - use_before;
}

}  // namespace

bool may_use_barrier() noexcept {
  static const bool can = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  return can;
}

namespace {

// Barrier: afterwards each other thread either sees what we stored before, or has made its own earlier stores visible
// to us.
void let_others_see() noexcept {
  if (may_use_barrier()) syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

void change(bool pausing) noexcept {
  const std::lock_guard<std::mutex> lock(mutex);
  const std::uint32_t changes = pauses.changes.load();
  if (is_paused(changes) == pausing || regions_are_closed.load()) return;
  const Ticks t = now();
  if (pausing) {
    pauses.held.store(counted_time(t));
    use_held = counted_use_now();
  } else {
    const Ticks begin = pauses.held.load() + pauses.before.load();
    spans[span_count++ % most_spans] = {begin, t};
    pauses.before.store(t - pauses.held.load());
    use_before = processor_use() - use_held;
  }
  pauses.changes.store(changes + 1);
  arena::note_pause(pauses);
  let_others_see();
  const auto now_in = [](const Thread& thread) {
    const Regions* const regions = __atomic_load_n(&thread.regions, __ATOMIC_ACQUIRE);
    if (regions == nullptr) return region_outside();
    const Frame& frame = regions->frames[__atomic_load_n(&regions->depth, __ATOMIC_ACQUIRE)];
    return __atomic_load_n(&frame.in_region, __ATOMIC_RELAXED);
  };
  for (Thread* thread = first_thread(); thread != nullptr; thread = thread->next) {
    if (pausing) {
      thread->count_in(uncounted_region);
      continue;
    }
    // The thread may enter another region meanwhile.  It puts that region on its stack before it counts in it, so
    // repeat until the stack agrees.
    std::uint32_t region = 0;
    do {
      region = now_in(*thread);
      thread->count_in(region);
      std::atomic_thread_fence(std::memory_order_seq_cst);
    } while (now_in(*thread) != region);
    thread->wait_until(1);  // so that the end of the current call asks left_out()
  }
}

}  // namespace

void close_regions() noexcept {
  {
    const std::lock_guard<std::mutex> lock(mutex);
    regions_are_closed.store(true);
  }
  let_others_see();
  // A thread that writes a copy of the counters to a slow file system takes long, but the total wait is limited to 10
  // s.
  int patience = 10'000;  // milliseconds
  for (const Thread* t = first_thread(); t != nullptr; t = t->next) {
    while (t != current_thread && __atomic_load_n(&t->updating_regions, __ATOMIC_ACQUIRE) != 0 && patience-- > 0) {
      constexpr timespec millisecond{0, 1'000'000};
      nanosleep(&millisecond, nullptr);
    }
  }
}

void reopen_regions() noexcept { regions_are_closed.store(false); }

namespace {

// A pause ends what the calling thread counts of events.  Other threads read theirs later: what they were counted
// since their last reading is left out, or counted with a part of the pause.
void change_with_events(bool pausing) noexcept {
  take_reading();
  if (counts_events() && current_thread != nullptr) note_events_outside(*current_thread);
  change(pausing);
}

}  // namespace

void pause_counting() noexcept { change_with_events(true); }
void resume_counting() noexcept { change_with_events(false); }

Ticks forgotten() noexcept { return forgotten_at.load(); }

ProcessorUse processor_use() noexcept {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto ns = [](const timeval& t) {
    return static_cast<Ns>(t.tv_sec) * 1'000'000'000u + static_cast<Ns>(t.tv_usec) * 1'000u;
  };
  return {ns(usage.ru_utime) + ns(usage.ru_stime), static_cast<std::uint64_t>(usage.ru_nivcsw)};
}

ProcessorUse counted_use() noexcept {
  const std::lock_guard<std::mutex> lock(mutex);
  return counted_use_now();
}

ProcessorUse forgotten_use() noexcept {
  const std::lock_guard<std::mutex> lock(mutex);
  return use_forgotten;
}

void forget_counted() noexcept {
  take_reading_to_forget();
  const RegionUpdate updating_regions(this_thread());
  if (!updating_regions) return;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    forgotten_until = now();
    forgotten_at.store(counted_time(forgotten_until));
    use_forgotten = counted_use_now();
    arena::note_forgotten(forgotten_at.load(), clears.fetch_add(1) + 1);
  }
  forget_samples();
  forget_messages();
  for (Thread* thread = first_thread(); thread != nullptr; thread = thread->next) {
    if (thread == current_thread) forget_if_asked(*thread);
    thread->wait_until(1);  // its next call checks
  }
}

Ticks left_out(Ticks since, Ticks until) noexcept {
  if ((pauses.changes.load() == 0 && clears.load() == 0) || since >= until) return 0;
  const std::lock_guard<std::mutex> lock(mutex);
  Ticks sum = 0;
  if (since < forgotten_until) {
    sum = std::min(until, forgotten_until) - since;
    since += sum;
  }
  for (std::size_t i = 0; i < std::min(span_count, most_spans); ++i) {
    const Ticks begin = std::max(since, spans[i].begin), end = std::min(until, spans[i].end);
    if (begin < end) sum += end - begin;
  }
  return sum;
}

namespace {

void forget_regions(const Thread& thread, Regions* regions) noexcept {
  each_cell(regions->cells, [](RegionCell& c) { c.calls = c.time = c.time_min = c.time_max = c.nested = c.mpi = 0; });
  each_cell(regions->metrics, [](MetricCell& c) {
    c.count = c.not_finite = 0;
    c.sum = c.min = c.max = c.last = 0;
  });
  forget_series(*regions);
  each_cell(regions->loops, [](LoopCell& c) { std::fill(std::begin(c.bins), std::end(c.bins), 0); });
  // Numbers executions from 0 again: the outermost open region becomes the first execution of its kind.
  const std::uint32_t outermost = regions->depth == 0 ? 0 : regions->frames[1].region;
  const auto renumber = [outermost](KnownRegion& known) {
    const bool is_under_way = outermost != 0 && known.region == outermost && region_limits.executions > 1;
    known.executions = is_under_way ? 1 : 0;
  };
  for (std::uint32_t i = 0; i < regions->capacity; ++i) renumber(regions->known[i]);
  renumber(regions->others);
  const Ticks t = forgotten_at.load();
  for (std::uint32_t i = 1; i <= regions->depth; ++i) {
    Frame& frame = regions->frames[i];
    frame.execution = 0;
    if (frame.cell != nullptr) {
      const RegionKey key = make_region_key(frame.region, 0, iteration_of(frame.cell->key));
      if (frame.key != 0) frame.key = key;
      frame.cell = find_cell(regions->cells, key, 0);
    }
    frame.loop = nullptr;
    frame.start = frame.iteration_start = t;
    frame.nested = frame.iteration_nested = 0;
    frame.mpi = frame.iteration_mpi = thread.mpi;
  }
}

}  // namespace

void forget_if_asked(Thread& thread) noexcept {
  const std::uint32_t asked = clears.load();
  if (thread.clears == asked) return;
  const auto clear = [](Cell& cell) {
    cell.calls = cell.time = cell.time_min = cell.time_max = cell.bytes_sent = cell.bytes_received = 0;
  };
  each_cell(thread.table, clear);
  clear(thread.table.overflow);
  forget_slices(thread);
  forget_peers(thread);
  forget_events(thread);
  thread.call_cache->forget();
  if (thread.regions != nullptr) forget_regions(thread, thread.regions);
  // Last: if the process is killed before, what is left of the counters does not count.
  __atomic_store_n(&thread.clears, asked, __ATOMIC_RELEASE);
}

void forget_before_value(Thread& thread) noexcept {
  forget_if_asked(thread);
  if (thread.outermost != nullptr) thread.wait_until(1);  // the end of this call asks left_out()
}

}  // namespace commlens
