// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "core/cold/counted.h"
#include "core/collect/group.h"
#include "core/out/sqlite.h"

namespace commlens {

// From many ranks to one profile, in three phases: aggregators gather the rows of a block of ranks each, agree on the
// numbers of what the rows refer to, and write a file each, or the one file where there is one aggregator.
struct Terms {
  std::function<Counted()> counted;   // may throw
  std::function<out::Meta()> meta;    // asked on rank 0
  std::function<std::string()> name;  // of the profile; asked on rank 0
  bool in_session = false;            // this process goes on counting
  unsigned long aggregators = 0;      // 0: as many as suit what there is; the largest of all ranks counts
  bool summary = false;               // what all ranks together say instead of rows for each, if one asks for it
  bool quiet = false;
  mode_t mode = out::usual_mode;  // of the files
  std::string kept;               // where what was counted is when it cannot be stored; empty: in the arenas
  Ticks begin = 0;                // when collecting began here
  Ticks (*clock)() = now;         // of the phases
};

enum class Collected {
  stored,      // what this rank counted is in a profile
  not_stored,  // it is not; what is to be known of it has been said
  too_early,   // some rank goes on counting; nothing has been done
};

// All ranks of the group call it.
Collected collect_together(Group& group, const Terms& terms);

// Writes the one file of a profile, of `ranks` processes; false when nothing is written, which has been said.
bool write_file(const Terms& terms, int ranks, Profile& profile, out::Phases phases);

// How many ranks make a block with that many aggregators; 0: as many as suit `rows`, the cells of all ranks.
int block_size(int ranks, unsigned long aggregators, std::uint64_t rows);

}  // namespace commlens
