// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/wire.h"
#include "core/profile/channels.h"
#include "core/profile/dictionary.h"
#include "core/profile/spread.h"
#include "core/profile/waiting.h"
#include "core/state/counted.h"

namespace commlens {

// The tables of a profile before they are written to SQLite: the packages of a block of ranks, merged by identity.
class Profile : public Catalogue {
 public:
  struct Rank {
    RankFacts facts;
    RankClock clock;
    std::uint64_t calls = 0, lost_calls = 0;
    Ns mpi_ns = 0;
  };
  struct Row {
    std::uint32_t key;
    int rank;
    std::uint64_t calls;
    Ns time, time_min, time_max;
    std::uint64_t bytes_sent, bytes_received;
    std::uint64_t noncontiguous;  // calls
    std::uint64_t untimed;        // calls
    Ns time_error;                // standard error of `time`
  };

  // The last call of a thread when its arena was read; only for processes that had not finalised.
  struct LastCall {
    int rank, thread;
    bool inside;
    std::uint32_t op, comm, site;  // indices
    Ns since;                      // time after MPI_Init returned
    std::uint32_t region;          // index
    CallPartners partners;
  };

  // The region, execution and, in a loop, iteration to which a row belongs; for rows that do not count MPI calls.
  struct Within {
    std::uint32_t region;  // index
    std::uint32_t execution;
    std::int32_t iteration;  // -1: none
    bool operator<(const Within& other) const {
      return std::tie(region, execution, iteration) < std::tie(other.region, other.execution, other.iteration);
    }
  };

  // Time of one rank in a region, or in the iterations of a loop.
  struct RegionRow {
    Within within;
    int rank;
    std::uint64_t calls, open;
    Ns time, time_min, time_max, nested, mpi;
  };

  // Distribution of the durations of a loop's iterations on one rank.
  struct LoopRow {
    Within within;
    int rank;
    std::array<std::uint64_t, 64> bins;
  };

  struct MetricRow {
    std::uint32_t metric;  // index
    Within within;
    int rank;
    std::uint64_t count, not_finite;
    double sum, min, max, last;
  };

  // One value of a metric, of those that a thread recorded one after the other.
  struct SeriesRow {
    std::uint32_t metric;  // index
    int rank;
    std::uint32_t thread;
    std::uint64_t number;  // among the finite values of this thread
    Within within;
    Ns time;  // after MPI_Init returned
    double value;
  };

  // A thread of a process whose threads are counted apart; or all those that are counted together, with number -1.
  struct ThreadRow {
    int rank, thread;
    bool is_main;
    std::uint64_t threads;  // their number
    std::int64_t id;
    std::string name;
  };
  struct ThreadCell {
    std::uint32_t key;
    int rank, thread;
    std::uint64_t calls;
    Ns time, time_min, time_max;
    std::uint64_t bytes_sent, bytes_received;
    std::uint64_t untimed;  // calls
  };
  struct ThreadRegion {
    std::uint32_t region;  // index
    int rank, thread;
    std::uint64_t calls, open;
    Ns time, nested, mpi;
  };
  // Events of one kind on one rank: outside MPI if op is 0.
  struct EventRow {
    std::uint32_t metric;  // index
    std::uint32_t region, comm, op;
    int rank;
    std::uint64_t count;
    Ns enabled, running;
  };
  // The calls of a rank with one combination of datatypes.
  struct DatatypeRow {
    std::uint32_t comm, op;  // indices
    int rank;
    std::uint32_t sent, received, target;  // datatypes, indices; 0: none
    std::uint64_t calls;
    Ns time;
    std::uint64_t bytes_sent, bytes_received;
  };

  // Messages of one flow and size between a rank and a peer, or of one shape of collective.
  struct PeerRow {
    std::uint32_t comm;  // index
    Flow flow;
    std::uint32_t op;
    std::uint32_t region;  // index
    std::uint64_t slice;
    int rank, peer;            // peer: world rank, or a value below 0 as in PeerCell::world
    std::uint32_t first;       // rank of the first peer in the communicator; no_peer: a collective's shape
    std::uint32_t peers, bin;  // peers: number of peers from `first` on
    std::uint32_t call;        // as in PeerPlace
    std::uint64_t messages, bytes;
  };

  // A notice of several ranks: the lowest of them, the text of its notice, and the number of ranks.
  struct Oddity {
    int rank = 0;
    std::string text;
    std::uint64_t ranks = 0;
  };
  using Oddities = std::map<Notice, Oddity>;

  // The counters of one rank in one slice of time.
  struct Slice {
    std::uint32_t comm, op;  // indices
    int rank;
    std::uint64_t slot;
    std::uint64_t calls;
    Ns time;
    std::uint64_t bytes_sent, bytes_received;
  };

  // The counters of a line.  Those of communicators, families and keys are as in view cell; those of the whole run are
  // as in tables rank and overhead.
  enum class Counter : std::uint8_t {
    calls,
    time,
    time_min,
    time_max,
    bytes_sent,
    bytes_received,
    noncontiguous,
    untimed,
    init,
    app,
    mpi,
    outside,
    threads,
    lost_calls,
    own_init,
    own_collect,
    own_call,
    own_calls,
    exclusive,
    own_wait,
    cpu,
    preempted
  };

  // One line of a summary: distributions over all ranks.  Numbers are those of the catalogue; -1: all.
  struct Line {
    int family = -1, comm = -1, op = -1, bin = -1, site = -1, key = -1, region = -1;
    std::int64_t members = -1;
    std::map<Counter, Spread> counters;
  };

  // Adds the package of one rank.  Returns false if it cannot be read; then nothing of it is added.
  bool add(const char* bytes, std::size_t size);

  // Call after the last rank was added: sorts all rows and gives them the numbers of `catalogue`, which must contain
  // the entries of `dictionary`.  own: the part of the dictionary that the ranks of this block reported.
  void settle(Catalogue catalogue, const Dictionary::Size& own);
  void finish();         // the same for the only block; also splits the samples
  void split_samples();  // of all ranks.  pre: settled, and this is the only block

  int world_size = 1;  // size of MPI_COMM_WORLD, as far as is known here
  Dictionary dictionary;
  std::vector<Rank> ranks;
  std::vector<Row> rows;       // by (key, rank)
  Ns slice_ns = 1;             // width of a slice; the same for all ranks
  bool slices_folded = false;  // the first communicator of a family stands for all of it
  std::vector<Slice> slices;   // by (communicator, procedure, rank, slot); comm is a region if op is region_op
  std::vector<RegionRow> region_rows, loop_rows;  // by (region, execution, iteration, rank); loop_rows: of iterations
  std::vector<LoopRow> loop_bins;                 // by (region, execution, iteration, rank)
  std::vector<MetricRow> metric_rows;             // by (metric, region, execution, iteration, rank)
  std::vector<SeriesRow> series_rows;             // by (metric, rank, thread, number)
  std::vector<ThreadRow> threads;                 // by (rank, thread)
  std::vector<ThreadCell> thread_cells;           // by (key, rank, thread)
  std::vector<ThreadRegion> thread_regions;       // by (region, rank, thread)
  std::vector<EventRow> event_rows;               // by (metric, region, communicator, procedure, rank)
  std::vector<DatatypeRow> datatype_rows;         // by (communicator, procedure, sent, received, target, rank)
  std::vector<PeerRow> peer_rows;   // by (communicator, flow, procedure, call, region, slice, rank, peer, ...)
  std::vector<SampleRow> samples;   // of the ranks of this block
  ChannelEnds channels;             // of the ranks of this block
  std::vector<WaitingRow> waiting;  // by (communicator, procedure, bin, region, rank)
  std::vector<ClockLine> clocks;    // of the machines, if there are several
  std::vector<SampledRow> sampled;  // by (communicator, procedure, bin)
  std::vector<UnsplitRow> unsplit;  // by (communicator, procedure, bin, reason)
  Oddities oddities;
  std::vector<LastCall> last_calls;  // by rank and thread
  std::vector<Line> lines;           // of a summary, which has no rows per rank
  bool is_summary = false;
  // Flags by index in the catalogue: the ranks of this block reported the entry.  This includes parents and members of
  // sets.
  std::vector<char> has_comm, has_site, has_region, has_metric, has_datatype, has_key;

 private:
  // The package of one rank, in the numbers of that rank.
  struct RankData {
    Rank rank;
    std::vector<SiteFacts> sites;
    std::vector<std::pair<std::uint64_t, CommDraft>> comms;
    std::vector<std::pair<KeyFacts, Row>> cells;
    std::vector<ThreadRow> threads;
    std::vector<std::pair<std::uint64_t, ThreadCell>> thread_cells;  // with the position of the cell in `cells`
    std::vector<ThreadRegion> thread_regions;
    Ns slice_ns = 1;
    bool slices_folded = false;
    std::vector<Slice> slices;
    std::vector<PeerRow> peer_rows;
    std::vector<SampleRow> samples;
    ChannelEnds channels;
    std::vector<LastCall> last_calls;
    std::vector<RegionFacts> regions;
    std::vector<RegionRow> region_rows, loop_rows;
    std::vector<LoopRow> loop_bins;
    std::vector<MetricFacts> metrics;
    std::vector<MetricRow> metric_rows;
    std::vector<SeriesRow> series_rows;
    std::vector<EventRow> event_rows;
    std::vector<DatatypeFacts> datatypes;
    std::vector<DatatypeRow> datatype_rows;
    std::vector<TagFacts> tags;
    std::vector<NoticeText> notices;
  };

  static bool read(WireReader& in, RankData& data);
  static void read_facts(WireReader& in, RankData& data);
  static void read_names(WireReader& in, RankData& data);
  static void read_comms(WireReader& in, RankData& data);
  static void read_cells(WireReader& in, RankData& data);
  static void read_slices(WireReader& in, RankData& data);
  static void read_threads(WireReader& in, RankData& data);
  static void read_last_calls(WireReader& in, RankData& data);
  static void read_regions(WireReader& in, RankData& data);
  static void read_series(WireReader& in, RankData& data);
  static void read_events(WireReader& in, RankData& data);
  static void read_datatypes(WireReader& in, RankData& data);
  static void read_peers(WireReader& in, RankData& data);
  static void read_samples(WireReader& in, RankData& data);
  static void read_channels_of(WireReader& in, RankData& data);
  void add_cells(RankData& data);  // pre: their keys have the numbers of this profile
  std::vector<std::uint32_t> add_sites(RankData& data);
  std::vector<std::uint32_t> add_region_names(RankData& data);
  void add_regions(RankData& data, const std::vector<std::uint32_t>& numbers);
  void add_threads(RankData& data, const std::vector<std::uint32_t>& region_numbers);
  void settle_threads(const Dictionary::Numbers& numbers);
  void add_datatypes(RankData& data);  // pre: their communicators have the numbers of this profile
  void settle_datatypes(const Dictionary::Numbers& numbers);
  void settle_regions(const Dictionary::Numbers& numbers);
  void add_equal_events();
  void settle_slices(const Dictionary::Numbers& numbers);
  void settle_peers(const Dictionary::Numbers& numbers);

  std::vector<std::pair<Ns, std::vector<Slice>>> rank_slices_;   // per rank: width of its slices, slices
  std::vector<std::pair<Ns, std::vector<PeerRow>>> rank_peers_;  // per rank: width of its slices, rows
};

// Merges notices by kind: the text of the lowest rank stays, the numbers of ranks are added.
void add_oddities(Profile::Oddities& to, const Profile::Oddities& more);
void write_oddities(WireWriter& out, const Profile::Oddities& oddities);
void read_oddities(WireReader& in, Profile::Oddities& to);

}  // namespace commlens
