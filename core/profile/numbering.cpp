// SPDX-License-Identifier: Apache-2.0
// Gives the entries of a dictionary their numbers in the file, in an order that does not depend on the order of
// arrival.
#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <tuple>

#include "core/profile/dictionary.h"
#include "core/profile/parents.h"
#include "generated/procedures.h"

namespace commlens {
namespace {

// Names each set after its members.  pre: all other communicators have names
void name_sets(std::vector<Catalogue::Comm>& comms) {
  for (Catalogue::Comm& c : comms) {
    if (c.kind != CommKind::set) continue;
    for (const int index : c.set) {
      const Catalogue::Comm& member = comms[static_cast<std::size_t>(index)];
      // No process creates a set of sets, but a damaged arena may contain one, and names of names would grow without
      // bounds.
      c.name += (c.name.empty() ? "{" : ",") + (member.kind == CommKind::set ? "*" : member.name);
    }
    c.name += c.set.empty() ? "{*}" : "}";
  }
}

// Numbers the families: communicators that one procedure created at one call site from one family of parents.
void add_families(std::vector<Catalogue::Comm>& comms) {
  std::map<std::tuple<int, std::uint32_t, int, char>, int> families;
  const auto parent_of = [&comms](std::size_t i) { return static_cast<std::size_t>(std::max(comms[i].parent, 0)); };
  // The order of the communicators does not guarantee that parents come before their children.
  each_behind_its_parent(comms.size(), parent_of, [&](std::size_t i, std::size_t parent) {
    if (i == 0) return;
    Catalogue::Comm& c = comms[i];
    if (parent == 0) c.parent = -1;
    const int family = c.parent < 0 ? -1 : comms[parent].family;
    const char letter = c.kind == CommKind::set ? '{' : c.name[0];
    c.family =
        families.try_emplace({family, c.op, c.site, letter}, static_cast<int>(families.size()) + 1).first->second;
  });
}

}  // namespace

// Adds the call sites by module and offset, those without a caller first, then those that they call, and so on.
// Returns their new numbers.
std::vector<std::uint32_t> Dictionary::add_sites(Catalogue& to) const {
  std::vector<std::vector<std::uint32_t>> called(sites_.size());
  for (std::uint32_t i = 1; i < sites_.size(); ++i) called[sites_[i].caller].push_back(i);
  const auto position = [this](std::uint32_t i) {
    return std::tie(sites_[i].module, sites_[i].build_id, sites_[i].offset);
  };
  std::vector<std::uint32_t> numbers(sites_.size(), 0), order{0};
  to.sites.push_back(sites_[0]);
  for (std::size_t at = 0; at < order.size(); ++at) {
    std::vector<std::uint32_t>& group = called[order[at]];
    std::sort(group.begin(), group.end(), [&](std::uint32_t a, std::uint32_t b) { return position(a) < position(b); });
    for (const std::uint32_t old : group) {
      numbers[old] = static_cast<std::uint32_t>(to.sites.size());
      to.sites.push_back(sites_[old]);
      to.sites.back().caller = numbers[sites_[old].caller];
      order.push_back(old);
    }
  }
  return numbers;
}

// Adds the regions in the order of their names, each followed by the regions within it.  Returns their new numbers.
std::vector<std::uint32_t> Dictionary::add_regions(Catalogue& to) const {
  std::vector<std::vector<std::uint32_t>> within(regions_.size());
  for (std::uint32_t i = 1; i < regions_.size(); ++i) within[static_cast<std::size_t>(regions_[i].parent)].push_back(i);
  std::vector<std::uint32_t> numbers(regions_.size(), 0);
  std::vector<std::uint32_t> next{0};
  while (!next.empty()) {
    const std::uint32_t old = next.back();
    next.pop_back();
    numbers[old] = static_cast<std::uint32_t>(to.regions.size());
    Catalogue::Region region = regions_[old];
    if (region.parent >= 0) region.parent = static_cast<int>(numbers[static_cast<std::size_t>(region.parent)]);
    to.regions.push_back(std::move(region));
    // `next` is a stack, so the regions are pushed in descending order.
    std::sort(within[old].begin(), within[old].end(), [this](std::uint32_t a, std::uint32_t b) {
      return std::tie(regions_[a].name, regions_[a].kind) > std::tie(regions_[b].name, regions_[b].kind);
    });
    next.insert(next.end(), within[old].begin(), within[old].end());
  }
  return numbers;
}

// Returns the communicators as their leaders obtained them: MPI_COMM_WORLD first, MPI_COMM_SELF and then sets last.
std::vector<std::uint32_t> Dictionary::comms_in_order() const {
  std::vector<std::uint32_t> order(drafts_.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto position = [this](std::uint32_t i) {
    const CommDraft& d = drafts_[i].facts;
    return std::make_tuple(d.comm.kind == CommKind::set, d.letter == letter_self, d.count, d.world_rank, d.letter,
                           d.comm.identity);
  };
  std::sort(order.begin() + 1, order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return position(a) < position(b); });
  return order;
}

// Returns a communicator with its name and members, and with the new numbers of its site, its parent and the members of
// a set.
Catalogue::Comm Dictionary::numbered(const Draft& draft, const std::vector<std::uint32_t>& new_site,
                                     const std::vector<std::uint32_t>& new_comm) const {
  const CommDraft& d = draft.facts;
  Catalogue::Comm c = d.comm;
  c.communicators = std::max(c.communicators, 1u);  // the leader may not have reported
  c.site = c.site <= 0 ? -1 : static_cast<int>(new_site[static_cast<std::size_t>(c.site)]);
  if (&draft == &drafts_[0]) {
    c.name = "-";
  } else if (c.kind != CommKind::set) {
    // MPI_COMM_WORLD is W0.0 even if the data of rank 0 is missing.
    const int leader = d.letter == letter_world ? 0 : d.world_rank;
    const bool has_many_leaders = (d.differences & different_leaders) != 0;
    c.name = std::string(1, d.letter) + (has_many_leaders ? "*" : std::to_string(leader)) + "." +
             std::to_string(d.count) + (c.communicators > 1 && !has_many_leaders ? "+" : "");
    c.members = draft.members[0].text();
    if (c.kind == CommKind::inter && !folds_) c.members += " | " + draft.members[1].text();
    const auto parent = by_identity_.find(d.parent);
    if (d.parent != 0 && parent != by_identity_.end()) c.parent = static_cast<int>(new_comm[parent->second]);
  } else {
    for (const Identity member : d.set) {
      const auto found = by_identity_.find(member);
      if (found != by_identity_.end()) c.set.push_back(static_cast<int>(new_comm[found->second]));
    }
    std::sort(c.set.begin(), c.set.end());
  }
  return c;
}

Catalogue Dictionary::catalogue() const {
  Catalogue result;
  const std::vector<std::uint32_t> new_site = add_sites(result), new_region = add_regions(result);
  result.metrics = metrics_;
  std::sort(result.metrics.begin() + 1, result.metrics.end(), [](const MetricFacts& a, const MetricFacts& b) {
    return std::tie(a.name, a.unit) < std::tie(b.name, b.unit);
  });
  result.datatypes = datatypes_;
  std::sort(result.datatypes.begin() + 1, result.datatypes.end(), [](const DatatypeFacts& a, const DatatypeFacts& b) {
    return std::tie(a.tree, a.size, a.extent, a.identity) < std::tie(b.tree, b.size, b.extent, b.identity);
  });
  for (const auto& [region, name, value] : tags_) result.tags.push_back({new_region[region_of(region)], name, value});

  const std::vector<std::uint32_t> order = comms_in_order();
  std::vector<std::uint32_t> new_comm(order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) new_comm[order[i]] = i;
  for (const std::uint32_t old : order) result.comms.push_back(numbered(drafts_[old], new_site, new_comm));
  name_sets(result.comms);
  add_families(result.comms);

  // Keys are ordered by communicator, rows by key: readers that need rows together find them next to each other.
  for (Catalogue::KeyFacts key : keys_) {
    key.comm = new_comm[key.comm];
    key.site = new_site[key.site];
    key.region = new_region[key.region];
    result.keys.push_back(key);
  }
  std::sort(result.keys.begin(), result.keys.end(),
            [](const Catalogue::KeyFacts& a, const Catalogue::KeyFacts& b) { return key_of(a) < key_of(b); });
  return result;
}

}  // namespace commlens
