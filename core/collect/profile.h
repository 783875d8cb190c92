// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/cold/counted.h"
#include "core/cold/wire.h"
#include "core/collect/dictionary.h"

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
  };

  // What one rank did in one slice of time.
  struct Slice {
    std::uint32_t comm, op;  // indices
    int rank;
    std::uint64_t slot;
    std::uint64_t calls;
    Ns time;
    std::uint64_t bytes_sent, bytes_received;
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
  std::vector<Slice> slices;   // by (communicator, procedure, rank, slot)
  std::vector<Place> places;   // by rank and thread
  // Which entries of the catalogue the ranks here have told of; parents and members of sets are among them.
  std::vector<char> has_comm, has_site, has_key;

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
    std::vector<Place> places;
  };

  static bool read(WireReader& in, Told& told);
  void settle_slices(const Dictionary::Numbers& numbers);

  std::vector<std::pair<Ns, std::vector<Slice>>> told_slices_;  // of each rank, with its own width
};

}  // namespace commlens
