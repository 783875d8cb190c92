// SPDX-License-Identifier: Apache-2.0
#include "core/hot/table.h"

namespace commlens {

Cell* record(Table& table, Key key, Site site, Ticks spent, std::uint64_t sent, std::uint64_t received) noexcept {
  Cell* const cell = find_cell(table, key, site);
  add_call(*cell, spent, sent, received);
  return cell;
}

}  // namespace commlens
