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

#include "core/base/identity.h"
#include "core/base/wire.h"
#include "core/process/coverage.h"
#include "core/process/settings.h"
#include "core/profile/catalogue.h"
#include "core/profile/members.h"
#include "core/state/counted.h"

namespace commlens {

// Bits: the facts in which communicators that share a row differ.
enum Difference : std::uint8_t {
  different_leaders = 1,
  different_names = 2,
  different_topologies = 4,
  different_sites = 8
};

// The report of one rank about a communicator; after merging, the report of all ranks together.
struct CommDraft {
  Catalogue::Comm comm;
  Identity parent = 0;
  std::vector<Identity> set;
  char letter = '-';
  std::uint32_t count = 0;
  unsigned differences = 0;
  // The member that reported this.  If the members differ, the report of the lowest (second_side, rank_in_comm,
  // world_rank) counts.
  bool second_side = false;
  int rank_in_comm = 0;
  int world_rank = 0;
};

// Texts of each rank that most ranks have in common: its imports (process/coverage.h), its settings
// (process/settings.h).
enum class TextKind : std::uint8_t { imports, settings };
using RankText = std::pair<TextKind, std::string>;

// Checksum of a dictionary.  Dictionaries with equal entries have equal digests.
struct Digest {
  std::uint64_t entries = 0, sum = 0, mixed_sum = 0;
  bool operator==(const Digest& other) const {
    return entries == other.entries && sum == other.sum && mixed_sum == other.mixed_sum;
  }
};

Digest digest_of(const std::vector<Identity>& identities);

// Communicators, call sites, regions, metrics, datatypes, tags, keys and texts of ranks.  An entry is found by its
// identity, so that an entry that several ranks report is stored once.  Entries are numbered in order of arrival;
// catalogue() assigns the final numbers.
class Dictionary {
 public:
  Dictionary();

  std::uint32_t site(SiteFacts site);
  std::uint32_t region(std::uint32_t parent, RegionKind kind, std::string name);
  std::uint32_t metric(MetricFacts metric);
  std::uint32_t datatype(DatatypeFacts datatype);
  void tag(std::uint32_t region, std::string name, std::string value);
  std::uint32_t comm(CommDraft reported);                         // reported by one rank, which is a member
  std::uint32_t key(const Catalogue::KeyFacts& key);              // with the counters of one rank
  bool add_text(TextKind kind, std::string text, int ranks = 1);  // false: garbled

  // From now on, one entry stands for all sibling communicators that one collective call created (CommRecord::kin).
  // Their members are not recorded.  Each leader reports how many communicators it leads.
  void fold() { folds_ = true; }

  // The identities of each communicator and of its family, by index.  A family is computed from the ancestors that this
  // dictionary contains.
  struct CommAndFamily {
    Identity comm, family;
  };
  std::vector<CommAndFamily> comm_identities() const;

  // Call sites of the communicators for which ranks report different ones.  Rank 0, whose dictionary contains all
  // reports, chooses them and sends them to the others.  Otherwise a rank could take two families for one.  Returns
  // false if the bytes are garbled.
  std::vector<char> settled_sites() const;
  bool settle_sites(const std::vector<char>& bytes);
  // Returns communicator (index), procedure, bin, and the identities of region and call site of a key.
  std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, Identity, Identity> key_at(std::uint32_t key) const {
    const Catalogue::KeyFacts& k = keys_[key];
    return {k.comm, k.op, k.bin, regions_[k.region].identity, site_identities_[k.site]};
  }
  Identity region_at(std::uint32_t region) const { return regions_[region].identity; }

  // Return the index of an identity; 0: not in this dictionary.
  std::uint32_t comm_of(Identity comm) const;
  std::uint32_t site_of(Identity site) const;
  std::uint32_t region_of(Identity region) const;

  // Adds a rank to the block of ranks that have reported.  Ranks should be consecutive; otherwise digests differ
  // without need.
  void add_rank(int rank);
  const Block& block() const { return block_; }

  // Merging another dictionary into this one.  The receiver compares the digests.  If they differ, it compares the
  // identities of the entries and asks for those that it lacks.  Entries that it has already then hold for the ranks of
  // both blocks.
  std::vector<Identity> identities() const;                          // of the entries
  std::vector<char> entries(const std::vector<char>& wanted) const;  // those whose `wanted` is not 0
  std::vector<char> wanted(const std::vector<Identity>& identities, const Block& from);
  bool add_entries(const std::vector<char>& bytes, const Block& from);
  void add_block(const Block& block);
  void add_same(const Block& from);  // the other dictionary has the same entries

  Catalogue catalogue() const;

  // How an imported name is treated, and how many ranks import it.  If ranks differ in the treatment, the worst one
  // counts.
  struct ImportedName {
    Treatment treatment;
    int ranks;
  };
  std::map<std::pair<std::string, std::string>, ImportedName> coverage() const;  // by symbol and object
  // Number of ranks, by source, name and value as `stored` returns them: different texts may be stored alike.
  using SettingTexts = std::tuple<std::string, std::string, std::string>;
  std::map<SettingTexts, int> settings(std::string (*stored)(const std::string&)) const;

  // The number of entries of each kind.  Entries that arrive later have higher numbers.
  struct Size {
    std::size_t comms, sites, regions, metrics, datatypes, keys;
  };
  Size size() const {
    return {drafts_.size(), sites_.size(), regions_.size(), metrics_.size(), datatypes_.size(), keys_.size()};
  }

  // Maps the numbers of this dictionary to those of a catalogue.  pre: the catalogue contains all entries of this
  // dictionary.
  struct Numbers {
    std::vector<std::uint32_t> comms, sites, regions, metrics, datatypes, keys;
  };
  Numbers numbers_in(const Catalogue& catalogue) const;

 private:
  struct Draft {
    CommDraft facts;
    MemberRuns members[2];
  };
  using KeyOf = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;

  bool add_comm(WireReader& in);
  std::vector<std::uint32_t> add_sites(Catalogue& to) const;
  std::vector<std::uint32_t> add_regions(Catalogue& to) const;
  std::vector<std::uint32_t> comms_in_order() const;
  Catalogue::Comm numbered(const Draft& draft, const std::vector<std::uint32_t>& new_site,
                           const std::vector<std::uint32_t>& new_comm) const;
  std::uint32_t draft_index(Identity identity);
  Draft& absorb(CommDraft reported);
  void compare(CommDraft& known, CommDraft& reported) const;
  void extend(Draft& draft, const Block& to) const;
  int extended(int ranks, const Block& by) const;
  Identity identity(const Draft& draft) const;
  Identity identity(const Catalogue::KeyFacts& key) const;
  Identity identity(const RankText& text, int ranks) const;
  static Identity identity_of_tag(const std::tuple<Identity, std::string, std::string>& tag);
  static void write(WireWriter& out, const Draft& draft, Identity site);

  Block block_{};
  bool folds_ = false;
  std::vector<Draft> drafts_;
  std::unordered_map<Identity, std::uint32_t> by_identity_;
  std::vector<SiteFacts> sites_;
  std::vector<Identity> site_identities_;
  std::unordered_map<Identity, std::uint32_t> by_site_;
  std::vector<Catalogue::Region> regions_;  // parents first; Region::parent is an index into this vector
  std::unordered_map<Identity, std::uint32_t> by_region_;
  std::vector<MetricFacts> metrics_;
  std::unordered_map<Identity, std::uint32_t> by_metric_;
  std::vector<DatatypeFacts> datatypes_;
  std::unordered_map<Identity, std::uint32_t> by_datatype_;
  std::set<std::tuple<Identity, std::string, std::string>> tags_;  // by identity of the region
  std::unordered_map<Identity, Identity> settled_sites_;           // of the call site, by identity of the communicator
  std::vector<Catalogue::KeyFacts> keys_;
  std::vector<std::array<std::uint32_t, 4>> votes_;  // for the majority value of each counter; by index of the key
  std::map<KeyOf, std::uint32_t> by_key_;
  std::map<RankText, int> texts_;  // how many ranks have exactly this one
};

}  // namespace commlens
