// SPDX-License-Identifier: Apache-2.0
#include "core/state/counted.h"

#include <string.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "core/state/paths.h"
#include "core/state/series.h"
#include "core/state/sites.h"
#include "core/state/sums.h"
#include "core/state/thread_owners.h"
#include "core/state/threads.h"

namespace commlens {

namespace {

void add_cell_to(Cells& cells, const Cell& cell) {
  const Site site = without_datatypes(cell.site);
  const Key key = timed_key(cell.key);
  CountedCell& sum = cells[{key, site}];
  sum.key = key;
  sum.site = site;
  if (is_untimed(cell.key)) {
    sum.untimed += cell.calls;
    sum.variance += std::ldexp(static_cast<double>(cell.time_max), variance_bits) + static_cast<double>(cell.time_min);
  } else if (cell.calls != 0) {
    const bool is_first = sum.calls == sum.untimed;
    sum.time_min = is_first ? cell.time_min : std::min(sum.time_min, cell.time_min);
    sum.time_max = std::max(sum.time_max, cell.time_max);
  }
  add_counters(sum, cell);
}

}  // namespace

void add_cell_to(Counted& counted, CountedThread* own, const Cell& cell) {
  counted.datatypes.add(cell);
  add_cell_to(counted.cells, cell);
  if (own != nullptr) add_cell_to(own->cells, cell);
}

CountedThread* add_thread(CountedThreads& threads, std::uint32_t number, const ThreadOwner& owner) {
  if (owner.kind == ThreadOwner::any) return nullptr;
  const bool is_alone = owner.kind == ThreadOwner::one && number < most_threads_apart;
  CountedThread& thread = threads[is_alone ? number : other_threads];
  thread.threads += owner.threads;
  if (!is_alone) return &thread;
  thread.id = owner.id;
  thread.is_main = owner.is_main != 0;
  thread.name.assign(owner.name, strnlen(owner.name, sizeof owner.name));
  return &thread;
}

namespace {

// Adds the threads for which there was no memory at all.
void add_lost_threads(CountedThreads& threads, const Cell& lost) {
  std::uint64_t known = 0;
  for (const auto& [number, thread] : threads) known += thread.threads;
  const auto all = static_cast<std::uint64_t>(thread_count());
  if (threads.empty() || (lost.calls == 0 && all <= known)) return;
  CountedThread& others = threads[other_threads];
  others.threads += all > known ? all - known : 0;
  if (lost.calls != 0) add_cell_to(others.cells, lost);
}

}  // namespace

Counted counted_here(const Registry& registry, Ticks end) {
  Counted counted;
  counted.scale = TickScale::since_start();
  const auto add_lost = [&counted](const Cell& cell, CountedThread* own) {
    counted.lost += cell.calls;
    if (cell.calls != 0) add_cell_to(counted, own, cell);
  };
  note_names();
  counted.regions = region_names();
  counted.datatypes = datatypes_here();
  counted.notices = notices();
  if (std::optional<std::string> text = full_table_of_paths())
    counted.notices.push_back({Notice::paths, std::move(*text)});
  std::vector<SliceLogContent> slices;
  for (Thread* t = first_thread(); t != nullptr; t = t->next) {
    // A thread may have begun or ended regions after the end of the run: what it has logged since then is included.
    const Ticks until = t->regions == nullptr ? end : std::max({end, t->regions->last, t->slices.logged_until});
    finish_slices(*t, until);
    slices.push_back(slices_of(*t));
    CountedThread* const own = add_thread(counted.threads, t->number, t->owner);
    each_cell(t->table, [&counted, own](const Cell& cell) {
      if (is_reported(cell)) add_cell_to(counted, own, cell);
    });
    if (t->regions != nullptr) {
      const auto add = [&counted](const auto& cell) { counted.regions.add(cell); };
      each_cell(t->regions->cells, add);
      if (own != nullptr) each_cell(t->regions->cells, [own](const RegionCell& cell) { own->regions.add(cell); });
      each_cell(t->regions->metrics, add);
      each_cell(t->regions->loops, add);
      each_value(*t, [&](std::uint64_t metric, const SeriesValue& v) { counted.regions.add(metric, t->number, v); });
      const auto add_open = [&](CountedRegions& to) {
        to.add_open(t->regions->frames, t->regions->depth, t->mpi, counted_time(until), pauses.changes.load());
      };
      add_open(counted.regions);
      if (own != nullptr) add_open(own->regions);
    }
    add_lost(t->table.overflow, own);
  }
  counted.events = events_here();
  each_peer([&counted](const PeerCell& cell) { add_peer_to(counted.peers, cell); });
  counted.samples = samples_here();
  counted.messages = messages_here();
  counted.slices = added_up(slices);
  const Cell lost = lost_calls();
  add_lost(lost, nullptr);
  add_lost_threads(counted.threads, lost);
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
