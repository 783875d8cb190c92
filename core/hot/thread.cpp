// SPDX-License-Identifier: Apache-2.0
#include "core/hot/thread.h"

namespace commlens {

Cell* record(Thread& thread, Key key, Site site, Ticks spent, std::uint64_t sent, std::uint64_t received) noexcept {
  // Without a slice to come `due` is 0, and this is never true.
  if (__builtin_expect(thread.doing.since + spent > thread.due - 1, 0)) slice_ended(thread, key, spent);
  Cell* const cell = find_cell(thread.table, key, site);
  add_call(*cell, spent, sent, received);
  return cell;
}

}  // namespace commlens
