// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/cold/coverage.h"
#include "core/cold/identity.h"
#include "core/cold/registry.h"
#include "core/cold/ticks.h"
#include "core/cold/wire.h"

namespace commlens {

// The facts of one process that no cell holds.  Times in nanoseconds.
struct RankFacts {
  int rank = 0;
  Identity world = 0;
  std::string node;
  int pid = 0;
  std::string cpus;
  Ns init_ns = 0;
  Ns app_ns = 0;
  int threads = 0;
  Ns own_init_ns = 0;     // what we added to MPI_Init
  Ns own_collect_ns = 0;  // and to MPI_Finalize, up to sending
  Ns own_call_ns = 0;     // estimated, for one call
  std::string coverage;   // what it imports, as written() by coverage.h
};

// Returns what this process counted, for Profile::add(): cells of all its threads merged, times in nanoseconds.
// start: when MPI_Init returned.  collecting: when MPI_Finalize was called.
std::vector<char> packed(const RankFacts& facts, const Registry& registry, Ticks start, Ticks collecting);

// The tables of a profile, before they become SQLite: what the ranks sent, merged by identity.
class Profile {
 public:
  struct Rank {
    RankFacts facts;
    std::uint64_t calls = 0, lost_calls = 0;
    Ns mpi_ns = 0;
  };
  struct Comm {
    Identity identity = 0;
    CommKind kind = CommKind::none;
    std::string name, user_name, topology, members;
    int parent = -1;  // index into comms, -1: none
    std::uint32_t op = 0;
    int site = -1;  // index into sites, -1: none
    int size = -1, remote_size = -1, leader = -1;
    std::int64_t created_ns = -1, freed_ns = -1;
    int family = 0;
    std::uint32_t communicators = 1;
    std::vector<int> set;  // indices into comms
  };
  struct SiteFacts {
    std::string module, build_id;
    std::uint64_t offset;
  };
  struct KeyFacts {
    std::uint32_t comm, op, bin, region, site;  // indices
  };
  struct Row {
    std::uint32_t key;
    int rank;
    std::uint64_t calls;
    Ns time, time_min, time_max;
    std::uint64_t bytes_sent, bytes_received;
    std::uint64_t noncontiguous;  // calls
  };

  // A name that objects of this name import on some ranks; where ranks differ, the worst treatment.
  struct ImportedName {
    Treatment treatment;
    int ranks;
  };

  // Adds what one rank sent; false when it cannot be read, and then nothing of it is added.
  bool add(const char* bytes, std::size_t size);

  // After the last rank: names, families, member lists, and everything in the order it is written.
  void finish();

  std::vector<Rank> ranks;
  std::vector<Comm> comms;       // comms[0] is "no communicator"
  std::vector<SiteFacts> sites;  // sites[0] is "no call site"
  std::vector<KeyFacts> keys;
  std::vector<Row> rows;                                                 // by (key, rank)
  std::map<std::pair<std::string, std::string>, ImportedName> coverage;  // by symbol and object

 private:
  struct Member {
    bool second_side;
    int rank_in_comm;
    int world_rank;
  };
  // What one rank said of a communicator; the best placed rank's word counts.
  struct Draft {
    Comm comm;
    Identity parent = 0;
    std::vector<Identity> set;
    char letter = '-';
    std::uint32_t count = 0;
    Member teller{};
    std::vector<Member> members;
  };

  // What one rank sent, in its own numbers.
  struct Told {
    Rank rank;
    std::vector<SiteFacts> sites;
    std::vector<std::pair<std::uint64_t, Draft>> comms;
    std::vector<std::pair<KeyFacts, Row>> cells;
  };

  static bool read(WireReader& in, Told& told);
  bool take_imports(std::string told);
  std::uint32_t absorb(Draft told);
  std::uint32_t draft_index(Identity identity);
  std::string ranges_of(const std::vector<Member>& members, bool second_side) const;
  int family_of(std::size_t comm, std::map<std::tuple<int, std::uint32_t, int, char>, int>& families);

  std::vector<Draft> drafts_{1};
  std::unordered_map<std::string, int> imports_;  // what ranks import, and how many ranks import just that
  std::unordered_map<Identity, std::uint32_t> by_identity_{{0, 0}};
  std::map<std::tuple<std::string, std::string, std::uint64_t>, std::uint32_t> by_site_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t>
      by_key_;
};

}  // namespace commlens
