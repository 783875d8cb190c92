// SPDX-License-Identifier: Apache-2.0
#include "core/hot/thread.h"

namespace commlens {

namespace {

inline Cell* add(Thread& thread, Cell* cell, Key key, Ticks spent, std::uint64_t sent,
                 std::uint64_t received) noexcept {
  add_call(*cell, spent, sent, received);
  if (__builtin_expect(region_of_key(key) != uncounted_region, 1)) thread.mpi += spent;
  return cell;
}

// The rare part of record(), before it counts.  Not inlined, so that record() saves no registers across a call.
__attribute__((noinline, cold)) Cell* record_first(Thread& thread, Key key, Site site, Ticks spent, std::uint64_t sent,
                                                   std::uint64_t received) noexcept {
  return add(thread, find_cell(thread.table, key, site), key, spent, sent, received);
}

__attribute__((noinline, cold)) Cell* record_late(Thread& thread, Key key, Site site, Ticks spent, std::uint64_t sent,
                                                  std::uint64_t received) noexcept {
  const Ticks end = thread.current.since + spent;
  end_slice_after_call(thread, key, spent);
  spent = end - thread.current.since;  // without the time that did not count
  return record_first(thread, key, site, spent, sent, received);
}

}  // namespace

Cell* record(Thread& thread, Key key, Site site, Ticks spent, std::uint64_t sent, std::uint64_t received) noexcept {
  if (__builtin_expect(thread.is_due(thread.current.since + spent), 0)) {
    return record_late(thread, key, site, spent, sent, received);
  }
  Cell* const cell = known_cell(thread.table, key, site);
  if (__builtin_expect(cell == nullptr, 0)) return record_first(thread, key, site, spent, sent, received);
  return add(thread, cell, key, spent, sent, received);
}

Cell* record_untimed(Thread& thread, Key key, Site site, Ticks end, std::uint64_t sent,
                     std::uint64_t received) noexcept {
  if (thread.is_due(end)) end_slice_after_call(thread, key, 0);
  const Key untimed = untimed_key(key);
  Cell* const cell = find_cell(thread.table, untimed != 0 ? untimed : key, site);
  cell->calls += 1;
  cell->bytes_sent += sent;
  cell->bytes_received += received;
  return cell;
}

CachedCall* slot_to_fill(Thread& thread, CachedCall& place, CachedCall* same, std::uint64_t freed) noexcept {
  CallCache& call_cache = *thread.call_cache;
  if (&call_cache == &CallCache::none) return nullptr;
  if (same != nullptr) return call_cache.count_miss() ? same : nullptr;
  if (call_cache.last_freed != freed) {
    call_cache.last_freed = freed;
    call_cache.misses_since_freed = 0;
  }
  ++call_cache.misses_since_freed;
  const auto is_good = [freed](const CachedCall& r) { return r.subject != 0 && r.freed == freed; };
  CachedCall* at = &place;
  if (is_good(*at)) at = &CallCache::neighbor(place);
  if (is_good(*at)) {
    const std::uint64_t places = call_cache.mask / sizeof(CachedCall) + 1;
    if (places < CallCache::most && ++call_cache.conflicts > 4 * places) {
      call_cache.conflicts = 0;
      grow_call_cache(thread);
      return nullptr;
    }
    if ((call_cache.misses & 8) != 0) at = &place;
  } else if (call_cache.misses_since_freed > CallCache::settled_misses) {
    return at;
  }
  return call_cache.count_miss() ? at : nullptr;
}

}  // namespace commlens
