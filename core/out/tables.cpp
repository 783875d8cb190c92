// SPDX-License-Identifier: Apache-2.0
#include "core/out/tables.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include "core/base/ticks.h"
#include "core/out/utf8.h"
#include "generated/procedures.h"
#include "generated/schema_rows.h"

namespace commlens::out {
namespace {

const char* kind_name(CommKind kind) {
  switch (kind) {
    case CommKind::intra: return "intra";
    case CommKind::inter: return "inter";
    case CommKind::set: return "set";
    case CommKind::none: break;
  }
  return "none";
}

const char* kind_name(RegionKind kind) {
  switch (kind) {
    case RegionKind::region: return "region";
    case RegionKind::loop: return "loop";
    case RegionKind::others: return "others";
    case RegionKind::program: break;
  }
  return "program";
}

constexpr struct {
  const char* name;
  bool outward;
} flows[] = {{"sent", true},     {"received", false}, {"put", true},        {"get", false},       {"collective", true},
             {"internal", true}, {"share", true},     {"one_to_all", true}, {"all_to_one", true}, {"all_to_all", true}};
static_assert(std::size(flows) == static_cast<std::size_t>(Flow::collective_send));

// Returns the row of table flow: how a message was posted is a column of its own.
int flow_id(Flow flow) { return static_cast<int>(is_collective(flow) ? Flow::collective : flow); }

// Returns how a message inside a collective was posted; null: it is another message.
Text posted_name(Flow flow) {
  switch (flow) {
    case Flow::collective: return "isend";
    case Flow::collective_send: return "send";
    case Flow::collective_start: return "start";
    default: return null;
  }
}

const char* name_of(Profile::Counter counter) {
  constexpr const char* names[] = {"calls",          "time_ns",       "time_min_ns",  "time_max_ns",  "bytes_sent",
                                   "bytes_received", "noncontiguous", "untimed",      "init_ns",      "app_ns",
                                   "mpi_ns",         "outside_ns",    "threads",      "lost_calls",   "own_init_ns",
                                   "own_collect_ns", "own_call_ns",   "own_calls_ns", "exclusive_ns", "own_wait_ns",
                                   "cpu_ns",         "preempted"};
  static_assert(std::size(names) == static_cast<std::size_t>(Profile::Counter::preempted) + 1);
  return names[static_cast<std::size_t>(counter)];
}

// Returns a size bin as profiles store it: bins that are no size are negative.
bool leaves_out(Part part, const std::vector<char>& has, std::size_t i) { return part == Part::shard && has[i] == 0; }

void fill_meta(Database& db, const Meta& meta) {
  Insert<rows::Meta> insert(db);
  for (const auto& [key, value] : meta) {
    rows::Meta row;
    row.key = key;
    row.value = value;
    insert(row);
  }
}

rows::Comm row_of(const Profile::Comm& c, std::size_t id) {
  const bool is_real = c.kind == CommKind::intra || c.kind == CommKind::inter;
  rows::Comm row;
  row.id = id;
  row.hash = c.identity;
  row.name = c.name;
  row.user_name = text_or_null(c.user_name);
  row.kind = kind_name(c.kind);
  row.parent = known(c.parent);
  row.creator = c.op == 0 ? Integer(null) : Integer(c.op);
  row.callsite = known(c.site);
  row.size = is_real ? Integer(c.size) : Integer(null);
  row.remote_size = c.kind == CommKind::inter ? Integer(c.remote_size) : Integer(null);
  row.leader = known(c.leader);
  row.members = text_or_null(c.members);
  row.topology = text_or_null(c.topology);
  row.created_ns = is_real ? known(c.created_ns) : Integer(null);
  row.freed_ns = known(c.freed_ns);
  row.family = c.family;
  row.communicators = c.communicators;
  return row;
}

void fill_comms(Database& db, const Profile& profile, Part part) {
  Insert<rows::Comm> insert(db);
  Insert<rows::CommSet> insert_member(db);
  for (std::size_t i = 0; i < profile.comms.size(); ++i) {
    if (leaves_out(part, profile.has_comm, i)) continue;
    insert(row_of(profile.comms[i], i));
    for (const int member : profile.comms[i].set) {
      rows::CommSet row;
      row.comm = i;
      row.member = member;
      insert_member(row);
    }
  }
}

void fill_flows(Database& db) {
  Insert<rows::Flow> insert(db);
  for (std::size_t id = 0; id < std::size(flows); ++id) {
    rows::Flow row;
    row.id = id;
    row.name = flows[id].name;
    row.outward = flows[id].outward;
    insert(row);
  }
}

void fill_region_names(Database& db, const Profile& profile, Part part) {
  Insert<rows::Region> insert(db);
  for (std::size_t i = 0; i < profile.regions.size(); ++i) {
    if (i != 0 && leaves_out(part, profile.has_region, i)) continue;
    const Profile::Region& r = profile.regions[i];
    rows::Region row;
    row.id = i;
    row.parent = known(r.parent);
    row.name = r.name;
    row.kind = kind_name(r.kind);
    insert(row);
  }
}

void fill_metrics(Database& db, const Profile& profile, Part part) {
  Insert<rows::Metric> insert(db);
  for (std::size_t i = 1; i < profile.metrics.size(); ++i) {
    if (leaves_out(part, profile.has_metric, i)) continue;
    rows::Metric row;
    row.id = i;
    row.name = profile.metrics[i].name;
    row.unit = profile.metrics[i].unit;
    insert(row);
  }
}

void fill_tags(Database& db, const Profile& profile, Part part) {
  Insert<rows::Tag> insert(db, EqualKeys::skip);
  for (const Profile::Tag& tag : profile.tags) {
    if (tag.region != 0 && leaves_out(part, profile.has_region, tag.region)) continue;
    rows::Tag row;
    row.region = tag.region;
    row.name = tag.name;
    row.value = tag.value;
    insert(row);
  }
}

void fill_settings(Database& db, const Profile& profile) {
  Insert<rows::Setting> insert(db);
  for (const auto& [setting, ranks] : profile.dictionary.settings(utf8)) {
    rows::Setting row;
    row.source = std::get<0>(setting);
    row.name = std::get<1>(setting);
    row.value = std::get<2>(setting);
    row.ranks = ranks;
    insert(row);
  }
}

void fill_coverage(Database& db, const Profile& profile) {
  Insert<rows::Coverage> insert(db, EqualKeys::skip);
  for (const auto& [name, imported] : profile.dictionary.coverage()) {
    const auto [state, reason] = explained(name.first, imported.treatment);
    rows::Coverage row;
    row.symbol = name.first;
    row.object = name.second;
    row.procedure = procedure_of(name.first);
    row.state = state;
    row.reason = text_or_null(reason);
    row.ranks = imported.ranks;
    insert(row);
  }
}

void fill_sites(Database& db, const Profile& profile, Part part) {
  Insert<rows::Callsite> insert(db);
  for (std::size_t i = 0; i < profile.sites.size(); ++i) {
    if (leaves_out(part, profile.has_site, i)) continue;
    const SiteFacts& s = profile.sites[i];
    rows::Callsite row;
    row.id = i;
    row.module = s.module;
    row.build_id = s.build_id;
    row.offset = s.offset;
    row.caller = s.caller == 0 ? Integer(null) : Integer(s.caller);
    insert(row);
  }
}

void fill_keys(Database& db, const Profile& profile, Part part) {
  Insert<rows::Key> insert(db);
  for (std::size_t i = 0; i < profile.keys.size(); ++i) {
    if (leaves_out(part, profile.has_key, i)) continue;
    const Profile::KeyFacts& k = profile.keys[i];
    rows::Key row;
    row.id = id_of(profile, i);
    row.comm = k.comm;
    row.op = k.op;
    row.bin = stored_bin(static_cast<std::uint32_t>(k.bin));
    row.region = k.region;
    row.callsite = k.site;
    row.usual_calls = k.calls;
    row.usual_sent = k.bytes_sent;
    row.usual_received = k.bytes_received;
    row.usual_noncontig = k.noncontiguous;
    insert(row);
  }
}

void fill_rank_facts(Database& db, const Profile& profile) {
  Insert<rows::Rank> insert(db);
  for (const Profile::Rank& r : profile.ranks) {
    rows::Rank row;
    row.rank = r.facts.rank;
    row.world = r.facts.world;
    row.node = r.facts.node;
    row.pid = r.facts.pid;
    row.cpus = r.facts.cpus;
    row.init_ns = r.facts.init_ns;
    row.app_ns = r.facts.app_ns;
    row.mpi_ns = r.mpi_ns;
    row.threads = r.facts.threads;
    row.calls = r.calls;
    row.lost_calls = r.lost_calls;
    row.state = r.facts.state;
    row.cpu_ns = r.facts.use ? Integer(r.facts.use->cpu) : Integer(null);
    row.preempted = r.facts.use ? Integer(r.facts.use->preempted) : Integer(null);
    insert(row);
  }
}

void fill_cells(Database& db, const Profile& profile) {
  Insert<rows::CellRow> insert(db);
  rows::CellRow row;
  for (const Profile::Row& r : profile.rows) {
    const Profile::KeyFacts& k = profile.keys[r.key];
    row.id = id_of(profile, r.key) + r.rank;
    row.calls = r.calls - k.calls;
    row.time_ns = r.time;
    row.time_min_ns = r.time_min;
    row.time_max_ns = r.time_max;
    row.bytes_sent = r.bytes_sent - k.bytes_sent;
    row.bytes_received = r.bytes_received - k.bytes_received;
    row.noncontiguous = r.noncontiguous - k.noncontiguous;
    insert(row);
  }
}

void fill_slices(Database& db, const Profile& profile) {
  Insert<rows::Slice> insert(db);
  Insert<rows::RegionSlice> insert_region(db);
  for (const Profile::Slice& s : profile.slices) {
    if (s.op == region_op) {
      rows::RegionSlice row;
      row.region = s.comm;
      row.rank = s.rank;
      row.slot = s.slot;
      row.calls = s.calls;
      row.exclusive_ns = s.time;
      insert_region(row);
      continue;
    }
    rows::Slice row;
    row.comm = s.comm;
    row.op = s.op;
    row.rank = s.rank;
    row.slot = s.slot;
    row.calls = s.calls;
    row.time_ns = s.time;
    row.bytes_sent = s.bytes_sent;
    row.bytes_received = s.bytes_received;
    insert(row);
  }
}

Integer known_partner(int n) { return n == no_partner ? Integer(null) : Integer(n); }

void fill_positions(Database& db, const Profile& profile) {
  Insert<rows::Position> insert(db);
  for (const Profile::LastCall& p : profile.last_calls) {
    rows::Position row;
    row.rank = p.rank;
    row.thread = p.thread;
    row.inside = p.inside;
    row.op = p.op;
    row.comm = p.comm;
    row.callsite = p.site;
    row.since_ns = p.since;
    row.region = p.region;
    row.dest = known_partner(p.partners.to.rank);
    row.dest_tag = known_partner(p.partners.to.tag);
    row.source = known_partner(p.partners.from.rank);
    row.source_tag = known_partner(p.partners.from.tag);
    insert(row);
  }
}

// Fills in what commlens cost; the phases only on the rank that writes.
void fill_overhead(Database& db, const Profile& profile, const Phases& phases, Gap& gap) {
  Insert<rows::Overhead> insert(db);
  const auto add = [&insert](int rank, const char* what, std::uint64_t ns) {
    rows::Overhead row;
    row.rank = rank;
    row.what = what;
    row.ns = ns;
    insert(row);
  };
  for (const Profile::Rank& r : profile.ranks) {
    add(r.facts.rank, "call", r.facts.own_call_ns);
    add(r.facts.rank, "calls", r.facts.own_call_ns * r.calls);
    add(r.facts.rank, "collect", r.facts.own_collect_ns);
    add(r.facts.rank, "init", r.facts.own_init_ns);
    add(r.facts.rank, "wait", r.facts.own_wait_ns);
  }
  if (phases.begin == 0) return;
  const int writer = profile.ranks.empty() ? 0 : profile.ranks.front().facts.rank;
  const TickScale scale = TickScale::since_start();
  const Ticks built = phases.clock();
  add(writer, "gather", scale.ns(phases.gathered - phases.collected));
  add(writer, "agree", scale.ns(phases.agreed - phases.gathered));
  add(writer, "split", scale.ns(phases.split));
  add(writer, "write", scale.ns(built - phases.agreed));
  add(writer, "store", gap.open(built));
}

void fill_region_times(Database& db, const Profile& profile) {
  Insert<rows::RegionTime> insert(db);
  for (const Profile::RegionRow& r : profile.region_rows) {
    rows::RegionTime row;
    row.region = r.within.region;
    row.execution = r.within.execution;
    row.iteration = r.within.iteration;
    row.rank = r.rank;
    row.calls = r.calls;
    row.open = r.open;
    row.time_ns = r.time;
    row.time_min_ns = r.time_min;
    row.time_max_ns = r.time_max;
    row.nested_ns = r.nested;
    row.mpi_ns = r.mpi;
    insert(row);
  }
}

void fill_loops(Database& db, const Profile& profile) {
  Insert<rows::LoopTime> insert(db);
  for (const Profile::RegionRow& r : profile.loop_rows) {
    rows::LoopTime row;
    row.region = r.within.region;
    row.execution = r.within.execution;
    row.iteration = r.within.iteration;
    row.rank = r.rank;
    row.iterations = r.calls;
    row.time_ns = r.time;
    row.time_min_ns = r.time_min;
    row.time_max_ns = r.time_max;
    row.nested_ns = r.nested;
    row.mpi_ns = r.mpi;
    insert(row);
  }
  Insert<rows::LoopBin> insert_bin(db);
  for (const Profile::LoopRow& r : profile.loop_bins) {
    for (std::size_t bin = 0; bin < r.bins.size(); ++bin) {
      if (r.bins[bin] == 0) continue;
      rows::LoopBin row;
      row.region = r.within.region;
      row.execution = r.within.execution;
      row.rank = r.rank;
      row.bin = bin;
      row.iterations = r.bins[bin];
      insert_bin(row);
    }
  }
}

void fill_metric_values(Database& db, const Profile& profile) {
  Insert<rows::MetricValue> insert(db);
  for (const Profile::MetricRow& r : profile.metric_rows) {
    const auto if_any = [&r](double value) { return r.count == 0 ? Real(null) : Real(value); };
    rows::MetricValue row;
    row.metric = r.metric;
    row.region = r.within.region;
    row.execution = r.within.execution;
    row.iteration = r.within.iteration;
    row.rank = r.rank;
    row.count = r.count;
    row.sum = r.sum;
    row.min = if_any(r.min);
    row.max = if_any(r.max);
    row.last = if_any(r.last);
    row.not_finite = r.not_finite;
    insert(row);
  }
}

void fill_series(Database& db, const Profile& profile) {
  Insert<rows::MetricSeries> insert(db);
  for (const Profile::SeriesRow& r : profile.series_rows) {
    rows::MetricSeries row;
    row.metric = r.metric;
    row.rank = r.rank;
    row.thread = r.thread;
    row.number = r.number;
    row.time_ns = r.time;
    row.region = r.within.region;
    row.execution = r.within.execution;
    row.iteration = r.within.iteration;
    row.value = r.value;
    insert(row);
  }
}

void fill_events(Database& db, const Profile& profile) {
  Insert<rows::EventCount> insert(db);
  for (const Profile::EventRow& r : profile.event_rows) {
    rows::EventCount row;
    row.metric = r.metric;
    row.region = r.region;
    row.comm = r.comm;
    row.op = r.op;
    row.rank = r.rank;
    row.count = r.count;
    row.enabled_ns = r.enabled;
    row.running_ns = r.running;
    insert(row);
  }
}

rows::Scope row_of(const Profile& profile, const Profile::Line& line, std::size_t id) {
  rows::Scope row;
  row.id = id;
  row.family = known(line.family);
  row.comm = known(line.comm);
  row.op = known(line.op);
  row.bin = line.bin < 0 ? Integer(null) : Integer(stored_bin(static_cast<std::uint32_t>(line.bin)));
  row.callsite = known(line.site);
  row.key = line.key < 0 ? Integer(null) : Integer(id_of(profile, static_cast<std::size_t>(line.key)));
  row.members = known(line.members);
  row.region = known(line.region);
  return row;
}

rows::Spread row_of(Profile::Counter counter, const Spread& s, std::size_t scope) {
  const bool is_extreme = counter == Profile::Counter::time_min || counter == Profile::Counter::time_max;
  const auto quantile = [&s](double share) { return s.min == s.max ? Integer(null) : Integer(s.at(share)); };
  rows::Spread row;
  row.scope = scope;
  row.counter = name_of(counter);
  row.ranks = s.ranks;
  row.sum = is_extreme ? Integer(null) : Integer(s.sum);
  row.min = s.min;
  row.min_rank = s.min_rank;
  row.max = s.max;
  row.max_rank = s.max_rank;
  row.p05 = quantile(0.05);
  row.p25 = quantile(0.25);
  row.p50 = quantile(0.5);
  row.p75 = quantile(0.75);
  row.p95 = quantile(0.95);
  return row;
}

}  // namespace

void fill_shared(Database& db, const Profile& profile, const Meta& meta, Part part) {
  fill_meta(db, meta);
  fill_comms(db, profile, part);
  fill_ops(db, profile, part);
  fill_flows(db);
  fill_region_names(db, profile, part);
  fill_metrics(db, profile, part);
  fill_datatypes(db, profile, part);
  fill_tags(db, profile, part);
  if (part != Part::shard) {
    fill_settings(db, profile);
    fill_coverage(db, profile);
  }
  fill_sites(db, profile, part);
  fill_keys(db, profile, part);
}

void fill_ranks(Database& db, const Profile& profile, const Phases& phases, Gap& gap) {
  fill_rank_facts(db, profile);
  fill_cells(db, profile);
  fill_datatype_uses(db, profile);
  fill_slices(db, profile);
  fill_positions(db, profile);
  fill_overhead(db, profile, phases, gap);
}

void fill_regions(Database& db, const Profile& profile) {
  fill_region_times(db, profile);
  fill_loops(db, profile);
  fill_metric_values(db, profile);
  fill_series(db, profile);
  fill_events(db, profile);
}

void fill_peers(Database& db, const Profile& profile) {
  Insert<rows::Peer> insert(db);
  for (const Profile::PeerRow& r : profile.peer_rows) {
    rows::Peer row;
    row.comm = r.comm;
    row.flow = flow_id(r.flow);
    row.posted = posted_name(r.flow);
    row.op = r.op;
    row.call_bin = r.call == 0 ? Integer(null) : Integer(r.call - 1);
    row.region = r.region;
    row.slice = r.slice;
    row.rank = r.rank;
    row.peer = r.peer >= 0 ? Integer(r.peer) : Integer(null);
    row.first = r.peer >= 0 || r.first == no_peer ? Integer(null) : Integer(r.first);
    row.peers = r.peers;
    row.bin = r.bin;
    row.messages = r.messages;
    row.bytes = r.bytes;
    insert(row);
  }
}

void fill_scopes(Database& db, const Profile& profile) {
  Insert<rows::Scope> insert(db);
  Insert<rows::Spread> insert_spread(db);
  for (std::size_t i = 0; i < profile.lines.size(); ++i) {
    insert(row_of(profile, profile.lines[i], i));
    for (const auto& [counter, s] : profile.lines[i].counters) {
      if (s.max != 0) insert_spread(row_of(counter, s, i));
    }
  }
}

void fill_shards(Database& db, const std::vector<Shard>& shards) {
  Insert<rows::Shard> insert(db);
  for (const Shard& s : shards) {
    rows::Shard row;
    row.number = s.number;
    row.file = text_or_null(s.file);
    row.first_rank = s.first_rank;
    row.ranks = s.ranks;
    row.cells = s.cells;
    row.bytes = s.bytes;
    row.crc32 = s.crc32;
    insert(row);
  }
}

}  // namespace commlens::out
