// SPDX-License-Identifier: Apache-2.0
// Builds the package that one rank sends when the profile is collected.  Profile::add() in profile.cpp reads it in the
// same order.
#include "core/collect/package.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "core/base/wire.h"
#include "core/collect/package_datatypes.h"
#include "core/collect/package_threads.h"
#include "core/hot/key.h"
#include "generated/procedures.h"

namespace commlens {
namespace {

// Numbers the call sites, each after its caller; 0 stands for "none".
class Sites {
 public:
  explicit Sites(const std::function<Site(Site)>& caller_of) : caller_of_(caller_of) {}

  std::uint64_t number(Site site, int depth = 0) {
    if (site == 0 || depth > most_depth) return 0;
    const auto known = numbers_.find(site);
    if (known != numbers_.end()) return known->second;
    const std::uint64_t caller = number(caller_of_(site), depth + 1);
    const auto [entry, is_new] = numbers_.try_emplace(site, sites_.size() + 1);
    if (is_new) sites_.emplace_back(site, caller);
    return entry->second;
  }

  // Call sites and the numbers of their callers.
  const std::vector<std::pair<Site, std::uint64_t>>& all() const { return sites_; }

 private:
  static constexpr int most_depth = 128;  // in a damaged arena, callers may form a cycle
  const std::function<Site(Site)>& caller_of_;
  std::unordered_map<Site, std::uint64_t> numbers_;
  std::vector<std::pair<Site, std::uint64_t>> sites_;
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

namespace {

void write_place(WireWriter& out, RegionKey key) {
  out.number(region_of(key));
  out.number(execution_of(key));
  out.signed_number(iteration_of(key));
}

void write(WireWriter& out, const CountedRegions& regions, const TickScale& scale, bool is_estimated) {
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
    out.number(mpi_ns(sum, time, scale, is_estimated));
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

// The communicators and call sites that a package contains: those of its rows, and those to which these refer.
struct Referenced {
  explicit Referenced(const Counted& counted) : sites(counted.caller), comms(counted.comms.size(), 0) {
    for (const auto& [key, cell] : counted.cells) {
      sites.number(key.second);
      comms[comm_of_key(key.first)] = 1;
    }
    for (const Position& p : counted.positions) {
      sites.number(p.site);
      comms[p.comm] = 1;
    }
    for (const auto& [at, sum] : counted.peers) comms[comm_of_peer(at.first)] = 1;
    for (const auto& [at, sum] : counted.events) comms[comm_of_key(at.first)] = 1;
    for (const StratumSamples& stratum : counted.samples) comms[comm_of_key(stratum.key)] = 1;
    for (const ChannelSamples& channel : counted.messages) comms[comm_of_channel(channel.key)] = 1;
    // Communicators that the application created are sent even if it never used them; MPI_COMM_SELF and sets only if it
    // used them.  Children come after their parents, and sets after their members.  One pass from the end therefore
    // finds all communicators that others refer to.
    for (std::size_t i = comms.size() - 1; i > 0; --i) {
      const CommRecord& c = *counted.comms[i];
      if (c.count != 0 || c.letter == letter_world) comms[i] = 1;
      if (!comms[i]) continue;
      comms[c.parent] = 1;
      for (const std::uint32_t member : c.members) comms[member] = 1;
      sites.number(c.site);
    }
  }

  Sites sites;
  std::vector<char> comms;
};

// Writes one process; Profile::read() reads it in the same order.
class Package {
 public:
  Package(const Counted& counted, bool is_summary, const SampleLimits& limits)
      : counted_(counted), scale_(counted.scale), is_summary_(is_summary), limits_(limits), referenced_(counted) {}

  std::vector<char> bytes(Clocked collecting, const SliceLogContent& slices, bool slices_folded) {
    write_facts();
    write_sites_and_regions();
    write_comms();
    write_cells();
    write_slices(slices, slices_folded);
    write_threads(out_, is_summary_ ? CountedThreads() : counted_.threads, counted_.cells, scale_);
    write_positions();
    write(out_, counted_.regions, scale_, has_estimates(counted_.cells));
    write_series();
    write_events(out_, is_summary_ ? EventSums() : counted_.events);
    write(out_, is_summary_ ? CountedDatatypes() : counted_.datatypes, scale_);
    write(out_, is_summary_ ? Peers() : counted_.peers, slices.width);
    write_samples();
    write_channels();
    out_.number(counted_.notices.size());
    for (const NoticeText& notice : counted_.notices) {
      out_.number(static_cast<std::uint64_t>(notice.kind));
      out_.text(notice.text);
    }
    // Last, to include the time for packing.
    out_.number(collecting.since == 0 ? 0 : scale_.ns(collecting.clock() - collecting.since));
    return out_.bytes();
  }

 private:
  void write_facts() {
    const RankFacts& facts = counted_.facts;
    out_.number(static_cast<std::uint64_t>(facts.rank));
    out_.number(facts.world);
    out_.text(facts.node);
    out_.number(static_cast<std::uint64_t>(facts.pid));
    out_.text(facts.cpus);
    out_.number(facts.init_ns);
    out_.number(facts.app_ns);
    const ProcessorUse use = facts.use.value_or(ProcessorUse{});
    for (const std::uint64_t n : {std::uint64_t{facts.use.has_value()}, use.cpu, use.preempted}) out_.number(n);
    out_.number(static_cast<std::uint64_t>(facts.threads));
    out_.number(facts.own_init_ns);
    out_.number(facts.own_call_ns);
    out_.number(facts.own_wait_ns);
    out_.number(counted_.lost);
    out_.text(facts.state);
    out_.text(facts.coverage);
    out_.text(facts.settings);
  }

  void write_sites_and_regions() {
    out_.number(referenced_.sites.all().size());
    for (const auto& [site, caller] : referenced_.sites.all()) {
      counted_.place(site).write(out_);
      out_.number(caller);
    }

    // Outer regions come before those within them, because this process entered them first.
    const std::vector<RegionFacts>& regions = counted_.regions.names;
    out_.number(regions.size() - 1);
    for (std::size_t i = 1; i < regions.size(); ++i) {
      out_.number(regions[i].parent);
      out_.number(static_cast<std::uint64_t>(regions[i].kind));
      out_.text(regions[i].name);
    }
  }

  // Records are in the order of creation, so parents come before children and sets after their members.
  void write_comms() {
    const std::vector<char>& used = referenced_.comms;
    out_.number(static_cast<std::uint64_t>(std::count(used.begin() + 1, used.end(), 1)));
    for (std::size_t i = 1; i < used.size(); ++i) {
      if (used[i]) write_comm(i, *counted_.comms[i]);
    }
  }

  void write_comm(std::size_t number, const CommRecord& c) {
    out_.number(number);
    out_.number(static_cast<std::uint64_t>(c.kind));
    out_.number(in_world(c));
    out_.number(in_world(*counted_.comms[c.parent]));
    out_.number(c.op);
    out_.number(static_cast<unsigned char>(c.letter));
    out_.number(referenced_.sites.number(c.site));
    out_.signed_number(c.leader);
    out_.signed_number(c.view.rank);
    out_.signed_number(c.view.size);
    out_.signed_number(c.remote_size);
    out_.number(c.second_side ? 1 : 0);
    out_.number(c.count);
    const bool leads = c.kind != CommKind::set && c.view.rank == 0 && !c.second_side;
    out_.number(is_summary_ && !leads ? 0 : c.communicators);
    out_.number(since_start(c.created));
    out_.number(c.freed == 0 ? 0 : since_start(c.freed) + 1);
    out_.text(c.user_name);
    out_.text(c.topology);
    out_.number(c.members.size());
    for (const std::uint32_t member : c.members) out_.number(in_world(*counted_.comms[member]));
  }

  void write_cells() {
    out_.number(counted_.cells.size());
    for (const auto& [key, cell] : counted_.cells) {
      out_.number(comm_of_key(key.first));
      out_.number(op_of_key(key.first));
      out_.number(bin_of_key(key.first));
      out_.number(region_of_key(key.first));
      out_.number(referenced_.sites.number(key.second));
      out_.number(cell.calls);
      out_.number(scale_.ns(cell.time));
      out_.number(scale_.ns(cell.time_min));
      out_.number(scale_.ns(cell.time_max));
      out_.number(cell.bytes_sent);
      out_.number(cell.bytes_received);
      out_.number(noncontiguous_of_key(key.first) ? cell.calls : 0);
      out_.number(cell.untimed);
      out_.number(error_ns(cell, scale_));
    }
  }

  void write_slices(const SliceLogContent& slices, bool folded) {
    out_.number(scale_.ns(slices.width));
    out_.number(folded ? 1 : 0);
    out_.number(slices.entries.size());
    for (const SliceEntry& entry : slices.entries) {
      out_.number(is_of_region(entry.key) ? region_of_key(entry.key) : comm_of_key(entry.key));
      out_.number(op_of_key(entry.key));
      out_.number(entry.slot);
      out_.number(entry.calls);
      out_.number(scale_.ns(entry.time));
      out_.number(entry.bytes_sent);
      out_.number(entry.bytes_received);
    }
  }

  void write_series() {
    const auto& all = counted_.regions.series;
    out_.number(is_summary_ ? 0 : all.size());
    for (auto entry = all.begin(); !is_summary_ && entry != all.end(); ++entry) {
      const auto& [of, values] = *entry;
      out_.number(of.first);
      out_.number(of.second);
      out_.number(values.size());
      std::uint64_t before = 0;
      for (const auto& [number, value] : values) {
        write_place(out_, value.key);
        out_.number(number - before);
        out_.number(since_start(value.time));
        out_.real(value.value);
        before = number;
      }
    }
  }

  void write_positions() {
    out_.number(counted_.positions.size());
    for (const Position& p : counted_.positions) {
      out_.signed_number(p.thread);
      out_.number(p.inside ? 1 : 0);
      out_.number(p.op);
      out_.number(p.comm);
      out_.number(referenced_.sites.number(p.site));
      out_.number(since_start(p.since));
      out_.number(p.region);
      const auto& [to, from] = p.partners;
      for (const int n : {to.rank, to.tag, from.rank, from.tag}) out_.signed_number(n);
    }
  }

  void write_samples() {
    out_.number(combine(counted_.facts.machine, identity_of(counted_.facts.node.data(), counted_.facts.node.size())));
    out_.real(scale_.ns_per_tick());
    std::vector<StratumSamples> all;
    for (const StratumSamples& stratum : counted_.samples) {
      if (!is_summary_ && !goes_with_operations(stratum)) all.push_back(stratum);
    }
    out_.number(all.size());
    for (StratumSamples& stratum : all) {
      thin_out(stratum, identity_at(comm_of_key(stratum.key)), limits_.calls);
      out_.number(comm_of_key(stratum.key));
      out_.number(op_of_key(stratum.key));
      out_.number(bin_of_key(stratum.key));
      out_.number(stratum.samples.size());
      Sample before{};
      for (const Sample& s : stratum.samples) {
        out_.number(s.number - before.number);
        out_.signed_number(static_cast<std::int64_t>(s.entered - before.entered));
        out_.number(s.left > s.entered ? s.left - s.entered : 0);
        out_.signed_number(static_cast<std::int64_t>(s.mpi - before.mpi));
        out_.number(s.region);
        out_.number(s.flags);
        before = s;
      }
    }
  }

  // In a prefix sum or a neighbourhood collective each rank waits for others.  Such calls go with the operations, of
  // which the profile knows all members.
  static bool goes_with_operations(const StratumSamples& stratum) {
    const bool has_barrier = !stratum.samples.empty() && (stratum.samples.back().flags & SampleFlag::barrier) != 0;
    const Waits waits = op_facts[op_of_key(stratum.key)].waits;
    return (waits == Waits::lower || waits == Waits::sources) && !has_barrier;
  }
  static ChannelSamples as_operations(const StratumSamples& stratum) {
    const std::uint32_t comm = comm_of_key(stratum.key), op = op_of_key(stratum.key), bin = bin_of_key(stratum.key);
    ChannelSamples channel{operation_key(comm, op, bin, 0), stratum.level, false, {}};
    for (const Sample& s : stratum.samples) {
      channel.samples.push_back({s.number, s.entered, s.left, s.entered, make_key(comm, op, bin, s.region),
                                 static_cast<std::int32_t>(s.flags), 0});
    }
    return channel;
  }

  // Returns how many messages the process has sent to, and received from, each other one, by channel_key(); without the
  // lower half, those of all.
  std::map<std::uint64_t, std::uint64_t> messages_of_channels() const {
    std::map<std::uint64_t, std::uint64_t> messages;
    for (const auto& [at, sum] : counted_.peers) {
      const Flow flow = flow_of(at.first);
      if (flow != Flow::sent && flow != Flow::received) continue;
      messages[all_of_channel(channel_key(flow, comm_of_peer(at.first), 0))] += sum.messages;
      if (shift_of(at.second) == 0)
        messages[channel_key(flow, comm_of_peer(at.first), peer_of(at.second))] += sum.messages;
    }
    return messages;
  }
  // A key that no channel has.
  static std::uint64_t all_of_channel(std::uint64_t key) { return key | no_peer; }

  // Returns the number of operations, some of which have samples.
  static std::uint64_t operations_in(const ChannelSamples& channel) {
    if (channel.samples.empty()) return 0;
    const std::uint64_t at_least = channel.samples.back().number + 1;
    return channel.level == 0 ? at_least : std::max<std::uint64_t>(at_least, channel.samples.size() << channel.level);
  }

  // What this rank sends of a channel.
  struct Chosen {
    ChannelSamples channel;
    std::uint64_t messages, all;  // as in ChannelEnd
  };

  std::vector<Chosen> chosen_messages() const {
    const std::map<std::uint64_t, std::uint64_t> messages = messages_of_channels();
    const auto messages_of = [&](std::uint64_t key) {
      const auto found = messages.find(key);
      return found == messages.end() ? 0 : found->second;
    };
    std::vector<Chosen> chosen;
    for (const ChannelSamples& channel : counted_.messages) {
      if (is_of_operations(channel.key)) continue;
      const std::uint32_t comm = comm_of_channel(channel.key);
      const std::uint64_t to = is_of_receiver(channel.key) ? own_rank(comm) : peer_of_channel(channel.key);
      if ((combine(identity_at(comm), to) & ((std::uint64_t{1} << limits_.receivers) - 1)) != 0) continue;
      chosen.push_back({channel, messages_of(channel.key), messages_of(all_of_channel(channel.key))});
      thin_out(chosen.back().channel, identity_at(comm), limits_.messages);
    }
    return chosen;
  }

  void add_operations(std::vector<Chosen>& chosen) const {
    for (const ChannelSamples& channel : counted_.messages) {
      if (!is_of_operations(channel.key)) continue;
      const std::uint64_t all = operations_in(channel);
      chosen.push_back({thinned(channel, identity_at(comm_of_channel(channel.key))), all, all});
    }
    for (StratumSamples stratum : counted_.samples) {
      if (!goes_with_operations(stratum)) continue;
      const std::uint64_t all = operations_in(as_operations(stratum));
      thin_out(stratum, identity_at(comm_of_key(stratum.key)), limits_.operations);
      chosen.push_back({as_operations(stratum), all, all});
    }
  }

  void write_channels() {
    std::vector<Chosen> chosen;
    if (!is_summary_) {
      chosen = chosen_messages();
      add_operations(chosen);
    }
    out_.number(chosen.size());
    for (const auto& [channel, messages, all] : chosen) {
      const std::uint32_t comm = comm_of_channel(channel.key), own = own_rank(comm);
      const bool is_receiver = is_of_receiver(channel.key);
      const bool is_operation = is_of_operations(channel.key);
      const std::uint32_t peer = is_operation ? own : peer_of_channel(channel.key);
      out_.number(comm);
      out_.number(is_operation ? peer_of_channel(channel.key) : 0);
      out_.number(is_receiver ? peer : own);
      out_.number(is_receiver ? own : peer);
      out_.number(is_receiver ? 1 : 0);
      out_.number(channel.has_several_threads ? 1 : 0);
      out_.number(messages);
      out_.number(all);
      write_neighbors(channel.key);
      write_messages(channel.samples);
    }
  }

  // Writes the neighbours of this process if a channel is of neighbourhood collectives.
  void write_neighbors(std::uint64_t channel) {
    const CommView& view = counted_.comms[comm_of_channel(channel)]->view;
    const bool is_wanted = is_of_operations(channel) && view.neighbors != nullptr &&
                           op_facts[op_of_operation(peer_of_channel(channel))].waits == Waits::sources;
    std::vector<int> destinations;
    for (int i = 0; is_wanted && i < view.destination_slots; ++i) {
      if (view.neighbors[i] >= 0) destinations.push_back(view.neighbors[i]);
    }
    out_.number(destinations.size());
    for (const int rank : destinations) out_.number(static_cast<std::uint64_t>(rank));
    out_.signed_number(is_wanted ? view.sources : -1);
  }

  Identity identity_at(std::uint32_t comm) const { return counted_.comms[comm]->identity; }
  std::uint32_t own_rank(std::uint32_t comm) const {
    return static_cast<std::uint32_t>(counted_.comms[comm]->view.rank);
  }

  // Returns the samples of operations that this rank sends: whole blocks, or, if these are too many, single operations
  // of each block, which all members choose alike.
  ChannelSamples thinned(ChannelSamples channel, Identity comm) const {
    constexpr std::uint32_t block = 1u << message_block_bits;
    thin_out(channel, comm, std::max(limits_.operations, block));
    std::uint64_t step = 1;
    while (limits_.operations * step < block) step *= 2;
    const auto is_out = [&](const MessageSample& s) { return s.number % step != 0; };
    channel.samples.erase(std::remove_if(channel.samples.begin(), channel.samples.end(), is_out),
                          channel.samples.end());
    return channel;
  }

  void write_messages(const std::vector<MessageSample>& samples) {
    out_.number(samples.size());
    MessageSample before{};
    for (const MessageSample& s : samples) {
      out_.number(s.number - before.number);
      out_.signed_number(static_cast<std::int64_t>(s.entered - before.entered));
      out_.number(s.left > s.entered ? s.left - s.entered : 0);
      out_.number(s.posted == 0 || s.posted > s.entered ? 0 : s.entered - s.posted + 1);
      out_.number(comm_of_key(s.call));
      out_.number(op_of_key(s.call));
      out_.number(bin_of_key(s.call));
      out_.number(region_of_key(s.call));
      out_.signed_number(s.tag);
      out_.number(s.tags);
      before = s;
    }
  }

  // Within a process, identities are unique in one world only; combine() makes them unique across worlds.
  Identity in_world(const CommRecord& c) const {
    if (c.kind == CommKind::none) return 0;
    return combine(counted_.facts.world, is_summary_ ? c.kin : c.identity);
  }

  Ns since_start(Ticks t) const { return t <= counted_.started ? Ns{0} : scale_.ns(t - counted_.started); }

  const Counted& counted_;
  const TickScale& scale_;
  bool is_summary_;
  SampleLimits limits_;
  Referenced referenced_;
  WireWriter out_;
};

}  // namespace

std::vector<char> packed(const Counted& counted, Clocked collecting, const SlicePlan& plan,
                         const SampleLimits& limits) {
  SliceLogContent wide = counted.slices;
  if (const Ticks width = first_slice_width << plan.doublings; width > wide.width) {
    SliceLogContent empty;
    empty.width = width;
    wide = added_up({wide, empty});
  }
  return Package(counted, false, limits).bytes(collecting, wide, plan.folded);
}

std::vector<char> packed_for_summary(const Counted& counted, Clocked collecting) {
  return Package(counted, true, {}).bytes(collecting, {}, false);
}

}  // namespace commlens
