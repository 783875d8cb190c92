// SPDX-License-Identifier: Apache-2.0
// DO NOT EDIT: written by gen/schema.py from spec/schema.toml.
#pragma once

#include "core/out/records.h"

// A row of each table of a profile; spec/schema.toml describes the columns.
// clang-format off
namespace commlens::out::rows {

struct Meta {
  static constexpr TableShape shape{"meta", 0, 1, -1};
  Text key;
  Text value;

  template <class Visit>
  void each(Visit visit) const {
    visit("meta.key", key);
    visit("meta.value", value);
  }
};

struct Setting {
  static constexpr TableShape shape{"setting", 1, 3, -1};
  Text source;
  Text name;
  Text value;
  Integer ranks;

  template <class Visit>
  void each(Visit visit) const {
    visit("setting.source", source);
    visit("setting.name", name);
    visit("setting.value", value);
    visit("setting.ranks", ranks);
  }
};

struct Rank {
  static constexpr TableShape shape{"rank", 2, 0, 0};
  Integer rank;
  Integer world;
  Text node;
  Integer pid;
  Text cpus;
  Integer init_ns;
  Integer app_ns;
  Integer mpi_ns;
  Integer threads;
  Integer calls;
  Integer lost_calls;
  Text state;
  Integer cpu_ns;
  Integer preempted;

  template <class Visit>
  void each(Visit visit) const {
    visit("rank.rank", rank);
    visit("rank.world", world);
    visit("rank.node", node);
    visit("rank.pid", pid);
    visit("rank.cpus", cpus);
    visit("rank.init_ns", init_ns);
    visit("rank.app_ns", app_ns);
    visit("rank.mpi_ns", mpi_ns);
    visit("rank.threads", threads);
    visit("rank.calls", calls);
    visit("rank.lost_calls", lost_calls);
    visit("rank.state", state);
    visit("rank.cpu_ns", cpu_ns);
    visit("rank.preempted", preempted);
  }
};

struct Comm {
  static constexpr TableShape shape{"comm", 3, 0, 0};
  Integer id;
  Integer hash;
  Text name;
  Text user_name;
  Text kind;
  Integer parent;
  Integer creator;
  Integer callsite;
  Integer size;
  Integer remote_size;
  Integer leader;
  Text members;
  Text topology;
  Integer created_ns;
  Integer freed_ns;
  Integer family;
  Integer communicators;

  template <class Visit>
  void each(Visit visit) const {
    visit("comm.id", id);
    visit("comm.hash", hash);
    visit("comm.name", name);
    visit("comm.user_name", user_name);
    visit("comm.kind", kind);
    visit("comm.parent", parent);
    visit("comm.creator", creator);
    visit("comm.callsite", callsite);
    visit("comm.size", size);
    visit("comm.remote_size", remote_size);
    visit("comm.leader", leader);
    visit("comm.members", members);
    visit("comm.topology", topology);
    visit("comm.created_ns", created_ns);
    visit("comm.freed_ns", freed_ns);
    visit("comm.family", family);
    visit("comm.communicators", communicators);
  }
};

struct CommSet {
  static constexpr TableShape shape{"comm_set", 4, 2, -1};
  Integer comm;
  Integer member;

  template <class Visit>
  void each(Visit visit) const {
    visit("comm_set.comm", comm);
    visit("comm_set.member", member);
  }
};

struct Op {
  static constexpr TableShape shape{"op", 5, 0, 0};
  Integer id;
  Text name;
  Text class_;

  template <class Visit>
  void each(Visit visit) const {
    visit("op.id", id);
    visit("op.name", name);
    visit("op.class", class_);
  }
};

struct Coverage {
  static constexpr TableShape shape{"coverage", 6, 2, -1};
  Text symbol;
  Text object;
  Text procedure;
  Text state;
  Text reason;
  Integer ranks;

  template <class Visit>
  void each(Visit visit) const {
    visit("coverage.symbol", symbol);
    visit("coverage.object", object);
    visit("coverage.procedure", procedure);
    visit("coverage.state", state);
    visit("coverage.reason", reason);
    visit("coverage.ranks", ranks);
  }
};

struct Region {
  static constexpr TableShape shape{"region", 7, 0, 0};
  Integer id;
  Integer parent;
  Text name;
  Text kind;

  template <class Visit>
  void each(Visit visit) const {
    visit("region.id", id);
    visit("region.parent", parent);
    visit("region.name", name);
    visit("region.kind", kind);
  }
};

struct RegionTime {
  static constexpr TableShape shape{"region_time", 8, 4, -1};
  Integer region;
  Integer execution;
  Integer iteration;
  Integer rank;
  Integer calls;
  Integer open;
  Integer time_ns;
  Integer time_min_ns;
  Integer time_max_ns;
  Integer nested_ns;
  Integer mpi_ns;

  template <class Visit>
  void each(Visit visit) const {
    visit("region_time.region", region);
    visit("region_time.execution", execution);
    visit("region_time.iteration", iteration);
    visit("region_time.rank", rank);
    visit("region_time.calls", calls);
    visit("region_time.open", open);
    visit("region_time.time_ns", time_ns);
    visit("region_time.time_min_ns", time_min_ns);
    visit("region_time.time_max_ns", time_max_ns);
    visit("region_time.nested_ns", nested_ns);
    visit("region_time.mpi_ns", mpi_ns);
  }
};

struct LoopTime {
  static constexpr TableShape shape{"loop_time", 9, 4, -1};
  Integer region;
  Integer execution;
  Integer iteration;
  Integer rank;
  Integer iterations;
  Integer time_ns;
  Integer time_min_ns;
  Integer time_max_ns;
  Integer nested_ns;
  Integer mpi_ns;

  template <class Visit>
  void each(Visit visit) const {
    visit("loop_time.region", region);
    visit("loop_time.execution", execution);
    visit("loop_time.iteration", iteration);
    visit("loop_time.rank", rank);
    visit("loop_time.iterations", iterations);
    visit("loop_time.time_ns", time_ns);
    visit("loop_time.time_min_ns", time_min_ns);
    visit("loop_time.time_max_ns", time_max_ns);
    visit("loop_time.nested_ns", nested_ns);
    visit("loop_time.mpi_ns", mpi_ns);
  }
};

struct LoopBin {
  static constexpr TableShape shape{"loop_bin", 10, 4, -1};
  Integer region;
  Integer execution;
  Integer rank;
  Integer bin;
  Integer iterations;

  template <class Visit>
  void each(Visit visit) const {
    visit("loop_bin.region", region);
    visit("loop_bin.execution", execution);
    visit("loop_bin.rank", rank);
    visit("loop_bin.bin", bin);
    visit("loop_bin.iterations", iterations);
  }
};

struct RegionSlice {
  static constexpr TableShape shape{"region_slice", 11, 3, -1};
  Integer region;
  Integer rank;
  Integer slot;
  Integer calls;
  Integer exclusive_ns;

  template <class Visit>
  void each(Visit visit) const {
    visit("region_slice.region", region);
    visit("region_slice.rank", rank);
    visit("region_slice.slot", slot);
    visit("region_slice.calls", calls);
    visit("region_slice.exclusive_ns", exclusive_ns);
  }
};

struct Metric {
  static constexpr TableShape shape{"metric", 12, 0, 0};
  Integer id;
  Text name;
  Text unit;

  template <class Visit>
  void each(Visit visit) const {
    visit("metric.id", id);
    visit("metric.name", name);
    visit("metric.unit", unit);
  }
};

struct MetricValue {
  static constexpr TableShape shape{"metric_value", 13, 5, -1};
  Integer metric;
  Integer region;
  Integer execution;
  Integer iteration;
  Integer rank;
  Integer count;
  Real sum;
  Real min;
  Real max;
  Real last;
  Integer not_finite;

  template <class Visit>
  void each(Visit visit) const {
    visit("metric_value.metric", metric);
    visit("metric_value.region", region);
    visit("metric_value.execution", execution);
    visit("metric_value.iteration", iteration);
    visit("metric_value.rank", rank);
    visit("metric_value.count", count);
    visit("metric_value.sum", sum);
    visit("metric_value.min", min);
    visit("metric_value.max", max);
    visit("metric_value.last", last);
    visit("metric_value.not_finite", not_finite);
  }
};

struct MetricSeries {
  static constexpr TableShape shape{"metric_series", 14, 4, -1};
  Integer metric;
  Integer rank;
  Integer thread;
  Integer number;
  Integer time_ns;
  Integer region;
  Integer execution;
  Integer iteration;
  Real value;

  template <class Visit>
  void each(Visit visit) const {
    visit("metric_series.metric", metric);
    visit("metric_series.rank", rank);
    visit("metric_series.thread", thread);
    visit("metric_series.number", number);
    visit("metric_series.time_ns", time_ns);
    visit("metric_series.region", region);
    visit("metric_series.execution", execution);
    visit("metric_series.iteration", iteration);
    visit("metric_series.value", value);
  }
};

struct EventCount {
  static constexpr TableShape shape{"event_count", 15, 5, -1};
  Integer metric;
  Integer region;
  Integer comm;
  Integer op;
  Integer rank;
  Integer count;
  Integer enabled_ns;
  Integer running_ns;

  template <class Visit>
  void each(Visit visit) const {
    visit("event_count.metric", metric);
    visit("event_count.region", region);
    visit("event_count.comm", comm);
    visit("event_count.op", op);
    visit("event_count.rank", rank);
    visit("event_count.count", count);
    visit("event_count.enabled_ns", enabled_ns);
    visit("event_count.running_ns", running_ns);
  }
};

struct Datatype {
  static constexpr TableShape shape{"datatype", 16, 0, 0};
  Integer id;
  Text tree;
  Integer size;
  Integer lower_bound;
  Integer extent;

  template <class Visit>
  void each(Visit visit) const {
    visit("datatype.id", id);
    visit("datatype.tree", tree);
    visit("datatype.size", size);
    visit("datatype.lower_bound", lower_bound);
    visit("datatype.extent", extent);
  }
};

struct DatatypeUse {
  static constexpr TableShape shape{"datatype_use", 17, 6, -1};
  Integer comm;
  Integer op;
  Integer sent;
  Integer received;
  Integer target;
  Integer rank;
  Integer calls;
  Integer time_ns;
  Integer bytes_sent;
  Integer bytes_received;

  template <class Visit>
  void each(Visit visit) const {
    visit("datatype_use.comm", comm);
    visit("datatype_use.op", op);
    visit("datatype_use.sent", sent);
    visit("datatype_use.received", received);
    visit("datatype_use.target", target);
    visit("datatype_use.rank", rank);
    visit("datatype_use.calls", calls);
    visit("datatype_use.time_ns", time_ns);
    visit("datatype_use.bytes_sent", bytes_sent);
    visit("datatype_use.bytes_received", bytes_received);
  }
};

struct Tag {
  static constexpr TableShape shape{"tag", 18, 3, -1};
  Integer region;
  Text name;
  Text value;

  template <class Visit>
  void each(Visit visit) const {
    visit("tag.region", region);
    visit("tag.name", name);
    visit("tag.value", value);
  }
};

struct Callsite {
  static constexpr TableShape shape{"callsite", 19, 0, 0};
  Integer id;
  Text module;
  Text build_id;
  Integer offset;
  Integer caller;

  template <class Visit>
  void each(Visit visit) const {
    visit("callsite.id", id);
    visit("callsite.module", module);
    visit("callsite.build_id", build_id);
    visit("callsite.offset", offset);
    visit("callsite.caller", caller);
  }
};

struct Key {
  static constexpr TableShape shape{"key", 20, 0, 0};
  Integer id;
  Integer comm;
  Integer op;
  Integer bin;
  Integer region;
  Integer callsite;
  Integer usual_calls;
  Integer usual_sent;
  Integer usual_received;
  Integer usual_noncontig;

  template <class Visit>
  void each(Visit visit) const {
    visit("key.id", id);
    visit("key.comm", comm);
    visit("key.op", op);
    visit("key.bin", bin);
    visit("key.region", region);
    visit("key.callsite", callsite);
    visit("key.usual_calls", usual_calls);
    visit("key.usual_sent", usual_sent);
    visit("key.usual_received", usual_received);
    visit("key.usual_noncontig", usual_noncontig);
  }
};

struct CellRow {
  static constexpr TableShape shape{"cell_row", 21, 0, 0};
  Integer id;
  Integer calls;
  Integer time_ns;
  Integer time_min_ns;
  Integer time_max_ns;
  Integer bytes_sent;
  Integer bytes_received;
  Integer noncontiguous;

  template <class Visit>
  void each(Visit visit) const {
    visit("cell_row.id", id);
    visit("cell_row.calls", calls);
    visit("cell_row.time_ns", time_ns);
    visit("cell_row.time_min_ns", time_min_ns);
    visit("cell_row.time_max_ns", time_max_ns);
    visit("cell_row.bytes_sent", bytes_sent);
    visit("cell_row.bytes_received", bytes_received);
    visit("cell_row.noncontiguous", noncontiguous);
  }
};

struct Untimed {
  static constexpr TableShape shape{"untimed", 22, 2, -1};
  Integer key;
  Integer rank;
  Integer calls;
  Integer time_error_ns;

  template <class Visit>
  void each(Visit visit) const {
    visit("untimed.key", key);
    visit("untimed.rank", rank);
    visit("untimed.calls", calls);
    visit("untimed.time_error_ns", time_error_ns);
  }
};

struct Thread {
  static constexpr TableShape shape{"thread", 23, 2, -1};
  Integer rank;
  Integer thread;
  Text kind;
  Integer threads;
  Integer tid;
  Text name;

  template <class Visit>
  void each(Visit visit) const {
    visit("thread.rank", rank);
    visit("thread.thread", thread);
    visit("thread.kind", kind);
    visit("thread.threads", threads);
    visit("thread.tid", tid);
    visit("thread.name", name);
  }
};

struct ThreadCell {
  static constexpr TableShape shape{"thread_cell", 24, 3, -1};
  Integer key;
  Integer rank;
  Integer thread;
  Integer calls;
  Integer time_ns;
  Integer time_min_ns;
  Integer time_max_ns;
  Integer bytes_sent;
  Integer bytes_received;

  template <class Visit>
  void each(Visit visit) const {
    visit("thread_cell.key", key);
    visit("thread_cell.rank", rank);
    visit("thread_cell.thread", thread);
    visit("thread_cell.calls", calls);
    visit("thread_cell.time_ns", time_ns);
    visit("thread_cell.time_min_ns", time_min_ns);
    visit("thread_cell.time_max_ns", time_max_ns);
    visit("thread_cell.bytes_sent", bytes_sent);
    visit("thread_cell.bytes_received", bytes_received);
  }
};

struct ThreadRegion {
  static constexpr TableShape shape{"thread_region", 25, 3, -1};
  Integer region;
  Integer rank;
  Integer thread;
  Integer calls;
  Integer open;
  Integer time_ns;
  Integer nested_ns;
  Integer mpi_ns;

  template <class Visit>
  void each(Visit visit) const {
    visit("thread_region.region", region);
    visit("thread_region.rank", rank);
    visit("thread_region.thread", thread);
    visit("thread_region.calls", calls);
    visit("thread_region.open", open);
    visit("thread_region.time_ns", time_ns);
    visit("thread_region.nested_ns", nested_ns);
    visit("thread_region.mpi_ns", mpi_ns);
  }
};

struct Slice {
  static constexpr TableShape shape{"slice", 26, 4, -1};
  Integer comm;
  Integer op;
  Integer rank;
  Integer slot;
  Integer calls;
  Integer time_ns;
  Integer bytes_sent;
  Integer bytes_received;

  template <class Visit>
  void each(Visit visit) const {
    visit("slice.comm", comm);
    visit("slice.op", op);
    visit("slice.rank", rank);
    visit("slice.slot", slot);
    visit("slice.calls", calls);
    visit("slice.time_ns", time_ns);
    visit("slice.bytes_sent", bytes_sent);
    visit("slice.bytes_received", bytes_received);
  }
};

struct Flow {
  static constexpr TableShape shape{"flow", 27, 0, 0};
  Integer id;
  Text name;
  Integer outward;

  template <class Visit>
  void each(Visit visit) const {
    visit("flow.id", id);
    visit("flow.name", name);
    visit("flow.outward", outward);
  }
};

struct Peer {
  static constexpr TableShape shape{"peer", 28, 0, -1};
  Integer comm;
  Integer flow;
  Integer op;
  Integer call_bin;
  Integer region;
  Integer slice;
  Integer rank;
  Integer peer;
  Integer first;
  Integer peers;
  Integer bin;
  Integer messages;
  Integer bytes;
  Text posted;

  template <class Visit>
  void each(Visit visit) const {
    visit("peer.comm", comm);
    visit("peer.flow", flow);
    visit("peer.op", op);
    visit("peer.call_bin", call_bin);
    visit("peer.region", region);
    visit("peer.slice", slice);
    visit("peer.rank", rank);
    visit("peer.peer", peer);
    visit("peer.first", first);
    visit("peer.peers", peers);
    visit("peer.bin", bin);
    visit("peer.messages", messages);
    visit("peer.bytes", bytes);
    visit("peer.posted", posted);
  }
};

struct Waiting {
  static constexpr TableShape shape{"waiting", 29, 5, -1};
  Integer comm;
  Integer op;
  Integer bin;
  Integer region;
  Integer rank;
  Integer samples;
  Integer time_ns;
  Integer waiting_ns;
  Integer last;
  Integer late_ns;
  Integer behind_ns;
  Integer between_ns;
  Integer outside_ns;

  template <class Visit>
  void each(Visit visit) const {
    visit("waiting.comm", comm);
    visit("waiting.op", op);
    visit("waiting.bin", bin);
    visit("waiting.region", region);
    visit("waiting.rank", rank);
    visit("waiting.samples", samples);
    visit("waiting.time_ns", time_ns);
    visit("waiting.waiting_ns", waiting_ns);
    visit("waiting.last", last);
    visit("waiting.late_ns", late_ns);
    visit("waiting.behind_ns", behind_ns);
    visit("waiting.between_ns", between_ns);
    visit("waiting.outside_ns", outside_ns);
  }
};

struct Sampled {
  static constexpr TableShape shape{"sampled", 30, 3, -1};
  Integer comm;
  Integer op;
  Integer bin;
  Integer samples;
  Integer collectives;
  Integer across;
  Integer by_clock;
  Integer clock_ns;
  Integer time_ns;
  Integer waiting_ns;
  Integer error_ns;
  Integer spread_ns;
  Integer late_ns;

  template <class Visit>
  void each(Visit visit) const {
    visit("sampled.comm", comm);
    visit("sampled.op", op);
    visit("sampled.bin", bin);
    visit("sampled.samples", samples);
    visit("sampled.collectives", collectives);
    visit("sampled.across", across);
    visit("sampled.by_clock", by_clock);
    visit("sampled.clock_ns", clock_ns);
    visit("sampled.time_ns", time_ns);
    visit("sampled.waiting_ns", waiting_ns);
    visit("sampled.error_ns", error_ns);
    visit("sampled.spread_ns", spread_ns);
    visit("sampled.late_ns", late_ns);
  }
};

struct Clock {
  static constexpr TableShape shape{"clock", 31, 0, 0};
  Integer rank;
  Integer calls;
  Real drift_ppm;
  Integer error_ns;
  Integer excess_ns;

  template <class Visit>
  void each(Visit visit) const {
    visit("clock.rank", rank);
    visit("clock.calls", calls);
    visit("clock.drift_ppm", drift_ppm);
    visit("clock.error_ns", error_ns);
    visit("clock.excess_ns", excess_ns);
  }
};

struct Unsplit {
  static constexpr TableShape shape{"unsplit", 32, 4, -1};
  Integer comm;
  Integer op;
  Integer bin;
  Text reason;
  Integer calls;

  template <class Visit>
  void each(Visit visit) const {
    visit("unsplit.comm", comm);
    visit("unsplit.op", op);
    visit("unsplit.bin", bin);
    visit("unsplit.reason", reason);
    visit("unsplit.calls", calls);
  }
};

struct Scope {
  static constexpr TableShape shape{"scope", 33, 0, 0};
  Integer id;
  Integer family;
  Integer comm;
  Integer op;
  Integer bin;
  Integer callsite;
  Integer key;
  Integer members;
  Integer region;

  template <class Visit>
  void each(Visit visit) const {
    visit("scope.id", id);
    visit("scope.family", family);
    visit("scope.comm", comm);
    visit("scope.op", op);
    visit("scope.bin", bin);
    visit("scope.callsite", callsite);
    visit("scope.key", key);
    visit("scope.members", members);
    visit("scope.region", region);
  }
};

struct Spread {
  static constexpr TableShape shape{"spread", 34, 2, -1};
  Integer scope;
  Text counter;
  Integer ranks;
  Integer sum;
  Integer min;
  Integer min_rank;
  Integer max;
  Integer max_rank;
  Integer p05;
  Integer p25;
  Integer p50;
  Integer p75;
  Integer p95;

  template <class Visit>
  void each(Visit visit) const {
    visit("spread.scope", scope);
    visit("spread.counter", counter);
    visit("spread.ranks", ranks);
    visit("spread.sum", sum);
    visit("spread.min", min);
    visit("spread.min_rank", min_rank);
    visit("spread.max", max);
    visit("spread.max_rank", max_rank);
    visit("spread.p05", p05);
    visit("spread.p25", p25);
    visit("spread.p50", p50);
    visit("spread.p75", p75);
    visit("spread.p95", p95);
  }
};

struct Position {
  static constexpr TableShape shape{"position", 35, 2, -1};
  Integer rank;
  Integer thread;
  Integer inside;
  Integer op;
  Integer comm;
  Integer callsite;
  Integer since_ns;
  Integer region;
  Integer dest;
  Integer dest_tag;
  Integer source;
  Integer source_tag;

  template <class Visit>
  void each(Visit visit) const {
    visit("position.rank", rank);
    visit("position.thread", thread);
    visit("position.inside", inside);
    visit("position.op", op);
    visit("position.comm", comm);
    visit("position.callsite", callsite);
    visit("position.since_ns", since_ns);
    visit("position.region", region);
    visit("position.dest", dest);
    visit("position.dest_tag", dest_tag);
    visit("position.source", source);
    visit("position.source_tag", source_tag);
  }
};

struct Shard {
  static constexpr TableShape shape{"shard", 36, 0, 0};
  Integer number;
  Text file;
  Integer first_rank;
  Integer ranks;
  Integer cells;
  Integer bytes;
  Integer crc32;

  template <class Visit>
  void each(Visit visit) const {
    visit("shard.number", number);
    visit("shard.file", file);
    visit("shard.first_rank", first_rank);
    visit("shard.ranks", ranks);
    visit("shard.cells", cells);
    visit("shard.bytes", bytes);
    visit("shard.crc32", crc32);
  }
};

struct Overhead {
  static constexpr TableShape shape{"overhead", 37, 2, -1};
  Integer rank;
  Text what;
  Integer ns;

  template <class Visit>
  void each(Visit visit) const {
    visit("overhead.rank", rank);
    visit("overhead.what", what);
    visit("overhead.ns", ns);
  }
};

// All tables, in the order of their statements.
inline constexpr TableShape shapes[] = {
  TableShape{"meta", 0, 1, -1},
  TableShape{"setting", 1, 3, -1},
  TableShape{"rank", 2, 0, 0},
  TableShape{"comm", 3, 0, 0},
  TableShape{"comm_set", 4, 2, -1},
  TableShape{"op", 5, 0, 0},
  TableShape{"coverage", 6, 2, -1},
  TableShape{"region", 7, 0, 0},
  TableShape{"region_time", 8, 4, -1},
  TableShape{"loop_time", 9, 4, -1},
  TableShape{"loop_bin", 10, 4, -1},
  TableShape{"region_slice", 11, 3, -1},
  TableShape{"metric", 12, 0, 0},
  TableShape{"metric_value", 13, 5, -1},
  TableShape{"metric_series", 14, 4, -1},
  TableShape{"event_count", 15, 5, -1},
  TableShape{"datatype", 16, 0, 0},
  TableShape{"datatype_use", 17, 6, -1},
  TableShape{"tag", 18, 3, -1},
  TableShape{"callsite", 19, 0, 0},
  TableShape{"key", 20, 0, 0},
  TableShape{"cell_row", 21, 0, 0},
  TableShape{"untimed", 22, 2, -1},
  TableShape{"thread", 23, 2, -1},
  TableShape{"thread_cell", 24, 3, -1},
  TableShape{"thread_region", 25, 3, -1},
  TableShape{"slice", 26, 4, -1},
  TableShape{"flow", 27, 0, 0},
  TableShape{"peer", 28, 0, -1},
  TableShape{"waiting", 29, 5, -1},
  TableShape{"sampled", 30, 3, -1},
  TableShape{"clock", 31, 0, 0},
  TableShape{"unsplit", 32, 4, -1},
  TableShape{"scope", 33, 0, 0},
  TableShape{"spread", 34, 2, -1},
  TableShape{"position", 35, 2, -1},
  TableShape{"shard", 36, 0, 0},
  TableShape{"overhead", 37, 2, -1},
};

}  // namespace commlens::out::rows
