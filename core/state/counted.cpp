// SPDX-License-Identifier: Apache-2.0
#include "core/state/counted.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "core/state/paths.h"
#include "core/state/series.h"
#include "core/state/sites.h"
#include "core/state/sums.h"
#include "core/state/threads.h"

namespace commlens {

void add_cell_to(Cells& cells, const Cell& cell) {
  Cell& sum = cells[{cell.key, cell.site}];
  sum.key = cell.key;
  sum.site = cell.site;
  add_calls(sum, cell);
}

Counted counted_here(const Registry& registry, Ticks end) {
  Counted counted;
  counted.scale = TickScale::since_start();
  const auto add_lost = [&counted](const Cell& cell) {
    counted.lost += cell.calls;
    if (cell.calls != 0) add_cell_to(counted.cells, cell);
  };
  counted.regions = region_names();
  counted.notices = notices();
  if (std::optional<std::string> text = full_table_of_paths())
    counted.notices.push_back({Notice::paths, std::move(*text)});
  std::vector<Sliced> slices;
  for (Thread* t = first_thread(); t != nullptr; t = t->next) {
    // A thread may have begun or ended regions after the end of the run: what it has logged since then is included.
    const Ticks until = t->regions == nullptr ? end : std::max({end, t->regions->last, t->slices.logged_until});
    finish_slices(*t, until);
    slices.push_back(slices_of(*t));
    each_cell(t->table, [&counted](const Cell& cell) {
      if (is_reported(cell)) add_cell_to(counted.cells, cell);
    });
    if (t->regions != nullptr) {
      const auto add = [&counted](const auto& cell) { counted.regions.add(cell); };
      each_cell(t->regions->cells, add);
      each_cell(t->regions->metrics, add);
      each_cell(t->regions->loops, add);
      each_value(*t, [&](std::uint64_t metric, const SeriesValue& v) { counted.regions.add(metric, t->number, v); });
      counted.regions.add_open(t->regions->frames, t->regions->depth, t->mpi, counted_time(until),
                               pauses.changes.load());
    }
    add_lost(t->table.overflow);
  }
  each_peer([&counted](const PeerCell& cell) { add_peer_to(counted.peers, cell); });
  counted.samples = samples_here();
  counted.messages = messages_here();
  counted.slices = added_up(slices);
  add_lost(lost_calls());
  for (const CommRecord& record : registry.records()) counted.comms.push_back(&record);
  counted.place = [](Site site) {
    if (const SiteFacts* const python = python_place(site)) return *python;
    const Module* const m = module_of_site(site);
    const Site address = address_of(site);
    return m == nullptr ? SiteFacts{"", "", address} : SiteFacts{m->path, m->build_id, address - m->base};
  };
  counted.caller = caller_of;
  return counted;
}

}  // namespace commlens
