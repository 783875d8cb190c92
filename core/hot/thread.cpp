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

// What record() may have to do before it counts.  By themselves, so that record() keeps nothing across a call.
__attribute__((noinline, cold)) Cell* record_first(Thread& thread, Key key, Site site, Ticks spent, std::uint64_t sent,
                                                   std::uint64_t received) noexcept {
  return add(thread, find_cell(thread.table, key, site), key, spent, sent, received);
}

__attribute__((noinline, cold)) Cell* record_late(Thread& thread, Key key, Site site, Ticks spent, std::uint64_t sent,
                                                  std::uint64_t received) noexcept {
  const Ticks end = thread.doing.since + spent;
  slice_ended(thread, key, spent);
  spent = end - thread.doing.since;  // without what did not count
  return record_first(thread, key, site, spent, sent, received);
}

}  // namespace

Cell* record(Thread& thread, Key key, Site site, Ticks spent, std::uint64_t sent, std::uint64_t received) noexcept {
  if (__builtin_expect(thread.is_due(thread.doing.since + spent), 0)) {
    return record_late(thread, key, site, spent, sent, received);
  }
  Cell* const cell = known_cell(thread.table, key, site);
  if (__builtin_expect(cell == nullptr, 0)) return record_first(thread, key, site, spent, sent, received);
  return add(thread, cell, key, spent, sent, received);
}

}  // namespace commlens
