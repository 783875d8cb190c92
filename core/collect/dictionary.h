// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/cold/counted.h"
#include "core/cold/coverage.h"
#include "core/cold/identity.h"
#include "core/cold/wire.h"
#include "core/collect/members.h"

namespace commlens {

// What the rows of a profile refer to by number, as it is written.
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
    std::uint64_t calls, bytes_sent, bytes_received, noncontiguous;  // as most ranks have them, if most have the same
  };

  std::vector<Comm> comms;                // comms[0] is "no communicator"
  std::vector<SiteFacts> sites;           // sites[0] is "no call site"
  std::vector<Region> regions;            // regions[0] is the whole program; parents first
  std::vector<QuantityFacts> quantities;  // quantities[0] is none
  std::vector<Tag> tags;
  std::vector<KeyFacts> keys;  // in the order of their members

  // The index of a key that is here.
  std::size_t find(const KeyFacts& key) const;

  // For the way from the one who made it to all others.
  std::vector<char> packed() const;
  bool unpack(const std::vector<char>& bytes);
};

// What not all tell alike of communicators that share a row; bits.
enum Unlike : std::uint8_t { unlike_leaders = 1, unlike_names = 2, unlike_topologies = 4, unlike_sites = 8 };

// What one rank says of a communicator, and what is known when all have.
struct CommDraft {
  Catalogue::Comm comm;
  Identity parent = 0;
  std::vector<Identity> set;
  char letter = '-';
  std::uint32_t count = 0;
  unsigned unlike = 0;
  // The member whose word this is: the best placed one's counts.
  bool second_side = false;
  int rank_in_comm = 0;
  int world_rank = 0;
};

// A dictionary in few bytes: those that say the same have the same.
struct Digest {
  std::uint64_t entries = 0, sum = 0, mixed_sum = 0;
  bool operator==(const Digest& other) const {
    return entries == other.entries && sum == other.sum && mixed_sum == other.mixed_sum;
  }
};

Digest digest_of(const std::vector<Identity>& identities);

// Communicators, call sites, keys and imported names, known by what they are: what several ranks have in common is
// there once.  Numbers are those of the order in which things came, until catalogue() gives them their own.
class Dictionary {
 public:
  Dictionary();

  std::uint32_t site(SiteFacts site);
  std::uint32_t region(std::uint32_t parent, RegionKind kind, std::string name);
  std::uint32_t quantity(QuantityFacts quantity);
  void tag(std::uint32_t region, std::string name, std::string value);
  std::uint32_t comm(CommDraft told);                 // told by one rank, which is a member
  std::uint32_t key(const Catalogue::KeyFacts& key);  // with what one rank counted
  bool imports(std::string told, int ranks = 1);      // false: garbled

  // From now on communicators are those that one call made on all ranks: of which nobody tells who is in them, and each
  // leader how many there are.
  void fold() { folds_ = true; }

  // What the entries are, by index: the communicator and its family as far as is known here, and the parts of a key.
  struct Place {
    Identity comm, family;
  };
  std::vector<Place> places() const;

  // The call sites that stand where ranks tell different ones, from the one who knows all that is here to the others:
  // or a rank would take for one family what are two.  false: garbled.
  std::vector<char> settled_sites() const;
  bool settle_sites(const std::vector<char>& bytes);
  std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, Identity, Identity> key_at(std::uint32_t key) const {
    const Catalogue::KeyFacts& k = keys_[key];
    return {k.comm, k.op, k.bin, regions_[k.region].identity, site_identities_[k.site]};
  }
  Identity region_at(std::uint32_t region) const { return regions_[region].identity; }

  // Their indices; 0: not here.
  std::uint32_t comm_of(Identity comm) const;
  std::uint32_t site_of(Identity site) const;
  std::uint32_t region_of(Identity region) const;

  // The ranks that have told something; they follow each other, or digests differ where they need not.
  void add_rank(int rank);
  const Block& block() const { return block_; }

  // How one dictionary becomes part of another: the other one's owner looks at the digest, then at what each entry is,
  // and asks for those it does not have.  What it has already is true of both blocks then.
  std::vector<Identity> identities() const;                          // of the entries
  std::vector<char> entries(const std::vector<char>& wanted) const;  // those where wanted is not 0
  std::vector<char> wanted(const std::vector<Identity>& identities, const Block& from);
  bool add_entries(const std::vector<char>& bytes, const Block& from);
  void add_block(const Block& block);
  void add_same(const Block& from);  // all entries are the same there

  Catalogue catalogue() const;

  // An imported name, and how many ranks import it; where they differ in what becomes of it, the worst.
  struct ImportedName {
    Treatment treatment;
    int ranks;
  };
  std::map<std::pair<std::string, std::string>, ImportedName> coverage() const;  // by symbol and object

  // How much is here; what came first has the lower numbers.
  struct Size {
    std::size_t comms, sites, regions, quantities, keys;
  };
  Size size() const { return {drafts_.size(), sites_.size(), regions_.size(), quantities_.size(), keys_.size()}; }

  // From the numbers here to those of a catalogue that knows all that is here.
  struct Numbers {
    std::vector<std::uint32_t> comms, sites, regions, quantities, keys;
  };
  Numbers numbers_in(const Catalogue& catalogue) const;

 private:
  struct Draft {
    CommDraft told;
    Members members[2];
  };
  using KeyOf = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;

  std::vector<std::uint32_t> add_regions(Catalogue& to) const;
  std::uint32_t draft_index(Identity identity);
  Draft& absorb(CommDraft told);
  void compare(CommDraft& known, CommDraft& told) const;
  void extend(Draft& draft, const Block& to) const;
  int extended(int ranks, const Block& by) const;
  Identity identity(const Draft& draft) const;
  Identity identity(const Catalogue::KeyFacts& key) const;
  Identity identity(const std::string& import, int ranks) const;
  static Identity identity_of_tag(const std::tuple<Identity, std::string, std::string>& tag);
  static void write(WireWriter& out, const Draft& draft, Identity site);

  Block block_{};
  bool folds_ = false;
  std::vector<Draft> drafts_;
  std::unordered_map<Identity, std::uint32_t> by_identity_;
  std::vector<SiteFacts> sites_;
  std::vector<Identity> site_identities_;
  std::unordered_map<Identity, std::uint32_t> by_site_;
  std::vector<Catalogue::Region> regions_;  // parents first, and each by its number here
  std::unordered_map<Identity, std::uint32_t> by_region_;
  std::vector<QuantityFacts> quantities_;
  std::unordered_map<Identity, std::uint32_t> by_quantity_;
  std::set<std::tuple<Identity, std::string, std::string>> tags_;  // by identity of a region
  std::unordered_map<Identity, Identity> settled_sites_;           // by communicator
  std::vector<Catalogue::KeyFacts> keys_;
  std::vector<std::array<std::uint32_t, 4>> votes_;  // for what they say is usual; by index of a key
  std::map<KeyOf, std::uint32_t> by_key_;
  std::map<std::string, int> imports_;  // what ranks import, and how many ranks import just that
};

}  // namespace commlens
