// SPDX-License-Identifier: Apache-2.0
#include "core/collect/profile.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

namespace commlens {

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
  facts.state = in.text();
  facts.coverage = in.text();

  for (std::uint64_t n = in.number(); in.ok() && n > 0; --n) {
    SiteFacts site;
    site.module = in.text();
    site.build_id = in.text();
    site.offset = in.number();
    told.sites.push_back(std::move(site));
  }

  for (std::uint64_t n = in.number(); in.ok() && n > 0; --n) {
    CommDraft draft;
    const std::uint64_t local = in.number();
    draft.comm.kind = static_cast<CommKind>(in.number());
    draft.comm.identity = in.number();
    draft.parent = in.number();
    draft.comm.op = static_cast<std::uint32_t>(in.number());
    draft.letter = static_cast<char>(in.number());
    draft.comm.site = static_cast<int>(in.number());
    draft.comm.leader = static_cast<int>(in.signed_number());
    draft.rank_in_comm = static_cast<int>(in.signed_number());
    draft.comm.size = static_cast<int>(in.signed_number());
    draft.comm.remote_size = static_cast<int>(in.signed_number());
    draft.second_side = in.number() != 0;
    draft.world_rank = facts.rank;
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
  told.slice_ns = std::max<Ns>(in.number(), 1);
  told.slices_folded = in.number() != 0;
  for (std::uint64_t n = in.number(); in.ok() && n > 0; --n) {
    Slice slice{};
    slice.rank = facts.rank;
    slice.comm = static_cast<std::uint32_t>(in.number());
    slice.op = static_cast<std::uint32_t>(in.number());
    slice.slot = in.number();
    slice.calls = in.number();
    slice.time = in.number();
    slice.bytes_sent = in.number();
    slice.bytes_received = in.number();
    told.slices.push_back(slice);
  }
  for (std::uint64_t n = in.number(); in.ok() && n > 0; --n) {
    Place place{};
    place.rank = facts.rank;
    place.thread = static_cast<int>(in.signed_number());
    place.inside = in.number() != 0;
    place.op = static_cast<std::uint32_t>(in.number());
    place.comm = static_cast<std::uint32_t>(in.number());
    place.site = static_cast<std::uint32_t>(in.number());
    place.since = in.number();
    told.places.push_back(place);
  }
  facts.own_collect_ns = in.number();
  return in.ok();
}

bool Profile::add(const char* bytes, std::size_t size) {
  WireReader in(bytes, size);
  Told told;
  if (!read(in, told)) return false;
  if (!dictionary.imports(std::move(told.rank.facts.coverage))) return false;
  dictionary.add_rank(told.rank.facts.rank);
  world_size = std::max(world_size, told.rank.facts.rank + 1);

  std::vector<std::uint32_t> site_numbers{0};
  for (SiteFacts& site : told.sites) site_numbers.push_back(dictionary.site(std::move(site)));
  const auto site_at = [&](std::uint32_t n) { return n < site_numbers.size() ? site_numbers[n] : 0; };

  std::unordered_map<std::uint64_t, std::uint32_t> comm_numbers{{0, 0}};
  for (auto& [local, draft] : told.comms) {
    draft.comm.site = static_cast<int>(site_at(static_cast<std::uint32_t>(draft.comm.site)));
    comm_numbers[local] = dictionary.comm(std::move(draft));
  }

  const auto comm_at = [&](std::uint32_t n) {
    const auto found = comm_numbers.find(n);
    return found == comm_numbers.end() ? 0 : found->second;
  };

  // What differs on the rank may be the same here (a library that is loaded twice, calls with contiguous datatypes and
  // with others): one row for each key.
  std::unordered_map<std::uint32_t, std::size_t> row_of_key;
  for (auto& [key, row] : told.cells) {
    key.comm = comm_at(key.comm);
    key.site = site_at(key.site);
    key.calls = row.calls;
    key.bytes_sent = row.bytes_sent;
    key.bytes_received = row.bytes_received;
    key.noncontiguous = row.noncontiguous;
    row.key = dictionary.key(key);
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
  for (Slice& slice : told.slices) slice.comm = comm_at(slice.comm);
  slice_ns = std::max(slice_ns, told.slice_ns);
  told_slices_.emplace_back(told.slice_ns, std::move(told.slices));
  slices_folded = slices_folded || told.slices_folded;
  for (Place& place : told.places) {
    place.comm = comm_at(place.comm);
    place.site = site_at(place.site);
    places.push_back(place);
  }
  ranks.push_back(std::move(told.rank));
  return true;
}

// Ranks that ran longer have wider slices, by a power of two; the measured length of a tick differs a little between
// nodes. The middle of a slice tells in which of the widest it lies.
void Profile::settle_slices(const Dictionary::Numbers& numbers) {
  std::vector<std::uint32_t> first_of_family(comms.size());
  for (std::size_t i = comms.size(); i-- > 0;)
    first_of_family[static_cast<std::size_t>(comms[i].family)] = static_cast<std::uint32_t>(i);
  for (auto& [width, told] : told_slices_) {
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, std::size_t> known;  // of this rank
    for (Slice& slice : told) {
      slice.slot = (2 * slice.slot + 1) * width / 2 / slice_ns;
      slice.comm = numbers.comms[slice.comm];
      if (slices_folded) slice.comm = first_of_family[static_cast<std::size_t>(comms[slice.comm].family)];
      has_comm[slice.comm] = 1;
      const auto [place, is_new] = known.try_emplace({slice.comm, slice.op, slice.slot}, slices.size());
      if (is_new) {
        slices.push_back(slice);
        continue;
      }
      Slice& sum = slices[place->second];
      sum.calls += slice.calls;
      sum.time += slice.time;
      sum.bytes_sent += slice.bytes_sent;
      sum.bytes_received += slice.bytes_received;
    }
  }
  told_slices_.clear();
  std::sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
    return std::make_tuple(a.comm, a.op, a.rank, a.slot) < std::make_tuple(b.comm, b.op, b.rank, b.slot);
  });
}

void Profile::settle(Catalogue catalogue, const Dictionary::Size& own) {
  static_cast<Catalogue&>(*this) = std::move(catalogue);
  const Dictionary::Numbers numbers = dictionary.numbers_in(*this);
  const auto mark = [](std::vector<char>& has, std::size_t size, const std::vector<std::uint32_t>& in,
                       std::size_t told) {
    has.assign(size, 0);
    for (std::size_t i = 0; i < told; ++i) {
      if (in[i] < size) has[in[i]] = 1;
    }
  };
  mark(has_comm, comms.size(), numbers.comms, own.comms);
  mark(has_site, sites.size(), numbers.sites, own.sites);
  mark(has_key, keys.size(), numbers.keys, own.keys);

  std::sort(ranks.begin(), ranks.end(), [](const Rank& a, const Rank& b) { return a.facts.rank < b.facts.rank; });
  for (Row& row : rows) row.key = numbers.keys[row.key];
  std::sort(rows.begin(), rows.end(),
            [](const Row& a, const Row& b) { return std::make_pair(a.key, a.rank) < std::make_pair(b.key, b.rank); });
  settle_slices(numbers);
  for (Place& p : places) {
    p.comm = numbers.comms[p.comm];
    p.site = numbers.sites[p.site];
  }
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return std::make_pair(a.rank, a.thread) < std::make_pair(b.rank, b.thread);
  });
}

}  // namespace commlens
