// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/profile/profile.h"

namespace commlens {

// The distributions of a summary, reduced over a tree to rank 0.  The number of lines depends on what the application
// calls, not on the number of ranks.
class Summary {
 public:
  // The subject of a line, given by identities: before the dictionaries are merged, ranks share no numbers.
  struct About {
    enum Level : std::uint8_t { run, family, family_op, family_site, comm, comm_op, key, region_only } level = run;
    Identity whose = 0;  // of the communicator or the family
    std::uint32_t op = 0, bin = 0;
    Identity region = 0, site = 0;

    bool operator<(const About& other) const {
      return std::tie(level, whose, op, bin, region, site) <
             std::tie(other.level, other.whose, other.op, other.bin, other.region, other.site);
    }
  };

  Summary() = default;
  explicit Summary(const Profile& profile);  // the profile of one rank

  std::vector<char> packed() const;
  bool add(const std::vector<char>& packed);  // false: garbled, and part of it may have been added

  // Returns the lines with the numbers of the profile.  pre: the profile's dictionary contains what all ranks of this
  // summary reported.
  std::vector<Profile::Line> lines(const Profile& profile) const;

  const Spread* of_run(Profile::Counter counter) const;  // null: no rank has been added
  const std::set<std::string>& nodes() const { return nodes_; }
  const Profile::Oddities& oddities() const { return oddities_; }

 private:
  struct Line {
    Identity comm = 0;  // this communicator, or one of the family
    std::uint64_t members = 0;
    std::map<Profile::Counter, Spread> counters;

    void add(const Line& other);
  };

  void add_run(const Profile::Rank& rank);

  std::map<About, Line> lines_;
  std::set<std::string> nodes_;
  Profile::Oddities oddities_;
};

}  // namespace commlens
