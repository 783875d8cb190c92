// SPDX-License-Identifier: Apache-2.0
#include "core/hot/thread.h"

namespace commlens {

Cell* record(Thread& thread, Key key, Site site, Ticks spent, std::uint64_t sent, std::uint64_t received) noexcept {
  // Without a slice to come `due` is 0, and this is never true.
  const Ticks end = thread.doing.since + spent;
  if (__builtin_expect(end > thread.due() - 1, 0)) {
    slice_ended(thread, key, spent);
    spent = end - thread.doing.since;  // without what did not count
  }
  Cell* const cell = find_cell(thread.table, key, site);
  add_call(*cell, spent, sent, received);
  thread.mpi += region_of_key(key) == uncounted_region ? 0 : spent;
  return cell;
}

}  // namespace commlens
