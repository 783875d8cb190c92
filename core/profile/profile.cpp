// SPDX-License-Identifier: Apache-2.0
#include "core/profile/profile.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <tuple>
#include <unordered_map>

#include "core/profile/messages.h"
#include "core/state/sums.h"

namespace commlens {

// The read functions parse the package that packed() (collect/package.cpp) writes.  read() returns false if it is cut
// off or garbled.
void Profile::read_peers(WireReader& in, RankData& data) {
  for (std::uint64_t n = in.number(); in.ok() && n > 0; --n) {
    PeerRow row{};
    row.rank = data.rank.facts.rank;
    row.comm = static_cast<std::uint32_t>(in.number());
    row.flow = static_cast<Flow>(in.number());
    row.op = static_cast<std::uint32_t>(in.number());
    row.region = static_cast<std::uint32_t>(in.number());
    row.slice = in.number();
    row.peer = static_cast<int>(in.signed_number());
    row.first = static_cast<std::uint32_t>(in.number());
    row.peers = static_cast<std::uint32_t>(in.number());
    row.bin = static_cast<std::uint32_t>(in.number());
    row.call = static_cast<std::uint32_t>(in.number());
    row.messages = in.number();
    row.bytes = in.number();
    data.peer_rows.push_back(row);
  }
}

void Profile::read_samples(WireReader& in, RankData& data) {
  RankClock& clock = data.rank.clock;
  clock.machine = in.number();
  clock.ns_per_tick = in.real();
  for (std::uint64_t n = in.number(); in.ok() && n > 0; --n) {
    SampleRow row{};
    row.rank = data.rank.facts.rank;
    row.comm = static_cast<std::uint32_t>(in.number());
    row.op = static_cast<std::uint32_t>(in.number());
    row.bin = static_cast<std::uint32_t>(in.number());
    for (std::uint64_t m = in.number(); in.ok() && m > 0; --m) {
      row.number += in.number();
      row.entered += static_cast<Ticks>(in.signed_number());
      row.spent = in.number();
      row.mpi += static_cast<Ticks>(in.signed_number());
      row.region = static_cast<std::uint32_t>(in.number());
      row.flags = static_cast<std::uint32_t>(in.number());
      data.samples.push_back(row);
    }
  }
}

void Profile::read_channels_of(WireReader& in, RankData& data) {
  for (std::uint64_t n = in.number(); in.ok() && n > 0; --n) {
    ChannelEnd end;
    end.rank = data.rank.facts.rank;
    end.comm = static_cast<std::uint32_t>(in.number());
    end.operation = static_cast<std::uint32_t>(in.number());
    end.from = static_cast<int>(in.number());
    end.to = static_cast<int>(in.number());
    end.is_receiver = in.number() != 0;
    end.has_several_threads = in.number() != 0;
    end.messages = in.number();
    end.all = in.number();
    for (std::uint64_t m = in.number(); in.ok() && m > 0; --m)
      end.destinations.push_back(static_cast<int>(in.number()));
    end.sources = static_cast<int>(in.signed_number());
    MessageRow row;
    for (std::uint64_t m = in.number(); in.ok() && m > 0; --m) {
      row.number += in.number();
      row.entered += static_cast<Ticks>(in.signed_number());
      row.left = row.entered + in.number();
      const std::uint64_t before = in.number();
      row.posted = before == 0 ? 0 : row.entered - (before - 1);
      for (std::uint32_t* const field : {&row.comm, &row.op, &row.bin, &row.region})
        *field = static_cast<std::uint32_t>(in.number());
      row.tag = static_cast<int>(in.signed_number());
      row.tags = static_cast<std::uint32_t>(in.number());
      end.samples.push_back(row);
    }
    data.channels.push_back(std::move(end));
  }
}

void Profile::read_facts(WireReader& in, RankData& data) {
  RankFacts& facts = data.rank.facts;
  facts.rank = static_cast<int>(in.number());
  facts.world = in.number();
  facts.node = in.text();
  facts.pid = static_cast<int>(in.number());
  facts.cpus = in.text();
  facts.init_ns = in.number();
  facts.app_ns = in.number();
  const bool has_use = in.number() != 0;
  ProcessorUse use;
  use.cpu = in.number();
  use.preempted = in.number();
  if (has_use) facts.use = use;
  facts.threads = static_cast<int>(in.number());
  facts.own_init_ns = in.number();
  facts.own_call_ns = in.number();
  facts.own_wait_ns = in.number();
  data.rank.lost_calls = in.number();
  facts.state = in.text();
  facts.coverage = in.text();
  facts.settings = in.text();
}

void Profile::read_names(WireReader& in, RankData& data) {
  for (std::uint64_t n = in.number(); in.ok() && n > 0; --n) {
    data.sites.push_back(SiteFacts::read(in));
    data.sites.back().caller = static_cast<std::uint32_t>(in.number());
  }

  for (std::uint64_t n = in.number(); in.ok() && n > 0; --n) {
    RegionFacts region;
    region.parent = static_cast<std::uint32_t>(in.number());
    region.kind = static_cast<RegionKind>(in.number());
    region.name = in.text();
    data.regions.push_back(std::move(region));
  }
}

void Profile::read_comms(WireReader& in, RankData& data) {
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
    draft.world_rank = data.rank.facts.rank;
    draft.count = static_cast<std::uint32_t>(in.number());
    draft.comm.communicators = static_cast<std::uint32_t>(in.number());
    draft.comm.created_ns = static_cast<std::int64_t>(in.number());
    draft.comm.freed_ns = static_cast<std::int64_t>(in.number() - 1);
    draft.comm.user_name = in.text();
    draft.comm.topology = in.text();
    for (std::uint64_t m = in.number(); in.ok() && m > 0; --m) draft.set.push_back(in.number());
    data.comms.emplace_back(local, std::move(draft));
  }
}

void Profile::read_cells(WireReader& in, RankData& data) {
  for (std::uint64_t n = in.number(); in.ok() && n > 0; --n) {
    KeyFacts key{};
    key.comm = static_cast<std::uint32_t>(in.number());
    key.op = static_cast<std::uint32_t>(in.number());
    key.bin = static_cast<std::uint32_t>(in.number());
    key.region = static_cast<std::uint32_t>(in.number());
    key.site = static_cast<std::uint32_t>(in.number());
    Row row{};
    row.rank = data.rank.facts.rank;
    row.calls = in.number();
    row.time = in.number();
    row.time_min = in.number();
    row.time_max = in.number();
    row.bytes_sent = in.number();
    row.bytes_received = in.number();
    row.noncontiguous = in.number();
    row.untimed = in.number();
    row.time_error = in.number();
    data.cells.emplace_back(key, row);
  }
}

void Profile::read_slices(WireReader& in, RankData& data) {
  data.slice_ns = std::max<Ns>(in.number(), 1);
  data.slices_folded = in.number() != 0;
  for (std::uint64_t n = in.number(); in.ok() && n > 0; --n) {
    Slice slice{};
    slice.rank = data.rank.facts.rank;
    slice.comm = static_cast<std::uint32_t>(in.number());
    slice.op = static_cast<std::uint32_t>(in.number());
    slice.slot = in.number();
    slice.calls = in.number();
    slice.time = in.number();
    slice.bytes_sent = in.number();
    slice.bytes_received = in.number();
    data.slices.push_back(slice);
  }
}

void Profile::read_last_calls(WireReader& in, RankData& data) {
  for (std::uint64_t n = in.number(); in.ok() && n > 0; --n) {
    LastCall place{};
    place.rank = data.rank.facts.rank;
    place.thread = static_cast<int>(in.signed_number());
    place.inside = in.number() != 0;
    place.op = static_cast<std::uint32_t>(in.number());
    place.comm = static_cast<std::uint32_t>(in.number());
    place.site = static_cast<std::uint32_t>(in.number());
    place.since = in.number();
    place.region = static_cast<std::uint32_t>(in.number());
    auto& [to, from] = place.partners;
    for (int* const end : {&to.rank, &to.tag, &from.rank, &from.tag}) *end = static_cast<int>(in.signed_number());
    data.last_calls.push_back(place);
  }
}

bool Profile::read(WireReader& in, RankData& data) {
  read_facts(in, data);
  read_names(in, data);
  read_comms(in, data);
  read_cells(in, data);
  read_slices(in, data);
  read_threads(in, data);
  read_last_calls(in, data);
  read_regions(in, data);
  read_series(in, data);
  read_events(in, data);
  read_datatypes(in, data);
  read_peers(in, data);
  read_samples(in, data);
  read_channels_of(in, data);
  for (std::uint64_t n = in.number(); in.ok() && n > 0; --n) {
    const auto kind = static_cast<Notice>(in.number());
    data.notices.push_back({kind, in.text()});
  }
  data.rank.facts.own_collect_ns = in.number();
  return in.ok();
}

void Profile::add_cells(RankData& data) {
  // Different keys of a rank may be equal here, for example those of a library that is loaded twice, or of calls with
  // and without a contiguous datatype.  They become one row.
  std::unordered_map<std::uint32_t, std::size_t> row_of_key;
  for (auto& [key, row] : data.cells) {
    key.calls = row.calls;
    key.bytes_sent = row.bytes_sent;
    key.bytes_received = row.bytes_received;
    key.noncontiguous = row.noncontiguous;
    row.key = dictionary.key(key);
    data.rank.calls += row.calls;
    data.rank.mpi_ns += row.time;
    const auto [place, is_first] = row_of_key.try_emplace(row.key, rows.size());
    if (is_first) {
      rows.push_back(row);
      continue;
    }
    Row& sum = rows[place->second];
    add_calls_and_untimed(sum, row);
    sum.noncontiguous += row.noncontiguous;
    const auto one = static_cast<double>(sum.time_error), other = static_cast<double>(row.time_error);
    sum.time_error = static_cast<Ns>(std::ceil(std::sqrt(one * one + other * other)));  // glibc has a new std::hypot()
  }
}

namespace {

SampleRow numbered(SampleRow row, std::uint32_t comm, std::uint32_t region) {
  row.comm = comm;
  row.region = region;
  return row;
}

// Gives communicators and regions other numbers.
template <class CommAt, class RegionAt>
void number_channels(ChannelEnds& ends, CommAt comm_at, RegionAt region_at) {
  for (ChannelEnd& end : ends) {
    end.comm = comm_at(end.comm);
    for (MessageRow& row : end.samples) {
      row.comm = comm_at(row.comm);
      row.region = region_at(row.region);
    }
  }
}

}  // namespace

bool Profile::add(const char* bytes, std::size_t size) {
  WireReader in(bytes, size);
  RankData data;
  if (!read(in, data)) return false;
  if (!dictionary.add_text(TextKind::imports, std::move(data.rank.facts.coverage))) return false;
  if (!dictionary.add_text(TextKind::settings, std::move(data.rank.facts.settings))) return false;
  dictionary.add_rank(data.rank.facts.rank);
  world_size = std::max(world_size, data.rank.facts.rank + 1);

  const std::vector<std::uint32_t> site_numbers = add_sites(data);
  const auto site_at = [&](std::uint32_t n) { return n < site_numbers.size() ? site_numbers[n] : 0; };
  const std::vector<std::uint32_t> region_numbers = add_region_names(data);
  const auto region_at = [&](std::uint32_t n) { return n < region_numbers.size() ? region_numbers[n] : 0; };
  add_regions(data, region_numbers);

  std::unordered_map<std::uint64_t, std::uint32_t> comm_numbers{{0, 0}};
  for (auto& [local, draft] : data.comms) {
    draft.comm.site = static_cast<int>(site_at(static_cast<std::uint32_t>(draft.comm.site)));
    comm_numbers[local] = dictionary.comm(std::move(draft));
  }

  const auto comm_at = [&](std::uint32_t n) {
    const auto found = comm_numbers.find(n);
    return found == comm_numbers.end() ? 0 : found->second;
  };

  for (auto& [key, row] : data.cells) {
    key.comm = comm_at(key.comm);
    key.site = site_at(key.site);
    key.region = region_at(key.region);
  }
  add_cells(data);
  add_threads(data, region_numbers);
  for (DatatypeRow& row : data.datatype_rows) row.comm = comm_at(row.comm);
  add_datatypes(data);
  for (Slice& slice : data.slices) slice.comm = slice.op == region_op ? region_at(slice.comm) : comm_at(slice.comm);
  for (EventRow& row : data.event_rows) row.comm = comm_at(row.comm);  // add_regions() has numbered the rest
  event_rows.insert(event_rows.end(), data.event_rows.begin(), data.event_rows.end());
  slice_ns = std::max(slice_ns, data.slice_ns);
  rank_slices_.emplace_back(data.slice_ns, std::move(data.slices));
  slices_folded = slices_folded || data.slices_folded;
  for (PeerRow& row : data.peer_rows) {
    row.comm = comm_at(row.comm);
    row.region = region_at(row.region);
  }
  rank_peers_.emplace_back(data.slice_ns, std::move(data.peer_rows));
  for (SampleRow& row : data.samples) samples.push_back(numbered(row, comm_at(row.comm), region_at(row.region)));
  number_channels(data.channels, comm_at, region_at);
  std::move(data.channels.begin(), data.channels.end(), std::back_inserter(channels));
  for (LastCall& place : data.last_calls) {
    place.comm = comm_at(place.comm);
    place.site = site_at(place.site);
    place.region = region_at(place.region);
    last_calls.push_back(place);
  }
  for (NoticeText& notice : data.notices)
    add_oddities(oddities, {{notice.kind, {data.rank.facts.rank, std::move(notice.text), 1}}});
  ranks.push_back(std::move(data.rank));
  return true;
}

// Returns the numbers of a rank's regions, which come after their parents.
std::vector<std::uint32_t> Profile::add_region_names(RankData& data) {
  std::vector<std::uint32_t> numbers{0};
  for (RegionFacts& region : data.regions) {
    const std::uint32_t parent = region.parent < numbers.size() ? numbers[region.parent] : 0;
    numbers.push_back(dictionary.region(parent, region.kind, std::move(region.name)));
  }
  return numbers;
}

// Returns the numbers of a rank's call sites, which come after their callers.
std::vector<std::uint32_t> Profile::add_sites(RankData& data) {
  std::vector<std::uint32_t> numbers{0};
  for (SiteFacts& site : data.sites) {
    site.caller = site.caller < numbers.size() ? numbers[site.caller] : 0;
    numbers.push_back(dictionary.site(std::move(site)));
  }
  return numbers;
}

// Converts the slices of each rank to the widest slices of all ranks.  Ranks that ran longer have wider slices, by a
// power of two, and the measured length of a tick differs slightly between nodes.  The middle of a slice determines in
// which wider slice it is counted.
void Profile::settle_slices(const Dictionary::Numbers& numbers) {
  std::vector<std::uint32_t> first_of_family(comms.size());
  for (std::size_t i = comms.size(); i-- > 0;)
    first_of_family[static_cast<std::size_t>(comms[i].family)] = static_cast<std::uint32_t>(i);
  for (auto& [width, data] : rank_slices_) {
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, std::size_t> known;  // of this rank
    for (Slice& slice : data) {
      slice.slot = (2 * slice.slot + 1) * width / 2 / slice_ns;
      if (slice.op == region_op) {
        slice.comm = numbers.regions[slice.comm];
      } else {
        slice.comm = numbers.comms[slice.comm];
        if (slices_folded) slice.comm = first_of_family[static_cast<std::size_t>(comms[slice.comm].family)];
        has_comm[slice.comm] = 1;
      }
      const auto [place, is_new] = known.try_emplace({slice.comm, slice.op, slice.slot}, slices.size());
      if (is_new) {
        slices.push_back(slice);
        continue;
      }
      add_counters(slices[place->second], slice);
    }
  }
  rank_slices_.clear();
  std::sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
    return std::make_tuple(a.comm, a.op, a.rank, a.slot) < std::make_tuple(b.comm, b.op, b.rank, b.slot);
  });
}

// Converts slices as settle_slices() does, and merges rows that are equal then.
void Profile::settle_peers(const Dictionary::Numbers& numbers) {
  const auto place = [](const PeerRow& row) {
    return std::make_tuple(row.comm, row.flow, row.op, row.call, row.region, row.slice, row.rank, row.peer, row.first,
                           row.peers, row.bin);
  };
  for (auto& [width, data] : rank_peers_) {
    for (PeerRow& row : data) {
      row.comm = numbers.comms[row.comm];
      row.region = numbers.regions[row.region];
      row.slice = (2 * row.slice + 1) * width / 2 / slice_ns;
      has_comm[row.comm] = 1;
      peer_rows.push_back(row);
    }
  }
  rank_peers_.clear();
  std::sort(peer_rows.begin(), peer_rows.end(),
            [&place](const PeerRow& a, const PeerRow& b) { return place(a) < place(b); });
  std::size_t kept = 0;
  for (const PeerRow& row : peer_rows) {
    if (kept != 0 && place(peer_rows[kept - 1]) == place(row)) {
      peer_rows[kept - 1].messages += row.messages;
      peer_rows[kept - 1].bytes += row.bytes;
    } else {
      peer_rows[kept++] = row;
    }
  }
  peer_rows.resize(kept);
}

void Profile::finish() {
  settle(dictionary.catalogue(), dictionary.size());
  split_samples();
}

void Profile::split_samples() {
  if (has_machines(*this)) {
    clocks = related(clock_facts(*this), *this);
    set_lines(*this, clocks);
  }
  SampledCalls calls = sampled_calls(*this);
  split(*this, calls);
  sum_up(*this, calls);
  settle_channels(*this);
  const SplitMessages messages = split_messages(channels);
  sum_up(*this, messages, add_waiting(*this, messages));
}

void Profile::settle(Catalogue catalogue, const Dictionary::Size& own) {
  static_cast<Catalogue&>(*this) = std::move(catalogue);
  const Dictionary::Numbers numbers = dictionary.numbers_in(*this);
  const auto mark = [](std::vector<char>& has, std::size_t size, const std::vector<std::uint32_t>& in,
                       std::size_t data) {
    has.assign(size, 0);
    for (std::size_t i = 0; i < data; ++i) {
      if (in[i] < size) has[in[i]] = 1;
    }
  };
  mark(has_comm, comms.size(), numbers.comms, own.comms);
  mark(has_site, sites.size(), numbers.sites, own.sites);
  mark(has_region, regions.size(), numbers.regions, own.regions);
  mark(has_metric, metrics.size(), numbers.metrics, own.metrics);
  mark(has_datatype, datatypes.size(), numbers.datatypes, own.datatypes);
  mark(has_key, keys.size(), numbers.keys, own.keys);

  std::sort(ranks.begin(), ranks.end(), [](const Rank& a, const Rank& b) { return a.facts.rank < b.facts.rank; });
  for (Row& row : rows) row.key = numbers.keys[row.key];
  std::sort(rows.begin(), rows.end(),
            [](const Row& a, const Row& b) { return std::make_pair(a.key, a.rank) < std::make_pair(b.key, b.rank); });
  settle_slices(numbers);
  settle_peers(numbers);
  settle_regions(numbers);
  settle_threads(numbers);
  settle_datatypes(numbers);
  for (SampleRow& row : samples) {
    row.comm = numbers.comms[row.comm];
    row.region = numbers.regions[row.region];
  }
  number_channels(
      channels, [&](std::uint32_t n) { return numbers.comms[n]; }, [&](std::uint32_t n) { return numbers.regions[n]; });
  for (LastCall& p : last_calls) {
    p.comm = numbers.comms[p.comm];
    p.site = numbers.sites[p.site];
    p.region = numbers.regions[p.region];
  }
  std::sort(last_calls.begin(), last_calls.end(), [](const LastCall& a, const LastCall& b) {
    return std::make_pair(a.rank, a.thread) < std::make_pair(b.rank, b.thread);
  });
}

void add_oddities(Profile::Oddities& to, const Profile::Oddities& more) {
  for (const auto& [kind, oddity] : more) {
    const auto [place, is_new] = to.try_emplace(kind, oddity);
    if (is_new) continue;
    Profile::Oddity& known = place->second;
    if (oddity.rank < known.rank) {
      known.rank = oddity.rank;
      known.text = oddity.text;
    }
    known.ranks += oddity.ranks;
  }
}

void write_oddities(WireWriter& out, const Profile::Oddities& oddities) {
  out.number(oddities.size());
  for (const auto& [kind, oddity] : oddities) {
    out.number(static_cast<std::uint64_t>(kind));
    out.signed_number(oddity.rank);
    out.text(oddity.text);
    out.number(oddity.ranks);
  }
}

void read_oddities(WireReader& in, Profile::Oddities& to) {
  for (std::uint64_t n = in.number(); in.ok() && n > 0; --n) {
    const auto kind = static_cast<Notice>(in.number());
    Profile::Oddity oddity;
    oddity.rank = static_cast<int>(in.signed_number());
    oddity.text = in.text();
    oddity.ranks = in.number();
    add_oddities(to, {{kind, oddity}});
  }
}

}  // namespace commlens
