// SPDX-License-Identifier: Apache-2.0
// What one rank sends when the profile is collected.  Profile::add() in profile.cpp reads it, in the same order.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "core/cold/modules.h"
#include "core/cold/profile.h"
#include "core/cold/threads.h"
#include "core/cold/wire.h"
#include "generated/procedures.h"

namespace commlens {
namespace {

using Merged = std::map<std::pair<Key, Site>, Cell>;

// Adds the cells of all threads; a cell without calls holds bytes of requests another thread made.
Merged merged_cells(std::uint64_t& lost) {
  Merged merged;
  const auto merge = [&merged](const Cell& cell) {
    Cell& sum = merged[{cell.key, cell.site}];
    if (cell.calls != 0) {
      sum.time_min = sum.calls == 0 ? cell.time_min : std::min(sum.time_min, cell.time_min);
      sum.time_max = std::max(sum.time_max, cell.time_max);
    }
    sum.calls += cell.calls;
    sum.time += cell.time;
    sum.bytes_sent += cell.bytes_sent;
    sum.bytes_received += cell.bytes_received;
  };
  const auto merge_lost = [&](const Cell& cell) {
    lost += cell.calls;
    if (cell.calls != 0) merge(cell);
  };
  for (const Thread* t = first_thread(); t != nullptr; t = t->next) {
    for (std::uint64_t i = 0; i < t->table.capacity; ++i) {
      if (t->table.index[i] != nullptr) merge(*t->table.index[i]);
    }
    merge_lost(t->table.overflow);
  }
  merge_lost(lost_calls());
  return merged;
}

// Numbers the call sites; 0 is "none".
class Sites {
 public:
  std::uint64_t number(Site site) {
    if (site == 0) return 0;
    const auto [entry, is_new] = numbers_.try_emplace(site, addresses_.size() + 1);
    if (is_new) addresses_.push_back(site);
    return entry->second;
  }

  void write(WireWriter& out) const {
    out.number(addresses_.size());
    for (const Site address : addresses_) {
      const Module* const m = module_of_site(address);
      out.text(m == nullptr ? std::string() : m->path);
      out.text(m == nullptr ? std::string() : m->build_id);
      out.number(m == nullptr ? address : address - m->base);
    }
  }

 private:
  std::unordered_map<Site, std::uint64_t> numbers_;
  std::vector<Site> addresses_;
};

}  // namespace

std::vector<char> packed(const RankFacts& facts, const Registry& registry, Ticks start, Ticks collecting) {
  const TickScale scale = TickScale::since_start();
  std::uint64_t lost = 0;
  const Merged cells = merged_cells(lost);
  const std::deque<CommRecord>& comms = registry.records();

  Sites sites;
  std::vector<char> used(comms.size(), 0);
  for (const auto& [key, cell] : cells) {
    sites.number(key.second);
    used[comm_of_key(key.first)] = 1;
  }
  // What the application made is told even if it never used it; MPI_COMM_SELF and sets only if it did.  Children
  // stand behind their parents, sets behind their members: one pass from the end finds all that are referred to.
  for (std::size_t i = comms.size() - 1; i > 0; --i) {
    if (comms[i].count != 0 || comms[i].letter == letter_world) used[i] = 1;
    if (!used[i]) continue;
    used[comms[i].parent] = 1;
    for (const std::uint32_t member : comms[i].members) used[member] = 1;
    sites.number(comms[i].site);
  }

  WireWriter out;
  out.number(static_cast<std::uint64_t>(facts.rank));
  out.number(facts.world);
  out.text(facts.node);
  out.number(static_cast<std::uint64_t>(facts.pid));
  out.text(facts.cpus);
  out.number(facts.init_ns);
  out.number(facts.app_ns);
  out.number(static_cast<std::uint64_t>(facts.threads));
  out.number(facts.own_init_ns);
  out.number(facts.own_call_ns);
  out.number(lost);
  out.text(facts.coverage);

  sites.write(out);

  // Parents before children, because records are in the order of creation; sets after their members likewise.
  out.number(static_cast<std::uint64_t>(std::count(used.begin() + 1, used.end(), 1)));
  // Identities are those within one world until here: the world has got its own only now.
  const auto in_world = [&](const CommRecord& c) {
    return c.kind == CommKind::none ? 0 : combine(facts.world, c.identity);
  };
  const auto since_start = [&](Ticks t) { return t <= start ? Ns{0} : scale.ns(t - start); };
  for (std::size_t i = 1; i < comms.size(); ++i) {
    if (!used[i]) continue;
    const CommRecord& c = comms[i];
    out.number(i);
    out.number(static_cast<std::uint64_t>(c.kind));
    out.number(in_world(c));
    out.number(in_world(comms[c.parent]));
    out.number(c.op);
    out.number(static_cast<unsigned char>(c.letter));
    out.number(sites.number(c.site));
    out.signed_number(c.leader);
    out.signed_number(c.view.rank);
    out.signed_number(c.view.size);
    out.signed_number(c.remote_size);
    out.number(c.second_side ? 1 : 0);
    out.number(c.count);
    out.number(c.communicators);
    out.number(since_start(c.created));
    out.number(c.freed == 0 ? 0 : since_start(c.freed) + 1);
    out.text(c.user_name);
    out.text(c.topology);
    out.number(c.members.size());
    for (const std::uint32_t member : c.members) out.number(in_world(comms[member]));
  }

  out.number(cells.size());
  for (const auto& [key, cell] : cells) {
    out.number(comm_of_key(key.first));
    out.number(op_of_key(key.first));
    out.number(bin_of_key(key.first));
    out.number(region_of_key(key.first));
    out.number(sites.number(key.second));
    out.number(cell.calls);
    out.number(scale.ns(cell.time));
    out.number(scale.ns(cell.time_min));
    out.number(scale.ns(cell.time_max));
    out.number(cell.bytes_sent);
    out.number(cell.bytes_received);
    out.number(noncontiguous_of_key(key.first) ? cell.calls : 0);
  }
  out.number(scale.ns(now() - collecting));  // last, so that it covers the packing
  return out.bytes();
}

}  // namespace commlens
