// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/collect/profile.h"

namespace commlens {

// What all ranks together say, reduced on the way to rank 0: as many lines as the application has different things to
// count, however many ranks count them.
class Summary {
 public:
  // What a line is about, by identities: ranks have no numbers in common.
  struct About {
    enum Level : std::uint8_t { run, family, family_op, family_site, comm, comm_op, key, region_only } level = run;
    Identity whose = 0;  // the communicator's or the family's
    std::uint32_t op = 0, bin = 0;
    Identity region = 0, site = 0;

    bool operator<(const About& other) const {
      return std::tie(level, whose, op, bin, region, site) <
             std::tie(other.level, other.whose, other.op, other.bin, other.region, other.site);
    }
  };

  Summary() = default;
  explicit Summary(const Profile& profile);  // of one rank

  std::vector<char> packed() const;
  bool add(const std::vector<char>& packed);  // false: garbled, and then some of it may be here

  // With the numbers of the profile; its dictionary knows what the ranks here have told.
  std::vector<Profile::Line> lines(const Profile& profile) const;

  const Spread* of_run(Profile::Counter counter) const;  // null: no rank has told anything
  const std::set<std::string>& nodes() const { return nodes_; }
  const Profile::Oddities& oddities() const { return oddities_; }

 private:
  struct Line {
    Identity comm = 0;  // it itself, or one of the family
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
