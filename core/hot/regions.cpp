// SPDX-License-Identifier: Apache-2.0
#include "core/hot/regions.h"

#include "core/base/floating_point.h"
#include "core/hot/series.h"

namespace commlens {
namespace {

KnownRegion* find_known(const Regions& regions, std::uint32_t parent, Identity name) noexcept {
  if (__builtin_expect(regions.capacity == 0, 0)) return nullptr;
  const std::uint32_t mask = regions.capacity - 1;
  for (auto i = region_place(parent, name) & mask;; i = (i + 1) & mask) {
    KnownRegion& known = regions.known[i];
    if (known.name == name && known.parent == parent) return &known;
    if (known.name == 0) return nullptr;
  }
}

// Sets the region in which the thread counts.  Another thread may pause counting between the read of `changes` and the
// store, so it checks again.
void count_in(Thread& thread, std::uint32_t region, std::uint32_t changes) noexcept {
  thread.count_in(is_paused(changes) ? uncounted_region : region);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (__builtin_expect(pauses.changes.load(std::memory_order_relaxed) != changes, 0)) {
    const bool paused = is_paused(pauses.changes.load(std::memory_order_relaxed));
    thread.count_in(paused ? uncounted_region : region);
  }
}

void look_at_slice(Thread& thread, Ticks now) noexcept {
  if (__builtin_expect(thread.is_due(now), 0)) end_slice_at_region(thread, now);
}

void add_time(RegionCell& cell, Ticks spent, Ticks nested, Ticks mpi) noexcept {
  if (spent < cell.time_min || cell.calls == 0) cell.time_min = spent;
  if (spent > cell.time_max) cell.time_max = spent;
  cell.calls += 1;
  cell.time += spent;
  cell.nested += nested;
  cell.mpi += mpi;
}

std::uint32_t bin_of_time(Ticks spent) noexcept {
  const auto ns = static_cast<std::uint64_t>((static_cast<unsigned __int128>(spent) * loop_scale) >> 32);
  const std::uint32_t bin = bin_of(ns);
  return bin > 63 ? 63 : bin;
}

void close_iteration(Thread& thread, Regions& regions, Frame& loop, Ticks end) noexcept {
  const std::uint32_t changes = pauses.changes.load(std::memory_order_acquire);
  if (loop.key == 0 || was_paused(loop.iteration_pauses, changes)) return;
  const Ticks nested = loop.nested - loop.iteration_nested;
  const Ticks spent = time_in(loop.iteration_start, counted_time(end), nested);
  const std::int32_t iteration = loop.keeps_apart ? loop.iteration : -1;
  const RegionKey key = make_region_key(loop.region, loop.execution, iteration, true);
  add_time(*find_cell(regions.cells, key, 0), spent, nested, thread.mpi - loop.iteration_mpi);
  if (loop.loop == nullptr)
    loop.loop = find_cell(regions.loops, make_region_key(loop.region, loop.execution, -1, true), 0);
  ++loop.loop->bins[bin_of_time(spent)];
}

void close(Thread& thread, Regions& regions, Ticks end) noexcept {
  Frame& frame = regions.frames[regions.depth];
  Frame& around = regions.frames[regions.depth - 1];
  look_at_slice(thread, end);
  if (frame.is_loop && frame.iterations != 0) close_iteration(thread, regions, frame, end);
  const std::uint32_t changes = pauses.changes.load(std::memory_order_acquire);
  regions.last = end;
  // A reader of the arena finds the region either on the stack or in its cell; for a moment in neither.
  __atomic_store_n(&regions.depth, regions.depth - 1, __ATOMIC_RELEASE);
  if (frame.key == 0) {
    around.nested += frame.nested;
    // A region beyond the limit, nested in another one: count its execution, but not its time, which is part of the
    // enclosing one's.
    if (frame.cell != nullptr && !was_paused(frame.pauses, changes)) {
      const Ticks before = frame.cell->time;
      add_time(*frame.cell, time_in(frame.start, counted_time(end), 0), 0, 0);
      frame.cell->time = before;
    }
  } else if (!was_paused(frame.pauses, changes)) {
    const Ticks spent = time_in(frame.start, counted_time(end), frame.nested);
    add_time(*frame.cell, spent, frame.nested, thread.mpi - frame.mpi);
    around.nested += spent;
  }
  count_in(thread, around.in_region, changes);
}

}  // namespace

void begin_region(Thread& thread, const RegionName& name, Site site, OpeningKind kind) noexcept {
  const RegionUpdate updating_regions(thread);
  if (__builtin_expect(!updating_regions, 0)) return;
  Regions* const regions = thread.regions != nullptr ? thread.regions : enter_regions(thread);
  if (__builtin_expect(regions == nullptr, 0)) return;
  if (__builtin_expect(regions->beyond != 0 || regions->depth == Regions::most_frames, 0)) {
    ++regions->beyond;
    too_deep(name, site);
    return;
  }
  Frame& around = regions->frames[regions->depth];
  const bool is_loop = kind != OpeningKind::region;
  KnownRegion* known = find_known(*regions, around.region, is_loop ? name.identity ^ mark_of_loop : name.identity);
  if (__builtin_expect(known == nullptr, 0)) {
    known = meet_region(*regions, name, is_loop);
    if (known == nullptr) {
      ++regions->beyond;
      return;
    }
  }
  Frame& frame = regions->frames[regions->depth + 1];
  std::uint32_t execution = around.execution;
  if (regions->depth == 0) {
    execution = known->executions;
    if (execution < region_limits.executions - 1) ++known->executions;
  }
  frame.key = known->counts ? make_region_key(known->region, execution, around.iteration) : 0;
  frame.cell = nullptr;
  if (known->counts) {
    if (known->cell == nullptr || known->cell->key != frame.key) known->cell = find_cell(regions->cells, frame.key, 0);
    frame.cell = known->cell;
    if (known->is_others && around.region == known->region) frame.key = 0;
  }
  frame.nested = 0;
  frame.mpi = thread.mpi;
  frame.name = name.identity;
  frame.begun = site;
  frame.region = known->region;
  __atomic_store_n(&frame.in_region, known->counts ? known->region : uncounted_region,
                   __ATOMIC_RELAXED);  // resume_counting() reads it on another thread
  frame.execution = execution;
  frame.iteration = around.iteration;
  frame.is_loop = is_loop;
  frame.keeps_apart = kind == OpeningKind::loop_one_by_one;
  frame.iterations = 0;
  frame.loop = nullptr;
  const std::uint32_t changes = pauses.changes.load(std::memory_order_acquire);
  frame.pauses = changes;
  const Ticks start = now();
  regions->last = start;
  look_at_slice(thread, start);
  frame.start = counted_time(start);
  __atomic_store_n(&regions->depth, regions->depth + 1, __ATOMIC_RELEASE);
  count_in(thread, frame.in_region, changes);
}

void end_region(Thread& thread, const RegionName& name, Site site) noexcept {
  const RegionUpdate updating_regions(thread);
  if (__builtin_expect(!updating_regions, 0)) return;
  const Ticks end = now();
  Regions* const regions = thread.regions;
  if (__builtin_expect(regions == nullptr, 0)) {
    static_cast<void>(end_of_another(thread, name, site));
    return;
  }
  if (regions->beyond != 0) {
    --regions->beyond;
    return;
  }
  std::uint32_t depth = regions->depth;
  if (__builtin_expect(depth == 0 || (name.identity != 0 && regions->frames[depth].name != name.identity), 0)) {
    depth = end_of_another(thread, name, site);
    if (depth == 0) return;
  }
  while (regions->depth >= depth) close(thread, *regions, end);
}

void begin_iteration(Thread& thread, Site site) noexcept {
  const RegionUpdate updating_regions(thread);
  if (__builtin_expect(!updating_regions, 0)) return;
  const Ticks begin = now();
  Regions* const regions = thread.regions;
  if (__builtin_expect(regions == nullptr, 0)) {
    static_cast<void>(loop_of_iteration(thread, site));
    return;
  }
  if (regions->beyond != 0) return;
  std::uint32_t depth = regions->depth;
  if (__builtin_expect(depth == 0 || !regions->frames[depth].is_loop, 0)) {
    depth = loop_of_iteration(thread, site);
    if (depth == 0) return;
    while (regions->depth > depth) close(thread, *regions, begin);
  }
  Frame& loop = regions->frames[depth];
  look_at_slice(thread, begin);
  if (loop.iterations != 0) close_iteration(thread, *regions, loop, begin);
  if (loop.keeps_apart)
    loop.iteration = loop.iterations < region_limits.iterations ? static_cast<std::int32_t>(loop.iterations) : -1;
  ++loop.iterations;
  loop.iteration_pauses = pauses.changes.load(std::memory_order_acquire);
  loop.iteration_nested = loop.nested;
  loop.iteration_mpi = thread.mpi;
  loop.iteration_start = counted_time(begin);
}

void begin_numbered_iteration(Thread& thread, const RegionName& name, Site site, OpeningKind kind,
                              long number) noexcept {
  begin_region(thread, name, site, kind);
  // Without a frame for the loop there is none for the iteration, either.
  if (thread.regions == nullptr || thread.regions->beyond != 0) return;
  begin_iteration(thread, site);
  const RegionUpdate updating_regions(thread);
  Frame& loop = thread.regions->frames[thread.regions->depth];
  if (!updating_regions || !loop.keeps_apart || loop.iterations != 1) return;
  loop.iteration =
      number >= 0 && number < static_cast<long>(region_limits.iterations) ? static_cast<std::int32_t>(number) : -1;
}

void end_regions(Thread& thread) noexcept {
  Regions* const regions = thread.regions;
  const RegionUpdate updating_regions(thread);
  if (regions == nullptr || !updating_regions) return;
  const Ticks end = now();
  regions->beyond = 0;
  while (regions->depth > 0) close(thread, *regions, end);
}

namespace {

void store_value(Thread& thread, RegionKey key, std::uint64_t metric, double value) noexcept {
  Series** const all = thread.regions->series;
  Series* series = all == nullptr || metric > most_metrics ? nullptr : all[metric];
  if (__builtin_expect(series == nullptr, 0)) series = add_series(thread, metric);
  if (series != nullptr) add_value(*series, key, now(), value);
}

// Our sums may raise floating-point exceptions, for which the application may have enabled traps, or whose flags it may
// read.  This function therefore masks traps and restores the flags.
template <bool in_series>
inline __attribute__((always_inline)) void add_to_metric(Thread& thread, std::uint64_t metric, double value) noexcept {
  const RegionUpdate updating_regions(thread);
  if (__builtin_expect(!updating_regions, 0)) return;
  // A thread that only records values has no call or region at whose end it would clear its counters.
  if (__builtin_expect(thread.clears != clears.load(std::memory_order_relaxed), 0)) forget_before_value(thread);
  Regions* const regions = thread.regions != nullptr ? thread.regions : enter_regions(thread);
  if (regions == nullptr) return;
  const Frame& frame = regions->frames[regions->depth];
  if (is_paused(pauses.changes.load(std::memory_order_acquire)) || frame.in_region == uncounted_region) return;
  const RegionKey key = make_region_key(frame.region, frame.execution, frame.iteration);
  MetricCell& cell = *find_cell(regions->metrics, key, metric);
  std::uint64_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  if (((bits >> 52) & 0x7ff) == 0x7ff) {
    ++cell.not_finite;
    return;
  }
  {
    const QuietSum quiet;
    if (cell.count == 0 || value < cell.min) cell.min = value;
    if (cell.count == 0 || value > cell.max) cell.max = value;
    cell.sum += value;
    cell.last = value;
    ++cell.count;
  }
  if constexpr (in_series) store_value(thread, key, metric, value);
}

}  // namespace

void record_value(Thread& thread, std::uint64_t metric, double value) noexcept {
  add_to_metric<false>(thread, metric, value);
}
void record_in_series(Thread& thread, std::uint64_t metric, double value) noexcept {
  add_to_metric<true>(thread, metric, value);
}

}  // namespace commlens
