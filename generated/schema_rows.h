// SPDX-License-Identifier: Apache-2.0
// DO NOT EDIT: written by gen/schema.py from spec/schema.toml.
#pragma once

#include "core/out/values.h"

// A row of each table of a profile; spec/schema.toml describes the columns.
// clang-format off
namespace commlens::out::rows {

struct Meta {
  static constexpr char table[] = "meta";
  static constexpr char values[] = "(\"key\", \"value\") VALUES (?, ?)";
  Text key;
  Text value;

  template <class Visit>
  void each(Visit visit) const {
    visit("meta.key", key);
    visit("meta.value", value);
  }
};

struct Setting {
  static constexpr char table[] = "setting";
  static constexpr char values[] = "(\"source\", \"name\", \"value\", \"ranks\") VALUES (?, ?, ?, ?)";
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
  static constexpr char table[] = "rank";
  static constexpr char values[] = "(\"rank\", \"world\", \"node\", \"pid\", \"cpus\", \"init_ns\", \"app_ns\", \"mpi_ns\", \"threads\", \"calls\", \"lost_calls\", \"state\", \"cpu_ns\", \"preempted\") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
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
  static constexpr char table[] = "comm";
  static constexpr char values[] = "(\"id\", \"hash\", \"name\", \"user_name\", \"kind\", \"parent\", \"creator\", \"callsite\", \"size\", \"remote_size\", \"leader\", \"members\", \"topology\", \"created_ns\", \"freed_ns\", \"family\", \"communicators\") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
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
  static constexpr char table[] = "comm_set";
  static constexpr char values[] = "(\"comm\", \"member\") VALUES (?, ?)";
  Integer comm;
  Integer member;

  template <class Visit>
  void each(Visit visit) const {
    visit("comm_set.comm", comm);
    visit("comm_set.member", member);
  }
};

struct Op {
  static constexpr char table[] = "op";
  static constexpr char values[] = "(\"id\", \"name\", \"class\") VALUES (?, ?, ?)";
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
  static constexpr char table[] = "coverage";
  static constexpr char values[] = "(\"symbol\", \"object\", \"procedure\", \"state\", \"reason\", \"ranks\") VALUES (?, ?, ?, ?, ?, ?)";
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
  static constexpr char table[] = "region";
  static constexpr char values[] = "(\"id\", \"parent\", \"name\", \"kind\") VALUES (?, ?, ?, ?)";
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
  static constexpr char table[] = "region_time";
  static constexpr char values[] = "(\"region\", \"execution\", \"iteration\", \"rank\", \"calls\", \"open\", \"time_ns\", \"time_min_ns\", \"time_max_ns\", \"nested_ns\", \"mpi_ns\") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
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
  static constexpr char table[] = "loop_time";
  static constexpr char values[] = "(\"region\", \"execution\", \"iteration\", \"rank\", \"iterations\", \"time_ns\", \"time_min_ns\", \"time_max_ns\", \"nested_ns\", \"mpi_ns\") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
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
  static constexpr char table[] = "loop_bin";
  static constexpr char values[] = "(\"region\", \"execution\", \"rank\", \"bin\", \"iterations\") VALUES (?, ?, ?, ?, ?)";
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
  static constexpr char table[] = "region_slice";
  static constexpr char values[] = "(\"region\", \"rank\", \"slot\", \"calls\", \"exclusive_ns\") VALUES (?, ?, ?, ?, ?)";
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
  static constexpr char table[] = "metric";
  static constexpr char values[] = "(\"id\", \"name\", \"unit\") VALUES (?, ?, ?)";
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
  static constexpr char table[] = "metric_value";
  static constexpr char values[] = "(\"metric\", \"region\", \"execution\", \"iteration\", \"rank\", \"count\", \"sum\", \"min\", \"max\", \"last\", \"not_finite\") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
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
  static constexpr char table[] = "metric_series";
  static constexpr char values[] = "(\"metric\", \"rank\", \"thread\", \"number\", \"time_ns\", \"region\", \"execution\", \"iteration\", \"value\") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
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
  static constexpr char table[] = "event_count";
  static constexpr char values[] = "(\"metric\", \"region\", \"comm\", \"op\", \"rank\", \"count\", \"enabled_ns\", \"running_ns\") VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
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
  static constexpr char table[] = "datatype";
  static constexpr char values[] = "(\"id\", \"tree\", \"size\", \"lower_bound\", \"extent\") VALUES (?, ?, ?, ?, ?)";
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
  static constexpr char table[] = "datatype_use";
  static constexpr char values[] = "(\"comm\", \"op\", \"sent\", \"received\", \"target\", \"rank\", \"calls\", \"time_ns\", \"bytes_sent\", \"bytes_received\") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
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
  static constexpr char table[] = "tag";
  static constexpr char values[] = "(\"region\", \"name\", \"value\") VALUES (?, ?, ?)";
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
  static constexpr char table[] = "callsite";
  static constexpr char values[] = "(\"id\", \"module\", \"build_id\", \"offset\", \"caller\") VALUES (?, ?, ?, ?, ?)";
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
  static constexpr char table[] = "key";
  static constexpr char values[] = "(\"id\", \"comm\", \"op\", \"bin\", \"region\", \"callsite\", \"usual_calls\", \"usual_sent\", \"usual_received\", \"usual_noncontig\") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
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
  static constexpr char table[] = "cell_row";
  static constexpr char values[] = "(\"id\", \"calls\", \"time_ns\", \"time_min_ns\", \"time_max_ns\", \"bytes_sent\", \"bytes_received\", \"noncontiguous\") VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
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

struct Thread {
  static constexpr char table[] = "thread";
  static constexpr char values[] = "(\"rank\", \"thread\", \"kind\", \"threads\", \"tid\", \"name\") VALUES (?, ?, ?, ?, ?, ?)";
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
  static constexpr char table[] = "thread_cell";
  static constexpr char values[] = "(\"key\", \"rank\", \"thread\", \"calls\", \"time_ns\", \"time_min_ns\", \"time_max_ns\", \"bytes_sent\", \"bytes_received\") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
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
  static constexpr char table[] = "thread_region";
  static constexpr char values[] = "(\"region\", \"rank\", \"thread\", \"calls\", \"open\", \"time_ns\", \"nested_ns\", \"mpi_ns\") VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
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
  static constexpr char table[] = "slice";
  static constexpr char values[] = "(\"comm\", \"op\", \"rank\", \"slot\", \"calls\", \"time_ns\", \"bytes_sent\", \"bytes_received\") VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
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
  static constexpr char table[] = "flow";
  static constexpr char values[] = "(\"id\", \"name\", \"outward\") VALUES (?, ?, ?)";
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
  static constexpr char table[] = "peer";
  static constexpr char values[] = "(\"comm\", \"flow\", \"op\", \"call_bin\", \"region\", \"slice\", \"rank\", \"peer\", \"first\", \"peers\", \"bin\", \"messages\", \"bytes\", \"posted\") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
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
  static constexpr char table[] = "waiting";
  static constexpr char values[] = "(\"comm\", \"op\", \"bin\", \"region\", \"rank\", \"samples\", \"time_ns\", \"waiting_ns\", \"last\", \"late_ns\", \"behind_ns\", \"between_ns\", \"outside_ns\") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
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
  static constexpr char table[] = "sampled";
  static constexpr char values[] = "(\"comm\", \"op\", \"bin\", \"samples\", \"collectives\", \"across\", \"by_clock\", \"clock_ns\", \"time_ns\", \"waiting_ns\", \"error_ns\", \"spread_ns\", \"late_ns\") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
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
  static constexpr char table[] = "clock";
  static constexpr char values[] = "(\"rank\", \"calls\", \"drift_ppm\", \"error_ns\", \"excess_ns\") VALUES (?, ?, ?, ?, ?)";
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
  static constexpr char table[] = "unsplit";
  static constexpr char values[] = "(\"comm\", \"op\", \"bin\", \"reason\", \"calls\") VALUES (?, ?, ?, ?, ?)";
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
  static constexpr char table[] = "scope";
  static constexpr char values[] = "(\"id\", \"family\", \"comm\", \"op\", \"bin\", \"callsite\", \"key\", \"members\", \"region\") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
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
  static constexpr char table[] = "spread";
  static constexpr char values[] = "(\"scope\", \"counter\", \"ranks\", \"sum\", \"min\", \"min_rank\", \"max\", \"max_rank\", \"p05\", \"p25\", \"p50\", \"p75\", \"p95\") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
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
  static constexpr char table[] = "position";
  static constexpr char values[] = "(\"rank\", \"thread\", \"inside\", \"op\", \"comm\", \"callsite\", \"since_ns\", \"region\", \"dest\", \"dest_tag\", \"source\", \"source_tag\") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
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
  static constexpr char table[] = "shard";
  static constexpr char values[] = "(\"number\", \"file\", \"first_rank\", \"ranks\", \"cells\", \"bytes\", \"crc32\") VALUES (?, ?, ?, ?, ?, ?, ?)";
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
  static constexpr char table[] = "overhead";
  static constexpr char values[] = "(\"rank\", \"what\", \"ns\") VALUES (?, ?, ?)";
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

}  // namespace commlens::out::rows
