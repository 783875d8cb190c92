// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/identity.h"
#include "core/state/datatypes.h"
#include "core/state/regions.h"
#include "core/state/registry.h"
#include "core/state/site_facts.h"

namespace commlens {

// The final dictionary of a profile: the entries to which its rows refer, with their numbers in the file.
struct Catalogue {
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
  struct Region {
    Identity identity = 0;  // of its whole path
    int parent = -1;        // index into regions, -1: none
    RegionKind kind = RegionKind::program;
    std::string name;
  };
  struct Tag {
    std::uint32_t region;  // index
    std::string name, value;
  };
  struct KeyFacts {
    std::uint32_t comm, op, bin, region, site;                       // indices
    std::uint64_t calls, bytes_sent, bytes_received, noncontiguous;  // those of the majority of ranks, if there is one
  };

  std::vector<Comm> comms;               // comms[0] is "no communicator"
  std::vector<SiteFacts> sites;          // sites[0] is "no call site"
  std::vector<Region> regions;           // regions[0] is the whole program; parents first
  std::vector<MetricFacts> metrics;      // metrics[0] is none
  std::vector<DatatypeFacts> datatypes;  // datatypes[0] is none
  std::vector<Tag> tags;
  std::vector<KeyFacts> keys;  // sorted by comm, op, bin, region, site

  // Returns the index of a key.  pre: `keys` contains it.
  std::size_t find(const KeyFacts& key) const;

  // Serialisation, for the way from rank 0 to the other aggregators.  unpack() returns false if the bytes are garbled.
  std::vector<char> packed() const;
  bool unpack(const std::vector<char>& bytes);
};

// The counters whose majority value is stored with a key.
inline constexpr std::uint64_t Catalogue::KeyFacts::* counters_of_key[] = {
    &Catalogue::KeyFacts::calls, &Catalogue::KeyFacts::bytes_sent, &Catalogue::KeyFacts::bytes_received,
    &Catalogue::KeyFacts::noncontiguous};

// Returns what distinguishes a key from all others, in the order of the keys.
inline auto key_of(const Catalogue::KeyFacts& k) { return std::make_tuple(k.comm, k.op, k.bin, k.region, k.site); }

}  // namespace commlens
