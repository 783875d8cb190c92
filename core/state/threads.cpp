// SPDX-License-Identifier: Apache-2.0
#include "core/state/threads.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <mutex>
#include <new>
#include <type_traits>
#include <utility>

#include "core/arena/arena.h"
#include "core/base/locks.h"
#include "core/base/memory.h"
#include "core/hot/requests.h"
#include "core/state/datatypes.h"
#include "core/state/events.h"
#include "core/state/freed_comms.h"
#include "core/state/paths.h"
#include "core/state/peers.h"
#include "core/state/regions.h"
#include "core/state/sites.h"
#include "core/state/slices.h"
#include "core/state/sums.h"
#include "core/state/thread_owners.h"

namespace commlens {

__thread Thread* current_thread = nullptr;
bool is_first_thread_alone = true;
CallCache CallCache::none;

namespace {

constexpr Key no_key = make_key(0, 0, 0, 0);

// How tables grow, for each type of cell.
template <class C>
struct Growth;
template <>
struct Growth<Cell> {
  static constexpr arena::Kind kind = arena::Kind::cells;
  static constexpr std::uint64_t first_capacity = 1024;  // index entries: 8 KiB
  static constexpr std::size_t segment_cells = 256;      // 16 KiB
};
template <>
struct Growth<RegionCell> {
  static constexpr arena::Kind kind = arena::Kind::regions;
  static constexpr std::uint64_t first_capacity = 512;
  static constexpr std::size_t segment_cells = 64;
};
template <>
struct Growth<MetricCell> {
  static constexpr arena::Kind kind = arena::Kind::metrics;
  static constexpr std::uint64_t first_capacity = 512;
  static constexpr std::size_t segment_cells = 64;
};
template <>
struct Growth<LoopCell> {
  static constexpr arena::Kind kind = arena::Kind::loops;
  static constexpr std::uint64_t first_capacity = 512;
  static constexpr std::size_t segment_cells = 8;
};
template <>
struct Growth<PeerCell> {
  static constexpr arena::Kind kind = arena::Kind::peers;
  static constexpr std::uint64_t first_capacity = 512;
  static constexpr std::size_t segment_cells = 128;
};
template <>
struct Growth<EventCell> {
  static constexpr arena::Kind kind = arena::Kind::events;
  static constexpr std::uint64_t first_capacity = 512;
  static constexpr std::size_t segment_cells = 64;
};

std::mutex& mutex = locks::threads;
std::atomic<Thread*> all{nullptr};
Thread* idle = nullptr;
std::atomic<int> count{0};
std::uint32_t tables = 0;
pthread_key_t at_exit;
bool at_exit_made = false;

// A thread without memory for a Thread counts all its calls here, in the overflow cell.  When it ends, they are added
// to `lost`.
__thread Thread reserve{};
Cell lost;

void leave_thread(void* t) {
  forget_callers();
  const std::lock_guard<std::mutex> lock(mutex);
  if (t == &reserve) {
    add_calls(lost, reserve.table.overflow);
    reserve.table.overflow.calls = 0;
    leave_events(reserve);
    current_thread = nullptr;
    return;
  }
  Thread& thread = *static_cast<Thread*>(t);
  end_regions(thread);
  leave_events(thread);
  note_own_name(thread);
  thread.has_ended = true;
  if (thread.owner.kind != ThreadOwner::one) {
    thread.next_idle = idle;
    idle = &thread;
  }
  current_thread = nullptr;
}

template <class C>
void place_in(C** index, std::uint64_t mask, C& cell) noexcept {
  std::uint64_t i = hash_of(cell.key, cell.site) & mask;
  while (index[i] != nullptr) i = (i + 1) & mask;
  index[i] = &cell;
}

std::uint32_t comm_of(const Cell& cell) noexcept { return comm_of_key(cell.key); }
std::uint32_t comm_of(const PeerCell& cell) noexcept { return comm_of_peer(cell.key); }

// Replaces the index by one of the same size or larger, without the cells for which leaves() is true.  Returns false
// when there is no memory.
template <class C, class Leaves>
bool renew_index(TableOf<C>& table, Leaves leaves) noexcept {
  std::uint64_t staying = 0;
  each_indexed(table, [&](const C& cell) { staying += leaves(cell) ? 0 : 1; });
  const bool is_first = table.index == TableOf<C>::nothing;
  std::uint64_t capacity = is_first ? Growth<C>::first_capacity : table.mask + 1;
  while (staying * 3 > capacity) capacity *= 2;  // leaves room for many cells before the next time
  auto* const index = static_cast<C**>(map_memory(capacity * sizeof(C*)));
  if (index == nullptr) return false;
  each_indexed(table, [&](C& cell) {
    if (!leaves(cell)) place_in(index, capacity - 1, cell);
  });
  if (!is_first) unmap_memory(const_cast<C**>(table.index), (table.mask + 1) * sizeof(C*));
  table.index = index;
  table.mask = capacity - 1;
  table.left_out += table.used - staying;
  table.used = staying;
  return true;
}

template <class C>
bool grow_index(TableOf<C>& table, const C& coming) noexcept {
  if constexpr (std::is_same_v<C, Cell> || std::is_same_v<C, PeerCell>) {
    const FreedComms freed(comm_of(coming));
    bool may_leave = true;
    if constexpr (std::is_same_v<C, Cell>) {
      // Slices are computed from the cells in the index: cells may leave it only after they were logged.
      may_leave = current_thread != nullptr && &table == &current_thread->table && leave_slices(*current_thread, freed);
      if (may_leave) current_thread->call_cache->forget();
    }
    return renew_index(table, [&](const C& cell) { return may_leave && freed.has(comm_of(cell)); });
  } else {
    return renew_index(table, [](const C&) { return false; });
  }
}

// Returns an empty call cache; null when there is no memory.
CallCache* new_call_cache(std::uint64_t places) noexcept {
  auto* const call_cache = static_cast<CallCache*>(map_memory(sizeof(CallCache) + (places - 2) * sizeof(CachedCall)));
  if (call_cache == nullptr) return nullptr;
  call_cache->mask = (places - 1) * sizeof(CachedCall);
  call_cache->last = call_cache->call;
  call_cache->random = now() ^ reinterpret_cast<std::uintptr_t>(call_cache);  // different on each rank
  return call_cache;
}

}  // namespace

void leave_to_parent() noexcept {
  if (at_exit_made) pthread_setspecific(at_exit, nullptr);
}

// Does not free the old cache: a call in progress may hold a pointer to one of its entries.
void grow_call_cache(Thread& thread) noexcept {
  CallCache* const more = new_call_cache(CallCache::most);
  if (more == nullptr) return;
  std::copy(std::begin(thread.call_cache->posted), std::end(thread.call_cache->posted), more->posted);
  thread.call_cache = more;
}

void store_requests_plainly() noexcept {
  const std::lock_guard<std::mutex> lock(mutex);
  RequestTable::set_for_one_thread(is_first_thread_alone);
}

Thread* enter_thread() noexcept {
  const std::lock_guard<std::mutex> lock(mutex);
  static bool is_first = true;
  if (!is_first) {
    __atomic_store_n(&is_first_thread_alone, false, __ATOMIC_RELAXED);
    RequestTable::set_for_one_thread(false);
  }
  is_first = false;
  if (!at_exit_made) at_exit_made = pthread_key_create(&at_exit, leave_thread) == 0;
  Thread* t = idle;
  if (t != nullptr) {
    idle = t->next_idle;
    end_regions(*t);  // open regions of the previous thread, if its end found regions closed
    t->outermost = nullptr;
    t->count_in(region_outside());
    t->has_ended = false;
  } else {
    void* const memory = arena::allocate(arena::Kind::thread, sizeof(Thread), tables);
    if (memory == nullptr) {
      reserve.table.overflow.key = no_key;
      reserve.number = ~std::uint32_t{0};  // shares no channel with another thread
      reserve.nobody.channel = reserve.peers.overflow.channel = &CallCache::none.no_channel;
      if (at_exit_made) pthread_setspecific(at_exit, &reserve);
      current_thread = &reserve;
      return &reserve;
    }
    t = new (memory) Thread{};
    t->table.overflow.key = no_key;
    if (CallCache* const call_cache = new_call_cache(CallCache::first)) t->call_cache = call_cache;
    t->paths = new_path_cache();
    t->nobody.channel = t->peers.overflow.channel = &t->call_cache->no_channel;
    t->number = tables++;
    t->clears = clears.load();  // has nothing to clear
    t->wait_until(1);           // at the first call
    t->count_in(region_outside());
    t->next = all.load(std::memory_order_relaxed);
    all.store(t, std::memory_order_release);
  }
  // Another thread may have paused or resumed counting before it saw this one.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  while (t->region() != region_outside()) t->count_in(region_outside());
  note_owner(*t);
  use_path_cache(t->paths);
  count.fetch_add(1, std::memory_order_relaxed);
  if (at_exit_made) pthread_setspecific(at_exit, t);
  current_thread = t;
  return t;
}

namespace {

template <class C>
C* added_cell(TableOf<C>& table, Key key, Site site) noexcept {
  constexpr bool is_of_calls = std::is_same_v<C, Cell>;
  if constexpr (is_of_calls) {
    // Only the overflow cell of `reserve` is collected.
    if (&table == &reserve.table) return &table.overflow;
  }
  // The index is at most half full, so that probes stay short.  If it cannot grow, it fills up to the last free entry.
  C coming{};
  coming.key = key;
  if (table.used * 2 >= table.mask && !grow_index(table, coming) && table.used >= table.mask) {
    return &table.overflow;
  }
  if (table.free == table.segment_end) {
    const std::uint32_t owner = current_thread == nullptr ? 0 : current_thread->number;
    void* const memory = arena::allocate(Growth<C>::kind, Growth<C>::segment_cells * sizeof(C), owner);
    auto* const cells = static_cast<C*>(memory);
    if (cells == nullptr) return &table.overflow;
    if (table.spare == table.spare_end) {
      constexpr std::size_t page = smallest_page, in_a_page = page / sizeof(SegmentOf<C>);
      table.spare = static_cast<SegmentOf<C>*>(map_memory(page));
      table.spare_end = table.spare == nullptr ? nullptr : table.spare + in_a_page;
      if (table.spare == nullptr) return &table.overflow;
    }
    auto* const segment = new (table.spare++) SegmentOf<C>{cells, cells + Growth<C>::segment_cells, table.newest};
    table.newest = segment;
    table.free = segment->begin;
    table.segment_end = segment->end;
  }
  if constexpr (is_of_calls) {
    static_cast<void>(module_of_site(without_datatypes(site)));  // looks the module up while it is loaded
    if (current_thread != nullptr) note_own_name(*current_thread);
  }
  C* const cell = table.free++;
  cell->key = key;
  cell->site = site;
  place_in(const_cast<C**>(table.index), table.mask, *cell);
  ++table.used;
  return cell;
}

}  // namespace

Cell* add_cell(Table& table, Key key, Site site) noexcept { return added_cell(table, key, site); }
RegionCell* add_cell(TableOf<RegionCell>& table, Key key, Site site) noexcept { return added_cell(table, key, site); }
LoopCell* add_cell(TableOf<LoopCell>& table, Key key, Site site) noexcept { return added_cell(table, key, site); }
MetricCell* add_cell(TableOf<MetricCell>& table, Key key, Site site) noexcept { return added_cell(table, key, site); }
EventCell* add_cell(TableOf<EventCell>& table, Key key, Site site) noexcept { return added_cell(table, key, site); }

PeerCell* new_cell(TableOf<PeerCell>& table, PeerKey key, PeerPlace place) noexcept {
  return added_cell(table, key, place);
}

void* grow_scratch(Thread& t, std::size_t bytes) noexcept {
  std::size_t size = 4096;
  while (size < bytes) size *= 2;
  void* const memory = map_memory(size);
  if (memory == nullptr) return nullptr;
  if (t.scratch_bytes != 0) unmap_memory(t.scratch, t.scratch_bytes);
  t.scratch = memory;
  t.scratch_bytes = size;
  return memory;
}

// Another stack of the thread got memory of its own meanwhile.
void keep_one_scratch(Thread& t, void* memory, std::size_t bytes) noexcept {
  if (t.scratch_bytes < bytes) {
    std::swap(t.scratch, memory);
    std::swap(t.scratch_bytes, bytes);
  }
  if (bytes != 0) unmap_memory(memory, bytes);
}

Cell lost_calls() noexcept {
  const std::lock_guard<std::mutex> lock(mutex);
  if (current_thread == &reserve) {
    add_calls(lost, reserve.table.overflow);
    reserve.table.overflow.calls = 0;
  }
  lost.key = no_key;
  return lost;
}

std::uint64_t forgotten_requests() noexcept {
  std::uint64_t sum = 0;
  for (const Thread* t = first_thread(); t != nullptr; t = t->next) sum += t->forgotten;
  return sum;
}

Thread* first_thread() noexcept { return all.load(std::memory_order_acquire); }
int thread_count() noexcept { return count.load(std::memory_order_relaxed); }

}  // namespace commlens
