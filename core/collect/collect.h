// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "core/collect/group.h"
#include "core/out/sqlite.h"
#include "core/state/counted.h"

namespace commlens {

// Merges the counters of all ranks into one profile.  Phase 1: each aggregator gathers the rows of its block of ranks.
// Phase 2: the aggregators assign global ids.  Phase 3: each aggregator writes one shard; a single aggregator writes
// the profile itself.
struct CollectOptions {
  std::function<Counted()> counted;   // may throw
  std::function<out::Meta()> meta;    // asked on rank 0
  std::function<std::string()> name;  // of the profile; asked on rank 0
  bool in_session = false;            // this process has an MPI session open and continues to count
  unsigned long aggregators = 0;      // 0: chosen by the number of rows; the largest value of all ranks counts
  bool summary = false;               // distributions over the ranks instead of rows per rank, if any rank asks for it
  bool quiet = false;
  mode_t mode = out::usual_mode;  // of the files
  std::string kept;               // where the counters are if the profile cannot be stored; empty: in the arenas
  Ticks begin = 0;                // when collecting began here
  Ticks (*clock)() = now;         // of the phases
};

enum class Collected {
  stored,      // the counters of this rank are in a profile
  not_stored,  // they are not; a message has been printed
  too_early,   // some rank continues to count; nothing has been done
};

// Collective over the group.
Collected collect_together(Group& group, const CollectOptions& options);

// Writes a profile of `ranks` processes as one file.  Returns false, after a message, if nothing is written.
bool write_file(const CollectOptions& options, int ranks, Profile& profile, out::Phases phases);

// Returns the number of ranks per aggregator.  aggregators = 0 chooses it by `rows`, the number of cells of all ranks.
int block_size(int ranks, unsigned long aggregators, std::uint64_t rows);

}  // namespace commlens
