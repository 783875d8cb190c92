// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

namespace commlens {

// Calls visit(i, parent) for each of `n` entries, after the visit of its parent, whatever its number.  Entry 0 is
// nobody's child.  Not recursive: a program may create communicators from communicators a million times.  The parents
// in a damaged arena may form a cycle; the visit breaks it at one entry, whose parent becomes 0.
template <class ParentOf, class Visit>
void each_behind_its_parent(std::size_t n, ParentOf parent_of, Visit visit) {
  enum State : char { unmet, met, done };
  std::vector<State> states(n, unmet);
  std::vector<std::size_t> way;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t at = i; states[at] == unmet; at = parent_of(at)) {
      states[at] = met;
      way.push_back(at);
    }
    for (; !way.empty(); way.pop_back()) {
      const std::size_t at = way.back(), parent = parent_of(at);
      visit(at, states[parent] == done ? parent : 0);
      states[at] = done;
    }
  }
}

}  // namespace commlens
