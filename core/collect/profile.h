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

#include "core/cold/counted.h"
#include "core/cold/wire.h"
#include "core/collect/dictionary.h"
#include "core/collect/spread.h"

namespace commlens {

// The tables of a profile, before they become SQLite: what the ranks of a block sent, merged by identity.
class Profile : public Catalogue {
 public:
  struct Rank {
    RankFacts facts;
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
  };

  // Where a thread was when somebody looked at a process that had not finalised.
  struct Place {
    int rank, thread;
    bool inside;
    std::uint32_t op, comm, site;  // indices
    Ns since;                      // after MPI_Init returned
    std::uint32_t region;          // index
  };

  // Where something was counted that is not an MPI call.
  struct Within {
    std::uint32_t region;  // index
    std::uint32_t execution;
    std::int32_t iteration;  // -1: none
    bool operator<(const Within& other) const {
      return std::tie(region, execution, iteration) < std::tie(other.region, other.execution, other.iteration);
    }
  };

  // Time of one rank in a region, or of iterations of a loop.
  struct RegionRow {
    Within within;
    int rank;
    std::uint64_t calls, open;
    Ns time, time_min, time_max, nested, mpi;
  };

  // How long the iterations of a loop took on one rank.
  struct LoopRow {
    Within within;
    int rank;
    std::array<std::uint64_t, 64> bins;
  };

  struct QuantityRow {
    std::uint32_t quantity;  // index
    Within within;
    int rank;
    std::uint64_t count, not_finite;
    double sum, min, max, last;
  };

  // Messages of one kind and size between a rank and a peer.
  struct PeerRow {
    std::uint32_t comm;  // index
    Flow flow;
    std::uint32_t op;
    std::uint32_t region;  // index
    std::uint64_t slice;
    int rank, peer;            // peer: world rank, or as PeerCell::world
    std::uint32_t first;       // in the communicator; no_peer: of a shape
    std::uint32_t peers, bin;  // peers: how many from `first` on
    std::uint32_t call;        // as PeerPlace has it
    std::uint64_t messages, bytes;
  };

  // What ranks do oddly: one of them, its words, and how many there are.
  struct Oddity {
    int rank = 0;
    std::string text;
    std::uint64_t ranks = 0;
  };
  using Oddities = std::map<Notice, Oddity>;

  // What one rank did in one slice of time.
  struct Slice {
    std::uint32_t comm, op;  // indices
    int rank;
    std::uint64_t slot;
    std::uint64_t calls;
    Ns time;
    std::uint64_t bytes_sent, bytes_received;
  };

  // What is counted of a line: of a communicator and the like as in view cell, of the whole run as in tables rank and
  // overhead.
  enum class Counter : std::uint8_t {
    calls,
    time,
    time_min,
    time_max,
    bytes_sent,
    bytes_received,
    noncontiguous,
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
    own_wait
  };

  // What all ranks together say; numbers of the catalogue, -1: all of them.
  struct Line {
    int family = -1, comm = -1, op = -1, bin = -1, site = -1, key = -1, region = -1;
    std::int64_t members = -1;
    std::map<Counter, Spread> counters;
  };

  // Adds what one rank sent; false when it cannot be read, and then nothing of it is added.
  bool add(const char* bytes, std::size_t size);

  // After the last rank: everything in the order it is written, with the numbers of a catalogue that knows what is
  // here. own: how much of the dictionary the ranks here have told.
  void settle(Catalogue catalogue, const Dictionary::Size& own);
  void finish() { settle(dictionary.catalogue(), dictionary.size()); }

  int world_size = 1;  // processes of MPI_COMM_WORLD, as far as is known here
  Dictionary dictionary;
  std::vector<Rank> ranks;
  std::vector<Row> rows;       // by (key, rank)
  Ns slice_ns = 1;             // width of a slice, the same for all ranks
  bool slices_folded = false;  // the communicators of a family are counted together, as the first of them
  std::vector<Slice> slices;   // by (communicator, procedure, rank, slot); comm is a region where op is region_op
  std::vector<RegionRow> region_rows, loop_rows;  // by (region, execution, iteration, rank); loop_rows: of iterations
  std::vector<LoopRow> loop_bins;                 // likewise
  std::vector<QuantityRow> quantity_rows;         // by (quantity, region, execution, iteration, rank)
  std::vector<PeerRow> peer_rows;                 // in the order of their members
  Oddities oddities;
  std::vector<Place> places;  // by rank and thread
  std::vector<Line> lines;    // of a summary, which has no rows
  bool is_summary = false;
  // Which entries of the catalogue the ranks here have told of; parents and members of sets are among them.
  std::vector<char> has_comm, has_site, has_region, has_quantity, has_key;

 private:
  // What one rank sent, in its own numbers.
  struct Told {
    Rank rank;
    std::vector<SiteFacts> sites;
    std::vector<std::pair<std::uint64_t, CommDraft>> comms;
    std::vector<std::pair<KeyFacts, Row>> cells;
    Ns slice_ns = 1;
    bool slices_folded = false;
    std::vector<Slice> slices;
    std::vector<PeerRow> peer_rows;
    std::vector<Place> places;
    std::vector<RegionFacts> regions;
    std::vector<RegionRow> region_rows, loop_rows;
    std::vector<LoopRow> loop_bins;
    std::vector<QuantityFacts> quantities;
    std::vector<QuantityRow> quantity_rows;
    std::vector<TagFacts> tags;
    std::vector<NoticeText> notices;
  };

  static bool read(WireReader& in, Told& told);
  static void read_regions(WireReader& in, Told& told);
  static void read_peers(WireReader& in, Told& told);
  void add_regions(Told& told, const std::vector<std::uint32_t>& numbers);
  void settle_regions(const Dictionary::Numbers& numbers);
  void settle_slices(const Dictionary::Numbers& numbers);
  void settle_peers(const Dictionary::Numbers& numbers);

  std::vector<std::pair<Ns, std::vector<Slice>>> told_slices_;   // of each rank, with its own width
  std::vector<std::pair<Ns, std::vector<PeerRow>>> told_peers_;  // likewise
};

// What several have said is added to what is there.
void add_oddities(Profile::Oddities& to, const Profile::Oddities& more);
void write_oddities(WireWriter& out, const Profile::Oddities& oddities);
void read_oddities(WireReader& in, Profile::Oddities& to);

}  // namespace commlens
