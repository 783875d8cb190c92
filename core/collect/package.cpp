// SPDX-License-Identifier: Apache-2.0
// Builds the package that one rank sends when the profile is collected.  Profile::add() in profile.cpp reads it in the
// same order.
#include "core/collect/package.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "core/base/wire.h"
#include "core/hot/key.h"
#include "generated/procedures.h"

namespace commlens {
namespace {

// Numbers the call sites; 0 stands for "none".
class Sites {
 public:
  std::uint64_t number(Site site) {
    if (site == 0) return 0;
    const auto [entry, is_new] = numbers_.try_emplace(site, addresses_.size() + 1);
    if (is_new) addresses_.push_back(site);
    return entry->second;
  }

  const std::vector<Site>& addresses() const { return addresses_; }

 private:
  std::unordered_map<Site, std::uint64_t> numbers_;
  std::vector<Site> addresses_;
};

// Returns the family of each communicator: communicators have the same number if one line of the application created
// them from parents of the same family.
std::vector<std::uint32_t> families_of(const std::vector<const CommRecord*>& comms) {
  std::map<std::tuple<std::uint32_t, std::uint32_t, Site, char>, std::uint32_t> numbers;
  std::vector<std::uint32_t> families(comms.size());
  for (std::size_t i = 1; i < comms.size(); ++i) {
    const CommRecord& c = *comms[i];  // after its parent
    const char letter = c.kind == CommKind::set ? '{' : c.letter;
    families[i] = numbers.try_emplace({families[c.parent], c.op, c.site, letter}, numbers.size() + 1).first->second;
  }
  return families;
}

unsigned doublings_of(Ticks width) {
  unsigned doublings = 0;
  while (doublings + 1 < SliceRows::max_doublings && first_slice_width << (doublings + 1) <= width) ++doublings;
  return doublings;
}

std::vector<char> packed(const Counted& counted, Clocked collecting, const Sliced& slices, bool slices_folded,
                         bool is_summary);

}  // namespace

SliceRows::SliceRows(const Counted& counted) {
  const unsigned own = doublings_of(counted.slices.width);
  numbers[0] = own;
  const std::vector<std::uint32_t> families = families_of(counted.comms);
  using SliceKey = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>;  // communicator or family, procedure, slot
  for (const bool folded : {false, true}) {
    std::vector<SliceKey> keys;
    for (const SliceEntry& entry : counted.slices.entries) {
      const bool is_region = is_of_region(entry.key);
      const std::uint32_t comm = is_region ? region_of_key(entry.key) : comm_of_key(entry.key);
      keys.emplace_back(folded && !is_region ? families[comm] : comm, op_of_key(entry.key), entry.slot);
    }
    std::sort(keys.begin(), keys.end());
    for (unsigned doublings = 0; doublings < max_doublings; ++doublings) {
      for (SliceKey& key : keys) std::get<2>(key) >>= doublings > own ? 1 : 0;
      keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
      numbers[1 + (folded ? max_doublings : 0) + doublings] = keys.size();
    }
  }
}

void SliceRows::add(const SliceRows& other) {
  const std::uint64_t doublings = std::max(numbers[0], other.numbers[0]);
  for (std::size_t i = 0; i < size; ++i) numbers[i] += other.numbers[i];
  numbers[0] = doublings;
}

// Keeps communicators apart as long as 16 slices remain; beyond that, first combines the communicators of a family.
SlicePlan SliceRows::within(std::uint64_t rows) const {
  const auto finest = static_cast<unsigned>(numbers[0]);
  constexpr unsigned still_fine = 3;  // doublings that leave 16 of 128 slices
  constexpr unsigned one_slice = 7;
  const auto fits = [&](const SlicePlan& plan) {
    const std::size_t at = std::min<std::size_t>(plan.doublings, max_doublings - 1);
    return numbers[1 + (plan.folded ? max_doublings : 0) + at] <= rows;
  };
  for (const bool folded : {false, true}) {
    for (unsigned more = 0; more <= (folded ? one_slice : still_fine); ++more) {
      if (fits({finest + more, folded})) return {finest + more, folded};
    }
  }
  return {finest + one_slice, true};
}

std::vector<char> packed(const Counted& counted, Clocked collecting, const SlicePlan& plan) {
  Sliced wide = counted.slices;
  if (const Ticks width = first_slice_width << plan.doublings; width > wide.width) {
    Sliced empty;
    empty.width = width;
    wide = added_up({wide, empty});
  }
  return packed(counted, collecting, wide, plan.folded, false);
}

std::vector<char> packed_for_summary(const Counted& counted, Clocked collecting) {
  return packed(counted, collecting, {}, false, true);
}

namespace {

void write_place(WireWriter& out, RegionKey key) {
  out.number(region_of(key));
  out.number(execution_of(key));
  out.signed_number(iteration_of(key));
}

void write(WireWriter& out, const CountedRegions& regions, const TickScale& scale) {
  out.number(regions.times.size());
  for (const auto& [key, sum] : regions.times) {
    write_place(out, key);
    out.number(counts_iterations(key) ? 1 : 0);
    const Ns time = scale.ns(sum.time);
    out.number(sum.calls + sum.open);
    out.number(sum.open);
    out.number(time);
    out.number(scale.ns(sum.time_min));
    out.number(scale.ns(sum.time_max));
    out.number(std::min(scale.ns(sum.nested), time));
    out.number(std::min(scale.ns(sum.mpi), time));
  }
  out.number(regions.loops.size());
  for (const auto& [key, bins] : regions.loops) {
    write_place(out, key);
    for (const std::uint64_t n : bins) out.number(n);
  }
  out.number(regions.metrics.size() - 1);
  for (std::size_t i = 1; i < regions.metrics.size(); ++i) {
    out.text(regions.metrics[i].name);
    out.text(regions.metrics[i].unit);
  }
  out.number(regions.values.size());
  for (const auto& [key, value] : regions.values) {
    write_place(out, key.first);
    out.number(key.second);
    out.number(value.count);
    out.number(value.not_finite);
    for (const double d : {value.sum, value.min, value.max, value.last}) out.real(d);
  }
  out.number(regions.tags.size());
  for (const TagFacts& tag : regions.tags) {
    out.number(tag.region);
    out.text(tag.name);
    out.text(tag.value);
  }
}

// Writes peers in the order in which the reader of a profile looks for them.  Slices are converted to the width that
// all ranks use.
void write(WireWriter& out, const Peers& peers, Ticks slice_width) {
  out.number(peers.size());
  for (const auto& [at, sum] : peers) {
    const auto [key, place] = at;
    const std::uint32_t slice = slice_of_peer(key);
    const Ticks own_width = first_slice_width << (slice >> slice_bits);
    const std::uint64_t slot = slice & ((1u << slice_bits) - 1);
    out.number(comm_of_peer(key));
    out.number(static_cast<std::uint64_t>(flow_of(key)));
    out.number(op_of_peer(key));
    out.number(region_of_peer(place));
    out.number((2 * slot + 1) * (own_width / 2) / slice_width);
    out.signed_number(sum.world);
    out.number(peer_of(place));
    out.number(std::uint64_t{1} << shift_of(place));
    out.number(bin_of_peer(key));
    out.number(call_of_peer(place));
    out.number(sum.messages);
    out.number(sum.bytes);
  }
}

std::vector<char> packed(const Counted& counted, Clocked collecting, const Sliced& slices, bool slices_folded,
                         bool is_summary) {
  const RankFacts& facts = counted.facts;
  const TickScale& scale = counted.scale;
  const Cells& cells = counted.cells;
  const std::vector<const CommRecord*>& comms = counted.comms;

  Sites sites;
  std::vector<char> used(comms.size(), 0);
  for (const auto& [key, cell] : cells) {
    sites.number(key.second);
    used[comm_of_key(key.first)] = 1;
  }
  for (const Position& p : counted.positions) {
    sites.number(p.site);
    used[p.comm] = 1;
  }
  for (const auto& [at, sum] : counted.peers) used[comm_of_peer(at.first)] = 1;
  // Communicators that the application created are sent even if it never used them; MPI_COMM_SELF and sets only if it
  // used them.  Children come after their parents, and sets after their members.  One pass from the end therefore finds
  // all communicators that others refer to.
  for (std::size_t i = comms.size() - 1; i > 0; --i) {
    if (comms[i]->count != 0 || comms[i]->letter == letter_world) used[i] = 1;
    if (!used[i]) continue;
    used[comms[i]->parent] = 1;
    for (const std::uint32_t member : comms[i]->members) used[member] = 1;
    sites.number(comms[i]->site);
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
  out.number(facts.own_wait_ns);
  out.number(counted.lost);
  out.text(facts.state);
  out.text(facts.coverage);

  out.number(sites.addresses().size());
  for (const Site address : sites.addresses()) counted.place(address).write(out);

  // Outer regions come before those within them, because this process entered them first.
  const std::vector<RegionFacts>& regions = counted.regions.names;
  out.number(regions.size() - 1);
  for (std::size_t i = 1; i < regions.size(); ++i) {
    out.number(regions[i].parent);
    out.number(static_cast<std::uint64_t>(regions[i].kind));
    out.text(regions[i].name);
  }

  // Records are in the order of creation, so parents come before children and sets after their members.
  out.number(static_cast<std::uint64_t>(std::count(used.begin() + 1, used.end(), 1)));
  // Until here, identities are unique within one world only; combine() makes them unique across worlds.
  const auto in_world = [&](const CommRecord& c) {
    return c.kind == CommKind::none ? 0 : combine(facts.world, is_summary ? c.kin : c.identity);
  };
  const auto since_start = [&](Ticks t) { return t <= counted.started ? Ns{0} : scale.ns(t - counted.started); };
  for (std::size_t i = 1; i < comms.size(); ++i) {
    if (!used[i]) continue;
    const CommRecord& c = *comms[i];
    out.number(i);
    out.number(static_cast<std::uint64_t>(c.kind));
    out.number(in_world(c));
    out.number(in_world(*comms[c.parent]));
    out.number(c.op);
    out.number(static_cast<unsigned char>(c.letter));
    out.number(sites.number(c.site));
    out.signed_number(c.leader);
    out.signed_number(c.view.rank);
    out.signed_number(c.view.size);
    out.signed_number(c.remote_size);
    out.number(c.second_side ? 1 : 0);
    out.number(c.count);
    const bool leads = c.kind != CommKind::set && c.view.rank == 0 && !c.second_side;
    out.number(is_summary && !leads ? 0 : c.communicators);
    out.number(since_start(c.created));
    out.number(c.freed == 0 ? 0 : since_start(c.freed) + 1);
    out.text(c.user_name);
    out.text(c.topology);
    out.number(c.members.size());
    for (const std::uint32_t member : c.members) out.number(in_world(*comms[member]));
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
  out.number(scale.ns(slices.width));
  out.number(slices_folded ? 1 : 0);
  out.number(slices.entries.size());
  for (const SliceEntry& entry : slices.entries) {
    out.number(is_of_region(entry.key) ? region_of_key(entry.key) : comm_of_key(entry.key));
    out.number(op_of_key(entry.key));
    out.number(entry.slot);
    out.number(entry.calls);
    out.number(scale.ns(entry.time));
    out.number(entry.bytes_sent);
    out.number(entry.bytes_received);
  }
  out.number(counted.positions.size());
  for (const Position& p : counted.positions) {
    out.signed_number(p.thread);
    out.number(p.inside ? 1 : 0);
    out.number(p.op);
    out.number(p.comm);
    out.number(sites.number(p.site));
    out.number(since_start(p.since));
    out.number(p.region);
  }
  write(out, counted.regions, scale);
  write(out, is_summary ? Peers() : counted.peers, slices.width);
  out.number(counted.notices.size());
  for (const NoticeText& notice : counted.notices) {
    out.number(static_cast<std::uint64_t>(notice.kind));
    out.text(notice.text);
  }
  out.number(collecting.since == 0
                 ? 0
                 : scale.ns(collecting.clock() - collecting.since));  // last, to include the time for packing
  return out.bytes();
}

}  // namespace
}  // namespace commlens
