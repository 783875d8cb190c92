// SPDX-License-Identifier: Apache-2.0
#include "core/cold/profile.h"

#include <algorithm>
#include <numeric>

#include "generated/procedures.h"

namespace commlens {

std::uint32_t Profile::draft_index(Identity identity) {
  const auto [entry, is_new] = by_identity_.try_emplace(identity, static_cast<std::uint32_t>(drafts_.size()));
  if (is_new) {
    drafts_.emplace_back();
    drafts_.back().comm.identity = identity;
  }
  return entry->second;
}

// Reads what packed() wrote into `told`; false when it is cut off or garbled.
bool Profile::read(WireReader& in, Told& told) {
  RankFacts& facts = told.rank.facts;
  facts.rank = static_cast<int>(in.number());
  facts.world = in.number();
  facts.node = in.text();
  facts.pid = static_cast<int>(in.number());
  facts.cpus = in.text();
  facts.init_ns = in.number();
  facts.app_ns = in.number();
  facts.threads = static_cast<int>(in.number());
  facts.own_init_ns = in.number();
  facts.own_call_ns = in.number();
  told.rank.lost_calls = in.number();
  facts.coverage = in.text();

  for (std::uint64_t n = in.number(); in.ok() && n > 0; --n) {
    SiteFacts site;
    site.module = in.text();
    site.build_id = in.text();
    site.offset = in.number();
    told.sites.push_back(std::move(site));
  }

  for (std::uint64_t n = in.number(); in.ok() && n > 0; --n) {
    Draft draft;
    const std::uint64_t local = in.number();
    draft.comm.kind = static_cast<CommKind>(in.number());
    draft.comm.identity = in.number();
    draft.parent = in.number();
    draft.comm.op = static_cast<std::uint32_t>(in.number());
    draft.letter = static_cast<char>(in.number());
    draft.comm.site = static_cast<int>(in.number());
    draft.comm.leader = static_cast<int>(in.signed_number());
    draft.teller.rank_in_comm = static_cast<int>(in.signed_number());
    draft.comm.size = static_cast<int>(in.signed_number());
    draft.comm.remote_size = static_cast<int>(in.signed_number());
    draft.teller.second_side = in.number() != 0;
    draft.teller.world_rank = facts.rank;
    draft.count = static_cast<std::uint32_t>(in.number());
    draft.comm.communicators = static_cast<std::uint32_t>(in.number());
    draft.comm.created_ns = static_cast<std::int64_t>(in.number());
    draft.comm.freed_ns = static_cast<std::int64_t>(in.number()) - 1;
    draft.comm.user_name = in.text();
    draft.comm.topology = in.text();
    for (std::uint64_t m = in.number(); in.ok() && m > 0; --m) draft.set.push_back(in.number());
    told.comms.emplace_back(local, std::move(draft));
  }

  for (std::uint64_t n = in.number(); in.ok() && n > 0; --n) {
    KeyFacts key{};
    key.comm = static_cast<std::uint32_t>(in.number());
    key.op = static_cast<std::uint32_t>(in.number());
    key.bin = static_cast<std::uint32_t>(in.number());
    key.region = static_cast<std::uint32_t>(in.number());
    key.site = static_cast<std::uint32_t>(in.number());
    Row row{};
    row.rank = facts.rank;
    row.calls = in.number();
    row.time = in.number();
    row.time_min = in.number();
    row.time_max = in.number();
    row.bytes_sent = in.number();
    row.bytes_received = in.number();
    row.noncontiguous = in.number();
    told.cells.emplace_back(key, row);
  }
  facts.own_collect_ns = in.number();
  return in.ok();
}

// Takes over what one rank says of a communicator; returns its index.
std::uint32_t Profile::absorb(Draft told) {
  if (told.comm.kind == CommKind::set) {
    // The same communicators make the same set, in whatever order a rank met them.
    std::sort(told.set.begin(), told.set.end());
    // 0 is "no communicator"; the set without members is the one for all sets beyond a limit.
    told.comm.identity = told.set.empty() ? 1 : identity_of(told.set.data(), told.set.size() * sizeof(Identity));
  }
  const std::uint32_t index = draft_index(told.comm.identity);
  Draft& draft = drafts_[index];
  const Member member = told.teller;
  const auto place = [](const Draft& d) {
    return std::make_tuple(d.teller.second_side, d.teller.rank_in_comm, d.teller.world_rank);
  };
  if (draft.members.empty() || place(told) < place(draft)) {
    if (told.comm.user_name.empty()) told.comm.user_name = draft.comm.user_name;
    told.members = std::move(draft.members);
    draft = std::move(told);
  } else if (draft.comm.user_name.empty()) {
    draft.comm.user_name = told.comm.user_name;
  }
  draft.members.push_back(member);
  return index;
}

bool Profile::take_imports(std::string told) {
  std::vector<Covered> names;
  if (imports_.count(told) == 0 && !read_coverage(told, names)) return false;
  ++imports_[std::move(told)];
  return true;
}

bool Profile::add(const char* bytes, std::size_t size) {
  WireReader in(bytes, size);
  Told told;
  if (!read(in, told)) return false;
  // Most ranks import the same: only what is new is looked at.
  if (!take_imports(std::move(told.rank.facts.coverage))) return false;

  if (sites.empty()) sites.push_back({"", "", 0});
  std::vector<std::uint32_t> site_numbers{0};
  for (SiteFacts& site : told.sites) {
    const auto [entry, is_new] = by_site_.try_emplace({site.module, site.build_id, site.offset}, sites.size());
    if (is_new) sites.push_back(std::move(site));
    site_numbers.push_back(entry->second);
  }
  const auto site_at = [&](std::uint32_t n) { return n < site_numbers.size() ? site_numbers[n] : 0; };

  std::unordered_map<std::uint64_t, std::uint32_t> comm_numbers{{0, 0}};
  for (auto& [local, draft] : told.comms) {
    draft.comm.site = static_cast<int>(site_at(static_cast<std::uint32_t>(draft.comm.site)));
    comm_numbers[local] = absorb(std::move(draft));
  }

  // What differs on the rank may be the same here (a library that is loaded twice, calls with contiguous datatypes and
  // with others): one row for each key.
  std::unordered_map<std::uint32_t, std::size_t> row_of_key;
  for (auto& [key, row] : told.cells) {
    const auto comm = comm_numbers.find(key.comm);
    key.comm = comm == comm_numbers.end() ? 0 : comm->second;
    key.site = site_at(key.site);
    const auto [entry, is_new] = by_key_.try_emplace({key.comm, key.op, key.bin, key.region, key.site}, keys.size());
    if (is_new) keys.push_back(key);
    row.key = entry->second;
    told.rank.calls += row.calls;
    told.rank.mpi_ns += row.time;
    const auto [place, is_first] = row_of_key.try_emplace(row.key, rows.size());
    if (is_first) {
      rows.push_back(row);
      continue;
    }
    Row& sum = rows[place->second];
    if (row.calls != 0) {
      sum.time_min = sum.calls == 0 ? row.time_min : std::min(sum.time_min, row.time_min);
      sum.time_max = std::max(sum.time_max, row.time_max);
    }
    sum.calls += row.calls;
    sum.time += row.time;
    sum.bytes_sent += row.bytes_sent;
    sum.bytes_received += row.bytes_received;
    sum.noncontiguous += row.noncontiguous;
  }
  ranks.push_back(std::move(told.rank));
  return true;
}

// Writes the world ranks of one group in the order of its ranks: runs of equal stride become ranges.
std::string Profile::ranges_of(const std::vector<Member>& members, bool second_side) const {
  std::vector<int> world;
  for (const Member& m : members) {
    if (m.second_side == second_side) world.push_back(m.world_rank);
  }
  std::string text;
  for (std::size_t i = 0; i < world.size();) {
    std::size_t end = i + 1;  // one past the run that begins at i
    const int stride = end < world.size() ? world[end] - world[i] : 0;
    while (end < world.size() && stride > 0 && world[end] - world[end - 1] == stride) ++end;
    if (stride != 1 && end - i < 3) end = i + 1;
    if (!text.empty()) text += ",";
    text += std::to_string(world[i]);
    if (end - i > 1) {
      text += "-" + std::to_string(world[end - 1]);
      if (stride != 1) text += ":" + std::to_string(stride);
    }
    i = end;
  }
  return text;
}

int Profile::family_of(std::size_t comm, std::map<std::tuple<int, std::uint32_t, int, char>, int>& families) {
  // Parents stand before their children only by chance of the order of ranks, hence the recursion; its depth is that
  // of the application's tree of communicators.
  Comm& c = comms[comm];
  if (c.family != 0 || comm == 0) return c.family;
  const int parent = c.parent < 0 ? -1 : family_of(static_cast<std::size_t>(c.parent), families);
  const char letter = c.kind == CommKind::set ? '{' : c.name[0];
  c.family = families.try_emplace({parent, c.op, c.site, letter}, static_cast<int>(families.size()) + 1).first->second;
  return c.family;
}

void Profile::finish() {
  for (const auto& [told, importing] : imports_) {
    std::vector<Covered> names;
    read_coverage(told, names);
    for (Covered& name : names) {
      ImportedName& sum =
          coverage.try_emplace({std::move(name.symbol), std::move(name.object)}, ImportedName{name.treatment, 0})
              .first->second;
      sum.treatment = std::max(sum.treatment, name.treatment);
      sum.ranks += importing;
    }
  }
  std::sort(ranks.begin(), ranks.end(), [](const Rank& a, const Rank& b) { return a.facts.rank < b.facts.rank; });

  // The order of communicators: as their leaders got them, MPI_COMM_WORLD first, those of one process and sets last.
  std::vector<std::uint32_t> order(drafts_.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto place = [this](std::uint32_t i) {
    const Draft& d = drafts_[i];
    return std::make_tuple(d.comm.kind == CommKind::set, d.letter == letter_self, d.count, d.teller.world_rank,
                           d.letter, d.comm.identity);
  };
  std::sort(order.begin() + 1, order.end(), [&](std::uint32_t a, std::uint32_t b) { return place(a) < place(b); });
  std::vector<std::uint32_t> new_index(order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) new_index[order[i]] = i;

  comms.clear();
  for (const std::uint32_t old : order) {
    Draft& d = drafts_[old];
    Comm c = d.comm;
    if (old == 0) {
      c.name = "-";
    } else if (c.kind != CommKind::set) {
      // MPI_COMM_WORLD is W0.0 also where rank 0 is missing.
      const int leader = d.letter == letter_world ? 0 : d.teller.world_rank;
      c.name = std::string(1, d.letter) + std::to_string(leader) + "." + std::to_string(d.count);
      if (c.communicators > 1) c.name += '+';
      std::sort(d.members.begin(), d.members.end(), [](const Member& a, const Member& b) {
        return std::make_tuple(a.second_side, a.rank_in_comm) < std::make_tuple(b.second_side, b.rank_in_comm);
      });
      c.members = ranges_of(d.members, false);
      if (c.kind == CommKind::inter) c.members += " | " + ranges_of(d.members, true);
      const auto parent = by_identity_.find(d.parent);
      if (d.parent != 0 && parent != by_identity_.end()) c.parent = static_cast<int>(new_index[parent->second]);
    } else {
      for (const Identity member : d.set) {
        const auto found = by_identity_.find(member);
        if (found != by_identity_.end()) c.set.push_back(static_cast<int>(new_index[found->second]));
      }
      std::sort(c.set.begin(), c.set.end());
    }
    if (c.site == 0) c.site = -1;
    comms.push_back(std::move(c));
  }
  for (Comm& c : comms) {
    if (c.kind != CommKind::set) continue;
    for (const int member : c.set)
      c.name += (c.name.empty() ? "{" : ",") + comms[static_cast<std::size_t>(member)].name;
    c.name += c.set.empty() ? "{*}" : "}";
  }
  std::map<std::tuple<int, std::uint32_t, int, char>, int> families;
  for (std::size_t i = 0; i < comms.size(); ++i) family_of(i, families);

  // Keys in the order of the communicators, rows in the order of the keys: SQLite fills its pages best that way.
  for (KeyFacts& key : keys) key.comm = new_index[key.comm];
  std::vector<std::uint32_t> key_order(keys.size());
  std::iota(key_order.begin(), key_order.end(), 0u);
  const auto key_place = [this](std::uint32_t i) {
    const KeyFacts& k = keys[i];
    return std::make_tuple(k.comm, k.op, k.bin, k.region, k.site);
  };
  std::sort(key_order.begin(), key_order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return key_place(a) < key_place(b); });
  std::vector<KeyFacts> sorted_keys;
  std::vector<std::uint32_t> new_key(keys.size());
  for (const std::uint32_t old : key_order) {
    new_key[old] = static_cast<std::uint32_t>(sorted_keys.size());
    sorted_keys.push_back(keys[old]);
  }
  keys = std::move(sorted_keys);
  for (Row& row : rows) row.key = new_key[row.key];
  std::sort(rows.begin(), rows.end(),
            [](const Row& a, const Row& b) { return std::make_pair(a.key, a.rank) < std::make_pair(b.key, b.rank); });
}

}  // namespace commlens
