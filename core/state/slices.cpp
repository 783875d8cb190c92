// SPDX-License-Identifier: Apache-2.0
#include "core/state/slices.h"

#include <algorithm>
#include <atomic>
#include <new>

#include "core/arena/arena.h"
#include "core/base/memory.h"
#include "core/state/events.h"
#include "core/state/regions.h"
#include "core/state/sums.h"
#include "core/state/thread_owners.h"

namespace commlens {

// The sum over a thread's cells of one communicator and procedure, when it was last logged.
struct SliceSum {
  Key key;  // 0: free
  std::uint64_t calls;
  Ticks time;
  std::uint64_t bytes_sent, bytes_received;
  // The current sum, while cells are added up:
  std::uint64_t calls_now;
  Ticks time_now;
  std::uint64_t sent_now, received_now;
};

namespace {

constexpr std::size_t block_bytes = 16 << 10;
constexpr std::uint64_t first_sums = 64;
// Minimum slice length per cell: 27 us at 2.4 GHz.  Scanning a cell takes up to 0.1 us; the scan therefore costs at
// most 0.4 %.
constexpr Ticks ticks_a_cell = Ticks{1} << 16;
constexpr Ticks never = 0;
constexpr Ticks at_once = 1;

std::atomic<Ticks> epoch{0};

// Returns when the current slice of a thread ends.  A thread that counts events checks this at the end of every call
// and region: its Thread::due() is always at_once.
Ticks slice_end(const Thread& thread) noexcept {
  return thread.events == nullptr ? thread.due() : thread.events->slice_end;
}
void end_slice_at(Thread& thread, Ticks when) noexcept {
  if (thread.events == nullptr) {
    thread.wait_until(when);
  } else {
    thread.events->slice_end = when;
    thread.wait_until(at_once);
  }
  // Another thread may have asked it to clear its counters just before: that is overwritten now.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (thread.clears != clears.load()) thread.wait_until(at_once);
}

// When memory is short, a thread's slices end for good.  Counters cannot be compared again later, because some were
// added up already, and cells may have left the index.
bool have_stopped(const SliceLog& log) noexcept { return (log.slot & slices_ended) != 0; }
void stop(Thread& thread) noexcept {
  thread.slices.slot |= slices_ended;
  end_slice_at(thread, never);
}

SliceSum* sum_of(SliceLog& log, Key key) noexcept;

// Replaces the table by one of `capacity`, which is large enough, without the sums for which leaves() is true.  Returns
// false when there is no memory.
template <class Leaves>
bool renew_sums(SliceLog& log, std::uint64_t capacity, Leaves leaves) noexcept {
  auto* const sums = static_cast<SliceSum*>(map_memory(capacity * sizeof(SliceSum)));
  if (sums == nullptr) return false;
  SliceSum* const old = log.sums;
  const std::uint64_t old_capacity = log.capacity;
  log.sums = sums;
  log.capacity = capacity;
  log.used = 0;
  for (std::uint64_t i = 0; i < old_capacity; ++i) {
    if (old[i].key != 0 && !leaves(old[i])) *sum_of(log, old[i].key) = old[i];
  }
  if (old != nullptr) unmap_memory(old, old_capacity * sizeof(SliceSum));
  return true;
}

// Returns the sum of a key, new if necessary; null when there is no memory.
SliceSum* sum_of(SliceLog& log, Key key) noexcept {
  const auto none_leaves = [](const SliceSum&) { return false; };
  if (log.used * 2 >= log.capacity && !renew_sums(log, std::max(first_sums, log.capacity * 2), none_leaves))
    return nullptr;
  const std::uint64_t mask = log.capacity - 1;
  std::uint64_t i = hash_of(key, 0) & mask;
  for (; log.sums[i].key != 0; i = (i + 1) & mask) {
    if (log.sums[i].key == key) return &log.sums[i];
  }
  ++log.used;
  log.sums[i].key = key;
  return &log.sums[i];
}

// Returns a block with room for `at_least` entries, a spare one if possible; null when there is no memory.
SliceBlock* new_block(Thread& thread, Ticks width, std::uint64_t generation, SliceBlock* next,
                      std::uint64_t at_least) noexcept {
  for (SliceBlock** at = &thread.slices.spare; *at != nullptr; at = &(*at)->next) {
    SliceBlock* const block = *at;
    if (block->capacity < at_least) continue;
    *at = block->next;
    block->width = width;
    block->next = next;
    __atomic_store_n(&block->generation, generation, __ATOMIC_RELEASE);
    return block;
  }
  const std::size_t bytes = std::max(block_bytes, sizeof(SliceBlock) + at_least * sizeof(SliceEntry));
  auto* const block = static_cast<SliceBlock*>(arena::allocate(arena::Kind::slices, bytes, thread.number));
  if (block == nullptr) return nullptr;
  block->width = width;
  block->capacity = (bytes - sizeof(SliceBlock)) / sizeof(SliceEntry);
  block->next = next;
  __atomic_store_n(&block->generation, generation, __ATOMIC_RELEASE);
  return block;
}

SliceEntry* entries_of(SliceBlock* block) noexcept { return reinterpret_cast<SliceEntry*>(block + 1); }

bool append(Thread& thread, const SliceEntry& entry) noexcept {
  SliceBlock*& newest = thread.slices.newest;
  if (newest == nullptr || newest->count.load(std::memory_order_relaxed) == newest->capacity) {
    SliceBlock* const block =
        new_block(thread, thread.slices.width, newest == nullptr ? 1 : newest->generation, newest, 0);
    if (block == nullptr) return false;
    newest = block;
  }
  const std::uint64_t at = newest->count.load(std::memory_order_relaxed);
  entries_of(newest)[at] = entry;
  newest->count.store(at + 1, std::memory_order_release);
  ++thread.slices.entries;
  return true;
}

// Adds the times of the thread's regions until `at` to the current sums.
bool add_regions(Thread& thread, Ticks at) noexcept {
  const Regions* const regions = thread.regions;
  if (regions == nullptr) return true;
  bool done = true;
  const auto add = [&](std::uint32_t region, std::uint64_t calls, Ticks time) {
    SliceSum* const sum = sum_of(thread.slices, region_slice_key(region));
    done = done && sum != nullptr;
    if (sum == nullptr) return;
    sum->calls_now += calls;
    sum->time_now += time;
  };
  each_cell(regions->cells, [&add](const RegionCell& cell) {
    if (!counts_iterations(cell.key)) add(region_of(cell.key), cell.calls, cell.time - cell.nested);
  });
  each_open(regions->frames, regions->depth, counted_time(at),
            [&](std::uint32_t region, Ticks time) { add(region, 0, time); });
  return done;
}

bool add_now(SliceLog& log, const Cell& cell) noexcept {
  if (region_of_key(cell.key) == uncounted_region) return true;
  SliceSum* const sum = sum_of(log, slice_key(cell.key));
  if (sum == nullptr) return false;
  sum->calls_now += cell.calls;
  sum->time_now += cell.time;
  sum->sent_now += cell.bytes_sent;
  sum->received_now += cell.bytes_received;
  return true;
}

// Logs the difference between the current and the last sum, and stores the current one as the last.
bool append_new(Thread& thread, SliceSum& sum, std::uint64_t slot) noexcept {
  // If the thread began or ended regions after the end of the run, a larger time may have been logged.
  if (sum.time_now < sum.time) sum.time_now = sum.time;
  const SliceEntry entry{sum.key,
                         slot,
                         sum.calls_now - sum.calls,
                         sum.time_now - sum.time,
                         sum.sent_now - sum.bytes_sent,
                         sum.received_now - sum.bytes_received};
  sum.calls = sum.calls_now;
  sum.time = sum.time_now;
  sum.bytes_sent = sum.sent_now;
  sum.bytes_received = sum.received_now;
  sum.calls_now = sum.time_now = sum.sent_now = sum.received_now = 0;
  const bool is_empty = (entry.calls | entry.time | entry.bytes_sent | entry.bytes_received) == 0;
  return is_empty || append(thread, entry);
}

// Logs what a thread has counted by `at` since it was last logged.  Returns false when there is no memory.
bool note(Thread& thread, std::uint64_t slot, Ticks at) noexcept {
  SliceLog& log = thread.slices;
  const Table& table = thread.table;
  bool done = true;
  each_indexed(table, [&](const Cell& cell) { done = done && add_now(log, cell); });
  if (!done || (table.overflow.calls != 0 && !add_now(log, table.overflow))) return false;
  if (!add_regions(thread, at)) return false;
  for (std::uint64_t i = 0; i < log.capacity; ++i) {
    if (log.sums[i].key != 0 && !append_new(thread, log.sums[i], slot)) return false;
  }
  return true;
}

// Merges entries of equal key and slot, and sorts them.  Sorting needs no allocation, unlike a tree.
void add_up(std::vector<SliceEntry>& entries) {
  std::sort(entries.begin(), entries.end(),
            [](const SliceEntry& a, const SliceEntry& b) { return a.key != b.key ? a.key < b.key : a.slot < b.slot; });
  std::size_t kept = 0;
  for (const SliceEntry& entry : entries) {
    if (kept != 0 && entries[kept - 1].key == entry.key && entries[kept - 1].slot == entry.slot) {
      add_counters(entries[kept - 1], entry);
    } else {
      entries[kept++] = entry;
    }
  }
  entries.resize(kept);
}

// Doubles the slice width if necessary, once or several times, for three reasons: `slot` is beyond the last slice; the
// slices are too short compared with the time to scan all cells; or many communicators make the log long, and some
// slices remain after merging.  Returns false when there is no memory.
bool widen(Thread& thread, std::uint64_t slot) noexcept try {
  SliceLog& log = thread.slices;
  int doublings = 0;
  for (; slot >> doublings >= max_slices || log.width << doublings < thread.table.used * ticks_a_cell; ++doublings) {
  }
  constexpr std::uint64_t long_log = 1 << 13;  // entries: 384 KiB
  constexpr std::uint64_t some_slices = 8;
  if (doublings == 0 && log.entries > long_log && slot >= some_slices) doublings = 1;
  if (doublings == 0) return true;
  if (log.newest == nullptr) {
    log.width <<= doublings;
    return true;
  }
  SliceLogContent sliced = slices_of(thread);
  for (SliceEntry& entry : sliced.entries) entry.slot >>= doublings;
  add_up(sliced.entries);
  SliceBlock* const old = log.newest;
  SliceBlock* const block = new_block(thread, log.width << doublings, 0, nullptr, sliced.entries.size() * 2);
  if (block == nullptr) return false;
  log.width <<= doublings;
  std::copy(sliced.entries.begin(), sliced.entries.end(), entries_of(block));
  block->count.store(sliced.entries.size(), std::memory_order_relaxed);
  // A reader of the arena takes the newest generation that is complete.
  __atomic_store_n(&block->generation, old->generation + 1, __ATOMIC_RELEASE);
  log.newest = block;
  log.entries = sliced.entries.size();
  for (SliceBlock* b = old; b != nullptr;) {
    SliceBlock* const next = b->next;
    b->generation = 0;
    b->count.store(0, std::memory_order_relaxed);
    b->next = log.spare;
    log.spare = b;
    b = next;
  }
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

}  // namespace

void begin_slices(Ticks start) noexcept { epoch.store(start); }

namespace {

// Logs the time from `from` to `to` for something in progress: one entry for each slice that has ended by `to`.
// Returns false when there is no memory.
bool spread(Thread& thread, Key key, Ticks from, Ticks to) noexcept {
  SliceLog& log = thread.slices;
  const Ticks origin = epoch.load();
  SliceSum* const sum = sum_of(log, key);
  if (sum == nullptr) return false;
  const std::uint64_t slot = (to - origin) / log.width;
  for (std::uint64_t s = (from - origin) / log.width; s < slot; ++s) {
    const Ticks begin = std::max(from, origin + s * log.width), end = origin + (s + 1) * log.width;
    if (!append(thread, {key, s, 0, end - begin, 0, 0})) return false;
    sum->time += end - begin;  // already logged when the cell is compared next
  }
  return true;
}

// Logs what was counted in the current slice, and moves on to the slice of `now`.  Returns false when there is no
// memory.
bool advance(Thread& thread, Ticks now) noexcept {
  SliceLog& log = thread.slices;
  const Ticks origin = epoch.load();
  if (log.width == 0) log.width = first_slice_width;
  log.logged_until = now;
  // No region has begun or ended since the end of the old slice: the innermost one was running.
  const Ticks over = std::min(now, origin + (log.slot + 1) * log.width);
  if (!note(thread, log.slot, over) || !widen(thread, (now - origin) / log.width)) return false;
  log.slot = (now - origin) / log.width;
  const Regions* const regions = thread.regions;
  std::uint32_t depth = regions == nullptr ? 0 : regions->depth;
  while (depth > 0 && regions->frames[depth].key == 0) --depth;
  if (depth == 0) return true;
  const Frame& innermost = regions->frames[depth];
  // If only part of this time counts, its slices are unknown: it is attributed to the current slice.
  const bool all_counts = counted_time(now) - std::max(counted_time(over), innermost.start) == now - over;
  return !all_counts || spread(thread, region_slice_key(innermost.region), over, now);
}

// Clears the thread's counters if another thread has requested it.  Returns whether the current slice has ended: false
// before the first one has begun, and if the thread is here for its events only.
bool clear_and_check_end(Thread& thread, Ticks now) noexcept {
  forget_if_asked(thread);
  if (have_stopped(thread.slices)) {
    end_slice_at(thread, never);  // another thread has asked for something
    return false;
  }
  const Ticks origin = epoch.load();
  if (origin == 0) end_slice_at(thread, at_once);
  if (origin == 0 || now < origin) return false;
  return thread.events == nullptr || (slice_end(thread) != never && now >= slice_end(thread));
}

void wait_for_next(Thread& thread) noexcept {
  const SliceLog& log = thread.slices;
  end_slice_at(thread, epoch.load() + (log.slot + 1) * log.width);
}

}  // namespace

void end_slice_after_call(Thread& thread, Key key, Ticks spent) noexcept {
  const Ticks end = thread.current.since + spent;
  if (counts_events()) note_events(thread, event_key(key));
  thread.current.since += left_out(thread.current.since, end);
  if (!clear_and_check_end(thread, end)) return;
  note_own_name(thread);
  // The call to be counted ends here; its earlier time belongs to slices that have ended.
  const bool counts = region_of_key(key) != uncounted_region;
  if (advance(thread, end) &&
      (!counts || spread(thread, slice_key(key), std::max(thread.current.since, epoch.load()), end))) {
    wait_for_next(thread);
  } else {
    stop(thread);
  }
}

void end_slice_at_region(Thread& thread, Ticks now) noexcept {
  if (counts_events()) note_events_outside(thread);
  if (clear_and_check_end(thread, now)) {
    if (advance(thread, now)) {
      wait_for_next(thread);
    } else {
      stop(thread);
    }
  }
  // In a callback of an MPI call: makes the end of that call check again, because its counters may have been cleared or
  // counting may have been paused.
  if (thread.outermost != nullptr) thread.wait_until(at_once);
}

void finish_slices(Thread& thread, Ticks end) noexcept {
  forget_if_asked(thread);
  if (have_stopped(thread.slices) || epoch.load() == 0) return;
  if (thread.slices.width == 0) thread.slices.width = first_slice_width;
  const bool is_in_last = thread.regions == nullptr || end <= epoch.load() || advance(thread, end);
  if (!is_in_last || !note(thread, thread.slices.slot, end)) stop(thread);
}

bool leave_slices(Thread& thread, const FreedComms& freed) noexcept {
  SliceLog& log = thread.slices;
  if (have_stopped(log)) return true;
  if (epoch.load() == 0) return false;
  if (log.width == 0) log.width = first_slice_width;
  const auto leaves = [&freed](const SliceSum& sum) {
    return !is_of_region(sum.key) && freed.has(comm_of_key(sum.key));
  };
  bool done = true;
  each_indexed(thread.table, [&](const Cell& cell) {
    if (freed.has(comm_of_key(cell.key))) done = done && add_now(log, cell);
  });
  std::uint64_t staying = 0;
  for (std::uint64_t i = 0; i < log.capacity && done; ++i) {
    SliceSum& sum = log.sums[i];
    if (sum.key == 0) continue;
    if (leaves(sum)) {
      done = append_new(thread, sum, log.slot);
    } else {
      ++staying;
    }
  }
  std::uint64_t capacity = first_sums;
  while (staying * 3 > capacity) capacity *= 2;
  done = done && (staying == log.used || renew_sums(log, capacity, leaves));
  if (!done) stop(thread);
  return true;
}

void forget_slices(Thread& thread) noexcept {
  SliceLog& log = thread.slices;
  for (SliceBlock* b = log.newest; b != nullptr; b = b->next) b->count.store(0, std::memory_order_relaxed);
  log.entries = 0;
  for (std::uint64_t i = 0; i < log.capacity; ++i) {
    SliceSum& sum = log.sums[i];
    sum.calls = sum.time = sum.bytes_sent = sum.bytes_received = 0;
  }
}

SliceLogContent slices_of(const Thread& thread) {
  SliceLogContent sliced;
  if (thread.slices.width != 0) sliced.width = thread.slices.width;
  for (SliceBlock* b = thread.slices.newest; b != nullptr; b = b->next) {
    sliced.entries.insert(sliced.entries.end(), entries_of(b),
                          entries_of(b) + b->count.load(std::memory_order_acquire));
  }
  return sliced;
}

SliceLogContent added_up(const std::vector<SliceLogContent>& all) {
  SliceLogContent sum;
  std::size_t entries = 0;
  for (const SliceLogContent& one : all) {
    sum.width = std::max(sum.width, one.width);
    entries += one.entries.size();
  }
  sum.entries.reserve(entries);
  for (const SliceLogContent& one : all) {
    const std::uint64_t times = sum.width / one.width;
    for (const SliceEntry& entry : one.entries) {
      sum.entries.push_back(entry);
      sum.entries.back().slot /= times;
    }
  }
  add_up(sum.entries);
  return sum;
}

}  // namespace commlens
