// SPDX-License-Identifier: Apache-2.0
#include "core/cold/counted.h"

#include <algorithm>

#include "core/cold/modules.h"
#include "core/cold/threads.h"

namespace commlens {

// A cell without calls holds bytes of requests another thread made.
void add_cell_to(Cells& cells, const Cell& cell) {
  Cell& sum = cells[{cell.key, cell.site}];
  sum.key = cell.key;
  sum.site = cell.site;
  if (cell.calls != 0) {
    sum.time_min = sum.calls == 0 ? cell.time_min : std::min(sum.time_min, cell.time_min);
    sum.time_max = std::max(sum.time_max, cell.time_max);
  }
  sum.calls += cell.calls;
  sum.time += cell.time;
  sum.bytes_sent += cell.bytes_sent;
  sum.bytes_received += cell.bytes_received;
}

Counted counted_here(const Registry& registry) {
  Counted counted;
  counted.scale = TickScale::since_start();
  const auto add_lost = [&counted](const Cell& cell) {
    counted.lost += cell.calls;
    if (cell.calls != 0) add_cell_to(counted.cells, cell);
  };
  std::vector<Sliced> slices;
  for (Thread* t = first_thread(); t != nullptr; t = t->next) {
    finish_slices(*t);
    slices.push_back(slices_of(*t));
    for (std::uint64_t i = 0; i < t->table.capacity; ++i) {
      if (t->table.index[i] != nullptr) add_cell_to(counted.cells, *t->table.index[i]);
    }
    add_lost(t->table.overflow);
  }
  counted.slices = added_up(slices);
  add_lost(lost_calls());
  for (const CommRecord& record : registry.records()) counted.comms.push_back(&record);
  counted.place = [](Site site) {
    const Module* const m = module_of_site(site);
    return m == nullptr ? SiteFacts{"", "", site} : SiteFacts{m->path, m->build_id, site - m->base};
  };
  return counted;
}

}  // namespace commlens
