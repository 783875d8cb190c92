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

// What record() does rarely, before it counts.  Not inlined, so that record() saves no registers across a call.
__attribute__((noinline, cold)) Cell* record_first(Thread& thread, Key key, Site site, Ticks spent, std::uint64_t sent,
                                                   std::uint64_t received) noexcept {
  return add(thread, find_cell(thread.table, key, site), key, spent, sent, received);
}

__attribute__((noinline, cold)) Cell* record_late(Thread& thread, Key key, Site site, Ticks spent, std::uint64_t sent,
                                                  std::uint64_t received) noexcept {
  const Ticks end = thread.doing.since + spent;
  slice_ended(thread, key, spent);
  spent = end - thread.doing.since;  // without the time that did not count
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

Repeat* place_to_keep(Thread& thread, Repeat& place, Repeat* same, std::uint64_t freed) noexcept {
  Repeats& repeats = *thread.repeats;
  if (&repeats == &Repeats::none) return nullptr;
  if (same != nullptr) return repeats.is_turn() ? same : nullptr;
  if (repeats.last_freed != freed) {
    repeats.last_freed = freed;
    repeats.since_freed = 0;
  }
  ++repeats.since_freed;
  const auto is_good = [freed](const Repeat& r) { return r.what != 0 && r.freed == freed; };
  Repeat* at = &place;
  if (is_good(*at)) at = &Repeats::beside(place);
  if (is_good(*at)) {
    const std::uint64_t places = repeats.mask / sizeof(Repeat) + 1;
    if (places < Repeats::most && ++repeats.crowded > 4 * places) {
      repeats.crowded = 0;
      grow_repeats(thread);
      return nullptr;
    }
    if ((repeats.unlike & 8) != 0) at = &place;
  } else if (repeats.since_freed > Repeats::calm) {
    return at;
  }
  return repeats.is_turn() ? at : nullptr;
}

}  // namespace commlens
